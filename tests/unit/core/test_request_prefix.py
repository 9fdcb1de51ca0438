"""Requests that continue the one before them are read from their first new message on: nothing else may change."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel.core.message_parts import Messages, begins, prints
from agent_otel.core.types import RequestPart

if TYPE_CHECKING:
    from collections.abc import Callable

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
    earlier, levels = before.levels, now.levels
    assert earlier is not None
    assert levels is not None
    return begins(levels, prints(earlier))


def test_a_history_that_has_grown_begins_as_before() -> None:
    grown = [*copy.deepcopy(_history()), *_history()[1:], {"role": "user", "content": [{"type": "text", "text": "on"}]}]
    assert _begin(_messages(_history()), _messages(grown))
    assert not _begin(_messages(grown), _messages(_history()))


@pytest.mark.parametrize(
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


def test_other_tools_are_another_beginning() -> None:
    assert _begin(_messages(_history(), [{"name": "a"}]), _messages(_history(), [{"name": "a"}]))
    assert not _begin(_messages(_history(), [{"name": "a"}]), _messages(_history(), [{"name": "b"}]))
    assert not _begin(_messages(_history(), [{"name": "a"}]), _messages(_history()))


def test_what_is_no_plain_data_is_read() -> None:
    assert _messages([*_history(), {"role": "user", "content": (each for each in "ab")}]).levels is None
    assert _messages([*_history(), {"role": "user", 1: "content"}]).levels is None
    circle: list[Any] = []
    circle.append(circle)
    assert _messages([circle]).levels is None
