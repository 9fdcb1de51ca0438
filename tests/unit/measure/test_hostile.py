"""The three functions on values that make serialisers raise, hang or lie: no exception, no user code, soon done."""

from __future__ import annotations

import inspect
import json
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel.measure.arguments_hash import arguments
from agent_otel.measure.json_pieces import pieces
from agent_otel.measure.key_structure import key_structure
from agent_otel.measure.size import Size, json_size, size
from agent_otel.measure.truncation import find_cut
from agent_otel.measure.truncation.paging import asks_for_a_page, is_page
from tests.rows import each_row
from tests.unit.measure import hostile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FUNCTIONS: list[Callable[[Any], Any]] = [
    *(size, json_size, arguments, find_cut),
    *(is_page, asks_for_a_page, key_structure),
]
each_function = each_row("function", FUNCTIONS, ids=lambda function: function.__name__, around=hostile.untouched)


@pytest.fixture(autouse=True)
def _nothing_ran() -> Iterator[None]:
    with hostile.untouched():
        yield


@each_function
@each_row("kind", list(hostile.everything()))
def test_no_code_of_a_value_runs(function: Callable[[Any], Any], kind: str) -> None:
    value = hostile.everything()[kind]
    for place in (value, [value], {"key": value}, (value, value), {"content": value}, {"content": [value]}):
        function(place)


@each_function
@each_row("kind", list(hostile.everything()))
@each_row("key", ["next", "next_cursor", "cursor", "page", "offset", "after", "truncated", "content"])
def test_the_truth_of_a_value_is_not_asked_for(function: Callable[[Any], Any], kind: str, key: str) -> None:
    function({key: hostile.everything()[kind]})


@each_row(
    ("cursor", "expected"),
    [("abc", True), (2, True), ({"page": 2}, True), ([1], True), ("", False), (0, False), (None, False), ({}, False)],
)
def test_a_cursor_is_a_plain_value_that_is_not_empty(cursor: object, *, expected: bool) -> None:
    assert is_page({"next": cursor}) is expected
    assert asks_for_a_page({"cursor": cursor}) is expected


@each_row(
    ("kind", "expected"),
    {
        "object": '{"field":"value"}',
        "object with slots": '{"field":"value"}',
        "str": '"text"',
        "int": "7",
        "float": "0.5",
        "list": "[1,2]",
        "tuple": "[1,2]",
        "dict": '{"a":1}',
        "set": "[1]",
        "frozenset": "[1]",
    }.items(),
)
def test_subclasses_are_measured_by_what_they_hold(kind: str, expected: str) -> None:
    assert Size(len(expected), exact=True) == json_size(hostile.everything()[kind])


@each_function
def test_a_hostile_key_is_not_compared_nor_shown(function: Callable[[Any], Any]) -> None:
    class Key:
        def __init__(self, name: str) -> None:
            self.name = name

        def __repr__(self) -> str:
            hostile.ran.append("Key.__repr__")
            return self.name

        __str__ = __repr__

    function({Key("a"): 1, Key("b"): 2, "c": 3, 4: 5, None: 6, (7, 8): 9})


@each_function
def test_self_containing_list(function: Callable[[Any], Any]) -> None:
    function(hostile.self_containing())


@each_function
def test_shared_parts_with_a_billion_leaves(function: Callable[[Any], Any]) -> None:
    function(hostile.shared())


@each_function
def test_a_hundred_thousand_levels(function: Callable[[Any], Any]) -> None:
    value = hostile.deep()
    function(value)
    hostile.release(value)


@each_function
def test_nested_dictionaries_with_many_keys(function: Callable[[Any], Any]) -> None:
    function(hostile.chain_of_wide())


@each_function
def test_one_long_text_in_many_places(function: Callable[[Any], Any]) -> None:
    text = 'é"' * 500_000
    function([text] * 300)
    function([{text: number} for number in range(300)])


@pytest.mark.parametrize("value", [hostile.self_containing(), hostile.shared()], ids=["self-containing", "shared"])
def test_what_does_not_end_is_a_lower_bound(value: Any) -> None:
    assert size(value).exact is False


def test_a_million_digits() -> None:
    assert Size(1_000_000, exact=True) == size(10**999_999 * 3)
    assert 12 == len(arguments({"n": 10**999_999 * 3}).digest)


@each_function
def test_generators_and_iterators_are_not_consumed(function: Callable[[Any], Any]) -> None:
    numbers = (number for number in range(3))
    letters = iter(["a", "b"])
    function(numbers)
    function({"rows": numbers, "letters": letters, "own": hostile.Iterator()})
    assert [0, 1, 2] == list(numbers)
    assert ["a", "b"] == list(letters)


@each_function
def test_a_coroutine_is_left_to_its_owner(function: Callable[[Any], Any]) -> None:
    waiting = hostile.coroutine()
    function(waiting)
    function([waiting])
    assert inspect.CORO_CREATED == inspect.getcoroutinestate(waiting)
    waiting.close()


@each_function
def test_released_memory(function: Callable[[Any], Any]) -> None:
    view = memoryview(b"abc")
    view.release()
    function(view)
    function([view])


@each_function
def test_half_a_surrogate_pair(function: Callable[[Any], Any]) -> None:
    function("\ud83d")
    function({"\ud83d": "\ude00", "list": ["\ud83d" * 5_000]})


@each_function
def test_a_class_a_module_a_function(function: Callable[[Any], Any]) -> None:
    function(int)
    function(pytest)
    function([print, test_half_a_surrogate_pair, type, object(), Ellipsis, NotImplemented, 1j])


class _Meta(type):
    def __eq__(cls, other: object) -> bool:
        raise SystemExit

    def __hash__(cls) -> int:
        raise SystemExit


class _Odd(metaclass=_Meta):
    pass


class _Key:
    def __eq__(self, other: object) -> bool:
        raise SystemExit

    def __hash__(self) -> int:
        return 7


@each_function
@each_row("value", [{_Key(): 1}, [{_Key(): 1}], [_Odd()], {"a": _Odd(), "b": [_Odd(), _Odd()]}], ids=range(4))
def test_keys_and_classes_are_not_compared(function: Callable[[Any], Any], value: Any) -> None:
    function(value)


@each_row("value", [dict.fromkeys(range(2000), 1), [{1: 2}] * 1_000, {n / 2: {None: n, True: n} for n in range(500)}])
def test_keys_that_are_no_texts_take_no_more_steps(value: Any) -> None:
    assert json.dumps(value, separators=(",", ":")) == "".join(pieces(value))
