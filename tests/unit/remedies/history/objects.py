"""Histories made of the SDKs' own objects, viewed and written by the SDK: run in the environment that has the SDK."""

# mypy: disable-error-code="import-not-found,import-untyped,assignment,unused-ignore"

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from agent_otel.remedies.history.request_rewriter import Views

if TYPE_CHECKING:
    from collections.abc import Callable

TURNS = 7
LONG = "line of a file\n" * 20
WRITTEN = {"path": "a.py", "content": "x" * 3000}


def openai_chat() -> tuple[list[Any], Callable[[Any], Any]]:
    """Messages of answers, appended as they came."""
    from openai.types.chat import ChatCompletionMessage

    messages: list[Any] = []
    for turn in range(TURNS):
        function = {"name": "write", "arguments": json.dumps(WRITTEN)}
        call = {"id": f"c{turn}", "type": "function", "function": function}
        asked = {"role": "assistant", "content": None, "tool_calls": [call], "reasoning_content": "hm"}
        messages += [
            ChatCompletionMessage.model_validate(asked),
            {"role": "tool", "tool_call_id": f"c{turn}", "content": LONG},
        ]
    return messages, _dumped


def openai_responses() -> tuple[list[Any], Callable[[Any], Any]]:
    """Items of answers, appended as they came."""
    from openai.types.responses import ResponseFunctionToolCall, ResponseReasoningItem

    messages: list[Any] = []
    for turn in range(TURNS):
        messages += [
            ResponseReasoningItem(id=f"rs_{turn}", summary=[], type="reasoning"),
            ResponseFunctionToolCall(
                id=f"fc_{turn}", call_id=f"c{turn}", name="write", arguments=json.dumps(WRITTEN), type="function_call"
            ),
            {"type": "function_call_output", "call_id": f"c{turn}", "output": [{"type": "input_text", "text": LONG}]},
        ]
    return messages, _dumped


def anthropic() -> tuple[list[Any], Callable[[Any], Any]]:
    """Blocks of answers in messages, and a whole answer in the place of one."""
    from anthropic.types import Message, TextBlock, ThinkingBlock, ToolUseBlock, Usage

    messages: list[Any] = []
    for turn in range(TURNS):
        blocks = [
            ThinkingBlock(type="thinking", thinking="hm", signature="c2ln"),
            TextBlock(type="text", text="I write"),
            ToolUseBlock(type="tool_use", id=f"c{turn}", name="write", input=WRITTEN),
        ]
        asked: Any = {"role": "assistant", "content": blocks}
        if turn == 1:
            usage = Usage(input_tokens=1, output_tokens=1)
            asked = Message(
                id="msg_1",
                type="message",
                role="assistant",
                model="m",
                content=blocks,
                stop_reason="tool_use",
                usage=usage,
            )
        result = {"type": "tool_result", "tool_use_id": f"c{turn}", "content": LONG, "is_error": True}
        messages += [asked, {"role": "user", "content": [result]}]
    return messages, _dumped


def google() -> tuple[list[Any], Callable[[Any], Any]]:
    """Contents as the SDK keeps them in a chat."""
    from google.genai import types

    messages: list[Any] = []
    for turn in range(TURNS):
        call = types.FunctionCall(name="write", args=WRITTEN)
        response = types.FunctionResponse(name="write", response={"result": f"{turn} {LONG}"})
        asked = types.Part(function_call=call, thought_signature=b"sig")
        messages += [
            types.Content(role="model", parts=[types.Part(text="I write"), asked]),
            types.Content(role="user", parts=[types.Part(function_response=response)]),
        ]
    return messages, _dumped


def langchain() -> tuple[list[Any], Callable[[Any], Any]]:
    """Messages with the provider's raw answer beside the calls."""
    from langchain_core.messages import AIMessage, AIMessageChunk, ToolMessage, convert_to_openai_messages

    messages: list[Any] = []
    for turn in range(TURNS):
        call_id, text = f"c{turn}", json.dumps(WRITTEN)
        raw = {"id": call_id, "type": "function", "function": {"name": "write", "arguments": text}}
        block = {"type": "tool_use", "id": call_id, "name": "write", "input": WRITTEN}
        asked = AIMessage(
            content=[{"type": "text", "text": "I write"}, block],
            id=f"ask-{turn}",
            tool_calls=[{"name": "write", "args": WRITTEN, "id": call_id}],
            additional_kwargs={"tool_calls": [raw]},
        )
        if turn == 1:
            chunk = {"name": "write", "args": text, "id": call_id, "index": 0, "type": "tool_call_chunk"}
            asked = AIMessageChunk(content="", id="ask-1", tool_call_chunks=[chunk])
        answer = ToolMessage(content=LONG, tool_call_id=call_id, id=f"answer-{turn}", status="error", artifact=[LONG])
        messages += [asked, answer]

    def written(view: list[Any]) -> Any:
        return {"openai": convert_to_openai_messages(view), "own": [message.model_dump() for message in view]}

    return [*messages, *[message.model_copy() for message in messages]], written


def _dumped(view: list[Any]) -> Any:
    return [_plain(message) for message in view]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return value.model_dump(mode="json", exclude_unset=True) if hasattr(value, "model_dump") else value


def main() -> None:
    """Print the view, the types of its messages, which are the same objects, and whether the history is as before."""
    messages, written = globals()[sys.argv[1]]()
    before = json.dumps(written(messages), default=str)
    view = Views().of(messages)
    again = Views().of(view.messages)
    report = {
        "view": written(view.messages),
        "removed": view.removed_bytes,
        "types": [type(message).__name__ for message in view.messages],
        "same": [any(one is message for message in messages[: len(view.messages)]) for one in view.messages],
        "untouched": before == json.dumps(written(messages), default=str),
        "stable": all(one is other for one, other in zip(view.messages, again.messages, strict=True)),
    }
    print(json.dumps(report, default=str))


if __name__ == "__main__":
    main()
