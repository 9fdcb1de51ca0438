"""The remedies applied to one tool call and its result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agent_otel import semconv
from agent_otel._internal import errors
from agent_otel.core.executions import executions
from agent_otel.core.tool_invocation import ToolInvocation
from agent_otel.core.types import LEFT_ALONE, NOT_HERE, PRODUCED, Remedied, Replacement, ToolDeniedError
from agent_otel.measure.size import Size, text_bytes
from agent_otel.remedies import backpressure, limits, result_ceiling
from agent_otel.remedies.call_queue import CallQueue
from agent_otel.remedies.claim_check import policy
from agent_otel.remedies.claim_check.policy import GET_TOOL_RESULT
from agent_otel.remedies.claim_check.serialization import Content, raw_of
from agent_otel.remedies.dispatch_policy.source import current as policy_in_force
from agent_otel.remedies.limits import estimated_tokens, tokens, tokens_of
from agent_otel.remedies.sizes import arefine, read_size, refine
from agent_otel.settings import checks as setting_checks
from agent_otel.settings.kinds import AUTO

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_otel.core.dispatch import Dispatch
    from agent_otel.core.types import Invocation, Slot, ToolReader
    from agent_otel.remedies.claim_check.policy import ClaimCheck, View
    from agent_otel.remedies.dispatch_policy.gate import Gate
    from agent_otel.remedies.retried_calls import RetriedCalls
    from agent_otel.settings import Settings

#: The exact size of a structured result is read up to this multiple of the highest threshold.
_MARGIN: Final = 2


class Remedies:
    """The enabled remedies for tool calls and their results."""

    def __init__(self, chosen: Settings) -> None:
        self._chosen = chosen
        self._ceiling_bytes = chosen.result_ceiling_bytes
        self._claim_check = policy.current()
        self._claim_bytes = min(chosen.claim_check_bytes, chosen.result_ceiling_bytes or chosen.claim_check_bytes)
        self._limits = limits.current()
        parallel = chosen.max_parallel_tool_calls
        self._queue = CallQueue(parallel) if parallel is not None else None
        self._backpressure = backpressure.current()
        self._gate = _gate()
        self._retried = _retried(chosen, self._claim_check)
        self._untouched_bytes = self._smallest_threshold()

    def _smallest_threshold(self) -> int:
        """Return the largest size in bytes that no remedy acts on; -1 if a remedy records every result."""
        takes_note = (self._gate, self._retried, self._limits)
        if any(one is not None for one in takes_note) or self._ceiling_bytes == AUTO:
            return -1
        thresholds = [self._ceiling_bytes, None if self._claim_check is None else self._claim_bytes]
        return min((one for one in thresholds if one is not None), default=-1)

    def finished(self, execution: str) -> None:
        """Drop the state of an execution that has ended."""
        if self._limits is not None:
            self._limits.finish(execution)

    def take_turn(self, record: ToolInvocation, enclosing: ToolInvocation | None) -> Slot | None:
        """Wait for tokens, then for a slot among the parallel calls; return None when the call runs without one."""
        if self._backpressure is not None:
            self._backpressure.before_call(record, enclosing)
        return None if self._queue is None or record.execution is None else self._queue.take(record, enclosing)

    async def atake_turn(self, record: ToolInvocation, enclosing: ToolInvocation | None) -> Slot | None:
        """Do the same as `take_turn` without blocking the event loop."""
        if self._backpressure is not None:
            await self._backpressure.abefore_call(record, enclosing)
        return None if self._queue is None or record.execution is None else await self._queue.atake(record, enclosing)

    def skipped(self, call: Dispatch, reader: ToolReader, invocation: Invocation) -> Any:
        """Return the answer of a call that the policy or a limit forbids; LEFT_ALONE when the handler runs.

        Raises:
            ToolDeniedError: the policy denies a call, and its result cannot be replaced.
        """
        put = LEFT_ALONE
        if self._gate is not None and _dispatches(reader):
            put = self._gate.check(call, reader, invocation)
        if put is LEFT_ALONE and self._retried is not None and reader.station == PRODUCED:
            put = self._retried.answer(call, reader, invocation)
        return self._limited(call, reader, invocation) if put is LEFT_ALONE else put

    async def askipped(self, call: Dispatch, reader: ToolReader, invocation: Invocation) -> Any:
        """Do the same as `skipped` without blocking the event loop."""
        put = LEFT_ALONE
        if self._gate is not None and _dispatches(reader):
            put = await self._gate.acheck(call, reader, invocation)
        if put is LEFT_ALONE and self._retried is not None and reader.station == PRODUCED:
            put = await self._retried.aanswer(call, reader, invocation)
        return self._limited(call, reader, invocation) if put is LEFT_ALONE else put

    def _limited(self, call: Dispatch, reader: ToolReader, invocation: Invocation) -> Any:
        """Return the answer of a call that a limit forbids, without running the handler; LEFT_ALONE when it runs.

        Raises:
            ToolDeniedError: the tool is a generator. No answer can replace its items.
        """
        if self._limits is None or call.execution is None or reader.station != PRODUCED or not call.is_readable:
            return LEFT_ALONE
        charged = call.charged_to or call
        if charged.is_counted or (reader.replace is None and reader.events):  # a retry of a call that has begun
            return LEFT_ALONE
        thread = None if call.run is None else call.run.conversation
        totals = call.state if call.run is None else call.run.totals
        used_tokens = 0 if totals is None else totals.used_tokens
        conversation = call.call.execution or thread or call.place or ""
        reached = self._limits.enter(call.execution, conversation, used_tokens)
        self._limits.recorded(call.execution, call.call.call_id, call.call.name)
        if reached is None:
            charged.is_counted = True
            return LEFT_ALONE
        answer = limits.answer(reached)
        written = result_ceiling.as_text(answer)
        if reader.replace is None:
            call.skip(reached)
            raise ToolDeniedError(written)
        put = reader.replace(None, Replacement(written, answer, is_error=True), invocation)
        if put is NOT_HERE:
            self._cannot_act(reader)
            return LEFT_ALONE
        if put is not LEFT_ALONE:
            call.skip(reached)
        return put

    def _cannot_act(self, reader: ToolReader) -> None:
        setting_checks.cannot_act(self._chosen, setting_checks.ON_RESULTS, reader.call.__module__)

    def applied(self, record: Dispatch, reader: ToolReader, read: object, value: Any, invocation: Invocation) -> Any:
        """Return the value itself, or the replacement for the model."""
        if self._passes_by(record, reader):
            return value
        if self._gate is not None:
            read, value = self._gate.left(record, reader, read, value, invocation)
        if not isinstance(record, ToolInvocation) or _is_done(record, reader):
            return value
        refine(record, read, self._most_bytes(record))
        found, check = None, self._claim_check
        content = self._claimed(record, reader, read)
        if content is not None and check is not None:
            found = _shown(check.view(record, content, check.store(record, content)))
        put = self._put_back(record, reader, found or self._withheld(record, reader, invocation), value, invocation)
        if self._retried is not None:
            self._retried.keep(record, read)
        self._count(record, read)
        return put

    async def aapplied(
        self, record: Dispatch, reader: ToolReader, read: object, value: Any, invocation: Invocation
    ) -> Any:
        """Return the same as `applied`; the store is awaited off the event loop."""
        if self._passes_by(record, reader):
            return value
        if self._gate is not None:
            read, value = self._gate.left(record, reader, read, value, invocation)
        if not isinstance(record, ToolInvocation) or _is_done(record, reader):
            return value
        await arefine(record, read, self._most_bytes(record))
        found, check = None, self._claim_check
        content = self._claimed(record, reader, read)
        if content is not None and check is not None:
            found = _shown(await check.aview(record, content, await check.astore(record, content)))
        put = self._put_back(record, reader, found or self._withheld(record, reader, invocation), value, invocation)
        if self._retried is not None:
            await self._retried.akeep(record, read)
        self._count(record, read)
        return put

    def _passes_by(self, record: Dispatch, reader: ToolReader) -> bool:
        """Return True for the result of a handler that is below all thresholds; it is counted when the call ends."""
        size = record.produced
        return (
            size is not None
            and size.bytes <= self._untouched_bytes
            and size.exact
            and record.failed is None
            and not reader.is_alone
        )

    def _claimed(self, record: ToolInvocation, reader: ToolReader, read: object) -> Content | None:
        """Return the content to store; None when the result is not stored."""
        size = _size(record, reader)
        if self._claim_check is None or size is None or record.name == GET_TOOL_RESULT:
            return None
        return None if size.bytes <= self._claimed_from(record) else Content(read, size.bytes)

    def _claimed_from(self, record: ToolInvocation) -> int:
        """Return the bytes above which a result is stored."""
        return max(self._claim_bytes, record.call.offloads_above)

    def _most_bytes(self, record: ToolInvocation) -> int:
        """Return the largest size in bytes that is measured exactly."""
        claimed_from = 0 if self._claim_check is None or record.name == GET_TOOL_RESULT else self._claimed_from(record)
        return _MARGIN * max(claimed_from, self._ceiling(record) or 0)

    def _ceiling(self, record: ToolInvocation) -> int | None:
        """Return the bytes above which a result is withheld; None when no layer on its way has a known limit."""
        if self._ceiling_bytes != AUTO:
            return self._ceiling_bytes
        budget = record.budget()
        return None if budget.layer == semconv.DEFAULT else budget.bytes

    def _withheld(self, record: ToolInvocation, reader: ToolReader, invocation: Invocation) -> Remedied | None:
        """Return the error in place of a result above the ceiling, or without a known size; None for any other."""
        limit_bytes, size = self._ceiling(record), _size(record, reader)
        if size is None or limit_bytes is None or (size.exact and size.bytes <= limit_bytes):
            return None
        parameters: Iterable[str] = reader.parameters(invocation) if reader.parameters is not None else ()
        if record.injected:  # which the model does not give
            parameters = [name for name in parameters if name not in record.injected]
        error = result_ceiling.too_large(record.name, size, limit_bytes, parameters)
        text = result_ceiling.as_text(error)
        replacement = Replacement(text, error, is_error=True)
        return Remedied(replacement, semconv.CEILING, text_bytes(text), error_type=semconv.RESULT_TOO_LARGE)

    def _put_back(
        self, record: ToolInvocation, reader: ToolReader, found: Remedied | None, value: Any, invocation: Invocation
    ) -> Any:
        if found is None or reader.replace is None:
            return value
        is_error = found.replacement.is_error or record.error_type is not None  # a failure stays a failure
        put = reader.replace(value, found.replacement._replace(is_error=is_error), invocation)
        if put is NOT_HERE:
            self._cannot_act(reader)
            return value
        if put is LEFT_ALONE:
            errors.warn_once(
                f"left alone {record.name}",
                f"A result of {record.name} goes on whole: nothing else satisfies the output it declares.",
            )
            return value
        record.replace(found)
        return put

    def _count(self, record: ToolInvocation, read: object) -> None:
        """Count the text that the model gets, for the limits and for the payload that will carry it."""
        size = read_size(record)
        record.counted = True
        if record.execution is None and self._limits is not None:
            limits.without_execution()
        if size is None or record.execution is None or record.state is None:
            return
        size_bytes = size.bytes if record.remedied is None else record.remedied.bytes
        record.budget()  # before the result takes of it
        executions.handed_on(record.state, size_bytes)
        if self._limits is None:
            return
        if record.remedied is None and size.exact:
            used = tokens_of(record.characters or size_bytes, lambda: raw_of(read).text or "")
        elif record.remedied is None:
            used = estimated_tokens(size_bytes)
        else:
            used = tokens(record.remedied.replacement.text)
        self._limits.spend(record.execution, size_bytes, used)


def _gate() -> Gate | None:
    source = policy_in_force()
    if source is None:
        return None
    from agent_otel.remedies.dispatch_policy.gate import Gate  # noqa: PLC0415 - only with a policy

    return Gate(source)


def _retried(chosen: Settings, check: ClaimCheck | None) -> RetriedCalls | None:
    if check is None or not chosen.answer_retries:
        return None
    from agent_otel.remedies.retried_calls import RetriedCalls  # noqa: PLC0415 - only where it is on

    return RetriedCalls(check)


def _dispatches(reader: ToolReader) -> bool:
    """Return True for the function that calls the handler, as far as it can be wrapped."""
    return reader.station == PRODUCED or reader.awaits is None


def _size(record: ToolInvocation, reader: ToolReader) -> Size | None:
    """Return the size that a remedy acts on: at an outer function alone, the size that the framework has left."""
    size = read_size(record)
    if not reader.is_alone or size is None or record.handed is None or record.handed >= size.bytes:
        return size
    return Size(record.handed, exact=True)


def _is_done(record: ToolInvocation, reader: ToolReader) -> bool:
    """Return True when there is nothing to do: outside of the handler only the text about an exception is new."""
    if reader.replace is None:
        return True
    if reader.is_alone:
        return record.counted
    return reader.station != PRODUCED and (record.failed is None or record.counted)


def _shown(view: View | None) -> Remedied | None:
    return None if view is None else Remedied(view.replacement, semconv.CLAIM_CHECK, view.bytes, view.ref)
