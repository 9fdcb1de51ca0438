"""Changes in the part of a request that the request before had: a prompt cache cannot serve what follows them.

Providers cache a request's beginning: tools, system prompt, messages in their order. Only a request that continues an
earlier one counts: some of what follows the changed part is still there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opentelemetry import trace

from agent_otel import semconv
from agent_otel._internal.named_tuples import NamedTuple
from agent_otel.core.request_parts import KINDS
from agent_otel.measure.preview import clean

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_otel.core.execution_state import ExecutionState, SeenCall, SeenParts
    from agent_otel.core.request_parts import Sized
    from agent_otel.core.types import ModelRequest
    from agent_otel.telemetry.setup import Telemetry

_HEADS = (KINDS[semconv.TOOLS], KINDS[semconv.SYSTEM])
_PARTS = tuple(KINDS)
_ANSWERED = frozenset(KINDS[part] for part in (semconv.ASSISTANT, semconv.TOOL_CALL_ARGUMENTS, semconv.TOOL_RESULTS))


class Change(NamedTuple):
    """The first changed part of a request: its kind, its place in the request before, and the bytes from there on."""

    part: str
    at: int
    bytes: int


def within(before: SeenParts, now: SeenParts, same: int) -> Change | None:
    """Return the change after the first ``same`` parts of a conversation's request; None where nothing continues."""
    if same >= len(before.prints):
        return None
    later = before.prints[same + 1 :]
    if not later or set(later).isdisjoint(now.prints[same:]):
        return None
    return Change(_PARTS[before.kinds[same]], same, sum(before.sizes[same:]))


def of_head(execution: ExecutionState, request: ModelRequest, sized: Sequence[Sized], offered: int) -> Change | None:
    """Return the change of the tools or the system prompt in a request that continues one of the conversations.

    Such a request begins a conversation of its own, as that of a sub-agent does. Without tools, a request may be one
    for a title or a summary, and changes nothing.
    """
    streams = execution.streams
    if not streams or request.continued or not any(one.part.part == semconv.TOOLS for one in sized):
        return None
    prints = {one.print for one in sized}
    for earlier in reversed(list(streams.values())):
        _, sizes, kinds = earlier.parts
        has_tools = bool(kinds) and _HEADS[0] in kinds
        if has_tools and not _ANSWERED.isdisjoint(kinds) and _continues(earlier.parts, prints):
            part = semconv.TOOLS if earlier.offered != offered else semconv.SYSTEM
            at = kinds.find(KINDS[part])
            return Change(part, max(at, 0), sum(sizes[max(at, 0) :]))
    return None


def _continues(before: SeenParts, prints: set[int]) -> bool:
    """Return true when all messages of a request stand in another one."""
    pairs = zip(before.prints, before.kinds, strict=True)
    return all(one in prints for one, kind in pairs if kind not in _HEADS)


def tell(
    out: Telemetry, change: Change | None, before: SeenParts, sized: Sequence[Sized], calls: Mapping[int, SeenCall]
) -> None:
    """Count a change by part, and show on the current span which part changed."""
    if change is None:
        return
    out.models.prefix_changed(change.part)
    span = trace.get_current_span()
    if not span.is_recording():
        return
    attributes: dict[str, Any] = {
        semconv.CONTEXT_CHANGED_PART: change.part,
        semconv.CONTEXT_CHANGED_BYTES: change.bytes,
    }
    if KINDS[change.part] not in _HEADS:
        attributes[semconv.CONTEXT_CHANGED_MESSAGE] = sum(kind not in _HEADS for kind in before.kinds[: change.at + 1])
        is_same_kind = change.at < len(sized) and sized[change.at].part.part == change.part
        call = calls.get(change.at)
        tool = (call.tool if call is not None else sized[change.at].part.name) if is_same_kind else None
        if tool:
            attributes[semconv.CONTEXT_CHANGED_TOOL] = clean(tool)
    span.set_attributes(attributes)
