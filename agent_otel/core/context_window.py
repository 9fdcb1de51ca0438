"""The context window of a model as the cap of its requests: its use, the turns left, and requests above it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from agent_otel import semconv
from agent_otel._internal.failures import class_name, classes_of, fields_of, text_of
from agent_otel.core.execution_state import ContextUse
from agent_otel.core.plain import fields, text
from agent_otel.measure.forecast import LOOK_BACK
from agent_otel.measure.preview import clean
from agent_otel.telemetry.spans import put_on_any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agent_otel.core.models import ModelFacts
    from agent_otel.core.sent_request import SentRequest
    from agent_otel.telemetry.setup import Telemetry

#: Packages whose exceptions do not have their texts in their arguments.
_SDKS: Final = frozenset({"azure", "cohere", "grpc", "ollama"})
_CODES: Final = ("context_length_exceeded", "model_context_window_exceeded")
_CLASS: Final = "ContextWindowExceeded"  # LiteLLM's
_MOST_CHARACTERS: Final = 4_096
_LOWEST, _HIGHEST = 400, 500
# Providers without a code: Anthropic, Gemini, Bedrock, Mistral, vLLM and other servers, Ollama and llama.cpp.
# A text: only a refused request needs it compiled.
_MESSAGES: Final = (
    r"prompt is too long|exceeds? (?:the )?context (?:limit|length|window|size)|exceeds the maximum number of tokens"
    r"|input is too long for requested model|too large for model with \d+ maximum context|maximum context length"
    r"|exceeds the available context size"
)


def grown(sent: SentRequest, tokens: int) -> list[int]:
    """Add the tokens of a request to those of its conversation; return those of its latest requests."""
    if sent.conversation is None:
        return []
    # A new list, because another thread may read the one before.
    sizes = sent.conversation.token_sizes = [*sent.conversation.token_sizes[1 - LOOK_BACK :], tokens]
    return sizes


def record(  # noqa: PLR0913, PLR0917 - the readings of one request
    out: Telemetry, sent: SentRequest, tokens: int, sizes: list[int], shown: dict[str, Any], facts: ModelFacts
) -> None:
    """Record the tokens of a request against its model's window, and the requests that still fit at its growth.

    The span around the request gets the attributes ``shown``, too.
    """
    window, execution = facts.window, sent.execution
    if window is not None:
        out.models.series(sent.model).used(tokens / window, out.settings.payload_near_ratio)
    use = ContextUse(tokens, window, sizes)
    if execution is not None:
        execution.context = use
        execution.context_bytes = 0 if window is None else sent.bytes
        execution.handed_to_model_bytes = 0
    if not sent.span.is_recording():
        return
    attributes: dict[str, Any] = {**shown, **use.attributes()}
    shown.clear()
    shares = sent.shares
    largest, tool = shares.largest_part, shares.largest_tool
    if largest is not None:
        attributes[semconv.CONTEXT_LARGEST_PART] = largest
    if tool is not None:
        attributes[semconv.CONTEXT_LARGEST_TOOL] = clean(tool)
        attributes[semconv.CONTEXT_LARGEST_TOOL_BYTES] = shares.bytes[semconv.TOOL_RESULTS, tool]
    put_on_any(sent.span, attributes)


def rejected(out: Telemetry, sent: SentRequest) -> None:
    """Count a request that its provider refused because it is longer than the window."""
    out.models.series(sent.model).rejected.record(1)
    if sent.span.is_recording():
        sent.span.set_attribute(semconv.CONTEXT_REJECTED, value=True)


def is_rejection(error: BaseException) -> bool:
    """Return true for the error by which a provider refuses a request that is longer than the context window.

    A provider's code decides. Providers without one have the status of a bad request and a text of their own. No code
    of an error of the program's own runs.
    """
    if any(_CLASS in class_name(cls) for cls in classes_of(type(error))):
        return True
    known = fields_of(error)
    body = fields(known.get("body"))
    inner = fields(body.get("error"))
    if any(text(each) in _CODES for each in (known.get("code"), body.get("code"), inner.get("code"))):
        return True
    status = _status(known)
    if status is not None and not _LOWEST <= status < _HIGHEST:
        return False
    said = (text_of(error, _MOST_CHARACTERS, _SDKS), *_texts(body), *_texts(inner))
    return any(re.search(_MESSAGES, one[:_MOST_CHARACTERS], re.IGNORECASE) for one in said)


def _texts(known: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts among the fields of a response's body."""
    return (value for value in known.values() if type(value) is str)


def _status(known: Mapping[str, Any]) -> int | None:
    """Return the HTTP status among the fields of an SDK's error; None where it has none."""
    metadata = fields(fields(known.get("response")).get("ResponseMetadata"))  # botocore's
    found = (known.get("status_code"), metadata.get("HTTPStatusCode"), known.get("code"))
    return next((status for status in found if type(status) is int), None)
