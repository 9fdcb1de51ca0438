"""Fragments: results of which the model gets a part only."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from agent_otel import semconv
from agent_otel.core.execution_state import Fragment
from agent_otel.core.executions import executions
from agent_otel.measure.truncation.paging import asks_for_a_page

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_otel.core.execution_state import SeenCall

#: The fragments of stored results by their references.
_stored: weakref.WeakValueDictionary[str, Fragment] = weakref.WeakValueDictionary()


def note(
    call: SeenCall, cuts: Iterable[tuple[str, str]], result_bytes: int, handed: int | None, reference: str | None
) -> str | None:
    """Keep the part that the model gets of a result; return how that is known, None when the result is whole.

    ``cuts`` are layers and reasons, the latest last. ``reference`` is set when the whole result is stored.
    """
    known = [cut for cut in cuts if cut[1] != semconv.SUSPECTED]
    if not known:
        return None
    layer, reason = known[-1]
    whole = -1 if layer == semconv.LAYER_TOOL else result_bytes
    fragment = Fragment(reason, result_bytes if handed is None else handed, whole, call.span)
    executions.partly_shown(call, fragment)
    if reference is not None:
        _stored[reference] = fragment
    return reason


def outcome(arguments: object, *, repeated: bool) -> str:
    """Return how a call follows up an earlier result of its tool."""
    narrowed = semconv.PAGINATED if asks_for_a_page(arguments) else semconv.NARROWED
    return semconv.REPEATED if repeated else narrowed


def reread(reference: str) -> None:
    """Record that the model has read on in a stored result."""
    fragment = _stored.get(reference)
    if fragment is not None:
        fragment.is_open = False
