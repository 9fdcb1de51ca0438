"""The msgpack of a checkpoint as JSON text."""

from __future__ import annotations

import json
import sqlite3
import zlib
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgpack import ExtType, packb  # type: ignore[import-untyped]

from agent_otel.explain import formats
from agent_otel.explain.formats import json_text
from tests.rows import each_row
from tests.unit.cli.running import run
from tests.unit.cli.test_explain import explained

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(TEXT, inner, max_size=20),
)


def written(data: bytes) -> Any:
    """Return the value of the JSON text of msgpack."""
    return json.loads(json_text(data))


def constructed(code: int, *arguments: object) -> ExtType:
    """Return an object as LangGraph writes it."""
    return ExtType(code, packb(arguments))


@settings(max_examples=60)
@given(VALUES)
def test_a_value_comes_back(value: Any) -> None:
    assert value == written(packb(value))


@each_row("size", [0, 15, 16, 31, 32, 255, 256, 65_535, 65_536])
@each_row(
    "make", [lambda size: "é" * size, lambda size: ["a"] * size, lambda size: dict.fromkeys(map(str, range(size)))]
)
def test_headers_of_all_lengths(make: Callable[[int], Any], size: int) -> None:
    value = make(size)
    assert value == written(packb(value))


def test_objects_are_their_fields() -> None:
    """An object in an object, of which the second is a message; those without an argument are null."""
    message = constructed(5, "langchain_core.messages.tool", "ToolMessage", {"content": "row " * 100}, "model_validate")
    state = constructed(2, "app", "State", {"messages": [message, constructed(0, "uuid")], "after": 1})
    found = written(packb({"state": state, "more": [True]}))
    assert {"state": {"messages": [{"content": "row " * 100}, None], "after": 1}, "more": [True]} == found


def test_binary_data_has_its_size() -> None:
    first, second = b"\0" * 300, bytes(range(256))
    found = written(packb([first, second, ExtType(6, second), ExtType(99, b""), {b"key": 1}]))
    assert [300, 256, 256, 0] == [len(text.encode()) for text in found[:4]]
    assert found[1] == found[2] != found[0]
    assert [3] == [len(key) for key in found[4]]


def test_keys_that_json_has_not_are_text() -> None:
    packed = packb({1: 1, None: 2, (3, "x"): 3, "k" * 200: 4})
    assert {"1": 1, "null": 2, '[3, "x"]': 3, "k" * 200: 4} == written(packed)
    key_is_map = b"\x81" + packb({"a": 1}) + packb("value")
    assert {'{"a": 1}': "value"} == written(key_is_map)


def extended(levels: int) -> bytes:
    """Return so many extensions, one inside of another."""
    value: bytes = packb(1)
    for _ in range(levels):
        value = packb(ExtType(5, b"\x93\xa1a\xa1b" + value))
    return value


def test_damaged_and_hostile_data_is_an_error() -> None:
    """Each has at most a few kilobytes, and asks for gigabytes or for a deep stack."""
    deep_key = b"\x81" * 500 + b"\xc0" * 501
    for data, message in (
        (b"", "incomplete"),
        (b"\x92\x01", "incomplete"),
        (packb("x" * 300)[:100], "incomplete"),
        (b"\x92\x01\xc1", "begins no value"),
        (packb(ExtType(5, packb(["a", "b", {"content": "x" * 100}])))[:50], "incomplete"),
        (b"\xdd\x7f\xff\xff\xff" * 1_000, "max_array_len"),
        (b"\xdf\x7f\xff\xff\xff" * 1_000, "max_map_len"),
        (b"\xdd\x00\x10\x00\x00" * 500, "incomplete"),
        (b"\x91" * 20_000 + b"\xc0", "nested too deeply"),
        (b"\x91" * 5_000 + b"\xc0", "nested too deeply"),
    ):
        with pytest.raises(ValueError, match=message):
            json_text(data)
    for levels in (17, 200, 20_000):
        assert isinstance(written(extended(levels)), str)
    assert 1 == written(extended(16))
    assert 1 == len(written(deep_key))


def file_of(folder: Path, kind: str, checkpoint: bytes | None) -> Path:
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


def test_a_checkpoint_that_cannot_be_read_has_its_size(tmp_path: Path) -> None:
    for number, (kind, checkpoint, message) in enumerate(
        (
            ("msgpack", packb({"table": "x" * 50_000})[:-1], "the last checkpoint cannot be decoded: "),
            ("msgpack", b"\x91" * 20_000 + b"\xc0", "the last checkpoint cannot be decoded: "),
            ("msgpack", zlib.compress(b"[]"), "the last checkpoint cannot be decoded: "),
            ("msgpack+aes", b"secret", "the last checkpoint is msgpack+aes, which is not read"),
            ("pickle", b"\x80\x04K\x01.", "the last checkpoint is pickle, which is not read"),
        )
    ):
        (folder := tmp_path / str(number)).mkdir()
        found = explained(file_of(folder, kind, checkpoint))
        assert found["notes"][0].startswith(f"Only sizes are known: {message}")
        assert ([len(checkpoint)], len(checkpoint)) == (found["sizes"], found["payload_bytes"])
        assert found["notes"][2].startswith(f"The store has {len(checkpoint):,} bytes of it")
    ran = run("explain", file_of(tmp_path, "msgpack", None))
    assert (1, "", "Error: the last checkpoint cannot be decoded: it is nothing\n") == (ran.code, ran.out, ran.err)


_ROWS = "WITH RECURSIVE row(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM row"
_COLUMNS = "(thread_id, checkpoint_ns, checkpoint_id, type, checkpoint)"


def test_a_file_that_does_not_end_is_an_error(tmp_path: Path) -> None:
    """A view runs what the file says: without an end, in a circle, or with gigabytes in a row."""
    table = f"CREATE TABLE checkpoints {_COLUMNS}"
    for statements, message in (
        ([f"CREATE VIEW checkpoints {_COLUMNS} AS {_ROWS}) SELECT 't', '', x, 'json', '{{}}' FROM row"], "no table"),  # noqa: S608
        (["CREATE VIEW a AS SELECT * FROM checkpoints", "CREATE VIEW checkpoints AS SELECT * FROM a"], "no table"),
        (["CREATE VIRTUAL TABLE checkpoints USING fts4(thread_id, type, checkpoint)"], "no table"),
        ([table, "INSERT INTO checkpoints VALUES ('t', '', 1, 'json', zeroblob(300000000))"], "300,000,000 bytes"),
    ):
        path = tmp_path / "file.sqlite"
        path.unlink(missing_ok=True)
        with closing(sqlite3.connect(path)) as database, database:
            for statement in statements:
                database.execute(statement)
        ran = run("explain", path)
        assert (1, "") == (ran.code, ran.out)
        assert message in ran.err


def test_long_queries_are_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file.sqlite"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(f"CREATE TABLE checkpoints {_COLUMNS}")
        rows = f"{_ROWS} LIMIT 200000) SELECT x, '', x, 'json', '{{}}' FROM row"  # noqa: S608 - ours
        database.execute(f"INSERT INTO checkpoints {rows}")
    assert "one of 200,000" in run("explain", path).out
    monkeypatch.setattr(formats, "_DATABASE_SECONDS", 0.0)
    assert "takes too long" in run("explain", path).err
