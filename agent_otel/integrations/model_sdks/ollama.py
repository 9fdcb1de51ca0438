"""Ollama's client: chat and generate, sync, async and streamed.

Read at ``_request`` of both clients. The protocol has no call ids: a result has the tool's name, or nothing at all, and
then it answers the calls of the messages before it in their order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_otel._internal.object_kinds import fields, is_dict, is_empty, is_text, listed, text
from agent_otel.core.cost.usage import read as read_usage
from agent_otel.core.types import AskedCall, Exchange, Invocation, ModelReader, ModelRequest, RequestPart
from agent_otel.integrations.model_sdks.stainless import plain_model
from agent_otel.integrations.registry import Candidate, Integration
from agent_otel.integrations.request_bodies import BY_NAME, BodyArgument, Form, reading, with_system
from agent_otel.integrations.wrap import steps_of, watched
from agent_otel.messages.fields import without
from agent_otel.semconv import ASSISTANT, SYSTEM, TOOL_CALL_ARGUMENTS, TOOL_RESULTS, TOOLS, USER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

ENTRY = Integration(
    "ollama",
    minimum="0.4",
    tested="0.6.3",
    uncovered="`generate` and embeddings",
    sites=(Candidate("ollama._client", request="Client._request AsyncClient._request"),),
)

_ROLES = {"system": SYSTEM, "user": USER, "assistant": ASSISTANT, "tool": TOOL_RESULTS}


def _chat(body: Mapping[str, Any]) -> Iterator[RequestPart]:
    if listed(body.get("tools")):
        yield RequestPart(TOOLS, body["tools"])
    unanswered: list[str | None] = []
    has_asked = False
    for message in map(fields, listed(body.get("messages"))):
        part, content = _ROLES.get(text(message.get("role")) or "", USER), message.get("content")
        name = None
        if part == TOOL_RESULTS:
            in_order = unanswered.pop(0) if unanswered else None
            name = text(message.get("tool_name")) or in_order
        if is_text(content):
            yield RequestPart(part, content, name=name)
        # The model's thinking, and images, are sent again with every request.
        for more in (message.get("thinking"), message.get("images")):
            if not is_empty(more):
                yield RequestPart(USER if part == TOOL_RESULTS else part, more)
        calls = [fields(fields(call).get("function")) for call in listed(message.get("tool_calls"))]
        for asked in calls:
            arguments = asked.get("arguments")
            name = text(asked.get("name"))
            yield RequestPart(TOOL_CALL_ARGUMENTS, {} if is_empty(arguments) else arguments, name=name)
        if calls:  # Strands writes each call into a message of its own
            unanswered = [*(unanswered if has_asked else ()), *(text(asked.get("name")) for asked in calls)]
        has_asked = bool(calls)


def _generate(body: Mapping[str, Any]) -> Iterator[RequestPart]:
    for part, key in ((SYSTEM, "system"), (USER, "prompt"), (USER, "images")):
        if not is_empty(body.get(key)):
            yield RequestPart(part, body[key])


def _asks(response: Any) -> Sequence[AskedCall] | None:
    """Return the calls that a response, or a part of a stream, asks for."""
    known = fields(response)
    if "message" not in known:
        return None
    calls = [fields(fields(call).get("function")) for call in listed(fields(known["message"]).get("tool_calls"))]
    return [AskedCall(text(call.get("name")) or "tool", call.get("arguments")) for call in calls]


def _answer_only(body: dict[str, Any], note: str) -> dict[str, Any]:
    # The protocol has no choice of tools, and takes calls in a history without them.
    return {**without(body, "tools"), "messages": with_system(listed(body["messages"]), note)}


_FORMS = {
    "/api/chat": Form("ollama", lambda body: ModelRequest(_chat(body), model=body.get("model")), _answer_only),
    "/api/generate": Form(
        "",
        lambda body: ModelRequest(_generate(body), not is_empty(body.get("context")), model=body.get("model")),
    ),
}


def _find(invocation: Invocation) -> tuple[Form, dict[str, Any]] | None:
    body = invocation.kwargs.get("json")
    form = next((form for path, form in _FORMS.items() if path in invocation.args), None)
    return None if form is None or not is_dict(body) else (form, fields(body))


def _body(invocation: Invocation) -> tuple[str, dict[str, Any]] | None:
    form, body = _find(invocation) or (None, {})
    return (form.name, dict(body)) if form is not None and form.name else None


_JSON = BodyArgument(BY_NAME, "json", "model")
exchange = Exchange(_body, _JSON.put, plain_model, steps_of, apart=_JSON.apart)
request = ModelReader(**reading(_find, _JSON.put), usage=read_usage, asks=_asks, watch=watched, exchange=exchange)
