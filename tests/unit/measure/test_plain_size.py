"""Plain structures have one size, whether a fast encoder says it or the package counts it."""

from __future__ import annotations

import json
import math
import sys
import tracemalloc
from collections import OrderedDict
from datetime import date
from enum import Enum
from typing import Any
from uuid import UUID

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_otel.measure.plain_size import MOST_CHARACTERS, plain_size
from agent_otel.measure.size import Size, json_size, size
from tests.unit.measure import hostile
from tests.unit.measure.conftest import ENCODERS


class Text(str):
    """A text with a class of its own."""

    __slots__ = ()


class Number(int):
    """A number with a class of its own."""


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


@pytest.fixture(autouse=True, params=list(ENCODERS))
def _encoder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, module in ENCODERS.items():
        monkeypatch.setitem(sys.modules, name, module if name == request.param else None)


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
    with pytest.MonkeyPatch.context() as patch:
        for name in ENCODERS:
            patch.setitem(sys.modules, name, None)
        walked = json_size([value], budget), size({"a": value, **dict.fromkeys("bcdefghi", value)}, budget)
    assert walked == (json_size([value], budget), size({"a": value, **dict.fromkeys("bcdefghi", value)}, budget))


@pytest.mark.parametrize(
    "value",
    [
        {"rows": [{"number": n, "title": f"é {n}", "open": True, "score": n / 3, "by": None} for n in range(200)]},
        [1e16, 1e22, 1.5e-7, -1e-5, math.nan, math.inf, -math.inf, -0.0],
        [2**63, -(2**63), 2**64 - 1],
        ("a", ["b", ()], {}),
    ],
)
def test_the_encoder_says_what_it_can_write(value: Any) -> None:
    assert compact(value) == plain_size(value, 2_000)


@pytest.mark.parametrize(
    "value",
    [
        [Text("a")],
        [Number(1)],
        {Text("a"): 1},
        {1: 2},
        OrderedDict(a=1),
        [Colour.RED],
        [UUID(int=1)],
        ["\ud800"],
        [orjson.Fragment(b"{}")],
        ["x" * (MOST_CHARACTERS + 1)],
        [1] * 2_000,
    ],
    ids=range(11),
)
def test_anything_else_is_left_to_the_walk(value: Any) -> None:
    assert plain_size(value, 2_000) == -1


def test_no_code_of_a_value_runs() -> None:
    hostile.ran.clear()
    for value in hostile.everything().values():
        for place in ([value], {"key": value}, {"key": [{"key": value}]}):
            assert json_size(place).bytes >= 0
            assert plain_size(place, 2_000) == -1 or json_size(place) == (compact(place), True)
    assert [] == hostile.ran


def test_a_structure_that_holds_itself_is_left_to_the_walk() -> None:
    value: list[Any] = []
    value.append(value)
    assert plain_size(value, 2_000) == -1


def test_without_an_encoder_in_the_process_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ENCODERS:
        monkeypatch.delitem(sys.modules, name)
    assert plain_size([1], 2_000) == -1
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
