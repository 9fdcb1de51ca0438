"""Google's Gen AI SDK: interactions, whole and streamed, sync and async, which its base client does not send.

Read at ``create`` of the generated classes, which each hop of a continued interaction passes. Google keeps the earlier
ones, so that a request with the id of one has its own input only. The entry is in ``google_genai.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_otel.core.answer_tools import asks_for
from agent_otel.core.plain import fields, given, is_named, is_text, listed, text
from agent_otel.core.types import Invocation, ModelReader, ModelRequest, RequestPart, ResponseVisit
from agent_otel.core.usage import Usage
from agent_otel.core.usage import read as read_usage
from agent_otel.integrations.generators import watched
from agent_otel.integrations.model_sdks.stainless import plain_model, plain_tools
from agent_otel.integrations.registry.entries import Candidate, Site, Wrap
from agent_otel.semconv import ASSISTANT, SYSTEM, TOOL_CALL_ARGUMENTS, TOOL_RESULTS, TOOLS, USER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

INTERACTIONS = Site(
    Candidate(
        "google.genai._gaos.interactions",
        Wrap("Interactions.create", "request"),
        Wrap("AsyncInteractions.create", "request"),
    ),
    adapter="model_sdks.google_interactions",
    minimum="2.34",
)


def _request(invocation: Invocation) -> ModelRequest:
    body = fields(fields(invocation.kwargs.get("request")).get("body")) or invocation.kwargs
    continued = text(body.get("previous_interaction_id")) is not None
    must_call = text(fields(body.get("generation_config")).get("tool_choice")) == "any"
    return ModelRequest(_parts(body), continued=continued, model=text(body.get("model")), must_call=must_call)


def _parts(body: Mapping[str, Any]) -> Iterator[RequestPart]:
    tools, instruction, said = (body.get(name) for name in ("tools", "system_instruction", "input"))
    if listed(tools):
        yield RequestPart(TOOLS, plain_tools(listed(tools)))
    if is_text(instruction):
        yield RequestPart(SYSTEM, instruction)
    if is_text(said):
        yield RequestPart(USER, said)
    else:
        for step in listed(said) or [said]:
            yield from _step(step)


def _step(each: Any) -> Iterator[RequestPart]:
    step = fields(each)
    kind, name = text(step.get("type")) or "", text(step.get("name"))
    if kind == "function_result":
        failed = step.get("is_error") is True
        yield RequestPart(TOOL_RESULTS, step.get("result"), text(step.get("call_id")), name, failed=failed)
    elif kind == "function_call":
        yield RequestPart(TOOL_CALL_ARGUMENTS, step.get("arguments"), text(step.get("id")), name)
    elif kind.endswith("_result"):  # the provider ran this tool, so no call of it was measured here
        yield RequestPart(TOOL_RESULTS, step.get("result"))
    elif kind.endswith("_call"):
        yield RequestPart(TOOL_CALL_ARGUMENTS, step.get("arguments"), text(step.get("id")), kind.removesuffix("_call"))
    elif step:
        is_model = kind in {"model_output", "thought"} or text(step.get("role")) == "model"
        content = step.get("content")
        whole = plain_model(each) if is_named(each, "BaseModel") else each
        said = content if is_text(content) else listed(content) or [whole]
        yield RequestPart(ASSISTANT if is_model else USER, said)


def _interaction(response: Any) -> Mapping[str, Any]:
    """Return the fields of an interaction, or of that in an event of a stream."""
    return fields(given(fields(response).get("interaction"), response))


def _usage(response: Any) -> Usage | None:
    return read_usage(_interaction(response).get("usage"))


def _asks(response: Any) -> bool | None:
    """Return whether an interaction asks for a tool call, or an event of a stream begins one."""
    known = _interaction(response)
    if text(known.get("status")) is not None:
        calls = [step for step in map(fields, listed(known.get("steps"))) if text(step.get("type")) == "function_call"]
        return asks_for(text(call.get("name")) or "tool" for call in calls) if calls else False
    step = fields(known.get("step"))
    return asks_for([text(step.get("name")) or "tool"]) if text(step.get("type")) == "function_call" else None


def _watch(response: Any, visit: ResponseVisit) -> Any:
    if is_named(response, "Stream", "AsyncStream"):
        response.generator = watched(response.generator, visit)
    return response


request = ModelReader(_request, _usage, _asks, _watch)
