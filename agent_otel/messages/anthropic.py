"""Anthropic's messages and Bedrock's Converse: content blocks, in streams by their indexes."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, Final

from agent_otel._internal.errors import attempt
from agent_otel._internal.object_kinds import dictionaries, is_dict, is_text, plain_text
from agent_otel._internal.object_kinds import listed as elements
from agent_otel.core.types import RequestPart
from agent_otel.messages import CALL, NEUTRAL, TEXT, Answer, AnsweredCall, Body, Call, Format, RequestedCall, Tool
from agent_otel.messages.fields import RESULT_ID, fields, is_kept, listed, text, text_of, without, without_nulls
from agent_otel.semconv import ASSISTANT, COMPACTION, SYSTEM, TOOL_CALL_ARGUMENTS, TOOL_RESULTS, TOOLS, USER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from agent_otel.messages.fields import Path


#: Fields that a thread has from its first request, and that the API rejects in later ones.
_OF_THREADS: Final = ("system", "tools")


def call_block(call_id: str, name: str, arguments: Any) -> Body:
    """Return the block of a call."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def converse_call(call_id: str, name: str, arguments: Any) -> Body:
    """Return Bedrock's block of a call."""
    return {"toolUse": {"toolUseId": call_id, "name": name, "input": arguments}}


def result_block(call_id: str | None, content: Any, **more: Any) -> Body:
    """Return the block of a result."""
    return {"type": "tool_result", RESULT_ID: call_id, "content": content, **more}


def _converse_answer(call_id: str | None, content: Any, **more: Any) -> Body:
    return {"toolResult": {"toolUseId": call_id, "content": [{"text": content}], **more}}


def _is_blank(block: Mapping[str, Any]) -> bool:
    """Return True for a text block without text, which models write before a call and no request may have."""
    return type(block.get("text")) is str and not block["text"].strip()


class _Blocks(Format):
    """A format with blocks in its messages."""

    messages = "messages"
    _call = staticmethod(call_block)
    _result = staticmethod(result_block)

    @staticmethod
    def _blocks(response: Mapping[str, Any]) -> Sequence[Any]:
        """Return the blocks of a response."""
        return listed(response.get("content"))

    def answer(self, response: Mapping[str, Any]) -> str:
        """Return the texts of the blocks."""
        return text_of(self._blocks(response))

    def pair(self, call_id: str, name: str, result: str) -> list[Any]:
        """Return a message with the call and one with the result."""
        asked = {"role": "assistant", "content": [self._call(call_id, name, {})]}
        return [asked, {"role": "user", "content": [self._result(call_id, result)]}]

    def calls(self, response: Mapping[str, Any]) -> list[Call]:
        """Return the calls, except calls of the provider's own tools."""
        return [Call(one.id, one.name or "", one.arguments) for one in requested(self._blocks(response))]

    def answered(self, body: Mapping[str, Any], response: Mapping[str, Any], answers: Sequence[Answer]) -> Body:
        """Add the model's message and a message with the results."""
        blocks = map(fields, self._blocks(response))
        said = [without_nulls(block) for block in blocks if block and not _is_blank(block)]
        results = [self._result(answer.call.id, answer.text) for answer in answers]
        turn = [{"role": "assistant", "content": said}, {"role": "user", "content": results}]
        return {**body, "messages": [*listed(body.get("messages")), *turn]}


class Anthropic(_Blocks):
    """Anthropic's messages."""

    of_tools = (
        *("tools", "tool_choice", "output_config", "output_format", "mcp_servers", "container", "context_management"),
        *("stop_sequences", "cache_control"),
    )
    cache_point = "cache_control"
    first_events = ("message_start",)
    begins = "content_block_start"
    place = "index"

    def takes(self, body: Mapping[str, Any], name: str) -> bool:
        """Return True unless the tool is there or calls are switched off."""
        return fields(body.get("tool_choice")).get("type") != "none" and super().takes(body, name)

    def hides(self, body: Mapping[str, Any]) -> bool:
        """Return True for a thread, which has the messages, and the tools of its first request."""
        return is_kept(body) or (_thread(body) == "create" and bool(listed(body.get("tools"))))

    def offering(self, body: Mapping[str, Any], tool: Tool) -> Body:
        """Add a tool; a thread has it from its first request on."""
        return dict(body) if is_kept(body) else super().offering(body, tool)

    def declared(self, tool: Tool) -> Body:
        """Return the definition of a tool."""
        return {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}

    def closed(self, body: Mapping[str, Any]) -> Body:
        """Switch tool calls off."""
        return {**body, "tool_choice": {"type": "none"}}

    def answered(self, body: Mapping[str, Any], response: Mapping[str, Any], answers: Sequence[Answer]) -> Body:
        """Add the messages; a thread has all but the results.

        A response of a thread can be continued only once, so that the next request continues this one.
        """
        made, response_id = super().answered(body, response, answers), text(response.get("id"))
        if _thread(body) not in ("create", "continue") or response_id is None:
            return made
        thread = {"type": "continue", "previous_message_id": response_id}
        return {**without(made, *_OF_THREADS), "thread": thread, "messages": made["messages"][-1:]}

    def kind(self, item: Mapping[str, Any]) -> str:
        """Return the kind of an event; reasoning is neutral, because it belongs to the call that follows it."""
        kind = text(fields(item.get("content_block")).get("type")) or text(fields(item.get("delta")).get("type")) or ""
        if kind in ("tool_use", "input_json_delta"):
            return CALL
        return TEXT if kind in ("text", "text_delta", "server_tool_use") else NEUTRAL

    def folded(self, items: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        """Put the blocks together."""
        blocks: dict[Any, Body] = {}
        inputs: dict[Any, str] = {}
        for item in items:
            index = item.get("index")
            if item.get("type") == "content_block_start":
                blocks[index] = dict(fields(item.get("content_block")))
            elif item.get("type") == "content_block_delta" and index in blocks:
                _add_delta(blocks[index], inputs, index, fields(item.get("delta")))
        for index, given in inputs.items():
            blocks[index]["input"] = _parsed(given)
        response_id = fields(items[0].get("message")).get("id")
        return {"id": response_id, "role": "assistant", "content": list(blocks.values())}


def _thread(body: Mapping[str, Any]) -> object:
    return fields(body.get("thread")).get("type")


def _add_delta(block: Body, inputs: dict[Any, str], index: object, delta: Mapping[str, Any]) -> None:
    """Add a delta to its block; the arguments of a call come as pieces of JSON."""
    kind = delta.get("type")
    if kind == "input_json_delta":
        inputs[index] = inputs.get(index, "") + (text(delta.get("partial_json")) or "")
    elif kind == "citations_delta":
        block["citations"] = [*listed(block.get("citations")), delta.get("citation")]
    else:
        _grow(block, delta, "text", "thinking", "signature")


def _grow(block: Body, delta: Mapping[str, Any], *names: str) -> None:
    """Add the texts of a delta to the texts of a block."""
    for name in names:
        if type(delta.get(name)) is str:
            block[name] = (text(block.get(name)) or "") + delta[name]


def _parsed(given: str) -> Any:
    return attempt(json.loads, given or "{}", default={})


def requested(content: Any) -> Iterator[RequestedCall]:
    """Yield the calls among a message's blocks, without calls of tools that the provider runs."""
    for place, block in enumerate(map(fields, content)):
        if block.get("type") == "tool_use":
            path: Path = ("content", place, "input")
            yield RequestedCall(path, text(block.get("id")), text(block.get("name")), block.get("input"))
        elif "toolUse" in block and "type" not in (inner := fields(block["toolUse"])):
            path = ("content", place, "toolUse", "input")
            yield RequestedCall(path, text(inner.get("toolUseId")), text(inner.get("name")), inner.get("input"))


def answered(content: Any) -> Iterator[AnsweredCall]:
    """Yield the results among a message's blocks."""
    for place, block in enumerate(map(fields, content)):
        if block.get("type") == "tool_result":
            failed = block.get("is_error")
            failed = failed if type(failed) is bool else None
            path: Path = ("content", place, "content")
            yield AnsweredCall(path, text(block.get(RESULT_ID)), None, block.get("content"), failed)
        elif "toolResult" in block and "type" not in (inner := fields(block["toolResult"])):
            status = inner.get("status")
            failed = status == "error" if type(status) is str else None
            path = ("content", place, "toolResult", "content")
            yield AnsweredCall(path, text(inner.get("toolUseId")), None, inner.get("content"), failed)


class Bedrock(_Blocks):
    """Bedrock's Converse; an item of a stream is an event's name with its payload."""

    of_tools = ("toolConfig", "promptVariables", "outputConfig", "additionalModelResponseFieldPaths")
    named_below = ("toolSpec",)
    cache_point = "cachePoint"
    _call = staticmethod(converse_call)
    _result = staticmethod(_converse_answer)

    @staticmethod
    def _blocks(response: Mapping[str, Any]) -> Sequence[Any]:
        return listed(fields(fields(response.get("output")).get("message")).get("content"))

    def system(self, instructions: str) -> Body:
        """Return the field of the system prompt's blocks."""
        return {"system": [{"text": instructions}]}

    def statement(self, words: str, role: str = "assistant") -> Any:
        """Return a message with a block."""
        return {"role": role, "content": [{"text": words}]}

    def takes(self, body: Mapping[str, Any], name: str) -> bool:
        """Return True unless the tool is there."""
        return super().takes(fields(body.get("toolConfig")), name)

    def fixes(self, body: Mapping[str, Any]) -> bool:
        """Return True for a prompt at the provider, which has the tools; Converse rejects such a request with tools."""
        return ":prompt/" in (text(body.get("modelId")) or "")

    def offering(self, body: Mapping[str, Any], tool: Tool) -> Body:
        """Add a tool to the configuration."""
        return {**body, "toolConfig": super().offering(fields(body.get("toolConfig")), tool)}

    def declared(self, tool: Tool) -> Body:
        """Return the specification of a tool."""
        schema = {"json": tool.parameters}
        return {"toolSpec": {"name": tool.name, "description": tool.description, "inputSchema": schema}}

    def closed(self, body: Mapping[str, Any]) -> Body:
        """Return the request itself: Converse cannot switch tool calls off."""
        return dict(body)

    def kind(self, item: Mapping[str, Any]) -> str:
        """Return the kind of an event; reasoning is neutral, because it belongs to the call that follows it."""
        start = fields(fields(item.get("contentBlockStart")).get("start"))
        delta = fields(fields(item.get("contentBlockDelta")).get("delta"))
        if "toolUse" in start or "toolUse" in delta:
            return CALL
        return TEXT if "text" in delta else NEUTRAL

    def folded(self, items: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        """Put the blocks together."""
        blocks: dict[Any, Body] = {}
        inputs: dict[Any, str] = {}
        for item in items:
            begun, more = fields(item.get("contentBlockStart")), fields(item.get("contentBlockDelta"))
            if "toolUse" in fields(begun.get("start")):
                index = begun.get("contentBlockIndex")
                blocks[index] = {"toolUse": {**fields(fields(begun["start"])["toolUse"]), "input": {}}}
                inputs[index] = ""
            elif more:
                index, delta = more.get("contentBlockIndex"), fields(more.get("delta"))
                if "toolUse" in delta:
                    inputs[index] = inputs.get(index, "") + (text(fields(delta["toolUse"]).get("input")) or "")
                else:
                    _add_converse_delta(blocks.setdefault(index, {}), delta)
        for index, given in inputs.items():
            blocks[index]["toolUse"]["input"] = _parsed(given)
        return {"output": {"message": {"role": "assistant", "content": list(blocks.values())}}}

    def joined(self, item: Mapping[str, Any], passed: int) -> Mapping[str, Any] | None:
        """Leave out the beginning of a further message, and count its blocks on."""
        if "messageStart" in item:
            return None
        [(name, payload)] = item.items()
        index = fields(payload).get("contentBlockIndex")
        return {name: {**payload, "contentBlockIndex": index + passed}} if type(index) is int else {}

    def blocks(self, items: Sequence[Mapping[str, Any]]) -> int:
        """Return the number of content blocks; a block of text begins with its first delta."""
        places = (
            fields(payload).get("contentBlockIndex")
            for item in items
            for name, payload in item.items()
            if name.startswith("contentBlock")
        )
        return max((place + 1 for place in places if type(place) is int), default=0)


def _add_converse_delta(block: Body, delta: Mapping[str, Any]) -> None:
    """Add a delta of a text or of reasoning to its block."""
    _grow(block, delta, "text")
    reasoning = fields(delta.get("reasoningContent"))
    if reasoning:
        inner = block.setdefault("reasoningContent", {})
        if "redactedContent" in reasoning:
            # A request has the bytes themselves, an event their base64.
            inner["redactedContent"] = base64.b64decode(reasoning["redactedContent"])
        else:
            _grow(inner.setdefault("reasoningText", {"text": ""}), reasoning, "text", "signature")


_ROLES: Final = {"user": USER, "assistant": ASSISTANT, "system": SYSTEM}


def head(body: Mapping[str, Any]) -> list[RequestPart]:
    """Return the parts of a request in front of its messages."""
    tools, system = elements(body.get("tools")), body.get("system")
    found = [RequestPart(TOOLS, tools)] if tools else []
    if is_text(system) or type(system) is list or type(system) is tuple:
        found.append(RequestPart(SYSTEM, system if is_text(system) else elements(system)))
    return found


def parts(each: Any) -> Iterator[RequestPart]:
    """Yield the parts of a message: its results, its calls, and then its texts."""
    message = fields(each)
    part, content = _ROLES.get(plain_text(message.get("role")) or "", USER), message.get("content")
    if is_text(content):
        yield RequestPart(part, content)
        return
    said = []
    for one in elements(content):
        block = fields(one)
        kind = plain_text(block.get("type"))
        if kind is None:
            said.append(one)
        elif kind == "tool_result":
            yield _result_part(block)
        elif kind.endswith("tool_result"):
            # The provider ran this tool, so no call of it was measured here.
            yield RequestPart(TOOL_RESULTS, block.get("content"))
        elif kind.endswith("tool_use"):
            yield RequestPart(TOOL_CALL_ARGUMENTS, block.get("input"), block.get("id"), block.get("name"))
        elif kind == COMPACTION:
            yield RequestPart(ASSISTANT, block.get("content"), name=COMPACTION)
        else:
            said.append(one)
    if said:
        yield RequestPart(part, said)


def _result_part(block: Mapping[str, Any]) -> RequestPart:
    content, call_id = block.get("content"), block.get(RESULT_ID)
    if content is None:
        content = ""
    elif issubclass(type(content), list | tuple):
        # Read a single block like a plain text, so that its length is known at once.
        content = elements(content)
        only = fields(content[0]) if len(content) == 1 else {}
        if plain_text(only.get("type")) == "text" and is_text(only.get("text")):
            content = only["text"]
    elif not is_text(content):
        call_id = None  # not iterated, so its size is unknown
    return RequestPart(TOOL_RESULTS, content, call_id, failed=block.get("is_error") is True)


def converse_parts(body: Mapping[str, Any]) -> Iterator[RequestPart]:
    """Yield the parts of a request to Converse."""
    body = fields(body)
    tools, system = dictionaries(fields(body.get("toolConfig")).get("tools")), dictionaries(body.get("system"))
    if tools:
        yield RequestPart(TOOLS, tools)
    if system:
        yield RequestPart(SYSTEM, system)
    for message in dictionaries(body.get("messages")):
        said = []
        for block in dictionaries(message.get("content")):
            if is_dict(block.get("toolResult")):
                yield _converse_result(fields(block["toolResult"]))
            elif is_dict(block.get("toolUse")):
                asked = fields(block["toolUse"])
                yield RequestPart(TOOL_CALL_ARGUMENTS, asked.get("input"), asked.get("toolUseId"), asked.get("name"))
            else:
                said.append(block)
        if said:
            yield RequestPart(ASSISTANT if plain_text(message.get("role")) == "assistant" else USER, said)


def _converse_result(block: Mapping[str, Any]) -> RequestPart:
    blocks = dictionaries(block.get("content"))
    only = next(iter(blocks[0].items())) if len(blocks) == 1 and len(blocks[0]) == 1 else ("", None)
    value = only[1] if only[0] in ("text", "json") else blocks
    # A tool that the provider runs has a type; no call of it was measured here.
    call_id = block.get("toolUseId") if "type" not in block else None
    return RequestPart(TOOL_RESULTS, value, call_id, failed=plain_text(block.get("status")) == "error")


def is_cached(body: Mapping[str, Any]) -> bool:
    """Return True when the provider caches messages: it does so only up to a block that asks for it."""
    if is_dict(body.get("cache_control")):
        return True
    blocks = (block for message in elements(body["messages"]) for block in elements(fields(message).get("content")))
    return any("cache_control" in known or "cachePoint" in known for known in map(fields, blocks))
