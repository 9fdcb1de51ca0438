"""Spans of other instrumentations, and the attributes that they are recognised by; this package writes none there."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.attributes import BoundedAttributes
from opentelemetry.trace import INVALID_SPAN

from agent_otel import semconv
from agent_otel._internal.errors import ours
from agent_otel.measure.preview import clean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opentelemetry.trace import Span

# Attributes, with their values, that mark a tool span of another instrumentation.
TOOL_SPANS: Final = {
    semconv.OPERATION_NAME: (semconv.EXECUTE_TOOL,),
    "mcp.method.name": ("tools/call",),
    "openinference.span.kind": ("TOOL",),
    "traceloop.span.kind": ("tool",),
    "langfuse.observation.type": ("tool",),
    "logfire.msg_template": ("Function: {name}",),  # of openai-agents
}
# The same of a span around a model request.
CHAT_SPANS: Final = {
    semconv.OPERATION_NAME: (semconv.CHAT, "text_completion", "generate_content"),
    "llm.request.type": ("chat", "completion"),
    "openinference.span.kind": ("LLM",),
    "langfuse.observation.type": ("generation",),
    "request_data": None,  # of Logfire
}
#: Packages of instrumentations, one for each SDK; some have their span current only while they make it.
_INSTRUMENTATIONS: Final = ("opentelemetry.instrumentation", "openinference.instrumentation")
# Attributes that name the tool on such a span; without one, the span's name has it.
TOOL_NAMES: Final = (semconv.GEN_AI_TOOL_NAME, semconv.TOOL_NAME, "name")
# Attributes that a runtime's own instrumentation sets on the span of a step.
STEP_SPANS: Final = (
    "temporalActivityID",
    "durabletask.task.task_id",
    "dapr.ext.workflow._durabletask.activity.name",
    "durable.operation.id",  # AWS's durable functions
    "celery.action",
    "prefect.run.id",
    "hatchet.step_run_id",
    "operationUUID",  # DBOS
    "dbos.operation.workflow_id",
)
#: Attributes of a call or a step. A span without room for this many gets none.
_USUAL: Final = 24
#: One in this many attributes stays free, because the owner may set more when its span ends.
_OWNERS_SHARE: Final = 16
#: Attributes that a span with little room gets first.
_FIRST: Final = (
    *(semconv.TOOL_NAME, semconv.RESULT_BYTES, semconv.RESULT_TRUNCATED, semconv.TRUNCATION_REASON),
    *(semconv.TRUNCATION_LAYER, semconv.RESULT_DELIVERED_BYTES, semconv.RESULT_HANDED_BACK_BYTES, semconv.ERROR_TYPE),
    *(semconv.ARGS_BYTES, semconv.PAYLOAD_BYTES, semconv.PAYLOAD_UTILIZATION),
)
# MLflow can share the program's provider: its module, and the variable that is false then. Its processors raise
# ``KeyError`` when a span of MLflow starts below one that is open since before MLflow's first, and the agent fails.
SHARING: Final = "mlflow.tracing"
SHARES_UNLESS: Final = "MLFLOW_USE_DEFAULT_TRACER_PROVIDER"


def is_step_span(span: Span, name: str) -> bool:
    """Return true when the runtime's own instrumentation opened this span for the step."""
    attributes = _attributes(span)
    if not span.is_recording() or not attributes or semconv.RUNTIME in attributes:
        return False
    if not any(key in attributes for key in STEP_SPANS):
        return False
    return name in getattr(span, "name", "") or name in attributes.values()


def free_attributes(span: Span) -> Mapping[str, Any] | None:
    """Return the attributes of another instrumentation's recording span; None if it has the numbers of a call."""
    if not span.is_recording():
        return None
    attributes = _attributes(span)
    return None if semconv.ARGS_HASH in attributes else attributes


def _attributes(span: Any) -> dict[str, Any]:
    """Return a copy: `getattr` with a default, and ``in`` of a Mapping, swallow a signal handler's exception."""
    try:
        return dict(span.attributes or {})
    except ours(AttributeError):
        return {}


def is_span_of(span: Span, attributes: Mapping[str, Any], name: str) -> bool:
    """Return true when another instrumentation opened this span for a call of this tool."""
    if getattr(span, "name", "") == f"{semconv.EXECUTE_TOOL} {name}":
        return True  # some instrumentations set the attributes only when the span ends
    if not any(attributes.get(key) in values for key, values in TOOL_SPANS.items()):
        return False
    named = next(filter(None, map(attributes.get, TOOL_NAMES)), None)
    return named == name if named else name in getattr(span, "name", "")


def is_chat_span(span: Span) -> bool:
    """Return true when another instrumentation opened this span around a model request."""
    if not span.is_recording():
        return False
    if getattr(span, "name", "").partition(" ")[0] == semconv.CHAT:
        return True  # some instrumentations set the attributes only when the span ends
    own = _attributes(span)
    return any(key in own and (values is None or own[key] in values) for key, values in CHAT_SPANS.items())


def has_instrumentor(package: str) -> bool:
    """Return true when another instrumentation has an active instrumentor for the SDK in this package."""
    for name in (f"{family}.{package}{version}" for family in _INSTRUMENTATIONS for version in ("", "_v2")):
        for kind in list(vars(sys.modules[name]).values()) if name in sys.modules else ():
            instance = getattr(kind, "_instance", None) if isinstance(kind, type) else None
            if getattr(instance, "is_instrumented_by_opentelemetry", False):
                return True
    return False


def beside(own: Mapping[str, Any], attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes that the owner of a span has not set; the tool's description is the owner's."""
    return {key: value for key, value in attributes.items() if key not in own and key != semconv.TOOL_DESCRIPTION}


def has_room(span: Span) -> bool:
    """Return true unless the attributes of a call or a step would push out attributes of the span's owner."""
    return _free(span) >= _USUAL


def fitting(span: Span, attributes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the attributes that fit on a span, the most important first; a full span pushes out its oldest."""
    free = _free(span)
    if free >= len(attributes):
        return attributes
    kept = getattr(span, "attributes", None) or {}
    new = [key for key in (*_FIRST, *attributes) if key in attributes and key not in kept]
    left_out = attributes.keys() - kept.keys() - set(list(dict.fromkeys(new))[:free])
    return {key: value for key, value in attributes.items() if key not in left_out}


def add_event(span: Span, name: str, attributes: Mapping[str, Any]) -> None:
    """Add an event to a span that has room for it: a full one pushes out its oldest."""
    events = getattr(span, "_events", None)
    most = getattr(getattr(events, "_dq", None), "maxlen", None)
    if most is None or len(events or ()) < most:
        span.add_event(name, attributes)


def _free(span: Span) -> int:
    """Return the number of attributes of ours that fit on a span; very many without a limit."""
    kept = getattr(span, "_attributes", None)
    most = getattr(kept, "maxlen", None)
    if type(most) is not int or kept is None:
        return sys.maxsize
    return max(0, most - most // _OWNERS_SHARE - len(kept))


def take_back_error(span: Span, error_type: str) -> None:
    """Remove the error that this package has set on an open span of the SDK: its call continues."""
    kept = getattr(span, "_attributes", None)
    if type(kept) is BoundedAttributes and kept.get(semconv.ERROR_TYPE) == clean(error_type):
        del kept[semconv.ERROR_TYPE]


def opens_none(mode: str, current: Span = INVALID_SPAN) -> bool:
    """Return true if spans of other owners are only enriched, or if a root would make the program fail."""
    if mode == "enrich" or current is not INVALID_SPAN or SHARING not in sys.modules:
        return mode == "enrich"
    return os.environ.get(SHARES_UNLESS, "").strip().lower() in ("false", "0")
