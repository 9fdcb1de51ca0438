"""Gemini's generateContent: calls and answers are parts of contents, and either may lack an id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agent_otel._internal.object_kinds import dictionaries, is_dict, plain_text
from agent_otel.core.types import RequestPart
from agent_otel.messages import (
    CALL,
    NEUTRAL,
    TEXT,
    Answer,
    AnsweredCall,
    Body,
    Call,
    Format,
    RequestedCall,
    Tool,
    Transcript,
)
from agent_otel.messages.fields import fields, first, listed, text, text_of, without
from agent_otel.semconv import ASSISTANT, SYSTEM, TOOL_CALL_ARGUMENTS, TOOL_RESULTS, TOOLS, USER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_ROLES: Final = ("user", "model", "function", "tool", None)
_CALLS: Final = ("function_call", "functionCall")
_RESPONSES: Final = ("function_response", "functionResponse")
_OF_ANSWERS: Final = (
    *("responseSchema", "responseJsonSchema", "responseMimeType", "responseModalities", "candidateCount"),
    *("stopSequences", "speechConfig"),
)


class Gemini(Format):
    """The body of a request as JSON has it."""

    messages = "contents"
    of_tools = ("tools", "toolConfig")

    def asking(self, body: Mapping[str, Any], instructions: str, prompt: str) -> Body:
        """Leave the form of the answer out of the configuration, too."""
        made = super().asking(body, instructions, prompt)
        if "generationConfig" in body:
            made["generationConfig"] = without(fields(body["generationConfig"]), *_OF_ANSWERS)
        return made

    def system(self, instructions: str) -> Body:
        """Return the field of the system prompt's parts."""
        return {"systemInstruction": {"parts": [{"text": instructions}]}}

    def answer(self, response: Mapping[str, Any]) -> str:
        """Return the text of the first candidate."""
        return text_of(listed(_content(response).get("parts")))

    def pair(self, call_id: str, name: str, result: str) -> list[Any]:  # noqa: ARG002 - calls are known by their order
        """Return a content with the call and one with the result."""
        answer = {"functionResponse": {"name": name, "response": {"result": result}}}
        return [{"role": "model", "parts": [call_part(name, {})]}, {"role": "user", "parts": [answer]}]

    def statement(self, words: str, role: str = "model") -> Any:
        """Return a content of the model, or of another role."""
        return {"role": role, "parts": [{"text": words}]}

    def takes(self, body: Mapping[str, Any], name: str) -> bool:
        """Return True unless the tool is there, calls are switched off, or tools of the provider exclude functions."""
        calling = fields(fields(body.get("toolConfig")).get("functionCallingConfig"))
        if calling.get("mode") == "NONE" or fields(body.get("generationConfig")).get("candidateCount") not in (None, 1):
            return False
        tools = listed(body.get("tools"))
        places = [place for place, tool in enumerate(map(fields, tools)) if "functionDeclarations" in tool]
        declared = (each for place in places for each in listed(fields(tools[place])["functionDeclarations"]))
        return bool(places or not tools) and all(text(fields(each).get("name")) != name for each in declared)

    def fixes(self, body: Mapping[str, Any]) -> bool:
        """Return True for a request with a cache, which has the tools; Gemini rejects such a request with tools."""
        return bool(body.get("cachedContent"))

    def offering(self, body: Mapping[str, Any], tool: Tool) -> Body:
        """Add a declaration to those that the request has: Vertex AI takes one list of them only."""
        tools = [dict(fields(each)) for each in listed(body.get("tools"))] or [{"functionDeclarations": []}]
        for each in tools:
            if "functionDeclarations" in each:
                each["functionDeclarations"] = [*listed(each["functionDeclarations"]), self.declared(tool)]
                break
        return {**body, "tools": tools}

    def declared(self, tool: Tool) -> Body:
        """Return the declaration of a function."""
        return {**tool._asdict(), "parameters": _typed(tool.parameters)}

    def closed(self, body: Mapping[str, Any]) -> Body:
        """Switch function calls off."""
        return {**body, "toolConfig": {**fields(body.get("toolConfig")), "functionCallingConfig": {"mode": "NONE"}}}

    def calls(self, response: Mapping[str, Any]) -> list[Call]:
        """Return the calls of the first candidate."""
        calls = [fields(part.get("functionCall")) for part in map(fields, listed(_content(response).get("parts")))]
        return [Call(text(call.get("id")), text(call.get("name")) or "", call.get("args")) for call in calls if call]

    def answered(self, body: Mapping[str, Any], response: Mapping[str, Any], answers: Sequence[Answer]) -> Body:
        """Add the model's content and a content with the responses."""
        parts = []
        for call, data in answers:
            named = {"id": call.id, "name": call.name} if call.id else {"name": call.name}
            parts.append({"functionResponse": {**named, "response": data}})
        turn = [{"role": "model", **_content(response)}, {"role": "user", "parts": parts}]
        return {**body, "contents": [*listed(body.get("contents")), *turn]}

    def kind(self, item: Mapping[str, Any]) -> str:
        """Return the kind of a chunk; thoughts are neutral."""
        parts = [fields(part) for part in listed(_content(item).get("parts"))]
        if any("functionCall" in part for part in parts):
            return CALL
        return TEXT if any(text(part.get("text")) and not part.get("thought") for part in parts) else NEUTRAL

    def folded(self, items: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        """Put the parts behind each other."""
        parts = [part for item in items for part in listed(_content(item).get("parts"))]
        return {"candidates": [{"content": {"role": "model", "parts": parts}}]}


def _content(response: Mapping[str, Any]) -> Mapping[str, Any]:
    return first(response, "candidates", "content")


def call_part(name: str, arguments: Any, **named: str) -> Body:
    """Return the part of a call, which may be ``named`` by an id."""
    return {"functionCall": {**named, "name": name, "args": arguments}}


def _typed(schema: Mapping[str, Any]) -> Body:
    """Return a JSON schema with Gemini's names of types."""
    changed: Body = dict(schema)
    if type(schema.get("type")) is str:
        changed["type"] = schema["type"].upper()
    if "properties" in schema:
        changed["properties"] = {name: _typed(each) for name, each in schema["properties"].items()}
    return changed


def transcript(content: Mapping[str, Any]) -> Transcript | None:
    """Return a content's calls and responses, or None if the fields are not a content."""
    if "parts" not in content:
        return None
    parts, role = listed(content["parts"]), content.get("role")
    if not parts or not (role is None or type(role) is str) or role not in _ROLES:
        return None
    asked, answered, recognised = [], [], False
    for place, part in enumerate(map(fields, parts)):
        recognised = recognised or "text" in part or "inline_data" in part or "inlineData" in part
        for key in _CALLS:
            call = fields(part.get(key))
            if call:
                path = ("parts", place, key, "args")
                asked.append(RequestedCall(path, text(call.get("id")), text(call.get("name")), call.get("args")))
        for key in _RESPONSES:
            answer = fields(part.get(key))
            if answer:
                path = ("parts", place, key, "response")
                response = answer.get("response")
                failed = True if type(response) is dict and response.keys() == {"error"} else None
                answered.append(AnsweredCall(path, text(answer.get("id")), text(answer.get("name")), response, failed))
    if not (asked or answered or recognised):
        return None
    return Transcript(tuple(asked), tuple(answered), role == "user")


_ENVELOPES: Final = ({"result"}, {"output"})


def parts(body: Mapping[str, Any]) -> Iterator[RequestPart]:
    """Yield the parts of a request."""
    body = fields(body)
    tools, system = dictionaries(body.get("tools")), body.get("systemInstruction")
    if tools:
        yield RequestPart(TOOLS, tools)
    if is_dict(system):
        yield RequestPart(SYSTEM, dictionaries(fields(system).get("parts")))
    for content in dictionaries(body.get("contents")):
        said = []
        for part in dictionaries(content.get("parts")):
            answer, call = part.get("functionResponse"), part.get("functionCall")
            if is_dict(answer):
                yield result_part(fields(answer))
            elif is_dict(call):
                asked = fields(call)
                yield RequestPart(TOOL_CALL_ARGUMENTS, asked.get("args"), asked.get("id"), asked.get("name"))
            else:
                said.append(part)
        if said:
            yield RequestPart(ASSISTANT if plain_text(content.get("role")) == "model" else USER, said)


def result_part(answer: Mapping[str, Any]) -> RequestPart:
    """Return the part of a result, without the one-key object that Gemini requires around it."""
    value = response = answer.get("response")
    name = answer.get("name")
    if is_dict(response):
        known = fields(response)
        if known.keys() == {"error"}:
            name = None  # the SDK's own text about a failed call
        elif known.keys() in _ENVELOPES:
            value = next(iter(known.values()))
    media = dictionaries(answer.get("parts"))
    return RequestPart(TOOL_RESULTS, [value, *media] if media else value, answer.get("id"), name, wrapped=response)
