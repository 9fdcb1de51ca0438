"""The turns that a growing state has left under the caps of a durable runtime, from its sizes in a test's few turns.

Two ways are taken, and the smaller result counts: the forecast of the alerts, and a continuation that repeats the last
growths until a cap is met. The continuation also meets the caps of everything that a runtime stores of an execution
(the history of Temporal), which a state reaches long before a payload is large.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from agent_otel import settings
from agent_otel._internal.named_tuples import NamedTuple
from agent_otel.caps import payload_caps
from agent_otel.core.payload_cap import cap_for
from agent_otel.measure.forecast import turns_to_cap
from agent_otel.semconv import HISTORY, INPUT, MESSAGE, OUTPUT, STATE

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Fewer turns show no growth.
FEWEST: Final = 3
#: Turns after which a continuation ends.
MOST: Final = 10_000
_REPEATED: Final = 3  # growths that the continuation repeats
#: Boundaries that a state crosses in each turn, by the direction of a payload that was measured there.
_BOUNDARIES: Final = {
    INPUT: ("activity_input",),
    OUTPUT: ("activity_output",),
    STATE: ("state",),
    MESSAGE: ("message",),
    HISTORY: ("history",),
}
ANY: Final = tuple(boundary for boundaries in _BOUNDARIES.values() for boundary in boundaries)


class Outlook(NamedTuple):
    """The turns that a state has left: ``turns`` more stay at or under the cap of a boundary.

    ``sizes`` are the bytes of the state in the turns of the test. ``stored_bytes`` is how many bytes a byte of the
    state adds to a cumulative cap in each turn, 0 where the cap is that of a single payload.
    """

    turns: int
    boundary: str
    cap_bytes: int
    stored_bytes: int
    sizes: tuple[int, ...]


def boundaries_of(direction: str) -> tuple[str, ...]:
    """Return the boundaries that a payload of this direction crosses."""
    return _BOUNDARIES.get(direction, ())


def outlook(
    sizes: Sequence[int], runtime: str, variant: str | None = None, boundaries: Sequence[str] = ANY
) -> Outlook | None:
    """Return the outlook of a state at the boundary that it meets first; None where it meets no cap.

    Raises:
        ValueError: no cap of the runtime is known.
    """
    rows = [cap for cap in payload_caps() if cap.runtime == runtime]
    if not rows and all(configured != runtime for configured, _, _ in settings.current().caps):
        names = ", ".join(sorted({cap.runtime for cap in payload_caps()}))
        raise ValueError(f"no cap of {runtime!r} is known; set AGENT_OTEL_CAPS={runtime}.payload=2MiB, or name {names}")
    found = []
    for boundary in boundaries:
        cap = cap_for(runtime, boundary, variant=variant)
        if cap is None:
            continue
        is_cumulative = boundary == HISTORY or any(row.cumulative for row in rows if row.boundary == boundary)
        # A history holds the input and the output of each activity, a stored state the state alone.
        stored = (2 if boundary == HISTORY else 1) * is_cumulative
        turns = _left(sizes, cap.bytes, stored)
        found.append(Outlook(turns, boundary, cap.bytes, stored, tuple(sizes)))
    if not found and rows:
        variants = ", ".join(sorted({cap.variant for cap in rows if cap.variant and cap.bytes is not None}))
        if variants and variant is None:
            raise ValueError(f"the caps of {runtime!r} depend on its variant; name one: {variants}")
    nearest = min(found, key=lambda one: one.turns, default=None)
    return nearest if nearest is not None and nearest.turns < MOST else None


def _left(sizes: Sequence[int], cap_bytes: int, stored: int) -> int:
    simulated = _continued(sizes, cap_bytes, stored)
    forecast = None if stored else turns_to_cap(sizes, cap_bytes)
    return simulated if forecast is None else min(simulated, forecast)


def _continued(sizes: Sequence[int], cap_bytes: int, stored: int) -> int:
    """Return the number of turns under the cap, where the last growths come again and again; at most ``MOST``."""
    growths = [after - before for before, after in pairwise(sizes)][-_REPEATED:]
    size, total = sizes[-1], stored * sum(sizes)
    for turns in range(MOST):
        size = max(0, size + growths[turns % len(growths)])
        total += stored * size
        if (total if stored else size) > cap_bytes:
            return turns
    return MOST
