"""Retried calls: in a second attempt of a durable runtime's step, a call that has its result is not made again.

The result of each call within a step is stored under the execution, the step, the call's id and a digest of tool and
arguments; several equal calls of one attempt are counted. A later attempt finds it there, as a remedy has left it. A
call whose result was not stored is made: the store failed, the result is neither a text nor a JSON object, or its
arguments are no JSON.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_otel._internal import errors
from agent_otel.core import execution_context
from agent_otel.core.types import LEFT_ALONE, NOT_HERE, Claim, Replacement
from agent_otel.core.unrecorded import Unrecorded
from agent_otel.measure.plain_size import values_of
from agent_otel.remedies.claim_check.envelope import Origin
from agent_otel.remedies.claim_check.keys import current_owner
from agent_otel.remedies.claim_check.reader import Place
from agent_otel.remedies.claim_check.serialization import raw_of
from agent_otel.remedies.claim_check.stores import StoreError

if TYPE_CHECKING:
    from agent_otel.core.dispatch import Dispatch
    from agent_otel.core.tool_invocation import ToolInvocation
    from agent_otel.core.types import Invocation, ToolReader
    from agent_otel.remedies.claim_check.policy import ClaimCheck
    from agent_otel.remedies.claim_check.reader import Resolved

#: Values of an object up to which it is stored.
_MOST_VALUES: Final = 100_000


class _Spot(NamedTuple):
    """The place of a call's result, its owner, and the attempt of the step."""

    place: Place
    owner: str
    attempt: int


class RetriedCalls:
    """Stores the results of calls within steps, and answers calls of later attempts with them."""

    def __init__(self, check: ClaimCheck) -> None:
        self._check = check

    def answer(self, record: Dispatch, reader: ToolReader, invocation: Invocation) -> Any:
        """Return the stored result in the framework's form; LEFT_ALONE for a call that is to be made."""
        spot = self._begin(record)
        if spot is None or spot.attempt == 1:
            return LEFT_ALONE
        try:
            found = self._check.reader.resolve(spot.place, caller=spot.owner)
        except StoreError:
            return LEFT_ALONE
        return _put(record, reader, found, invocation)

    async def aanswer(self, record: Dispatch, reader: ToolReader, invocation: Invocation) -> Any:
        """Return the same as `answer`; the store is awaited off the event loop."""
        spot = self._begin(record)
        if spot is None or spot.attempt == 1:
            return LEFT_ALONE
        try:
            found = await self._check.reader.aresolve(spot.place, caller=spot.owner)
        except StoreError:
            return LEFT_ALONE
        return _put(record, reader, found, invocation)

    def keep(self, record: ToolInvocation, read: object) -> None:
        """Store a result for later attempts."""
        kept = _content(record, read)
        if kept is not None:
            self._check.keep_answer(*kept)

    async def akeep(self, record: ToolInvocation, read: object) -> None:
        """Store a result for later attempts, without blocking the event loop."""
        kept = _content(record, read)
        if kept is not None:
            await self._check.akeep_answer(*kept)

    @staticmethod
    def _begin(record: Dispatch) -> _Spot | None:
        """Return the spot of a call, and keep it on the record; None outside of a step, and for a part of a call."""
        step, owner, carrier = execution_context.current_step(), current_owner(), execution_context.running_step()
        spot: _Spot | None = record.spot
        is_part = isinstance(record, Unrecorded)
        if step is None or owner is None or carrier is None or spot is not None or is_part:
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
        spot = record.spot = _Spot(place, owner, step.attempt)
        return spot


def _content(record: ToolInvocation, read: object) -> tuple[str, Origin] | None:
    """Return what to store of a result, and its origin; None when it is not stored."""
    spot: _Spot | None = record.spot
    if spot is None or record.raised:
        return None
    # A remedy's replacement is stored as such: in the later attempt no remedy acts.
    remedied, is_text = record.remedied, isinstance(read, str)
    if record.error_type is not None and (remedied is None or remedied.error_type != record.error_type):
        return None
    if remedied is not None:
        kept = remedied.replacement._replace(is_data=not is_text)
    elif is_text or (type(read) is dict and _is_json(read)):
        text, is_whole = raw_of(read)[2:]
        if text is None or not is_whole:
            return None
        kept = Replacement(text, {"content": text} if is_text else {}, is_data=not is_text)
    else:
        return None
    written = json.dumps([*kept[:4], kept.claim], ensure_ascii=False)
    return written, Origin(spot.owner, spot.place.execution, spot.place.node, record.name, spot.place.call)


def _is_json(given: object) -> bool:
    """Return True for plain data that is the same when it has been written as JSON and read."""
    found = values_of([given], _MOST_VALUES)
    return not isinstance(found, int) and not found.labels and all(type(one) is not tuple for one in found.containers)


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
    record.is_answered = True
    return put
