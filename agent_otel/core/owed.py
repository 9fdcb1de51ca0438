"""Results that the model is owed: a request of the same tools and agent must hold a passage of one of the latest two.

A call owes its result to the requests that follow it. System prompts and the texts of users take no part. A request
that lacks the result is a lost history if it follows the call in the same context. In another context it may be a
branch beside the call. Then only later requests, or the end of the run, show that no request ever held the result.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

from agent_otel.core.execution_state import Lacking
from agent_otel.core.executions import executions

if TYPE_CHECKING:
    from agent_otel.core.execution_state import ExecutionState, SeenCall

_LATEST = 2  # results of which a request must hold one: the history is frozen if it has only older ones
_PASSED = 8  # requests without a result, after which no branch beside the call explains them
_EMPTY_BYTES = 16  # below them, a result that had passages has been emptied

#: The last request in this context: a call has it from there.
here: ContextVar[object | None] = ContextVar("agent_otel_last_request", default=None)


def lacking(execution: ExecutionState, owner: int, *, has_call: bool) -> tuple[list[SeenCall], int]:
    """Return the owed results that a request lacks, and the number of requests that are known by now to have lost them.

    ``owner`` is a hash of the tools and the agent. A window or a compaction may leave out a result once where it keeps
    the call.
    """
    results = [call for call in executions.results(execution) if call.owed_to == owner]
    unsure = _still_due(execution.unsure)
    if not results or not all(map(_is_due, results[-_LATEST:])):
        execution.unsure, execution.has_lost = unsure, False
        return [], 0
    call, mark = results[-1], here.get()
    is_sequel = mark is not None and call.mark is mark
    execution.unsure = unsure = (*unsure, Lacking(call, has_call))
    is_second = execution.has_lost or len(unsure) > 1
    if (is_sequel and (is_second or not has_call)) or len(unsure) >= _PASSED:
        execution.unsure, execution.has_lost = (), True
        return [each for each in results if _is_due(each)], len(unsure)
    return [], 0


def at_end(execution: ExecutionState) -> int:
    """Return the number of requests that are known, at the end of their run, to have lost results."""
    unsure, execution.unsure = _still_due(execution.unsure), ()
    return 0 if len(unsure) == 1 and unsure[0].has_call else len(unsure)


def _still_due(unsure: tuple[Lacking, ...]) -> tuple[Lacking, ...]:
    return tuple(one for one in unsure if _is_due(one.call)) if unsure else ()


def _is_due(call: SeenCall) -> bool:
    """Return true while no request has held a passage of a result."""
    if call.delivered < 0:
        return not call.is_held
    return call.most_delivered < _EMPTY_BYTES
