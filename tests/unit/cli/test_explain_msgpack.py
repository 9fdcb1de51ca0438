"""The msgpack of a checkpoint as JSON text, whatever part of it a window holds."""

from __future__ import annotations

import io
import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgpack import ExtType, packb  # type: ignore[import-untyped]

from agent_otel.explain.msgpack_text import DamagedError, json_text
from tests.rows import each_row
from tests.unit.cli.running import run
from tests.unit.cli.test_explain import explained

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WINDOWS = (33, 100, 32 * 1024)  # the longest value without a header of its own has 33 bytes
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(TEXT, inner, max_size=20),
)


def written(data: bytes, window: int = 33) -> Any:
    """Return the value of the JSON text of msgpack."""
    return json.loads("".join(json_text(io.BytesIO(data).read, window)))


def constructed(code: int, *arguments: object) -> ExtType:
    """Return an object as LangGraph writes it."""
    return ExtType(code, packb(arguments))


@settings(max_examples=60)
@given(VALUES, st.sampled_from(WINDOWS))
def test_a_value_comes_back(value: Any, window: int) -> None:
    assert value == written(packb(value), window)


@each_row("size", [0, 15, 16, 31, 32, 255, 256, 65_535, 65_536])
@each_row(
    "make", [lambda size: "é" * size, lambda size: ["a"] * size, lambda size: dict.fromkeys(map(str, range(size)))]
)
def test_headers_of_all_lengths(make: Callable[[int], Any], size: int) -> None:
    value = make(size)
    assert value == written(packb(value))


@each_row("window", WINDOWS)
def test_objects_are_their_fields(window: int) -> None:
    """An object in an object, of which the second is a message; those without an argument are null."""
    message = constructed(5, "langchain_core.messages.tool", "ToolMessage", {"content": "row " * 100}, "model_validate")
    state = constructed(2, "app", "State", {"messages": [message, constructed(0, "uuid")], "after": 1})
    found = written(packb({"state": state, "more": [True]}), window)
    assert {"state": {"messages": [{"content": "row " * 100}, None], "after": 1}, "more": [True]} == found


@each_row("window", WINDOWS)
def test_binary_data_has_its_size(window: int) -> None:
    first, second = b"\0" * 300, bytes(range(256))
    found = written(packb([first, second, ExtType(6, second), ExtType(99, b""), {b"key": 1}]), window)
    assert [300, 256, 256, 0] == [len(text.encode()) for text in found[:4]]
    assert found[1] == found[2] != found[0]
    assert [3] == [len(key) for key in found[4]]


@each_row("window", WINDOWS)
def test_keys_that_json_has_not_are_text(window: int) -> None:
    packed = packb({1: 1, None: 2, (3, "x"): 3, "k" * 200: 4})
    assert {"1": 1, "null": 2, '[3, "x"]': 3, "k" * 200: 4} == written(packed, window)
    key_is_map = b"\x81" + packb({"a": 1}) + packb("value")
    assert {'{"a": 1}': "value"} == written(key_is_map, window)


@each_row("window", WINDOWS)
@each_row(
    ("data", "message"),
    [
        (b"", "it ends after 0 bytes"),
        (b"\x92\x01", "it ends after 2 bytes"),
        (packb("x" * 300)[:100], "it ends after 100 bytes"),
        (b"\x92\x01\xc1", "byte 2 begins no value"),
        (packb(ExtType(5, packb(["a", "b", {"content": "x" * 100}])))[:50], "it ends after 50 bytes"),
    ],
)
def test_damaged_data_is_an_error(data: bytes, message: str, window: int) -> None:
    with pytest.raises(DamagedError, match=message):
        written(data, window)


def file_of(folder: Path, kind: str, checkpoint: bytes) -> Path:
    """Return a file with one checkpoint, in the table of ``langgraph-checkpoint-sqlite``."""
    path = folder / "checkpoints.sqlite"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE checkpoints (thread_id, checkpoint_ns, checkpoint_id, type, checkpoint)")
        database.execute("INSERT INTO checkpoints VALUES ('support', '', '1', ?, ?)", (kind, checkpoint))
    return path


@pytest.mark.parametrize(("kind", "pack"), [("msgpack", packb), ("json", lambda value: json.dumps(value).encode())])
def test_a_checkpoint_of_each_encoding(tmp_path: Path, kind: str, pack: Callable[[Any], bytes]) -> None:
    """The text has 50,000 bytes, more than a window; with its quotes it has two more."""
    found = explained(file_of(tmp_path, kind, pack({"channel_values": {"table": "x" * 50_000}})))
    assert {"channel_values.table": 50_002} == found["breakdown"]["paths"]
    assert 50_002 + len('{"channel_values": {"table": }}') == found["payload_bytes"]


@each_row(
    ("kind", "checkpoint", "message"),
    [
        ("msgpack", packb({"table": "x" * 50_000})[:-1], "the last checkpoint cannot be decoded: it ends after "),
        ("msgpack", b"\x91" * 20_000 + b"\xc0", "the last checkpoint cannot be decoded: "),
        ("msgpack+aes", b"secret", "the last checkpoint is msgpack+aes, which is not read"),
        ("msgpack", None, "the last checkpoint cannot be decoded: "),
    ],
    ids=["cut", "too deep", "encrypted", "none"],
)
def test_a_checkpoint_that_cannot_be_read(tmp_path: Path, kind: str, checkpoint: bytes, message: str) -> None:
    ran = run("explain", file_of(tmp_path, kind, checkpoint))
    assert (1, "") == (ran.code, ran.out)
    assert message in ran.err
