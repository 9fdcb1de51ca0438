"""Digests of arguments, against hashlib over canonical JSON written out by hand."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections import OrderedDict
from dataclasses import dataclass
from datetime import date, datetime, timezone, tzinfo
from decimal import Decimal
from enum import Enum
from hashlib import blake2b
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

import pytest

from agent_otel.measure.arguments_hash import Arguments, arguments
from tests.rows import each_row
from tests.unit.measure.names import readable

KEY = b"0123456789abcdef"


def expected(canonical: str, key: bytes = KEY) -> str:
    """12 hexadecimal digits of a canonical JSON text."""
    return blake2b(canonical.encode("utf-8", "surrogatepass"), digest_size=6, key=key).hexdigest()


@each_row(
    ("value", "canonical"),
    [
        ({}, "{}"),
        ([], "[]"),
        (None, "null"),
        (True, "true"),
        (12, "12"),
        ({"a": 1}, '{"a":1}'),
        ({"b": [1, 2.5, None], "a": "é"}, '{"a":"é","b":[1,2.5,null]}'),
        ({"b": {"d": 1, "c": 2}, "a": (1,)}, '{"a":[1],"b":{"c":2,"d":1}}'),
        ({"quote": '"\n'}, '{"quote":"\\"\\n"}'),
        ({"half": "\ud83d"}, '{"half":"\ud83d"}'),
        ({"nan": math.nan, "inf": [math.inf, -math.inf]}, '{"inf":[Infinity,-Infinity],"nan":NaN}'),
        ({"n": 1e-7, "m": 1e16, "big": 2**80}, '{"big":1208925819614629174706176,"m":1e+16,"n":1e-07}'),
        (OrderedDict(b=1, a=2), '{"a":2,"b":1}'),
        ({2: "a", "1": "b", None: "c", True: "d"}, '{"1":"b","2":"a","null":"c","true":"d"}'),
        ({date(2026, 11, 21): Decimal("1.5")}, '{"2026-11-21":"1.5"}'),
    ],
    ids=readable,
)
def test_json_data(value: Any, canonical: str) -> None:
    assert expected(canonical) == arguments(value, KEY).digest


def test_without_a_key() -> None:
    assert Arguments(expected('{"a":1}', b""), 7) == arguments({"a": 1})


def test_a_long_key_counts_whole() -> None:
    long = b"k" * 100
    assert expected("{}", blake2b(long).digest()) == arguments({}, long).digest
    assert arguments({}, long + b"x").digest != arguments({}, long).digest


@pytest.mark.shows("001.args_hash")
def test_the_digest_is_the_one_of_every_release() -> None:
    """A change here makes dashboards and loop detectors see every call as new."""
    assert "3555f97b72b4" == arguments({"query": "weather", "limit": 10, "tags": ["a", 1.5, None]}, KEY).digest


@each_row(
    ("value", "expected_bytes"),
    [
        ({}, 2),
        (None, 4),
        ({"a": "é"}, len('{"a":"é"}'.encode())),
        ({"a": 'x"' * 50_000}, len('{"a":""}') + 150_000),
        ({"b": 1, "a": [True]}, len('{"b":1,"a":[true]}')),
        ('{"b": 1, "a": [true]}', len('{"b": 1, "a": [true]}')),
        ("naïve", 6),
        ({"n": list(range(1_000))}, len(json.dumps({"n": list(range(1_000))}, separators=(",", ":")))),
        ({"rows": [{"id": 1}] * 3_000}, len('{"rows":[]}') + 3_000 * len('{"id":1}') + 2_999),
    ],
    ids=lambda value: type(value).__name__,
)
def test_bytes(value: Any, expected_bytes: int) -> None:
    assert expected_bytes == arguments(value).bytes


def test_json_text_has_the_digest_of_what_it_means() -> None:
    assert arguments({"b": 2, "a": 1}, KEY).digest == arguments(' {"a":1, "b":2}', KEY).digest
    assert arguments([1, {"a": "é"}], KEY).digest == arguments('[1,{"a":"\\u00e9"}]', KEY).digest


@each_row("text", ["", "naïve", "12", '"a"', "[INFO] started", '{"a":', "{a}", "[" * 10_000])
def test_other_text_is_a_json_string(text: str) -> None:
    assert expected(json.dumps(text, ensure_ascii=False)) == arguments(text, KEY).digest


def test_long_json_text_is_not_parsed() -> None:
    text = json.dumps({"content": "x" * 17_000})
    assert expected(json.dumps(text)) == arguments(text, KEY).digest


def test_the_digest_covers_every_character_of_a_long_string() -> None:
    text = "é" * 3_000_000
    assert expected(f'{{"content":"{text}","path":"a"}}') == arguments({"path": "a", "content": text}, KEY).digest


@each_row("large", ["x" * 5_000, b"", 10**400, list(range(600)), {1}, object()], ids=type)
def test_what_stands_beside_does_not_change_the_form(large: Any) -> None:
    """The short way and the long way write the same for the same part."""
    part = {"b": [1, "é", {"c": None}], "a": 2.5}
    alone = json.dumps(part, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    assert expected(alone) == arguments(part, KEY).digest
    assert arguments([part, large], KEY) == arguments([json.loads(alone), large], KEY)
    assert arguments([part, large], KEY).digest != arguments([{"b": 1}, large], KEY).digest


@each_row(
    ("one", "other"),
    [
        ({"a": 1}, {"a": 2}),
        ({"a": 1}, {"a": 1.0}),
        ({"a": 1}, {"a": "1"}),
        ({"a": 1}, {"a": True}),
        ({"a": b"x"}, {"a": b"y"}),
        ({"a": b"x"}, {"a": "x"}),
        ({"a": {1, 2}}, {"a": {1, 3}}),
        ({1: "x", "1": "y"}, {1: "y", "1": "x"}),
        ({"a": "x" * 5_000}, {"a": "x" * 4_999 + "y"}),
        ({"a": 10**400}, {"a": 10**400 + 1}),
        ({"a": 10**9_000}, {"a": 10**9_000 + 1}),
        (list(range(20_000)), list(range(20_001))),
        ({"a": print}, {"a": iter([])}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_different_arguments(one: Any, other: Any) -> None:
    assert arguments(one).digest != arguments(other).digest


class Colour(Enum):
    """A value that json does not know."""

    RED = "red"


@dataclass
class Query:
    """Declared fields."""

    text: str
    limit: int


class Plain:
    """Undeclared fields."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


class Zone(tzinfo):
    """A time zone whose offset is the user's code."""

    utcoffset = dst = tzname = None  # type: ignore[assignment]


@each_row(
    ("value", "canonical"),
    [
        (Colour.RED, '"red"'),
        (UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
        (PurePosixPath("/a"), '"/a"'),
        (datetime(2026, 1, 2, tzinfo=timezone.utc), '"2026-01-02 00:00:00+00:00"'),
        (datetime(2026, 1, 2, tzinfo=Zone()), '"2026-01-02 00:00:00 Zone"'),
        (Query("a", 1), '{"limit":1,"text":"a"}'),
        (Plain(b=1, a=2), '{"a":2,"b":1}'),
        (print, '"<builtin_function_or_method>"'),
        ({3, 1, 2}, "[1,2,3]"),
        (b"ab", '"6162"'),
        (10**300, f"{10**300}"),
    ],
    ids=readable,
)
def test_values_json_does_not_know(value: Any, canonical: str) -> None:
    assert expected(f'{{"a":{canonical}}}') == arguments({"a": value}, KEY).digest


def test_the_order_of_keys_does_not_matter() -> None:
    keys = [f"key {number}" for number in range(2_000)]
    forward = {"outer": {key: [key, key] for key in keys}}
    backward = {"outer": {key: [key, key] for key in reversed(keys)}}
    assert arguments(forward).digest == arguments(backward).digest


def test_only_the_beginning_and_the_size_of_very_large_arguments_count() -> None:
    one = [[number] for number in range(20_000)]
    assert arguments(one).digest == arguments([*one[:-1], [11_111]]).digest
    assert arguments(one).digest != arguments([["other"], *one[1:]]).digest


PROGRAM = """
from agent_otel.measure.arguments_hash import arguments
class Thing:
    def __init__(self): self.names = {"a", "b", "c", "d", frozenset({"e", "f"})}
print(arguments({"things": [Thing()], "names": {str(n) for n in range(50)}, "f": iter}).digest)
"""


def test_the_same_in_every_process() -> None:
    """Sets come in another order and objects at other addresses in each."""
    digests = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2", "3", "4")
    }
    assert 1 == len(digests)


def test_without_the_c_encoder_it_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    import json.encoder

    from agent_otel.measure import arguments_hash

    value = {"b": [1, 'é"\n', None, 1.5, True], "a": {"c": math.inf}}
    with_it = arguments(value, KEY)
    monkeypatch.setattr(json.encoder, "c_make_encoder", None)
    monkeypatch.setattr(arguments_hash, "_encode", arguments_hash._compact_encoder())
    assert with_it == arguments(value, KEY)
