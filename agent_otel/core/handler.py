"""Entry points that adapters call to report tool calls and model requests; `step_handler` has those for payloads."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

from agent_otel import settings
from agent_otel._internal import collected, errors
from agent_otel.core import execution_context, remedy_hooks, switches, tool_names
from agent_otel.core.executions import executions
from agent_otel.core.remedy_hooks import dialogues, model_boundary, request_remedies, result_remedies
from agent_otel.core.switches import muted
from agent_otel.core.thread import delivery, model_request
from agent_otel.core.thread.request_prefix import Messages, plain_part
from agent_otel.core.tool_invocation import ToolInvocation
from agent_otel.core.tool_visit import (
    StreamVisit,
    Unrecorded,
    Visit,
    as_stream,
    enter_tool,
    leave_handler,
    measures,
    open_span,
    running,
    running_handler,
    unrecorded_in,
)
from agent_otel.core.types import HANDED_BACK, LEFT_ALONE, PRODUCED
from agent_otel.measure.size import text_bytes
from agent_otel.settings import without_effect
from agent_otel.telemetry.setup import report_integration, telemetry

if TYPE_CHECKING:
    from collections.abc import Callable

    from opentelemetry.trace import Span

    from agent_otel.core.types import (
        Invocation,
        ModelReader,
        ModelRequest,
        RequestPart,
        ToolReader,
        ToolResult,
    )

_P = ParamSpec("_P")

#: Names from other modules.
__all__ = [
    "StreamVisit",
    "Unrecorded",
    "Visit",
    "as_stream",
    "dialogues",
    "enter_tool",
    "measures",
    "model_boundary",
    "muted",
    "report_integration",
    "result_remedies",
    "text_bytes",
]


def enter_stream(reader: ToolReader, invocation: Invocation) -> StreamVisit | Unrecorded | None:
    """Begin to measure a generator tool at its first step; return None when this is not a tool call."""
    visit = enter_tool(reader, invocation)
    if not isinstance(visit, Visit):
        return visit
    with errors.reported("tool_call.enter"):
        if not reader.events and result_remedies() is not None:
            without_effect("items", settings.current(), tool=visit.record.name)
        return as_stream(visit)
    return Unrecorded(reader, visit.record.call, None)


def plain_request(request: ModelRequest) -> ModelRequest:
    """Return a request whose names and ids are text; its parts stay an iterator that is not read yet."""
    return request._replace(
        parts=request.parts if type(request.parts) is Messages else map(plain_part, request.parts),
        agent=execution_context.text_or_none(request.agent),
        execution=execution_context.id_or_none(request.execution),
        model=execution_context.text_or_none(request.model),
    )


@errors.guarded("model_request")
def enter_model(reader: ModelReader, invocation: Invocation) -> model_request.ModelVisit | None:
    """Begin to measure a function that sends a model request; return None when it sends none."""
    if not measures():
        return None
    collected.run_due()
    rewriting = None if reader.rewrite is None else request_remedies()
    if rewriting is not None:
        with errors.reported("model_request.rewrite"):
            rewriting.rewrite(telemetry(), reader, invocation)
    request = reader.request(invocation)
    if request is not None and reader.rewrite is None and not reader.outermost:
        remedy_hooks.cannot_rewrite(reader.request.__module__)
    if request is not None and request.continued:
        without_effect("conversations", settings.current())
    if request is None:
        return None
    package = type(invocation.instance).__module__.partition(".")[0]
    # Anthropic's SDK opens a span from 2.9 on, unless the program switches that off.
    is_traced = package == "anthropic" and getattr(invocation.instance, "_tracer", None) is not None
    visit = model_request.ModelVisit(reader, plain_request(request), package, is_traced=is_traced)
    if switches.added_messages.get():
        switches.added_messages.set(0)
    return visit


@errors.guarded("model_request.dialogue")
def begin_dialogue(reader: ModelReader, invocation: Invocation) -> Any:
    """Offer the tool of a remedy in a model request; return None where it is off or the request has no use for it."""
    acting = dialogues()
    return None if acting is None or not measures() else acting.begin(reader, invocation)


@errors.guarded("model_request.summarize")
def begin_summary(reader: ModelReader, invocation: Invocation) -> Any:
    """Put an earlier summary into a request; return the visit that makes a new one, or None where none is needed."""
    acting = remedy_hooks.summaries()
    return None if acting is None or not measures() else acting.begin(reader, invocation)


@errors.guarded("model_request")
def model_announced(request: ModelRequest) -> None:
    """Report a request that a layer above the SDKs is about to send, inside a function that `enter_model` entered."""
    if measures():
        if request.continued:
            without_effect("conversations", settings.current())
        model_request.announced(plain_request(request))


@errors.guarded("model_request")
def result_delivered(part: RequestPart, adapter: str, call: RequestPart | None = None) -> None:
    """Report a result that another program has sent to a model; its requests cannot be read.

    ``adapter`` is the module of the adapter, ``call`` the call, which that program may have run itself.
    """
    if measures():
        remedy_hooks.cannot_rewrite(adapter)
        delivery.take_result(telemetry(), plain_part(part), None if call is None else plain_part(call))


@errors.guarded("model_request")
def call_renamed(call_id: object, sent_id: object) -> None:
    """Report that a framework sends the result of a call to the model under another id than the call's."""
    known, sent = execution_context.id_or_none(call_id), execution_context.id_or_none(sent_id)
    if switches.enabled and known is not None and sent is not None and known != sent:
        delivery.rename(known, sent)


@errors.guarded("model_request")
def model_answered() -> None:
    """Report that a layer above the SDKs answered from its own cache and sends no request."""
    model_request.answered()


@errors.guarded("execution.named")
def execution_named(execution_id: str, workflow: str) -> None:
    """Remember the workflow of an execution, for steps that are read where only the execution's id is available."""
    plain_id, plain_workflow = execution_context.id_or_none(execution_id), execution_context.text_or_none(workflow)
    if plain_id is not None and plain_workflow is not None:
        executions.touched(plain_id).workflow = plain_workflow


def _of_handler(act: Callable[Concatenate[ToolInvocation, _P], None]) -> Callable[_P, None]:
    """Return a function that gets the call that runs or is about to run, and does nothing without one."""

    @functools.wraps(act)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> None:
        record = running_handler()
        if record is not None:
            act(record, *args, **kwargs)

    return call


@_of_handler
def handler_started(record: ToolInvocation, held: Span | None = None) -> None:
    """Open the call's span: the framework is about to run the handler, and other callbacks have opened theirs.

    ``held`` is the span of another instrumentation for this call, where that is not current.
    """
    open_span(record, held=held)


@_of_handler
def handler_entered(record: ToolInvocation) -> None:
    """Discard the readings of earlier attempts, because the framework calls the handler (again)."""
    record.awaits = None
    record.begin_again()


@_of_handler
def handler_returned(record: ToolInvocation, result: ToolResult) -> None:
    """Record what the handler returned, where the function that calls it cannot be wrapped."""
    record.read(PRODUCED, result)
    leave_handler(record)


#: Takes the call's span out of the context: the handler has returned, and its result is read.
handler_left = errors.guarded("tool_call.left")(_of_handler(leave_handler))


@_of_handler
def handing_back(record: ToolInvocation, result: ToolResult) -> None:
    """Record what the framework will hand back, while its own span is open; that ends before its function returns.

    What it hands back in place of a call that it has put off is no result.
    """
    if not record.is_deferred:
        record.read(HANDED_BACK, result)
        if record.span is None:
            open_span(record)
        leave_handler(record)


#: Records an exception of the handler, with its reader, before the framework turns it into text.
handler_raised = _of_handler(ToolInvocation.raise_)


@_of_handler
def handler_deferred(record: ToolInvocation) -> None:
    """Report that the function which returns has put the call off, for example for an approval: it is no call yet."""
    record.is_deferred = True


def is_made_by_an_agent() -> bool:
    """Return true when an agent makes the running call, where the framework's tools themselves know no agent."""
    record = running()
    return record is not None and (record.call.agent is not None or record.call.call_id is not None)


async def askipped(reader: ToolReader, invocation: Invocation) -> Any:
    """Return the answer in place of the running call's handler when a limit or the policy skips it, else LEFT_ALONE."""
    record = running_handler()
    return LEFT_ALONE if record is None else await remedy_hooks.askipped(record, reader, invocation)


def injected() -> dict[str, Any] | None:
    """Return the arguments that the policy adds to the running call's, or None."""
    record = running()
    within = unrecorded_in(record) or record
    return None if within is None else within.injected


async def aremedied(reader: ToolReader, value: Any, invocation: Invocation) -> Any:
    """Read a value that the framework hands on within the running call; return it, or the replacement of a remedy."""
    record = running_handler()
    if record is None:
        return value
    return await Visit(record, reader, False, False).aremedied(value, invocation)


@errors.guarded("tool.described")
def tool_described(name: str, description: object) -> None:
    """Report a tool's description, which no model request of this process may have."""
    if switches.enabled:
        tool_names.note_description(name, description)


# Some adapters read a call while another instrumentation's span of it is open. Such a span ends before the wrapped
# function returns, so that the numbers are set on it earlier.


def span_started(held: Span) -> None:
    """Put the numbers of the running call on this span; the first span of a call has them."""
    record = running()
    if record is not None and record.span is None:
        open_span(record, held=held)


def span_finishing(read: Callable[[Any], ToolResult], value: Any, held: Span | None = None) -> None:
    """Record the handler's result; with ``held``, that of the call that has its numbers on this span."""
    record = _of_span(held)
    if record is not None and record.span is not None and record.span.foreign:
        record.read(PRODUCED, read(value))
        record.is_read_early = True
        leave_handler(record)


def span_failing(error: BaseException, reader: ToolReader, held: Span | None = None) -> None:
    """Record an exception of the handler; with ``held``, of the call that has its numbers on this span."""
    record = _of_span(held)
    if record is not None:
        record.raise_(error, reader)
        if record.span is not None and record.span.foreign:
            leave_handler(record)


def _of_span(held: Span | None) -> ToolInvocation | None:
    """Return the running call: the one on this span, or where that is None, the one whose own handler runs."""
    if held is None:
        return running_handler()
    record = running()
    return record if record is not None and record.span is not None and record.span.span is held else None
