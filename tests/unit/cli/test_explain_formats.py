"""``agent-otel explain`` on conversations as each provider and LangChain write them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.rows import each_row
from tests.unit.cli.test_explain import chat, explained, result, savings, written

if TYPE_CHECKING:
    from pathlib import Path

TURNS = 8
BYTES = 60_000
WRITTEN = 62_200  # with the escapes of JSON, which Gemini's responses have, and the message around it


def anthropic() -> list[Any]:
    """Return messages with blocks."""
    messages: list[Any] = [{"role": "user", "content": "Which orders are late?"}]
    for turn in range(TURNS):
        use = {"type": "tool_use", "id": f"toolu_{turn}", "name": "search_orders", "input": {"page": turn}}
        messages.append({"role": "assistant", "content": [{"type": "text", "text": "I look."}, use]})
        answer = {"type": "tool_result", "tool_use_id": f"toolu_{turn}", "content": result(turn)}
        messages.append({"role": "user", "content": [answer]})
    return messages


def gemini() -> list[Any]:
    """Return contents with parts."""
    contents: list[Any] = [{"role": "user", "parts": [{"text": "Which orders are late?"}]}]
    for turn in range(TURNS):
        contents.append(
            {"role": "model", "parts": [{"functionCall": {"name": "search_orders", "args": {"page": turn}}}]}
        )
        answer = {"name": "search_orders", "response": {"result": result(turn)}}
        contents.append({"role": "user", "parts": [{"functionResponse": answer}]})
    return contents


def responses() -> list[Any]:
    """Return items of OpenAI's Responses."""
    items: list[Any] = [{"role": "user", "content": "Which orders are late?"}]
    for turn in range(TURNS):
        call = {"type": "function_call", "call_id": f"call_{turn}", "name": "search_orders", "arguments": "{}"}
        items += [call, {"type": "function_call_output", "call_id": f"call_{turn}", "output": result(turn)}]
    return items


def langchain() -> list[Any]:
    """Return messages as ``messages_to_dict`` writes them."""
    messages: list[Any] = [{"type": "human", "data": {"content": "Which orders are late?", "type": "human"}}]
    for turn in range(TURNS):
        call = {"name": "search_orders", "args": {"page": turn}, "id": f"call_{turn}", "type": "tool_call"}
        messages.append({"type": "ai", "data": {"content": "", "tool_calls": [call], "type": "ai"}})
        answer = {"content": result(turn), "tool_call_id": f"call_{turn}", "name": "search_orders", "type": "tool"}
        messages.append({"type": "tool", "data": answer})
    return messages


FORMATS = {
    "chat completions": {"messages": chat(TURNS)},
    "Anthropic": {"model": "claude", "messages": anthropic()},
    "Gemini": {"contents": gemini()},
    "Responses": {"input": responses()},
    "LangChain": {"channel_values": {"messages": langchain()}},
    "a list": anthropic(),
    "text in text": json.dumps({"messages": anthropic()}),
}


@each_row("value", FORMATS.values(), ids=FORMATS)
def test_turns_tools_and_savings(tmp_path: Path, value: Any) -> None:
    found = explained(written(tmp_path, value))
    assert TURNS == len(found["turns"])
    results = [part for turn in found["turns"] for part in turn["parts"] if part["kind"] == "result"]
    of_tool = [part["bytes"] for part in results if part["tool"] == "search_orders"]
    assert TURNS == len(of_tool)
    assert all(BYTES <= size <= WRITTEN for size in of_tool)
    saved = savings(found)
    assert TURNS * (BYTES - 32_768) <= saved["claim check"] <= TURNS * (WRITTEN - 32_768)
    # Of eight turns the last two stay whole, and five of the others become lines together.
    assert 5 * (BYTES - 400) <= saved["trimming"] <= 5 * WRITTEN
    assert TURNS == len(found["sizes"])
