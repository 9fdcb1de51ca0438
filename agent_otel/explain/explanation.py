"""The explanation of a payload, as plain data: for the terminal, for JSON and for the page."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_otel.caps import payload_caps
from agent_otel.core.execution_state import ReadTexts
from agent_otel.core.models import UNKNOWN
from agent_otel.core.payload_cap import cap_for
from agent_otel.explain.carrying import Carried, ContextWindow, carried, context_window
from agent_otel.explain.conversation import Saving, Turn, Turns
from agent_otel.explain.message_stream import read_messages
from agent_otel.explain.source import SourceError, Step
from agent_otel.measure.breakdown.report import Breakdown, breakdown_chunks
from agent_otel.measure.breakdown.unread import Held
from agent_otel.measure.forecast import turns_to_cap
from agent_otel.measure.size import text_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agent_otel.core.models import ModelFacts
    from agent_otel.explain.source import Source

#: Values that are read one by one at most: 50 s, for files that a person waits for.
_STEPS: Final = 10_000_000
#: Boundaries at which a state or a conversation is one payload.
_PAYLOADS: Final = ("activity_input", "activity_output", "workflow_input", "workflow_output", "state", "message")


class Room(NamedTuple):
    """The room that a payload has under a runtime's smallest cap, in bytes, and the turns until it is full."""

    runtime: str
    boundary: str
    cap_bytes: int
    source: str
    left_bytes: int
    turns_left: int | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """A payload in bytes: its breakdown, its turns, the payloads of its runtime, its room and the remedies' savings."""

    name: str
    kind: str
    payload_bytes: int
    breakdown: Breakdown
    turns: list[Turn]
    sizes: list[int]
    steps: list[Step]
    rooms: list[Room]
    savings: list[Saving]
    carried: list[Carried]
    window: ContextWindow | None
    notes: list[str]


def explain(name: str, source: Source, model: str = "", facts: ModelFacts = UNKNOWN) -> Explanation:
    """Return the explanation of a source, which is read twice; ``facts`` are of the conversation's model.

    Raises:
        SourceError: it holds no JSON.
    """
    turns, held = Turns(), ReadTexts()
    counted = _Counted(source.chunks())
    read_messages(counted, turns.take, held, _STEPS)
    for _ in counted:  # what the reader left
        pass
    total = counted.bytes if source.bytes is None else source.bytes
    found = turns.longest()
    requests = Held(held.prints, len(held.prints), held.modulus, lambda _: None) if found else None
    breakdown = breakdown_chunks(source.chunks(), total, lambda _: None, held=requests, steps=_STEPS)
    if breakdown is None:
        raise SourceError(f"{name} is not JSON")
    notes = list(source.notes)
    if not breakdown.exact:
        notes.append("A part could not be read, or is estimated: figures are lower bounds.")
    name_of_steps, boundary = _largest_series(source.steps)
    sizes = [step.bytes for step in source.steps if (step.name, step.boundary) == (name_of_steps, boundary)]
    sizes = sizes or _sizes(found, breakdown)
    return Explanation(
        name=name,
        kind=source.kind,
        payload_bytes=total,
        breakdown=breakdown,
        turns=found,
        sizes=sizes,
        steps=source.steps,
        rooms=_rooms(source, boundary, _current(boundary, sizes, total), sizes),
        savings=turns.savings(found) if found else [],
        carried=carried(found, facts),
        window=context_window(model, found, facts),
        notes=notes,
    )


class _Counted:
    """Chunks of text, and the bytes of those that were read."""

    def __init__(self, chunks: Iterator[str]) -> None:
        self._chunks = chunks
        self.bytes = 0

    def __iter__(self) -> _Counted:
        return self

    def __next__(self) -> str:
        chunk = next(self._chunks)
        self.bytes += text_bytes(chunk)
        return chunk


def _sizes(turns: list[Turn], breakdown: Breakdown) -> list[int]:
    """Return the size after each turn of a payload that no runtime has recorded.

    It follows from the bytes of the turns: the payload without the turns behind, and without their share of the texts
    that stand in it twice.
    """
    if not turns:
        return []
    ends = list(accumulate(turn.bytes for turn in turns))
    whole = max(1, ends[-1])
    growing = min(breakdown.total_bytes, whole + breakdown.duplicate_bytes)
    return [breakdown.total_bytes - (whole - end) * growing // whole for end in ends]


def _largest_series(steps: list[Step]) -> tuple[str, str]:
    """Return the name and the boundary of the payloads with the largest one; empty texts without a history."""
    return max(((step.name, step.boundary) for step in steps), key=_weight(steps), default=("", ""))


def _current(boundary: str, sizes: list[int], total: int) -> int:
    """Return the size that takes the room: a state's last one, the largest of results, which are not carried on."""
    if not sizes:
        return total
    return max(sizes) if boundary.endswith("_output") else sizes[-1]


def _weight(steps: list[Step]) -> Callable[[tuple[str, str]], int]:
    """Return a function that weighs a series of payloads by its largest one."""
    largest: dict[tuple[str, str], int] = {}
    for step in steps:
        series = (step.name, step.boundary)
        largest[series] = max(step.bytes, largest.get(series, 0))
    return largest.__getitem__


def _rooms(source: Source, boundary: str, size: int, sizes: list[int]) -> list[Room]:
    """Return the room under the smallest cap of each runtime, or of the source's own boundary; least room first."""
    found: dict[str, Room] = {}
    for row in payload_caps():
        if boundary not in ("", row.boundary):
            continue
        if row.cumulative or row.boundary not in _PAYLOADS or (source.runtime and row.runtime != source.runtime):
            continue
        if source.variant and row.variant != source.variant:
            continue
        cap = cap_for(row.runtime, row.boundary, variant=row.variant or None)
        runtime = f"{row.runtime} ({row.variant})" if row.variant else row.runtime
        if cap is None or (runtime in found and found[runtime].cap_bytes <= cap.bytes):
            continue
        left, turns = cap.bytes - size, turns_to_cap(sizes, cap.bytes)
        found[runtime] = Room(runtime, row.boundary, cap.bytes, cap.source, left, turns)
    return sorted(found.values(), key=lambda room: room.left_bytes)
