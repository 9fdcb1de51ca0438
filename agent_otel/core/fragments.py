"""Fragments: results of which the model gets a part only."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from agent_otel import semconv
from agent_otel.core.execution_state import Followed, Fragment
from agent_otel.core.executions import executions
from agent_otel.measure.truncation.paging import asks_for_a_page, cursors, next_page, subject

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_otel.core.execution_state import ExecutionState, SeenCall
    from agent_otel.core.types import Remedied

#: Values of next pages that an execution keeps.
_MOST_CURSORS = 16
#: The fragments of stored results by their references.
_stored: weakref.WeakValueDictionary[str, Fragment] = weakref.WeakValueDictionary()


def note(
    call: SeenCall, cuts: Iterable[tuple[str, str]], result_bytes: int, handed: int | None, remedied: Remedied | None
) -> str | None:
    """Keep the part that the model gets of a result; return how that is known, None when the result is whole.

    ``cuts`` are layers and reasons, the latest last. ``remedied`` is what a remedy has put in the result's place.
    """
    known = [cut for cut in cuts if cut[1] != semconv.SUSPECTED]
    if not known:
        return None
    layer, reason = known[-1]
    whole = -1 if layer == semconv.LAYER_TOOL else result_bytes
    fragment = Fragment(reason, result_bytes if handed is None else handed, whole, call.span)
    executions.partly_shown(call, fragment)
    if remedied is not None:
        fragment.removed = remedied.reason, max(result_bytes - remedied.bytes, 0)
        if remedied.ref is not None:
            _stored[remedied.ref] = fragment
    return reason


def cursors_of(value: object) -> tuple[int, ...]:
    """Return hashes of the values by which a page names the next one."""
    return tuple(map(hash, cursors(value)))


def invite(
    state: ExecutionState, tool: str, arguments: object, next_pages: Iterable[int] | None, fragment: Fragment | None
) -> None:
    """Record that a result invites a further call.

    It may be one of the same tool about the same subject, or one of another tool with a value of the next page.
    """
    vars(state).setdefault("followed", {})[tool] = Followed(subject(arguments))
    for each in next_pages or ():
        offered = state.cursors = state.cursors or {}
        offered[each] = (tool, fragment)
        if len(offered) > _MOST_CURSORS:
            offered.pop(next(iter(offered)), None)


def follow_up(state: ExecutionState, tool: str, arguments: object, *, repeated: bool) -> tuple[str | None, str | None]:
    """Return how a call follows up an earlier result, and the tool of that result; None and None where it does not."""
    offered = state.cursors
    named_page = next((each for each in map(hash, next_page(arguments)) if each in offered), None) if offered else None
    if offered and named_page is not None:
        earlier, fragment = offered.pop(named_page)
        is_expected = _is_expected(state, earlier, None)
        if fragment is not None and earlier != tool:
            fragment.followed_by = tool
        if is_expected:
            return semconv.PAGINATED, earlier
    if not _is_expected(state, tool, None if repeated else arguments):
        return None, None
    if repeated:
        return semconv.REPEATED, tool
    return (semconv.PAGINATED if asks_for_a_page(arguments) else semconv.NARROWED), tool


def _is_expected(state: ExecutionState, tool: str, arguments: object) -> bool:
    """Return true when a call of this tool is the follow-up that `invite` expects; only the first call is.

    Where requests are seen, a call before the next request belongs to the same turn and is none.
    """
    followed = state.followed.get(tool) if state.followed else None
    if followed is None or (not followed.requests and state.streams):
        return False
    if arguments is not None and not followed.subject.is_that_of(subject(arguments)):
        return False
    return (state.followed or {}).pop(tool, None) is not None


def is_ignored(state: ExecutionState, tool: str) -> bool:
    """Return true when a follow-up of this tool was expected, which is then expected no longer."""
    return state.followed is not None and state.followed.pop(tool, None) is not None


def reread(reference: str) -> None:
    """Record that the model has read on in a stored result."""
    fragment = _stored.get(reference)
    if fragment is not None:
        fragment.is_open = False
