"""Plain structures have one size, whether a fast encoder says it, or the package counts it in either of its ways."""

from __future__ import annotations

import contextlib
import json
import math
import sys
import threading
import tracemalloc
from collections import OrderedDict
from datetime import date
from enum import Enum
from typing import TYPE_CHECKING, Any
from uuid import UUID

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_otel.measure.plain_size import plain_size
from agent_otel.measure.size import Size, json_size, size
from tests.rows import each_row
from tests.unit.measure import hostile
from tests.unit.measure.conftest import ENCODERS

if TYPE_CHECKING:
    from collections.abc import Iterator


class Text(str):
    """A text with a class of its own."""

    __slots__ = ()


class Number(int):
    """A number with a class of its own."""


class Ratio(float):
    """A float with a class of its own."""


class Rows(list[Any]):
    """A list with a class of its own."""


class Colour(Enum):
    """A value that the encoder would ask for its value."""

    RED = "red"

    @property
    def value(self) -> str:
        """Fail: this is the program's code."""
        raise AssertionError("value")


def compact(value: Any) -> int:
    """Length of the compact UTF-8 JSON of a value, as the standard library writes it."""
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass"))


@pytest.fixture(autouse=True, params=["none", *ENCODERS])
def encoder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Measure without and with one of the fast encoders, and return its name."""
    for name, module in ENCODERS.items():
        monkeypatch.setitem(sys.modules, name, module if name == request.param else None)
    return str(request.param)


@contextlib.contextmanager
def walking() -> Iterator[None]:
    """Measure each value by itself."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("agent_otel.measure.size.plain_size", lambda *_: -1)
        yield


texts = st.text(st.characters())  # also control characters and lone surrogates
edges = st.sampled_from(
    [1e-4, 9.999999999999999e-5, 1e16, 9999999999999998.0, -1e-5, -0.0, 5e-324, math.nan, -math.inf]
)
numbers = st.integers() | st.integers(-(10**40), 10**40) | st.floats() | edges
leaves = st.none() | st.booleans() | numbers | texts
plain = st.recursive(
    leaves,
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(texts, inner),
    max_leaves=60,
)
uncommon = st.recursive(
    leaves | st.sampled_from([Text("é"), Number(3), date(2026, 11, 21), UUID(int=1), Colour.RED, b"x", {1}, object()]),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(leaves | texts.map(Text), inner)
        | st.dictionaries(texts, inner, dict_class=OrderedDict)
    ),
    max_leaves=30,
)


@given(plain)
def test_plain_data_has_the_length_of_its_compact_json(value: Any) -> None:
    assert plain_size([value], 10_000) in {-1, compact([value])}
    assert json_size([value], 10_000) == (compact([value]), True)


@given(plain | uncommon, st.integers(1, 40))
def test_both_ways_say_the_same(value: Any, budget: int) -> None:
    with walking():
        walked = json_size([value], budget), size({"a": value, **dict.fromkeys("bcdefghi", value)}, budget)
    assert walked == (json_size([value], budget), size({"a": value, **dict.fromkeys("bcdefghi", value)}, budget))


kinds = st.sampled_from(
    [leaves, texts, st.integers(), st.booleans(), st.floats() | edges, st.lists(leaves, max_size=2)]
)


@st.composite
def tables(draw: st.DrawFn, odd: st.SearchStrategy[Any]) -> list[Any]:
    """Draw so many rows that they are measured by column, with some odd values in any place."""
    width = draw(st.integers(4, 6))
    columns = [draw(st.lists(draw(kinds), min_size=1, max_size=5)) for _ in range(width)]
    rows = [{f"c{place}": column[row % len(column)] for place, column in enumerate(columns)} for row in range(80)]
    for row, place, value in draw(st.lists(st.tuples(st.integers(0, 79), st.integers(0, 7), odd), max_size=3)):
        rows[row][f"c{place}"] = value  # also a key more
    return rows


@given(tables(leaves), st.lists(leaves, min_size=1, max_size=4))
def test_many_plain_values_have_the_length_of_their_compact_json(rows: list[Any], few: list[Any]) -> None:
    for value in (rows, [few * 300], [few] * 100, {"a": tuple(few * 300)}):
        assert plain_size(value, 10_000) in {-1, compact(value)}
        assert json_size(value, 10_000) == (compact(value), True)


@given(tables(plain | uncommon), st.integers(400, 600))
def test_both_ways_say_the_same_of_many_values(rows: list[Any], budget: int) -> None:
    with walking():
        part, whole = json_size(rows, budget), json_size(rows, 10_000)
    assert whole == json_size(rows, 10_000)
    assert json_size(rows, budget) in {part, whole}  # whole columns cost less of the budget


def test_a_megabyte_of_rows_is_measured_exactly() -> None:
    rows = [{"number": number, "title": f"change {number}", "draft": False} for number in range(20_000)]

    assert json_size({"items": rows}) == (compact({"items": rows}), True)

    mixed = [
        {"number": number if number % 2 else "none", "title": None if number % 3 else "change"}
        for number in range(20_000)
    ]
    assert json_size({"items": mixed}).exact is False


@each_row("bound", [1e-4, -1e-4, 1e16, -1e16, 1e-5, 1e-323, 0.0, -0.0, 1e-162, 1e154, 1e308])
def test_floats_beside_a_change_of_notation(bound: float) -> None:
    near = [bound, *(math.nextafter(bound, end) for end in (-math.inf, 0, math.inf)), bound * 1.0000005]
    for value in (near, near * 100):
        assert compact(value) == plain_size(value, 2_000)


@each_row(
    "value",
    [
        {"rows": [{"number": n, "title": f"é {n}", "open": True, "score": n / 3, "by": None} for n in range(200)]},
        [1e16, 1e22, 1.5e-7, -1e-5, math.nan, math.inf, -math.inf, -0.0],
        [2**63, -(2**63), 2**64 - 1],
        ("a", ["b", ()], {}),
    ],
)
def test_the_encoder_says_what_it_can_write(encoder: str, value: Any) -> None:
    assert plain_size(value, 2_000) == (-1 if encoder == "none" and 2**63 in value else compact(value))


@each_row(
    "value",
    [
        [Text("a")],
        [Number(1)],
        {Text("a"): 1},
        {1: 2},
        OrderedDict(a=1),
        [Colour.RED],
        [UUID(int=1)],
        [orjson.Fragment(b"{}")],
        [1] * 128_000,
    ],
    ids=range(9),
)
def test_anything_else_is_left_to_the_walk(value: Any) -> None:
    assert plain_size(value, 2_000) == -1


@each_row("odd", [Text("a"), Number(1), Ratio(1), OrderedDict(a=1), Rows(), Colour.RED, b"a", 1j, {1}])
def test_one_odd_value_among_many_is_seen(odd: Any) -> None:
    cells: list[Any] = ["a", 1, 1.5, None, {}, [], ()]
    for cell in cells:
        for place in (0, 77, 299):
            values = [cell] * 300
            values[place] = odd
            rows = [{"a": 1, "b": 2.5, "c": value} for value in values]
            assert plain_size(values, 2_000) == plain_size(rows, 2_000) == -1
    assert plain_size([odd] * 300, 2_000) == plain_size([{"a": 1, "b": odd}] * 300, 2_000) == -1


def test_no_code_of_a_value_runs() -> None:
    hostile.ran.clear()
    for value in hostile.everything().values():
        rows = [{"a": 1, "b": "b", "c": row, "d": value if row == 40 else "d"} for row in range(80)]
        many = [value] * 300, ["a"] * 150 + [value] + ["a"] * 150, rows, [{**row, "e": value} for row in rows]
        for place in ([value], {"key": value}, {"key": [{"key": value}]}, *many):
            assert json_size(place).bytes >= 0
            assert plain_size(place, 2_000) == -1 or json_size(place) == (compact(place), True)
    assert [] == hostile.ran


def test_a_structure_that_holds_itself_is_left_to_the_walk() -> None:
    value: list[Any] = []
    value.append(value)
    assert plain_size(value, 2_000) == -1


def test_what_another_thread_changes_meanwhile_has_a_size() -> None:
    rows: list[Any] = [{"a": n, "b": "text", "c": n / 7} for n in range(100)]
    stop = threading.Event()

    def change() -> None:
        while not stop.is_set():
            for row in rows:
                row["d"] = rows[:3]
            for row in rows:
                del row["d"]
            rows.append({})
            rows.pop()

    worker = threading.Thread(target=change)
    worker.start()
    try:
        for _ in range(300):
            assert json_size(rows).bytes >= 100
            assert plain_size(rows, 2_000) >= -1
    finally:
        stop.set()
        worker.join()


@each_row(
    "value",
    [
        ["\ud800", "é\x00"],
        {"rows": [{"number": n, "title": f"\ud800 {n}", "open": n % 2 == 0, "by": None} for n in range(200)]},
        [1e16, 1e22, 1.5e-7, -1e-5, math.nan, math.inf, -math.inf, -0.0],
        [2**63 - 1, -(2**63), 0, -1],
        ("a", ["b", ()], {}, [[]] * 200),
        {"x" * 5_000: ["y" * 300_000, '"' * 5_000] * 3},
    ],
)
def test_without_an_encoder_the_values_are_measured_together(monkeypatch: pytest.MonkeyPatch, value: Any) -> None:
    for name in ENCODERS:
        monkeypatch.delitem(sys.modules, name)
    assert compact(value) == plain_size(value, 2_000)
    assert sys.modules.keys().isdisjoint(ENCODERS)


def test_a_large_structure_is_not_copied() -> None:
    value = {"rows": [{"text": "x" * 30_000} for _ in range(900)]}
    tracemalloc.start()
    try:
        found = size(value)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert Size(compact(value), exact=True) == found
    assert peak <= 600_000


def test_no_copy_of_a_large_text_stays_in_memory() -> None:
    text = "Ж" * 40_000
    before = sys.getsizeof(text)
    assert json_size({"text": text}) == (80_011, True)
    assert size([{"text": text, "more": 1}] * 9) == (9 * 80_020 + 10, True)
    assert sys.getsizeof(text) == before
