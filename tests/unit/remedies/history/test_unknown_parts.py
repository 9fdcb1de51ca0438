"""Parts and messages that no format has: each remedy leaves them as they are, and acts on those beside them."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

from agent_otel.messages.formats import FORMATS
from agent_otel.remedies.history import automatic_summaries, request_rewriter, summarizer, turns
from agent_otel.remedies.history.request_rewriter import Views
from tests.rows import each_row
from tests.unit.remedies.history.histories import SHAPES, Asked, Turn, rendered

if TYPE_CHECKING:
    from collections.abc import Iterator

BIG = "z" * 5_000
LARGE = json.dumps({"content": BIG})
VIEWS = Views(step_turns=1)

#: Parts of a provider's later versions, known ones without their fields or with values of other types, and results
#: without a call.
PARTS: list[Any] = [
    *(None, 3, True, 1.5, "a text", {}, ["nested", [{"type": "tool_result"}]]),
    *(
        {"type": None},
        {"type": 7},
        {"type": ["tool_use"]},
        {"text": None},
        {"type": "text"},
        {"type": "text", "text": 5},
    ),
    {"type": "hologram", "data": BIG, "content": [{"type": "text", "text": BIG}]},
    {"type": "hologram", "id": "c1", "tool_use_id": "c1", "call_id": "c1"},
    {"type": "image", "source": {"type": "base64", "data": BIG}},
    {"image": {"format": "png", "source": {"bytes": BIG}}},
    {"document": {"name": "x", "source": {"bytes": BIG}}},
    {"inlineData": {"mimeType": "image/png", "data": BIG}},
    *(
        {"executableCode": {"code": BIG}},
        {"cachePoint": {"type": "default"}},
        {"guardContent": {"text": {"text": BIG}}},
    ),
    {"type": "refusal", "refusal": BIG},
    # The provider runs these, with the id of a call of the program's or with its arguments.
    {"type": "mcp_tool_use", "id": "c0", "name": "x", "input": {"content": BIG}},
    {"type": "server_tool_use", "id": "s1", "name": "x", "input": {"path": "a", "content": "q" * 3_000}},
    {"type": "tool_search_tool_result", "content": BIG},
    *({"functionCall": None}, {"functionCall": [1]}, {"functionResponse": "x"}, {"toolUse": None}, {"toolResult": 3}),
    *({"functionCall": {"name": 5, "args": [BIG]}}, {"toolUse": {"toolUseId": 4, "input": BIG}}),
    *({"type": "tool_use"}, {"type": "tool_use", "id": None, "name": None, "input": None}, {"type": "tool_result"}),
    {"type": "tool_result", "tool_use_id": None, "content": BIG},
    {"type": "tool_result", "tool_use_id": ["c1"], "content": {"a": BIG}},
    {"type": "tool_result", "tool_use_id": "nobody", "content": BIG},
]
MESSAGES: list[Any] = [
    *PARTS,
    *({"role": "assistant"}, {"role": "tool"}, {"role": "tool", "content": BIG}, {"role": 7, "content": BIG}),
    *({"role": None, "parts": None}, {"role": "user", "parts": 5}, {"role": "user", "content": None}),
    {"role": "tool", "tool_call_id": "nobody", "content": BIG},
    {"role": "assistant", "tool_calls": 5},
    {"role": "assistant", "tool_calls": [None, 5, {"function": None}], "content": 5},
    {"role": "assistant", "content": [None, 5]},
    {"role": "robot", "content": BIG, "tool_calls": [{"id": "c0", "function": {"name": "x", "arguments": LARGE}}]},
    *({"type": "function_call"}, {"type": "function_call_output", "output": None, "call_id": "c9"}),
    {"type": "function_call_output", "call_id": "nobody", "output": BIG},
    *({"type": "compaction", "encrypted_content": BIG}, {"type": "later", "input": BIG, "arguments": BIG}),
    *({"type": "web_search_call", "id": "ws_1", "action": {"query": BIG}},),
    {"type": "mcp_call", "arguments": LARGE, "output": BIG},
    {"type": "computer_call_output", "call_id": "nobody", "output": {"type": "computer_screenshot", "image_url": BIG}},
]


def history(shape: str) -> list[Any]:
    """Eight turns with large arguments and long results."""
    arguments = {"path": "a", "content": "q" * 3_000}
    return rendered(shape, [Turn((Asked(f"c{number}", "write", arguments, "r" * 600),)) for number in range(8)])


def lists(messages: list[Any]) -> Iterator[tuple[int, str]]:
    """Yield the places of lists of parts in the first two turns and in the last."""
    for at, message in enumerate(messages):
        for key in ("content", "parts"):
            if (at < 4 or at > len(messages) - 3) and isinstance(message.get(key), list):
                yield at, key


@each_row("shape", SHAPES)
def test_a_part_that_is_unknown_stays_and_those_beside_it_are_rewritten(shape: str) -> None:
    base = history(shape)
    expected = VIEWS.of(base).messages
    assert expected != base
    for at, key in lists(base):
        for part in PARTS:
            for place in (0, len(base[at][key])):
                given = copy.deepcopy(base)
                given[at][key].insert(place, copy.deepcopy(part))
                before = json.dumps(given)
                made = copy.deepcopy(VIEWS.of(given).messages)
                assert json.dumps(given) == before
                assert json.dumps(made[at][key].pop(place)) == json.dumps(part)
                assert made == expected, part


@each_row("shape", SHAPES)
def test_a_message_that_is_unknown_stays_and_those_beside_it_are_rewritten(shape: str) -> None:
    base = history(shape)
    expected = VIEWS.of(base).messages
    for at in (0, 1, 2, len(base)):
        for message in MESSAGES:
            given = [*base[:at], message, *base[at:]]
            made = VIEWS.of(given).messages
            assert json.dumps(made.pop(at)) == json.dumps(message)
            assert made == expected, message
            assert not request_rewriter.is_due(given, {"tool_calls": 3})


@each_row("shape", [shape for shape in SHAPES if shape in FORMATS])
def test_a_summary_is_made_beside_messages_that_are_unknown(shape: str) -> None:
    for message in MESSAGES:
        given = [*history(shape), message]
        weights = [summarizer.weigh(each) for each in given]
        read = turns.read(given)
        plan = automatic_summaries.plan(read, summarizer.request_tokens(weights, given), 0, 1_500)
        if type(message) is dict and message.get("type") == "compaction":  # it stands for all before it
            assert plan is None
            continue
        assert plan is not None
        assert "".join(summarizer.transcript(read, plan.first, plan.end))
        originals = automatic_summaries.originals(read, plan, weights)
        made = automatic_summaries.rendered(
            read, plan, FORMATS[shape], "so far", originals, in_call=True, names_tool=True
        )
        assert "so far" in json.dumps(made)


@each_row("shape", SHAPES)
def test_results_before_their_calls_and_ids_that_come_twice_are_no_reason_to_fail(shape: str) -> None:
    base = history(shape)
    twice = [*base, *copy.deepcopy(base)]
    for given in (base[::-1], twice, twice[::-1], base[1:], base[::2], base[1::2]):
        before = json.dumps(given)
        made = VIEWS.of(given).messages
        assert json.dumps(given) == before
        assert all(json.dumps(message) for message in made)
    # A result before its call is none of it: neither is rewritten.
    assert Views(step_turns=1, deduplicate=False).of(base[1:2] + base[:1]).messages == base[1:2] + base[:1]
