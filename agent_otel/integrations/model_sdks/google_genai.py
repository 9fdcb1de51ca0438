"""Google's Gen AI SDK: generateContent, whole and streamed, sync and async, of Gemini's API and of Vertex AI.

Read where each of the four ways leaves the SDK, as plain data. Gemini wants a result in an object, and a call may have
no id, nor its result: then it is known by its tool's name.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from agent_otel._internal.errors import attempt
from agent_otel._internal.failures import context_of
from agent_otel._internal.object_kinds import (
    dictionaries,
    fields,
    given,
    is_dict,
    is_named,
    is_text,
    listed,
    sole,
    text,
)
from agent_otel.core.cost.usage import read as read_usage
from agent_otel.core.remedy_hooks import attempt_refused, retry_delay
from agent_otel.core.types import (
    AskedCall,
    Exchange,
    Invocation,
    ModelReader,
    ModelRequest,
    Replacement,
    RequestPart,
    ToolCall,
    ToolReader,
    ToolResult,
)
from agent_otel.integrations.hooks import revising
from agent_otel.integrations.model_sdks.stainless import plain_model
from agent_otel.integrations.readers import cause_behind, delivering, inject_into
from agent_otel.integrations.registry import Candidate, Integration, Site
from agent_otel.integrations.request_bodies import BodyArgument
from agent_otel.integrations.wrap import steps_of, streams, watched
from agent_otel.messages.fields import is_kept
from agent_otel.messages.gemini import parts, result_part
from agent_otel.semconv import ASSISTANT, SYSTEM, TOOL_CALL_ARGUMENTS, TOOL_RESULTS, TOOLS, USER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


INTERACTIONS = Site(
    Candidate("google.genai._gaos.interactions", interaction="Interactions.create AsyncInteractions.create"),
    minimum="2.34",
)

ENTRY = Integration(
    "google-genai",
    minimum="1.20",
    tested="1.20, 2.34 and 3.4",
    uncovered="Gemini Live: the size of a session, its tokens, texts and audio; interactions before 2.34, and views "
    "of the history in them; embeddings, batches and `count_tokens`",
    packages=("google.genai",),
    sites=(
        Candidate(
            "google.genai._api_client",
            request="BaseApiClient.request BaseApiClient.async_request "
            "BaseApiClient.request_streamed BaseApiClient.async_request_streamed",
        ),
        Site(Candidate("google.genai._api_client", retries="retry_args"), minimum="1.36"),
        # Sessions of Gemini Live, which keep the conversation.
        Site(Candidate("google.genai.live", responded="AsyncSession.send_tool_response"), minimum="3.0"),
        INTERACTIONS,
        # Automatic function calling.
        Candidate(
            "google.genai._extra_utils", invoke="invoke_function_from_dict_args invoke_function_from_dict_args_async"
        ),
    ),
)

_PATHS = (":generateContent", ":streamGenerateContent")
_MODEL = re.compile(r"models/([^/:?]+):")


def _request(invocation: Invocation) -> ModelRequest | None:
    path = invocation.arg(1, "path")
    body = invocation.arg(2, "request_dict")
    if not is_dict(body) or not path.partition("?")[0].endswith(_PATHS):
        return None
    model = _MODEL.search(path)
    is_continued = _cache(invocation) is not None
    calling = fields(fields(fields(body).get("toolConfig")).get("functionCallingConfig"))
    must_call = text(calling.get("mode")) == "ANY"
    return ModelRequest(parts(body), continued=is_continued, model=model and model.group(1), must_call=must_call)


def _cache(invocation: Invocation) -> str | None:
    """Return the name of the request's cache, also one that the program passes in ``extra_body``."""
    client = getattr(invocation.instance, "_http_options", None)
    beside = (fields(fields(options).get("extra_body")) for options in (invocation.arg(3, "http_options"), client))
    for body in (*beside, fields(invocation.arg(2, "request_dict"))):
        found = text(body.get("cachedContent")) or text(body.get("cached_content"))
        if found:
            return found
    return None


def _plain(response: Any) -> Any:
    """Return a response, or an item of a stream: a dictionary up to 1.x, unparsed text in later versions."""
    body = fields(response).get("body")
    return attempt(json.loads, body, default={}) if type(body) is str else response


def _answer_only(invocation: Invocation, note: str) -> None:
    body: Any = invocation.arg(2, "request_dict")
    if _cache(invocation) is not None:  # a request cannot change the system instruction and the tools of the cache
        last = fields(body["contents"][-1])
        body["contents"][-1] = {**last, "parts": [*listed(last.get("parts")), {"text": note}]}
        return
    system = fields(body.get("systemInstruction"))
    body["systemInstruction"] = {**system, "parts": [*listed(system.get("parts")), {"text": note}]}
    if listed(body.get("tools")):
        body["toolConfig"] = {**fields(body.get("toolConfig")), "functionCallingConfig": {"mode": "NONE"}}


def _asks(response: Any) -> Sequence[AskedCall] | None:
    """Return the calls that a response, or a part of a stream, asks for."""
    known = fields(_plain(response))
    if "candidates" not in known:
        return None
    contents = [fields(fields(candidate).get("content")) for candidate in listed(known["candidates"])]
    said = [part for content in contents for part in dictionaries(content.get("parts"))]
    return [_asked(fields(part["functionCall"]), "args") for part in said if "functionCall" in part]


def _asked(call: Mapping[str, Any], arguments: str) -> AskedCall:
    return AskedCall(text(call.get("name")) or "tool", call.get(arguments), text(call.get("id")))


def _body(invocation: Invocation) -> tuple[str, dict[str, Any]] | None:
    if _request(invocation) is None:
        return None
    cache = _cache(invocation)
    body = dict(invocation.arg(2, "request_dict"))
    return "gemini", body if cache is None else {**body, "cachedContent": cache}


def _apart(invocation: Invocation, body: dict[str, Any], model: str) -> Invocation:
    """Return a call that sends another body; its path names the model."""
    made = _BODY.apart(invocation, body, "")
    if model:
        made.put(1, "path", _MODEL.sub(f"models/{model}:", made.arg(1, "path")))
    return made


def _retries(_: Invocation, arguments: dict[str, Any]) -> dict[str, Any]:
    """Let the SDK's retries wait for the refusals of all requests as well."""
    wait = arguments.get("wait")
    if wait is None:
        return arguments

    def longer(state: Any) -> Any:
        attempt_refused(state.outcome.exception())
        return retry_delay(wait(state))

    return {**arguments, "wait": longer}


retries = revising(_retries)
_BODY = BodyArgument(2, "request_dict", "", "contents")
exchange = Exchange(_body, _BODY.put, _plain, steps_of, apart=_apart)
request = ModelReader(
    _request,
    lambda response: read_usage(fields(_plain(response)).get("usageMetadata")),
    *(_asks, watched),
    rewrite=_BODY.rewrite,
    answer_only=_answer_only,
    exchange=exchange,
)


def _results(invocation: Invocation) -> Iterator[RequestPart]:
    """Yield the results that a session of Gemini Live sends."""
    sent = invocation.kwargs.get("function_responses")
    return map(result_part, map(fields, listed(sent) or [sent]))


responded = delivering(_results)

_OF_THE_SDK = "FunctionInvocationError"

# Automatic function calling of Google's Gen AI SDK, which knows no ids of calls. The SDK raises an error of its own
# for what a function raises, and makes text of that; the function's own is read.


def _call(invocation: Invocation) -> ToolCall:
    return ToolCall(invocation.arg(1, "function_to_invoke").__name__, invocation.arg(0, "args"))


def _replace(value: Any, replacement: Replacement, _: Invocation) -> Any:
    """Put a replacement into the SDK's exception, or return it as the function's result."""
    if issubclass(type(value), BaseException):
        value.args = (replacement.text,)
    return replacement.text


invoke = ToolReader(
    _call,
    # Without the object around it that the model gets, where the function has made one itself.
    lambda value: ToolResult(sole("result", value)),
    failure_text=lambda error: str(error) if is_named(error, _OF_THE_SDK) else None,  # the text that the model gets
    cause=cause_behind(_OF_THE_SDK, of=context_of),  # the SDK raises its own within the function's exception
    replace=_replace,
    parameters=lambda invocation: tuple(fields(_call(invocation).arguments)),
    inject=inject_into(0, "args"),
)

# Google's Gen AI SDK: interactions, whole and streamed, sync and async, which its base client does not send. Read at
# ``create`` of the generated classes, which each hop of a continued interaction passes. Google keeps the earlier
# ones, so that a request with the id of one has its own input only.


def _interaction_request(invocation: Invocation) -> ModelRequest:
    body = fields(fields(invocation.kwargs.get("request")).get("body")) or invocation.kwargs
    must_call = text(fields(body.get("generation_config")).get("tool_choice")) == "any"
    return ModelRequest(_interaction_parts(body), is_kept(body), model=text(body.get("model")), must_call=must_call)


def _interaction_parts(body: Mapping[str, Any]) -> Iterator[RequestPart]:
    tools, instruction, said = (body.get(name) for name in ("tools", "system_instruction", "input"))
    if listed(tools):
        yield RequestPart(TOOLS, list(map(plain_model, listed(tools))))
    if is_text(instruction):
        yield RequestPart(SYSTEM, instruction)
    if is_text(said):
        yield RequestPart(USER, said)
    else:
        for step in listed(said) or [said]:
            yield from _step(step)


def _step(each: Any) -> Iterator[RequestPart]:
    step = fields(each)
    kind, name = text(step.get("type")) or "", step.get("name")
    if kind == "function_result":
        failed = step.get("is_error") is True
        yield RequestPart(TOOL_RESULTS, step.get("result"), step.get("call_id"), name, failed=failed)
    elif kind == "function_call":
        yield RequestPart(TOOL_CALL_ARGUMENTS, step.get("arguments"), step.get("id"), name)
    elif kind.endswith("_result"):  # the provider ran this tool, so no call of it was measured here
        yield RequestPart(TOOL_RESULTS, step.get("result"))
    elif kind.endswith("_call"):
        yield RequestPart(TOOL_CALL_ARGUMENTS, step.get("arguments"), step.get("id"), kind.removesuffix("_call"))
    elif step:
        is_model = kind in {"model_output", "thought"} or text(step.get("role")) == "model"
        content = step.get("content")
        said = content if is_text(content) else listed(content) or [plain_model(each)]
        yield RequestPart(ASSISTANT if is_model else USER, said)


def _interaction(response: Any) -> Mapping[str, Any]:
    """Return the fields of an interaction, or of that in an event of a stream."""
    return fields(given(fields(response).get("interaction"), response))


def _interaction_asks(response: Any) -> Sequence[AskedCall] | None:
    """Return the calls that an interaction asks for, or that an event of a stream begins."""
    known = _interaction(response)
    if text(known.get("status")) is not None:
        calls = [step for step in map(fields, listed(known.get("steps"))) if text(step.get("type")) == "function_call"]
        return [_asked(call, "arguments") for call in calls]
    step = fields(known.get("step"))
    return [_asked(step, "arguments")] if text(step.get("type")) == "function_call" else None


interaction = ModelReader(
    _interaction_request,
    lambda response: read_usage(_interaction(response).get("usage")),
    _interaction_asks,
    streams("Stream", "AsyncStream", generator="generator")[1],
)
