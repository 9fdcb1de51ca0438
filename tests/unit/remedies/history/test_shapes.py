"""Each shape is told by its own fields: the SDKs' real objects, and values that are none of them."""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel.messages.fields import changed
from agent_otel.remedies.history import turns
from agent_otel.remedies.history.request_rewriter import Views
from agent_otel.remedies.history.trimming import trim
from tests.rows import each_row
from tests.unit.measure import hostile
from tests.unit.remedies.history.histories import SHAPES, Asked, Turn, reading, rendered

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

OBJECTS = Path(__file__).parent / "objects.py"
READ = f"[trimmed 300 bytes] read: {'x' * 150}…"
HEAD = " ".join(["line of a file"] * 10) + "…"
TRIMMED = f"[trimmed 300 bytes] write: {HEAD}"
FAILED = f"[trimmed 300 bytes] write error: {HEAD}"
LEFT = {"path": "a.py", "content": "[argument removed: 3000 bytes]"}
TEXT = json.dumps(LEFT)
REMOVED = {"compact": 7 * (3000 - len("[argument removed: 3000 bytes]")), "trim": 5 * (300 - len(TRIMMED.encode()))}


def report(environment: Environment, sdk: str) -> Any:
    done = environment.run(OBJECTS, sdk, check=True)
    found = json.loads(done.stdout)
    assert found["untouched"]
    assert found["stable"]
    return found


@pytest.mark.parametrize("name", ["langchain", "openai-2"])
def test_openai_chat(environment: Callable[[str], Environment], name: str) -> None:
    found = report(environment(name), "openai_chat")
    call = {"id": "c0", "type": "function", "function": {"name": "write", "arguments": TEXT}}
    asked = {"role": "assistant", "content": None, "tool_calls": [call], "reasoning_content": "hm"}
    assert [asked, {"role": "tool", "tool_call_id": "c0", "content": TRIMMED}] == found["view"][:2]
    assert ["ChatCompletionMessage", "dict"] * 7 == found["types"]
    assert [False] * 10 + [False, True] * 2 == found["same"]
    assert REMOVED == found["removed"]


@pytest.mark.parametrize("name", ["langchain", "openai-2"])
def test_openai_responses(environment: Callable[[str], Environment], name: str) -> None:
    found = report(environment(name), "openai_responses")
    asked = {"id": "fc_0", "call_id": "c0", "name": "write", "arguments": TEXT, "type": "function_call"}
    answer = {"type": "function_call_output", "call_id": "c0", "output": [{"type": "input_text", "text": TRIMMED}]}
    assert [{"id": "rs_0", "summary": [], "type": "reasoning"}, asked, answer] == found["view"][:3]
    assert ["ResponseReasoningItem", "ResponseFunctionToolCall", "dict"] * 7 == found["types"]
    assert [True, False, False] * 5 + [True, False, True] * 2 == found["same"]
    assert REMOVED == found["removed"]


@pytest.mark.parametrize("name", ["anthropic", "anthropic-0.125"])
def test_anthropic(environment: Callable[[str], Environment], name: str) -> None:
    found = report(environment(name), "anthropic")
    blocks: list[Any] = [
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "text", "text": "I write"},
        {"type": "tool_use", "id": "c0", "name": "write", "input": LEFT},
    ]
    result = {"type": "tool_result", "tool_use_id": "c0", "content": FAILED, "is_error": True}
    assert {"role": "assistant", "content": blocks} == found["view"][0]
    assert {"role": "user", "content": [result]} == found["view"][1]
    assert [*blocks[:2], {**blocks[2], "id": "c1"}] == found["view"][2]["content"]
    assert ["dict", "dict", "Message", *["dict"] * 11] == found["types"]
    assert [False] * 10 + [False, True] * 2 == found["same"]


@pytest.mark.parametrize("name", ["google-genai", "google-genai-1.20"])
def test_gemini(environment: Callable[[str], Environment], name: str) -> None:
    found = report(environment(name), "google")
    call = {"function_call": {"name": "write", "args": LEFT}, "thought_signature": "c2ln"}
    assert [{"text": "I write"}, call] == found["view"][0]["parts"]
    response = {"name": "write", "response": {"result": f"[trimmed 302 bytes] write: 0 {HEAD[:-2]}…"}}
    assert [{"function_response": response}] == found["view"][1]["parts"]
    assert ["Content"] * 14 == found["types"]
    assert [False] * 10 + [False, True] * 2 == found["same"]


@pytest.mark.parametrize("name", ["langchain", "langchain-oldest"])
def test_langchain(environment: Callable[[str], Environment], name: str) -> None:
    found = report(environment(name), "langchain")
    asked, answer, chunk = found["view"]["own"][:3]
    assert [{"name": "write", "args": LEFT, "id": "c0", "type": "tool_call"}] == asked["tool_calls"]
    assert [TEXT] == [call["function"]["arguments"] for call in asked["additional_kwargs"]["tool_calls"]]
    assert LEFT == asked["content"][1]["input"]
    assert (FAILED, "error", "answer-0") == (answer["content"], answer["status"], answer["id"])
    assert [(LEFT, TEXT)] == [
        (call["args"], part["args"]) for call, part in zip(chunk["tool_calls"], chunk["tool_call_chunks"], strict=True)
    ]
    sent = [call["function"]["arguments"] for call in found["view"]["openai"][0]["tool_calls"]]
    assert [LEFT] == [json.loads(text) for text in sent]
    assert ["AIMessage", "ToolMessage", "AIMessageChunk", *["ToolMessage", "AIMessage"] * 5, "ToolMessage"] == (
        found["types"]
    )
    assert [False] * 10 + [False, True] * 2 == found["same"]
    assert 7 * 300 < found["removed"]["deduplicate"]


# --- dictionaries and objects of other classes -----------------------------------------------------------------------


def test_each_shape_is_read_alike() -> None:
    script = [Turn((Asked("a", "read", {"p": 1}, "r1"), Asked("b", "write", {"q": 2}, None))), reading(1, "r2")]
    for shape in SHAPES:
        history = turns.read(rendered(shape, script))
        answered = [call.answer is not None for call in history.calls]
        assert (2, [True, False, True]) == (history.turns, answered), shape
        assert ["read", "read"] == [result.name for result in history.results]


def test_what_the_provider_runs_by_itself_is_no_call_of_ours() -> None:
    blocks = [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"q": "x" * 3000}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"type": "text", "text": "x" * 300}]},
    ]
    items = [{"type": "web_search_call", "id": "ws_1"}, {"type": "item_reference", "id": "x"}]
    history = turns.read([{"role": "assistant", "content": blocks}, *items])
    assert ([], []) == (history.calls, history.results)


@dataclass(frozen=True)
class Frozen:
    """A message of somebody's own class."""

    role: str
    content: str
    tool_call_id: str


def test_objects_and_dictionaries_of_other_classes_keep_their_class() -> None:
    messages = rendered("chat", [reading(number, "x" * 300) for number in range(7)])
    messages[1] = SimpleNamespace(**messages[1])
    messages[3] = Frozen(**messages[3])
    messages[5] = OrderedDict(messages[5])
    view = trim(messages)
    assert [SimpleNamespace, Frozen, OrderedDict] == [type(view[at]) for at in (1, 3, 5)]
    assert [READ] * 3 == [view[1].content, view[3].content, view[5]["content"]]
    assert ["x" * 300] * 3 == [messages[1].content, messages[3].content, messages[5]["content"]]


def test_a_change_shares_what_it_does_not_touch() -> None:
    value: Any = {"a": [{"b": 1, "c": [2]}, {"d": 3}], "e": (4, {"f": 5})}
    made = changed(value, {("a", 0, "b"): {"new": 1}, ("e", 1, "f"): 6})
    assert {"a": [{"b": {"new": 1}, "c": [2]}, {"d": 3}], "e": (4, {"f": 6})} == made
    assert {"a": [{"b": 1, "c": [2]}, {"d": 3}], "e": (4, {"f": 5})} == value
    assert made["a"][0]["c"] is value["a"][0]["c"]
    assert made["a"][1] is value["a"][1]


@each_row("kind", list(hostile.everything()))
def test_no_code_of_a_hostile_message_runs(kind: str) -> None:
    hostile.ran.clear()
    value = hostile.everything()[kind]
    around = rendered("chat", [reading(number, "x" * 300) for number in range(7)])
    view = trim([value, {"role": "tool", "tool_call_id": "call_0", "content": value}, [value], *around])
    assert view[0] is value
    assert view[1]["content"] is value
    assert READ == view[4]["content"]
    assert [] == hostile.ran


@each_row("kind", list(hostile.everything()))
def test_no_code_of_hostile_contents_runs(kind: str) -> None:
    value = hostile.everything()[kind]
    turn = rendered("langchain", [reading(0, "x" * 300, {"content": "y" * 3000})])
    asked, answer = turn
    asked["tool_calls"][0]["args"]["other"] = value
    asked["additional_kwargs"] = {"raw": value, "id": "call_0", "args": {"content": "y" * 3000, "other": value}}
    answer["content"] = ["x" * 300, value, {"type": "image", "data": value}]
    others = [*rendered("chat", [reading(1, "r")]), *rendered("gemini", [reading(2, "r")])]
    others[1]["content"] = others[3]["parts"][0]["functionResponse"]["response"] = value
    hostile.ran.clear()
    view = Views(step_turns=1).of([*turn, *others, *rendered("chat", [reading(number, "r") for number in (3, 4)])])
    left = "[argument removed: 3000 bytes]"
    assert left == view.messages[0]["tool_calls"][0]["args"]["content"]
    assert left == view.messages[0]["additional_kwargs"]["args"]["content"]
    assert READ in view.messages[1]["content"][:1]
    assert view.messages[3]["content"] is value
    assert [] == hostile.ran
