"""Requests to a model for a text alone, in each provider's format, and the messages that hold a summary."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_otel.messages.fields import fields, is_list, listed, text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


Body = dict[str, Any]

_CHAT: Final = (
    *("tools", "tool_choice", "parallel_tool_calls", "functions", "function_call", "response_format", "n", "stop"),
    *("logprobs", "top_logprobs", "modalities", "audio", "prediction", "web_search_options", "format"),
)
_RESPONSES: Final = (
    *("tools", "tool_choice", "parallel_tool_calls", "max_tool_calls", "text", "include", "prompt", "stop"),
    *("context_management", "truncation", "top_logprobs"),
)
_ANTHROPIC: Final = (
    *("tools", "tool_choice", "output_config", "output_format", "mcp_servers", "container", "context_management"),
    *("stop_sequences", "cache_control"),
)
_BEDROCK: Final = ("toolConfig", "promptVariables", "outputConfig", "additionalModelResponseFieldPaths")
_GEMINI: Final = ("tools", "toolConfig")
_GENERATION: Final = (
    *("responseSchema", "responseJsonSchema", "responseMimeType", "responseModalities", "candidateCount"),
    *("stopSequences", "speechConfig"),
)


class Prompting(NamedTuple):
    """A provider's format.

    ``asking`` returns a request with instructions and a text in the place of the messages, without tools and without a
    schema of the answer. ``answer`` returns the text of a response. ``pair`` returns a call without arguments and its
    result: of an id, a tool's name and a text. ``statement`` returns a message of the model.
    """

    asking: Callable[[Mapping[str, Any], str, str], Body]
    answer: Callable[[Mapping[str, Any]], str]
    pair: Callable[[str, str, str], list[Any]]
    statement: Callable[[str], Any]


def _without(body: Mapping[str, Any], names: Sequence[str]) -> Body:
    return {name: value for name, value in body.items() if name not in names}


def _texts(blocks: Any) -> str:
    """Return the texts of a content: a text, or the texts of its blocks without reasoning."""
    if not is_list(blocks):
        return text(blocks) or ""
    known = map(fields, blocks)
    return "".join(text(block.get("text")) or "" for block in known if not block.get("thought"))


def _ask_chat(body: Mapping[str, Any], instructions: str, prompt: str) -> Body:
    messages = [{"role": "system", "content": instructions}, {"role": "user", "content": prompt}]
    return {**_without(body, _CHAT), "messages": messages}


def _chat_answer(response: Mapping[str, Any]) -> str:
    choices = listed(response.get("choices"))
    message = (
        fields(choices[0]).get("message") if choices else response.get("message")
    )  # without choices: Ollama, Cohere
    return _texts(fields(message).get("content"))


def _chat_pair(call_id: str, name: str, result: str) -> list[Any]:
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": result},
    ]


def _mistral_pair(call_id: str, name: str, result: str) -> list[Any]:
    call, answer = _chat_pair(call_id, name, result)
    return [{**call, "content": ""}, {**answer, "name": name}]


def _ollama_pair(_: str, name: str, result: str) -> list[Any]:
    return [
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": name, "arguments": {}}}]},
        {"role": "tool", "tool_name": name, "content": result},
    ]


def _statement(words: str) -> Any:
    return {"role": "assistant", "content": words}


def _ask_responses(body: Mapping[str, Any], instructions: str, prompt: str) -> Body:
    return {
        **_without(body, _RESPONSES),
        "instructions": instructions,
        "input": [{"role": "user", "content": prompt}],
    }


def _responses_answer(response: Mapping[str, Any]) -> str:
    items = map(fields, listed(response.get("output")))
    return "".join(_texts(item.get("content")) for item in items if item.get("type") == "message")


def _responses_pair(call_id: str, name: str, result: str) -> list[Any]:
    return [
        {"type": "function_call", "call_id": call_id, "name": name, "arguments": "{}"},
        {"type": "function_call_output", "call_id": call_id, "output": result},
    ]


def _ask_anthropic(body: Mapping[str, Any], instructions: str, prompt: str) -> Body:
    return {
        **_without(body, _ANTHROPIC),
        "system": instructions,
        "messages": [{"role": "user", "content": prompt}],
    }


def _anthropic_answer(response: Mapping[str, Any]) -> str:
    return _texts(listed(response.get("content")))


def _anthropic_pair(call_id: str, name: str, result: str) -> list[Any]:
    return [
        {"role": "assistant", "content": [{"type": "tool_use", "id": call_id, "name": name, "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call_id, "content": result}]},
    ]


def _ask_bedrock(body: Mapping[str, Any], instructions: str, prompt: str) -> Body:
    return {
        **_without(body, _BEDROCK),
        "system": [{"text": instructions}],
        "messages": [{"role": "user", "content": [{"text": prompt}]}],
    }


def _bedrock_answer(response: Mapping[str, Any]) -> str:
    message = fields(fields(response.get("output")).get("message"))
    return _texts(listed(message.get("content")))


def _bedrock_pair(call_id: str, name: str, result: str) -> list[Any]:
    call = {"toolUseId": call_id, "name": name, "input": {}}
    answer = {"toolUseId": call_id, "content": [{"text": result}]}
    return [
        {"role": "assistant", "content": [{"toolUse": call}]},
        {"role": "user", "content": [{"toolResult": answer}]},
    ]


def _bedrock_statement(words: str) -> Any:
    return {"role": "assistant", "content": [{"text": words}]}


def _ask_gemini(body: Mapping[str, Any], instructions: str, prompt: str) -> Body:
    changed = {
        **_without(body, _GEMINI),
        "systemInstruction": {"parts": [{"text": instructions}]},
        "contents": [{"role": "user", "parts": [{"text": prompt}]}],
    }
    if "generationConfig" in body:
        changed["generationConfig"] = _without(fields(body["generationConfig"]), _GENERATION)
    return changed


def _gemini_answer(response: Mapping[str, Any]) -> str:
    candidates = listed(response.get("candidates"))
    return _texts(listed(fields(fields(candidates[0]).get("content")).get("parts"))) if candidates else ""


def _gemini_pair(_: str, name: str, result: str) -> list[Any]:
    return [
        {"role": "model", "parts": [{"functionCall": {"name": name, "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": name, "response": {"result": result}}}]},
    ]


def _gemini_statement(words: str) -> Any:
    return {"role": "model", "parts": [{"text": words}]}


PROMPTING: Final[Mapping[str, Prompting]] = {
    "chat": Prompting(_ask_chat, _chat_answer, _chat_pair, _statement),
    "responses": Prompting(_ask_responses, _responses_answer, _responses_pair, _statement),
    "anthropic": Prompting(_ask_anthropic, _anthropic_answer, _anthropic_pair, _statement),
    "bedrock": Prompting(_ask_bedrock, _bedrock_answer, _bedrock_pair, _bedrock_statement),
    "gemini": Prompting(_ask_gemini, _gemini_answer, _gemini_pair, _gemini_statement),
    "mistral": Prompting(_ask_chat, _chat_answer, _mistral_pair, _statement),
    "ollama": Prompting(_ask_chat, _chat_answer, _ollama_pair, _statement),
    "cohere": Prompting(_ask_chat, _chat_answer, _chat_pair, _statement),
}

_ITEMS: Final = frozenset({"function_call", "function_call_output", "reasoning"})
_BLOCKS: Final = frozenset({"tool_use", "tool_result"})

# Build a tool call and its result in the format of an existing history.


def shape_of(messages: Sequence[Any]) -> str | None:
    """Return the format of a history that has tool calls; None if no format or several formats match."""
    found = {shape for message in messages if (shape := _shape(message)) is not None}
    return found.pop() if len(found) == 1 else None


def pair(messages: Sequence[Any], call_id: str, name: str, text: str) -> list[Any]:
    """Return a call without arguments and its result in the history's format; raise KeyError for an unknown format."""
    return _MAKERS[shape_of(messages) or ""](call_id, name, text)


def _shape(message: Any) -> str | None:
    known = fields(message)
    kind = known.get("type")
    if type(message) is not dict:
        return "langchain" if "tool_calls" in known and kind == "ai" else None
    if kind in _ITEMS:
        return "responses"
    if "tool_calls" in known:
        return "chat"
    for block in map(fields, listed(known.get("content"))):
        if block.get("type") in _BLOCKS:
            return "anthropic"
    for part in map(fields, listed(known.get("parts"))):
        if "functionCall" in part or "function_call" in part:
            return "gemini"
    return None


def _chat(call_id: str, name: str, text: str) -> list[Any]:
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": text},
    ]


def _responses(call_id: str, name: str, text: str) -> list[Any]:
    return [
        {"type": "function_call", "call_id": call_id, "name": name, "arguments": "{}"},
        {"type": "function_call_output", "call_id": call_id, "output": text},
    ]


def _anthropic(call_id: str, name: str, text: str) -> list[Any]:
    return [
        {"role": "assistant", "content": [{"type": "tool_use", "id": call_id, "name": name, "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call_id, "content": text}]},
    ]


def _gemini(_: str, name: str, text: str) -> list[Any]:
    return [
        {"role": "model", "parts": [{"functionCall": {"name": name, "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": name, "response": {"result": text}}}]},
    ]


def _langchain(call_id: str, name: str, text: str) -> list[Any]:
    messages = sys.modules["langchain_core.messages"]
    call = {"id": call_id, "name": name, "args": {}, "type": "tool_call"}
    return [
        messages.AIMessage(content="", tool_calls=[call]),
        messages.ToolMessage(content=text, tool_call_id=call_id, name=name),
    ]


_MAKERS: Final[dict[str, Callable[[str, str, str], list[Any]]]] = {
    "chat": _chat,
    "responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "langchain": _langchain,
}
