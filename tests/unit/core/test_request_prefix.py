"""Requests that continue the one before them are read from their first new message on: nothing else may change."""

from __future__ import annotations

import copy
import datetime as dt
import json
import os
import subprocess
import sys
import weakref
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel.core.thread.request_parts import depths, joined, prints
from agent_otel.core.thread.request_prefix import Messages
from agent_otel.core.types import RequestPart
from tests.rows import each_row
from tests.unit.core.conversations import Message
from tests.unit.measure import hostile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SEEDS = [str(seed) for seed in range(1, 25)]


def _sent(way: str) -> subprocess.Popen[str]:
    env = {**os.environ, "AGENT_OTEL": "1", "AGENT_OTEL_HASH_KEY": "0123456789abcdef" * 2, "PYTHONHASHSEED": "0"}
    command = [sys.executable, "-m", "tests.unit.core.conversations", way, *SEEDS]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)


def test_the_telemetry_is_that_of_requests_that_are_read_as_a_whole() -> None:
    """Edits in place, windows, summaries, branches, sub-agents, retries, reused ids, other tools and system prompts."""
    programs = [_sent("read"), _sent("unread")]
    read, unread = (program.communicate()[0].splitlines() for program in programs)
    assert len(read) > 500
    assert read[:-1] == unread[:-1]
    assert json.loads(read[-1]) == [0, {}]
    found, errors = json.loads(unread[-1])
    assert found > 100
    assert errors == {}


def _history() -> list[Any]:
    call = {"id": "call_1", "type": "function", "function": {"name": "search", "arguments": '{"q": 1}'}}
    return [
        {"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "text", "text": "there"}]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "x" * 20_000, "is_error": False},
        {"role": "assistant", "content": "done"},
    ]


def _messages(items: list[Any], *head: Any) -> Messages:
    return Messages([RequestPart("tools", tools) for tools in head], items, lambda _: ())


def _begin(before: Messages, now: Messages) -> bool:
    """Return true when a request is known to begin with the messages of an earlier one."""
    earlier = depths(before.plain(0, len(before.items)))
    assert earlier is not None
    return depths(now.plain(0, len(before.items)), prints(earlier)) is not None


def test_a_history_that_has_grown_begins_as_before() -> None:
    grown = [*copy.deepcopy(_history()), *_history()[1:], {"role": "user", "content": [{"type": "text", "text": "on"}]}]
    assert _begin(_messages(_history()), _messages(grown))
    assert not _begin(_messages(grown), _messages(_history()))


@each_row(
    "edit",
    [
        lambda items: items[0]["content"][1].update(text="here"),
        lambda items: items[0]["content"][1].update(cache_control={"type": "ephemeral"}),
        lambda items: items[0]["content"].pop(),
        lambda items: items[0].update(content="look"),
        lambda items: items[1]["tool_calls"][0]["function"].update(arguments='{"q": 2}'),
        lambda items: items[1]["tool_calls"].clear(),
        lambda items: items[1].update(content="first"),
        lambda items: items[2].update(content="[removed]"),
        lambda items: items[2].update(content="x" * 19_999),
        lambda items: items[2].update(content="y" + "x" * 19_999),
        lambda items: items[2].update(is_error=True),
        lambda items: items[2].update(tool_call_id="call_2"),
        lambda items: items[3].update(role="user"),
        lambda items: items.pop(0),
        lambda items: items.insert(1, {"role": "user", "content": "wait"}),
        lambda items: items.reverse(),
    ],
    ids=range(16),
)
def test_a_history_that_was_edited_does_not(edit: Callable[[list[Any]], Any]) -> None:
    items = _history()
    edit(items)
    assert not _begin(_messages(_history()), _messages([*items, *_history()]))


@each_row(
    ("before", "now"),
    [(-1, -2), (-1.0, -2.0), (1, True), (1, 1.0), (0, ""), (7, 7 + 2**61 - 1), (1.0, 2.0**61), (0.0, -0.0)],
)
def test_values_that_have_one_hash_are_told_apart(before: Any, now: Any) -> None:
    assert hash(before) == hash(now)
    assert _begin(_messages([{"n": before}, {"n": now}]), _messages([{"n": before}, {"n": now}]))
    assert not _begin(_messages([{"n": before}, {"n": now}]), _messages([{"n": now}, {"n": before}]))


class Zone(dt.tzinfo):
    """A program's own zone; a time with it has no reference that Python shows."""

    def utcoffset(self, _: dt.datetime | None) -> dt.timedelta:
        """Leave a trace."""
        hostile.ran.append("utcoffset")
        return dt.timedelta()

    dst = utcoffset

    def tzname(self, _: dt.datetime | None) -> str:
        """Return no zone that Python knows."""
        return "zone"


@each_row("number", [0, -1, 0.5, True, ""])
def test_no_code_runs_of_a_time_in_the_place_of_a_number(number: Any) -> None:
    hostile.ran.clear()
    time = dt.datetime(2026, 1, 1, tzinfo=Zone())
    assert not _begin(_messages([{"n": number}]), _messages([{"n": time}]))
    assert hostile.ran == []


def test_a_number_with_more_digits_than_python_writes_is_read() -> None:
    huge = 10**5_000
    assert (depths([{"n": huge}]) is None) == hasattr(sys, "get_int_max_str_digits")
    assert not _begin(_messages([{"n": 1}]), _messages([{"n": huge}]))


def test_other_tools_are_another_beginning() -> None:
    assert _begin(_messages(_history(), [{"name": "a"}]), _messages(_history(), [{"name": "a"}]))
    assert not _begin(_messages(_history(), [{"name": "a"}]), _messages(_history(), [{"name": "b"}]))
    assert not _begin(_messages(_history(), [{"name": "a"}]), _messages(_history()))


def test_a_property_of_a_tool_that_has_another_name_is_another_beginning() -> None:
    def offered(*names: str) -> list[Any]:
        return [{"name": "a", "parameters": {"type": "object", "properties": {name: {"type": "x"} for name in names}}}]

    assert _begin(_messages(_history(), offered("q", "n")), _messages(_history(), offered("q", "n")))
    assert not _begin(_messages(_history(), offered("q", "n")), _messages(_history(), offered("query", "n")))
    assert not _begin(_messages(_history(), offered("q", "n")), _messages(_history(), offered("n", "q")))
    for odd in (1, None):
        hostile.ran.clear()
        tools = offered("q", "n")
        tools[0]["parameters"] = {odd: "object", "properties": tools[0]["parameters"]["properties"]}
        assert not _begin(_messages(_history(), offered("q", "n")), _messages(_history(), tools))
        assert hostile.ran == []


def test_what_is_no_plain_data_is_read() -> None:
    circle: list[Any] = []
    circle.append(circle)
    for odd in ({"content": (each for each in "ab")}, {1: "content"}, {"content": b"image"}, [circle], object()):
        assert depths([*_history(), odd]) is None


#: Other values, among them some that equal one of the history by their hash.
ODD: list[Any] = [None, 0, 1j, "", "x" * 1_024, "x" * 1_025, [], {}, (), [[]], {"a": "b"}, ["a"], object, type, len]
HOSTILE = hostile.everything()
ODD += [*HOSTILE.values(), weakref.proxy(HOSTILE["object"])]


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each structure within a value, and the keys or indexes of what it holds."""
    if type(value) in {dict, list}:
        for place, inner in list(value.items() if type(value) is dict else enumerate(value)):
            yield value, place
            yield from _places(inner)


@pytest.mark.parametrize("make", [dict, Message], ids=["dictionaries", "objects"])
def test_a_value_in_the_place_of_another_is_noticed_and_no_code_of_its_class_runs(make: Any) -> None:
    """At every place of a history, also those of long texts, structures and objects."""
    known = depths([make(**each) for each in _history()])
    assert known is not None
    kept, places = prints(known), len(list(_places(_history())))
    hostile.ran.clear()
    for number in range(places):
        for odd in ODD:
            items = _history()
            structure, place = list(_places(items))[number]
            is_same = structure[place] is odd
            structure[place] = odd
            messages = [make(**each) if type(each) is dict else each for each in items]
            assert (depths(messages, kept) is not None) == is_same, place
    assert hostile.ran == []


def test_messages_that_take_the_place_of_freed_ones_are_compared_by_what_they_hold() -> None:
    """Python gives a new object the address of one that was freed: only the values tell them apart."""
    items = _history()
    known = depths(items)
    assert known is not None
    kept = prints(known)
    for number in range(50):
        content = f"{number:04}" + "x" * 20_000
        items[2] = {"role": "tool", "tool_call_id": "call_1", "content": content, "is_error": False}
        assert depths(items, kept) is None
        items[2] = None
        items[2] = {"role": "tool", "tool_call_id": "call_1", "content": "x" * 20_000, "is_error": False}
        assert depths(items, kept) is not None


def test_one_message_that_is_in_a_history_twice() -> None:
    message = {"role": "user", "content": [{"type": "text", "text": "on"}]}
    twice = depths([message, message])
    assert twice is not None
    assert depths([message, copy.deepcopy(message)], prints(twice)) is not None
    assert depths([message, {**message, "content": "on"}], prints(twice)) is None
    message["content"] = [{"type": "text", "text": "off"}]
    assert depths([message, message], prints(twice)) is None


def test_blocks_that_move_to_the_next_message_are_noticed() -> None:
    one, two, three = ({"type": "text", "text": text} for text in ("a", "b", "c"))
    known = depths([{"content": [one, two]}, {"content": [three]}])
    assert known is not None
    assert depths([{"content": [one]}, {"content": [two, three]}], prints(known)) is None
    assert depths([{"content": [one, two]}, {"content": (three,)}], prints(known)) is None


@each_row("objects", [(), (1,), (1, 3), (0, 2)], ids=str)
@each_row("at", range(5))
def test_messages_are_recognised_whether_they_were_read_at_once_or_one_after_the_other(
    at: int, objects: tuple[int, ...]
) -> None:
    """Also where some are the objects of an SDK, as a model's messages often are."""
    items = [*_history(), {"role": "user", "content": [{"type": "image", "source": {"url": {"of": ["x" * 2_000]}}}]}]
    items = [Message(**item) if place in objects else item for place, item in enumerate(items)]
    first, more, whole = depths(items[:at]), depths(items[at:]), depths(items)
    assert first is not None
    assert more is not None
    assert whole is not None
    assert joined(first, more) == whole
    assert depths(copy.deepcopy(items), prints(joined(first, more))) == whole


def test_nothing_of_a_request_is_kept() -> None:
    items = _history()
    known = depths(items)
    assert known is not None
    text = items[2]["content"]
    references = sys.getrefcount(text)
    kept = prints(known)
    assert depths(items, kept) is not None
    assert sys.getrefcount(text) == references
    assert {type(each) for each in kept} == {int}
