"""The remedies applied to one tool call and its result."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final

from agent_otel import semconv
from agent_otel._internal import errors
from agent_otel.core import execution_context
from agent_otel.core.executions import executions
from agent_otel.core.payload_cap import Budget, layers_of_call, transport
from agent_otel.core.tool_invocation import ToolInvocation
from agent_otel.core.tool_visit import Unrecorded
from agent_otel.core.types import (
    LEFT_ALONE,
    NOT_HERE,
    PRODUCED,
    Claim,
    LimitReached,
    Remedied,
    Replacement,
    ToolDeniedError,
)
from agent_otel.measure.plain_size import values_of
from agent_otel.measure.size import Size, estimated_tokens, text_bytes
from agent_otel.remedies import backpressure, limits
from agent_otel.remedies.backpressure import CallQueue
from agent_otel.remedies.claim_check import policy
from agent_otel.remedies.claim_check.envelope import Origin, current_owner
from agent_otel.remedies.claim_check.policy import GET_TOOL_RESULT
from agent_otel.remedies.claim_check.reader import Place
from agent_otel.remedies.claim_check.serialization import Content, raw_of, read_size, refine
from agent_otel.remedies.claim_check.stores import StoreError
from agent_otel.remedies.dispatch_policy.gate import Gate
from agent_otel.remedies.dispatch_policy.source import current as policy_in_force
from agent_otel.remedies.limits import tokens, tokens_of
from agent_otel.settings import without_effect
from agent_otel.settings.kinds import AUTO

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_otel.core.tool_invocation import Dispatch
    from agent_otel.core.types import Invocation, Slot, ToolReader
    from agent_otel.remedies.claim_check.policy import ClaimCheck
    from agent_otel.remedies.claim_check.reader import Resolved
    from agent_otel.settings import Settings


_MOST_VALUES: Final = 100_000


# In a later attempt of a durable runtime's step, a call whose result was stored is not made again.


async def _earlier_answer(
    check: ClaimCheck, record: Dispatch, reader: ToolReader, invocation: Invocation, *, blocks: bool
) -> Any:
    """Return the stored result in the framework's form; LEFT_ALONE for a call that is to be made."""
    place, attempt = _spot(record) or (None, 1)
    if place is None or attempt == 1:
        return LEFT_ALONE
    try:
        found = await check.reader.aresolve(place, caller=place.execution, blocks=blocks)
    except StoreError:
        return LEFT_ALONE
    return _put(record, reader, found, invocation)


def _spot(record: Dispatch) -> tuple[Place, int] | None:
    """Return the place of a call's result and the step's attempt; None outside of a step, and for a part."""
    step, owner, carrier = execution_context.current_step(), current_owner(), execution_context.running_step()
    spot: tuple[Place, int] | None = record.spot
    if step is None or owner is None or carrier is None or spot is not None or isinstance(record, Unrecorded):
        return spot
    try:
        written = json.dumps([record.call.name, record.call.arguments], sort_keys=True, ensure_ascii=False)
    except errors.ours(TypeError, ValueError, RecursionError):
        return None
    digest = hashlib.blake2b(written.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    carrier.calls = {} if carrier.calls is None else carrier.calls
    number = carrier.calls[digest] = carrier.calls.get(digest, 0) + 1
    call_id = execution_context.short(record.call.call_id or "call")
    place = Place(owner, step.activity or "step", f"{call_id}-{digest}-{number}-answer")
    record.spot = place, step.attempt
    return place, step.attempt


def _content(record: ToolInvocation, read: object) -> tuple[str, Origin] | None:
    """Return what to store of a result, and its origin; None when it is not stored."""
    spot: tuple[Place, int] | None = record.spot
    if spot is None or record.raised:
        return None
    # A remedy's replacement is stored as such: in the later attempt no remedy acts.
    remedied, is_text = record.remedied, isinstance(read, str)
    if record.error_type is not None and (remedied is None or remedied.error_type != record.error_type):
        return None
    if remedied is not None:
        kept = remedied.replacement._replace(is_data=not is_text)
    else:
        found = values_of([read], _MOST_VALUES) if type(read) is dict else 0
        # Plain data is the same when it has been written as JSON and read.
        is_json = not isinstance(found, int) and not found.labels and tuple not in map(type, found.containers)
        text, is_whole = raw_of(read)[2:] if is_text or is_json else (None, False)
        if text is None or not is_whole:
            return None
        kept = Replacement(text, {"content": text} if is_text else {}, is_data=not is_text)
    written = json.dumps([*kept[:4], kept.claim], ensure_ascii=False)
    execution, node, call = spot[0]
    return written, Origin(execution, execution, node, record.name, call)


def _put(record: Dispatch, reader: ToolReader, found: Resolved, invocation: Invocation) -> Any:
    """Return a stored result in the framework's form; LEFT_ALONE where the framework takes none."""
    if reader.replace is None:
        return LEFT_ALONE
    text, data, is_error, is_data, claim = json.loads(found.text or "")
    claim = None if claim is None else Claim(*claim)
    kept = Replacement(text, data if data or not is_data else json.loads(text), is_error, is_data, claim)
    put = reader.replace(None, kept, invocation)
    if put is LEFT_ALONE or put is NOT_HERE:
        errors.warn_once(
            f"answer retries {record.name}",
            f"AGENT_OTEL_ANSWER_RETRIES: without effect on {record.name}; nothing else satisfies the output it "
            "declares.",
        )
        return LEFT_ALONE
    record.tell(semconv.TOOL_CALL_EVENT, {semconv.PHASE: semconv.ANSWERED})
    return put


_MARGIN: Final = 2
#: With fewer turns left, smaller results are stored as well. A pager needs longer than a turn.
_FEW_TURNS: Final = 2


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
        source = policy_in_force()
        self._gate = None if source is None else Gate(source)
        #: The store of results for later attempts.
        self._retried = self._claim_check if chosen.answer_retries else None
        #: The largest size in bytes that no remedy acts on; -1 if a remedy records every result.
        is_every = self._gate or self._retried or self._limits or self._ceiling_bytes == AUTO
        self._untouched_bytes = -1 if is_every else self.least_bytes

    @property
    def least_bytes(self) -> int:
        """The largest size in bytes on which neither the ceiling nor the claim check acts; -1 without either."""
        thresholds = (self._ceiling_bytes, None if self._claim_check is None else self._claim_bytes)
        return min((one for one in thresholds if one is not None), default=-1)

    def finished(self, execution: str) -> None:
        """Drop the state of an execution that has ended."""
        if self._limits is not None:
            self._limits.finish(execution)

    async def take_turn(self, record: ToolInvocation, enclosing: ToolInvocation | None, *, blocks: bool) -> Slot | None:
        """Wait for tokens, then for a slot among the parallel calls; return None when the call runs without one."""
        if self._backpressure is not None:
            await self._backpressure.before_call(record, enclosing, blocks=blocks)
        if self._queue is None or record.execution is None:
            return None
        return await self._queue.take(record, enclosing, blocks=blocks)

    async def skipped(self, call: Dispatch, reader: ToolReader, invocation: Invocation, *, blocks: bool) -> Any:
        """Return the answer of a call that the policy or a limit forbids, else LEFT_ALONE. Raises ToolDeniedError."""
        put = LEFT_ALONE
        # A policy decides at the function that calls the handler, as far as it can be wrapped.
        if self._gate is not None and (reader.station == PRODUCED or reader.awaits is None):
            put = await self._gate.check(call, reader, invocation, blocks=blocks)
        if put is LEFT_ALONE and self._retried is not None and reader.station == PRODUCED:
            put = await _earlier_answer(self._retried, call, reader, invocation, blocks=blocks)
        return self._limited(call, reader, invocation) if put is LEFT_ALONE else put

    def _limited(self, call: Dispatch, reader: ToolReader, invocation: Invocation) -> Any:
        """Return the answer of a call that a limit forbids, else LEFT_ALONE. Raises ToolDeniedError for a generator."""
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
        made, most = None, self._chosen.max_repeats or 0
        if reached is None:
            made = self._limits.repeats(call.execution, (call.call.name, call.args_hash), call.call.call_id)
        if reached is None and made is None:
            charged.is_counted = True
            return LEFT_ALONE
        reached = reached or LimitReached(semconv.LIMIT_REPEATS, most)
        answer = limits.answer(reached) if made is None else limits.repeated(call.call.name, made, most)
        written = json.dumps(answer, ensure_ascii=False)
        if reader.replace is None:
            call.skip(reached)
            raise ToolDeniedError(written)
        put = reader.replace(None, Replacement(written, answer, is_error=True), invocation)
        if put is NOT_HERE:
            without_effect("results", self._chosen, adapter=reader.call.__module__)
            return LEFT_ALONE
        if put is not LEFT_ALONE:
            call.skip(reached)
        return put

    async def applied(  # noqa: PLR0913 - a call and its result
        self, record: Dispatch, reader: ToolReader, read: object, value: Any, invocation: Invocation, *, blocks: bool
    ) -> Any:
        """Return the value itself, or the replacement for the model."""
        if self.passes_by(record, reader):
            return value
        if self._gate is not None:
            read, value = self._gate.left(record, reader, read, value, invocation)
        if not isinstance(record, ToolInvocation) or reader.replace is None or (reader.is_alone and record.counted):
            return value
        # Outside of the handler only the text about an exception is new.
        if not reader.is_alone and reader.station != PRODUCED and (record.failed is None or record.counted):
            return value
        found = await self.replacement(record, reader, read, invocation, blocks=blocks)
        put = self._put_back(record, reader, found, value, invocation)
        kept = None if self._retried is None else _content(record, read)
        if kept is not None and self._retried is not None:
            await self._retried.writer.aput(*kept, blocks=blocks)
        self._count(record, read)
        return put

    async def replacement(
        self, record: ToolInvocation, reader: ToolReader, read: object, invocation: Invocation, *, blocks: bool
    ) -> Remedied | None:
        """Return what replaces a result: a view of the stored one, or an error; None for the whole result."""
        check, limit_bytes, usual_bytes, claimed_from = self._claim_check, 0, 0, 0
        ceiling_bytes = self._ceiling(record)
        if check is not None and record.name != GET_TOOL_RESULT:
            limit_bytes = check.limit(record, ceiling_bytes)
            usual_bytes = max(min(self._claim_bytes, ceiling_bytes or self._claim_bytes), record.call.offloads_above)
            claimed_from = min(usual_bytes, limit_bytes) if _has_few_turns(record) else usual_bytes
        # The size is measured exactly up to this multiple of the highest threshold.
        await refine(record, read, _MARGIN * max(claimed_from, ceiling_bytes or 0), blocks=blocks)
        size = _size(record, reader)
        if check is None or size is None or not 0 < claimed_from < size.bytes:
            return self._withheld(record, reader, invocation)
        record.is_stored_early = size.bytes <= usual_bytes
        found = await check.view(record, Content(read, size.bytes), limit_bytes, blocks=blocks)
        if found is not None and limit_bytes < record.budget().bytes:
            record.known_budget = Budget(limit_bytes, semconv.PAYLOAD)
        return found or self._withheld(record, reader, invocation)

    def passes_by(self, record: Dispatch, reader: ToolReader) -> bool:
        """Return True for the result of a handler that is below all thresholds; it is counted when the call ends."""
        size = record.produced
        return (
            size is not None
            and not _has_few_turns(record)
            and size.bytes <= self._untouched_bytes
            and size.exact
            and record.failed is None
            and not reader.is_alone
        )

    def _ceiling(self, record: ToolInvocation) -> int | None:
        """Return the bytes above which a result is withheld; None when no layer on its way has a known limit."""
        if self._ceiling_bytes != AUTO:
            return self._ceiling_bytes
        limits_bytes = [each.bytes for each in layers_of_call(record.state, self._chosen, record.call)]
        if transport_bytes := transport():
            limits_bytes.append(transport_bytes)
        return min(limits_bytes, default=None)

    def _withheld(self, record: ToolInvocation, reader: ToolReader, invocation: Invocation) -> Remedied | None:
        """Return the error in place of a result above the ceiling, or without a known size; None for any other."""
        limit_bytes, size = self._ceiling(record), _size(record, reader)
        if size is None or limit_bytes is None or (size.exact and size.bytes <= limit_bytes):
            return None
        parameters: Iterable[str] = reader.parameters(invocation) if reader.parameters is not None else ()
        if record.injected:  # which the model does not give
            parameters = [name for name in parameters if name not in record.injected]
        error = limits.too_large(record.name, size, limit_bytes, parameters)
        text = json.dumps(error, ensure_ascii=False)
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
            without_effect("results", self._chosen, adapter=reader.call.__module__)
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
        self._limits.spend(record.execution, size_bytes, used, (record.call.name, record.args_hash))


def _has_few_turns(record: Dispatch) -> bool:
    """Return True when the payload of the call's execution meets its cap in less than two turns."""
    carries = None if record.state is None else record.state.carries
    return carries is not None and carries[2] is not None and carries[2] < _FEW_TURNS


def _size(record: ToolInvocation, reader: ToolReader) -> Size | None:
    """Return the size that a remedy acts on: at an outer function alone, the size that the framework has left."""
    size = read_size(record)
    if not reader.is_alone or size is None or record.handed is None or record.handed >= size.bytes:
        return size
    return Size(record.handed, exact=True)
