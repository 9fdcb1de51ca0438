"""Sizes, against json and encode() as independent oracles and against sizes counted by hand."""

from __future__ import annotations

import json
import math
import random
import tracemalloc
from collections import OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import PurePosixPath
from types import SimpleNamespace
from typing import Any, NamedTuple
from uuid import UUID

import pytest

from agent_otel.measure.plain_size import quoted_bytes
from agent_otel.measure.size import Size, block_text, json_size, size, text_bytes
from tests.rows import each_row
from tests.unit.measure.names import readable

pytestmark = pytest.mark.usefixtures("encoder")
TEXTS = ["", "plain", "é", "漢字", "😀", 'quote " and \\', "\x00\x1f\x7f\n\t\r\b\f", "\ud800", "\ud83d\ude00", "\u2028"]


def compact(value: Any) -> int:
    """Length of the compact UTF-8 JSON of a value, as the standard library writes it."""
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass"))


@each_row("text", [*TEXTS, *(text * 70_000 for text in TEXTS), "a" * 65_535 + "é", "a" * 65_536 + "é"])
def test_text_has_its_utf8_length(text: str) -> None:
    expected = len(text.encode("utf-8", "surrogatepass"))
    assert expected == text_bytes(text)
    assert Size(expected, exact=True) == size(text)


@each_row(
    ("value", "expected"),
    [
        ({"ok": False}, 12),
        ({"ok": True}, 11),
        ({"ok": None}, 11),
        ({"n": -7}, 8),
        ({"a": 1, "b": "x"}, 15),
        ({"a": 1, "b": False, "c": "x"}, 25),
        ({"é": 1}, 8),
        ({"k": "é"}, 10),
        ({"k": '"'}, 10),
        ({"k": "x" * 4097}, 4105),
        ({"k": 10**18}, 25),
        ({}, 2),
    ],
)
def test_a_few_plain_values_are_counted_by_hand(value: dict[str, object], expected: int) -> None:
    for found in (size(value), json_size(value), size([value, value]), json_size({"in": value})):
        assert found.exact
    assert expected == size(value).bytes == json_size(value).bytes
    assert (2 * expected + 3, expected + 7) == (size([value, value]).bytes, json_size({"in": value}).bytes)


def test_a_few_plain_values_count_in_the_budget() -> None:
    assert Size(len('{"a":}'), exact=False) == size({"a": 1}, 1)
    assert Size(len('{"a":1}'), exact=True) == size({"a": 1}, 2)


@each_row("text", [*TEXTS, *(text * 2_100 for text in TEXTS), *(text * 70_000 for text in TEXTS)])
def test_text_inside_a_structure_has_quotes_and_escapes(text: str) -> None:
    assert compact(text) == quoted_bytes(text)
    assert Size(compact({text: [text]}), exact=True) == size({text: [text]})


@each_row(
    "value",
    [
        True,
        False,
        0,
        -1,
        7,
        10**18 - 1,
        10**18,
        -(10**18),
        2**64,
        0.1,
        1e-7,
        1e16,
        -0.0,
        1.5e300,
        math.inf,
        -math.inf,
        math.nan,
        {},
        [],
        (),
        [[]],
        {"a": {}},
        [None, True, False],
        {"a": None, "b": [1, 2.5, "x"], "c": {"d": "é"}},
        {None: 1, True: 2, False: 3, 4: 5, 6.5: 7, "8": 9},
        {math.inf: 1, 10**30: 2, -0.5: 3},
        [math.nan, -math.inf, {"inf": math.inf}],
        [{"key": index, "text": "é" * index} for index in range(100)],
        OrderedDict(b=1, a=2),
        defaultdict(list, a=[1]),
        ["a" * 64, "a" * 65, "é" * 64, "é" * 65],
        {"a" * 5_000: "b" * 5_000},
    ],
    ids=readable,
)
def test_structures_have_the_length_of_their_compact_json(value: Any) -> None:
    assert Size(compact(value), exact=True) == size(value)
    assert Size(compact([value]), exact=True) == json_size([value])


def test_none_is_null() -> None:
    assert Size(4, exact=True) == size(None)


def _value(draw: random.Random, depth: int) -> Any:
    leaves: list[Any] = [
        None,
        draw.random() < 0.5,
        draw.randint(-(10**6), 10**6),
        draw.randint(-(10**40), 10**40),
        draw.uniform(-1e9, 1e9),
        10.0 ** draw.randint(-320, 308),
        "".join(draw.choice(TEXTS) for _ in range(draw.randint(0, 12))),
        "".join(chr(draw.randrange(0x110000)) for _ in range(draw.randint(0, 100))),
    ]
    kind = draw.randint(0, 9) if depth else 0
    if kind < 6:
        return draw.choice(leaves)
    inner = [_value(draw, depth - 1) for _ in range(draw.randint(0, 6))]
    if kind < 8:
        return tuple(inner) if kind == 7 else inner
    return {draw.choice(leaves): item for item in inner}


@each_row("seed", range(40))
def test_any_json_data_has_the_length_of_its_compact_json(seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311 - the same cases in every run
    for _ in range(50):
        value = [_value(draw, 4)]
        assert Size(compact(value), exact=True) == json_size(value, 100_000)


@each_row("power", [1, 2, 15, 18, 19, 22, 23, 99, 308, 309, 1_000, 4_000])
def test_integers_around_powers_of_ten(power: int) -> None:
    for value in (10**power - 1, 10**power, 10**power + 1):
        assert Size(len(str(value)), exact=True) == size(value)
        assert Size(len(str(-value)), exact=True) == size(-value)


def test_integers_above_the_digit_limit() -> None:
    # 5,001 digits: str() refuses them.
    assert Size(5_001, exact=True) == size(10**5_000)
    assert Size(5_000, exact=True) == size(10**5_000 - 1)
    assert Size(5_004, exact=True) == size([-(10**5_000)])


def test_binary_data_has_its_length() -> None:
    assert Size(3, exact=True) == size(b"\xff\x00a")
    assert Size(3, exact=True) == size(bytearray(b"abc"))
    assert Size(12, exact=True) == size(memoryview(bytes(12)).cast("I"))
    # Whatever text is made of it is at least so long, with its quotes: [".."]
    assert Size(6, exact=False) == size([b"ab"])


class Colour(Enum):
    """Values of two types."""

    RED = "red"
    RGB = (255, 0)


class Number(IntEnum):
    """An int for json."""

    TWELVE = 12


class Named(str, Enum):
    """A str for json."""

    NAME = "name"


Pair = namedtuple("Pair", ["left", "right"])  # noqa: PYI024 - as users write them


class Point(NamedTuple):
    """An array for json."""

    x: int
    y: int


@each_row(
    ("value", "expected"),
    [
        (datetime(2026, 11, 21, 10, 0), '"2026-11-21T10:00:00"'),  # noqa: DTZ001 - one without a zone
        (datetime(2026, 11, 21, 10, 0, 0, 5, tzinfo=timezone.utc), '"2026-11-21T10:00:00.000005+00:00"'),
        (date(2026, 11, 21), '"2026-11-21"'),
        (time(10, 30), '"10:30:00"'),
        (timedelta(days=1, seconds=3), '"1 day, 0:00:03"'),
        (UUID("12345678-1234-5678-1234-567812345678"), '"12345678-1234-5678-1234-567812345678"'),
        (Decimal("1.50"), '"1.50"'),
        (PurePosixPath("/srv/é"), '"/srv/é"'),
        (Colour.RED, '"red"'),
        (Colour.RGB, "[255,0]"),
        (Number.TWELVE, "12"),
        (Named.NAME, '"name"'),
        (Pair(1, "b"), '[1,"b"]'),
        (Point(1, 2), "[1,2]"),
        ({"b"}, '["b"]'),
        (frozenset([1]), "[1]"),
        (deque([1, 2]), "[1,2]"),
        (range(3), "[0,1,2]"),
        ({"a": 1}.keys(), '["a"]'),
        ({"a": 1}.items(), '[["a",1]]'),
        ({Number.TWELVE: 1, Named.NAME: 2}, '{"12":1,"name":2}'),
        ({date(2026, 11, 21): 1}, '{"2026-11-21":1}'),
    ],
    ids=readable,
)
def test_values_json_does_not_know(value: Any, expected: str) -> None:
    assert Size(len(expected.encode()), exact=True) == json_size(value)


@dataclass
class Row:
    """Fields with and without a default."""

    name: str
    tags: list[str] = field(default_factory=list)


class SlotsOnly:
    """What ``@dataclass(slots=True)`` makes, and attrs."""

    __slots__ = ("left", "right")

    def __init__(self) -> None:
        self.left = 1


class Plain:
    """Whatever attributes it is given."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


class Model:
    """What a pydantic model looks like from outside: declared fields, extra ones in a slot, private ones apart."""

    __slots__ = ("__dict__", "__pydantic_extra__", "__pydantic_fields_set__", "__pydantic_private__")
    __pydantic_fields__ = {"name": None, "size": None}  # noqa: RUF012 - pydantic's is like this

    def __init__(self) -> None:
        self.name, self.size, self.cached_property = "a", 3, "x" * 1_000
        self.__pydantic_extra__ = {"more": True}
        self.__pydantic_private__ = {"_secret": "x" * 1_000}

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(name)


def test_objects_have_the_size_of_their_fields() -> None:
    assert Size(len('{"name":"é","tags":["a"]}'.encode()), exact=True) == size(Row("é", ["a"]))
    assert Size(len('{"left":1}'), exact=True) == size(SlotsOnly())
    assert Size(len('{"a":1,"b":[{}]}'), exact=True) == size(Plain(a=1, b=[Plain()]))
    assert Size(len('{"a":"x"}'), exact=True) == size(SimpleNamespace(a="x"))
    assert Size(len('{"name":"a","size":3,"more":true}'), exact=True) == size(Model())


def test_attributes_beside_the_declared_fields_do_not_count() -> None:
    row = Row("a")
    row.__dict__["cached"] = "x" * 1_000
    assert Size(len('{"name":"a","tags":[]}'), exact=True) == size(row)


def test_a_message_costs_its_content() -> None:
    assert Size(4, exact=True) == size(Plain(content="é漢"[:1] * 2, tool_call_id="1", artifact={"big": "x" * 1_000}))
    assert Size(3, exact=True) == size(Plain(content=["a", {"type": "text", "text": "bc"}]))
    # A dictionary is data, not a message.
    assert Size(len('{"content":"a"}'), exact=True) == size({"content": "a"})


def test_a_list_of_texts_is_data_unless_a_text_block_stands_among_them() -> None:
    assert Size(len('["a","é",{"b":1}]') + 1, exact=True) == size(["a", "é", {"b": 1}])
    assert Size(len('["a","b"]'), exact=True) == size(["a", "b"])
    assert Size(4, exact=True) == size(["é", {"type": "text", "text": "b"}, "c"])
    assert Size(2_000, exact=False) == size(["a", {"type": "text", "text": "b"}] * 10_000)


def test_text_blocks_cost_their_text() -> None:
    assert Size(50_000, exact=True) == size([{"type": "text", "text": "x" * 50_000}])
    assert Size(2, exact=True) == size([{"type": "text", "text": "é", "annotations": [1, 2, 3]}])
    assert Size(3, exact=True) == size([{"text": "abc"}])
    assert Size(5, exact=True) == size([Plain(type="text", text="abc", meta=None), {"type": "text", "text": "de"}])


def test_other_blocks_cost_their_json() -> None:
    image = {"type": "image", "data": "QUJD"}
    assert Size(2 + compact(image), exact=True) == size([{"type": "text", "text": "ab"}, image])
    assert Size(1 + compact({"json": {"a": 1}}), exact=True) == size([{"text": "a"}, {"json": {"a": 1}}])


@each_row(
    "rows",
    [
        [{"text": "abc", "id": 1}],
        [{"type": "text", "text": "abc"}, {"id": 1}],
        [{"type": "text", "text": "abc"}, 1],
        [{"type": "user", "name": "a"}],
        ["a", "b"],
        [],
    ],
)
def test_a_list_of_data_is_data(rows: list[Any]) -> None:
    assert Size(compact(rows), exact=True) == size(rows)


def test_text_of_a_block() -> None:
    assert "a" == block_text({"type": "output_text", "text": "a"})
    assert "a" == block_text(Plain(text="a"))
    assert None is block_text({"type": "thinking", "text": "a"})
    assert None is block_text("a")


@each_row("value", [(i for i in range(3)), iter([1]), print, Plain, object(), lambda: 1, map(str, [1])], ids=type)
def test_what_has_no_text_counts_nothing(value: Any) -> None:
    assert Size(0, exact=False) == size(value)
    assert Size(len('{"a":}'), exact=False) == size({"a": value})


def test_a_subclass_of_a_c_type_is_not_measured_by_its_empty_dictionary() -> None:
    class Reader(random.Random):
        pass

    assert Size(0, exact=False) == size(Reader())


def test_beyond_the_budget_it_is_a_lower_bound() -> None:
    rows = [{"id": number, "name": f"name {number}"} for number in range(100_000)]
    found = size(rows)
    assert found.exact is False
    assert compact(rows[:600]) <= found.bytes <= compact(rows)


def test_the_budget_is_what_the_caller_says() -> None:
    assert Size(compact([1] * 9), exact=True) == size([1] * 9, node_budget=10)
    assert size([1] * 10, node_budget=10).exact is False
    assert size([[[]] * 9], node_budget=10).exact is False


def test_a_large_text_is_measured_in_small_pieces() -> None:
    text = '漢字"\n😀' * 1_000_000
    expected = compact({"a": text})
    tracemalloc.start()
    try:
        found = size({"a": text})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert Size(expected, exact=True) == found
    assert peak <= 600_000


def test_no_reference_to_a_value_stays() -> None:
    from sys import getrefcount

    value = {"a": ["x" * 1_000, {"b": "y" * 10_000}]}
    parts = [value, value["a"], *value["a"]]
    before = [getrefcount(part) for part in parts]
    size(value)
    assert before == [getrefcount(part) for part in parts]


@each_row("letters", ["x", 'a"b\\', "\n\x01", "ß", "漢🙂"])
@each_row("length", [64, 500, 1023, 1024, 1025, 4096, 4097])
def test_many_long_strings_are_counted_as_json_writes_them(letters: str, length: int) -> None:
    value = {"rows": ["".join((letters * length)[:length]) for _ in range(700)], letters * length: 1}

    assert size(value) == (compact(value), True)
