"""Tool calls without a record: calls from the body of a running tool, and calls that cannot be measured."""

from __future__ import annotations

import json
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from opentelemetry import trace

from agent_otel import semconv
from agent_otel._internal import errors
from agent_otel.core import execution_context
from agent_otel.core.captured_content import hide_in
from agent_otel.core.dispatch import Dispatch, denial_attributes
from agent_otel.core.plain import fields, is_dict, is_text, text
from agent_otel.core.remedy_hooks import applied, askipped, skipped
from agent_otel.core.types import ToolCall
from agent_otel.measure.arguments_hash import arguments as digest_arguments
from agent_otel.telemetry import setup
from agent_otel.telemetry.foreign_spans import add_event
from agent_otel.telemetry.spans import put_on_any

if TYPE_CHECKING:
    from typing_extensions import Self

    from agent_otel.core.tool_invocation import ToolInvocation
    from agent_otel.core.types import Denial, Invocation, LimitReached, ToolReader

_innermost: ContextVar[Unrecorded | None] = ContextVar("agent_otel_unrecorded_call", default=None)


def unrecorded_in(record: ToolInvocation | None) -> Unrecorded | None:
    """Return the innermost call without a record that runs in this context within a recorded one, or within none."""
    innermost = _innermost.get()
    return innermost if innermost is not None and innermost.around is record else None


class Controlled:
    """A visit of a wrapped function. The policy and the limits decide about the call before it runs."""

    __slots__ = ()
    reader: ToolReader
    record: Dispatch

    def skipped(self, invocation: Invocation) -> Any:
        """Return the answer in place of the handler's result when the policy or a limit skips it, else LEFT_ALONE."""
        return skipped(self.record, self.reader, invocation)

    async def askipped(self, invocation: Invocation) -> Any:
        """Do the same as `skipped` without blocking the event loop."""
        return await askipped(self.record, self.reader, invocation)


class Unrecorded(Controlled, Dispatch):
    """A wrapped function of a tool call without a record; also the stream of one that is a generator.

    ``around`` is the running call that makes it. The policy and the limits decide about it as about any other
    call, but its value goes to the calling code, and is not a result. Where a call cannot be read, ``call`` is
    None, and a policy denies it.
    """

    def __init__(self, reader: ToolReader, call: ToolCall | None, around: ToolInvocation | None) -> None:
        self.reader = reader
        self.record = self  # for the signature of a stream
        self.is_readable = call is not None
        self.call = call or ToolCall(semconv.OTHER)
        self.name = self.call.name
        self.agent = self.call.agent or (None if around is None else around.agent)
        self.around = around
        self.goes_on = False  # for the signature of Visit: this is entered as often as one likes
        self._outer: Unrecorded | None = None
        self.passed = (reader,)
        if around is not None:
            self.execution, self.run, self.state = around.execution, around.run, around.state
            self.place = around.place
            self._carry_on(unrecorded_in(around) or around)
            if self.call.mcp is not None and around.span is not None:
                put_on_any(around.span.span, execution_context.mcp_attributes(self.call.mcp))

    def _carry_on(self, outer: Dispatch) -> None:
        """Find out if this is a further function of the call that runs around it, as an MCP client in a tool is."""
        first = outer.charged_to or outer
        is_inner = isinstance(outer, Unrecorded) and outer.reader.awaits is self.reader
        is_named = self.name == first.call.name
        is_client = self.call.type == "extension" and first.call.name.endswith(self.name)
        is_same = self.reader not in first.passed and (is_named or is_client) and _contains(self.call, first)
        if is_inner or is_same:
            first.passed = (*first.passed, self.reader)
            self.charged_to = first
        self.is_asked = is_same and is_named and first.is_gated

    def __enter__(self) -> Self:
        self._outer = _innermost.get()
        _innermost.set(self)
        if self.around is None and self.execution is None:
            self._resolve()
        return self

    @errors.guarded("tool_call.execution")
    def _resolve(self) -> None:
        self.agent = execution_context.agent_of(self.call.agent)
        self.run = execution_context.current_run()
        self.place = execution_context.resolve(self.call.execution, None)
        self.execution = self.place if self.run is None else self.run.id

    def step(self) -> Self:
        """Return the context manager around a step of a generator."""
        return self

    def deny(self, denial: Denial) -> None:
        """Record that the policy denies the call, on the span around it and on the counter."""
        super().deny(denial)
        self._show(semconv.POLICY_DENIED_EVENT, denial_attributes(denial))

    def skip(self, reached: LimitReached) -> None:
        """Record that a limit skips the call, on the span around it and on the counter."""
        super().skip(reached)
        self._show(semconv.TOOL_CALL_EVENT, {semconv.PHASE: semconv.SKIPPED, semconv.LIMIT: reached.limit})

    @errors.guarded("tool_call.skipped")
    def _show(self, event: str, attributes: dict[str, str]) -> None:
        opened = None if self.around is None else self.around.span
        span = trace.get_current_span() if opened is None else opened.span
        add_event(span, event, {semconv.GEN_AI_TOOL_NAME: self.name, **attributes})
        metrics = setup.telemetry().metrics
        if event == semconv.POLICY_DENIED_EVENT:
            metrics.record(semconv.POLICY_DENIED, 1, self.name, attributes[semconv.RULE], attributes[semconv.MODE])
        else:
            metrics.record(semconv.LIMITS_HIT, 1, attributes[semconv.LIMIT])

    def returned(self, *_: object) -> None:
        """Do nothing: the running call has its slot, and its caller may handle the return value or the exception."""

    async def araised(self, *_: object) -> None:
        """Do nothing."""

    take_turn = item = raised = abandon = returned
    atake_turn = araised

    def remedied(self, value: Any, invocation: Invocation) -> Any:
        """Return the value for the code that has called the tool, without injected values."""
        if not self.injected:
            return value
        reading = errors.guarded("tool_call.result")(self.reader.result)(value)
        return value if reading is None else applied(self, self.reader, reading.value, value, invocation)

    async def aremedied(self, value: Any, invocation: Invocation) -> Any:
        """Do the same as `remedied`."""
        return self.remedied(value, invocation)

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self.close()
        if error is not None and self.injected:
            errors.guarded("tool_call.hide")(hide_in)(error, self.injected)

    def close(self) -> None:
        """Leave the context; safe to repeat, and without effect in another context than the call began in."""
        if _innermost.get() is self:
            _innermost.set(self._outer)


def _contains(call: ToolCall, outer: Dispatch) -> bool:
    """Return true when a call has all arguments of another call, and perhaps more, such as defaults."""
    given, wanted = _named(call.arguments), _named(outer.call.arguments)
    wanted = {name: value for name, value in wanted.items() if name not in (outer.injected or {})}
    if not wanted.keys() <= given.keys() or (given and not wanted):
        return False
    return digest_arguments({name: given[name] for name in wanted}) == digest_arguments(wanted)


def _named(arguments: object) -> dict[str, Any]:
    """Return arguments by their names; a value that is not an object gets the name of no argument."""
    if is_text(arguments):
        arguments = errors.attempt(json.loads, text(arguments) or "{}", default=arguments)
    if arguments is None:
        return {}
    return dict(fields(arguments)) if is_dict(arguments) else {"": arguments}
