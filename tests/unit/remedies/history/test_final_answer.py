"""The history decides which request is the last of a run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agent_otel.core.types import LimitReached
from agent_otel.integrations.request_bodies import joined, tool_fields, with_system
from agent_otel.remedies import limits
from agent_otel.remedies.history.request_rewriter import is_due
from tests.rows import each_row

if TYPE_CHECKING:
    import pytest

ANSWER = limits.answer(LimitReached("tool_calls", 3))
TEXT = json.dumps(ANSWER, ensure_ascii=False)
MAXIMA = {"tool_calls": 3}
CALL = {"id": "call_1", "type": "function", "function": {"name": "fetch", "arguments": "{}"}}
ASKED = {"role": "assistant", "content": None, "tool_calls": [CALL]}


def chat(content: Any) -> list[Any]:
    answered = {"role": "tool", "tool_call_id": "call_1", "content": content}
    return [{"role": "user", "content": "go"}, ASKED, answered]


HISTORIES: dict[str, list[Any]] = {
    "chat": chat(TEXT),
    "chat, in blocks": chat([{"type": "text", "text": TEXT}]),
    "chat, written anew": chat(json.dumps(ANSWER, separators=(",", ":"))),
    "beside another result": [*chat(TEXT), {"role": "tool", "tool_call_id": "call_2", "content": "found"}],
    "responses": [
        {"role": "user", "content": "go"},
        {"type": "function_call", "call_id": "call_1", "name": "fetch", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": TEXT},
    ],
    "anthropic": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": TEXT}]}],
    "bedrock": [{"role": "user", "content": [{"toolResult": {"toolUseId": "call_1", "content": [{"json": ANSWER}]}}]}],
    "gemini": [{"role": "user", "parts": [{"functionResponse": {"name": "fetch", "response": ANSWER}}]}],
    "gemini, around it": [
        {"role": "user", "parts": [{"functionResponse": {"name": "fetch", "response": {"result": TEXT}}}]}
    ],
    "observation": [
        {"role": "user", "content": "go"},
        {"role": "user", "content": [{"type": "text", "text": f"Observation:\n{TEXT}"}]},
    ],
    "observation in the model's own message": [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": f"Action: fetch\nObservation: {TEXT}"},
        {"role": "user", "content": "Analyze the tool result."},
    ],
    "observation of calls at once": [
        {"role": "user", "content": "go"},
        {"role": "user", "content": [{"type": "text", "text": f"Observation:\nfound\n{TEXT}\n{TEXT}"}]},
    ],
}


@each_row("name", HISTORIES)
def test_it_is_due_until_the_users_next_message(name: str) -> None:
    assert is_due(HISTORIES[name], MAXIMA)
    more = {"role": "user", "parts": [{"text": "more"}]} if "gemini" in name else {"role": "user", "content": "more"}
    assert not is_due([*HISTORIES[name], more], MAXIMA)


@each_row(
    "content",
    [
        "found",
        f"A page that quotes {TEXT}",
        f"A page with a line\n{TEXT}",
        TEXT.replace("3", "4"),  # of another program, or from before the setting was changed
        TEXT.replace("tool_calls", "result_bytes"),
        TEXT[:-1],
        '{"error": "limit_reached", "limit": ["tool_calls"], "maximum": 3}',
        '{"error": "limit_reached"}',
    ],
)
def test_other_results_do_not_end_a_run(content: str) -> None:
    assert not is_due(chat(content), MAXIMA)


def test_a_new_question_after_an_observation_of_an_earlier_run_does_not_end_the_run() -> None:
    before = HISTORIES["observation in the model's own message"]
    after = [{"role": "assistant", "content": "Final Answer: done"}, {"role": "user", "content": "Next."}]
    assert not is_due([*before, *after], MAXIMA)
    assert not is_due([*chat(TEXT), after[0], after[1]], MAXIMA)


def test_messages_that_cannot_be_read_are_passed_over() -> None:
    assert is_due([*chat(TEXT), None, 7, {"role": "new"}], MAXIMA)
    assert not is_due([], MAXIMA)


def test_the_note_stands_in_the_first_system_message() -> None:
    user = {"role": "user", "content": "go"}
    assert with_system([user], "stop") == [{"role": "system", "content": "stop"}, user]
    assert with_system([{"role": "developer", "content": "be"}, user], "stop") == [
        {"role": "developer", "content": "be\n\nstop"},
        user,
    ]
    assert joined([{"type": "text", "text": "be"}], "stop") == [
        {"type": "text", "text": "be"},
        {"type": "text", "text": "stop"},
    ]


def test_a_required_call_can_only_be_one_of_an_output_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_otel.core.tool_names.called", {"fetch": None})
    fetch, output = ({"type": "function", "function": {"name": name}} for name in ("fetch", "final_result"))
    assert tool_fields({"tools": [fetch, output], "tool_choice": "required"}) == {"tools": [output]}
    assert tool_fields({"tools": [fetch, output], "tool_choice": "auto"}) == {"tool_choice": "none"}
    assert tool_fields({"tools": [fetch], "tool_choice": "required"}) == {"tool_choice": "none"}
    named = [{"name": "fetch"}, {"name": "final_result"}]
    assert tool_fields({"tools": named, "tool_choice": {"type": "any"}}, {"type": "none"}) == {"tools": named[1:]}
    choice: dict[str, object] = {"type": "function", "function": {"name": "fetch"}}
    assert tool_fields({"tools": [fetch, output], "tool_choice": choice}) == {"tool_choice": "none"}
    assert tool_fields({"tools": [fetch, output], "tool_choice": {"type": "tool", "name": "final_result"}}) == {}
    hosted = {"type": "mcp", "server_label": "gh", "name": "delete"}
    assert tool_fields({"tools": [fetch, output], "tool_choice": hosted}) == {"tool_choice": "none"}
    assert tool_fields({"functions": [{"name": "fetch"}]}) == {"function_call": "none"}
    assert tool_fields({}) == {}
