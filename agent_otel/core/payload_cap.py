"""The cap of a payload: configured, discovered from the runtime, or from the table of `agent_otel.caps`.

A cap is looked up by runtime and boundary. ``AGENT_OTEL_CAPS`` takes precedence over caps that adapters read from the
runtime (``discover``), and these over the table. All sizes are bytes.
"""

from __future__ import annotations

import operator
import re
from typing import TYPE_CHECKING, NamedTuple

from agent_otel import semconv, settings
from agent_otel._internal.errors import ours
from agent_otel.caps import payload_caps
from agent_otel.settings import kinds as setting_kinds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from agent_otel.caps import Cap
    from agent_otel.core.types import Step

_COMPARISONS: dict[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}


class EffectiveCap(NamedTuple):
    """A cap in bytes and its source.

    ``source`` is ``configured``, ``discovered``, ``table``, or ``inferred`` for a row of the table that was neither
    tested nor read in the runtime's source or documentation.
    """

    bytes: int
    source: str


_ACTIVITY = {direction: f"activity_{direction}" for direction in (semconv.INPUT, semconv.OUTPUT)}
_WORKFLOW = {direction: f"workflow_{direction}" for direction in (semconv.INPUT, semconv.OUTPUT)}

_Boundary = tuple[str, str]
_MOST_FOUND = 1_024

# A cache, because each payload looks up its cap. `discover` replaces the dictionary, so that an outdated answer that
# another thread computes meanwhile goes into the old dictionary.
_found: dict[tuple[str, str, str | None, str | None], EffectiveCap | None] = {}
_discovered: dict[tuple[str, str, str | None], int] = {}


def cap_of(step: Step, direction: str) -> EffectiveCap | None:
    """Return the cap on a step's payload in a direction; None without one."""
    boundary = (_ACTIVITY if step.activity else _WORKFLOW).get(direction, direction)
    return cap_for(step.runtime, boundary, step.version, step.variant)


def cap_for(runtime: str, boundary: str, version: str | None = None, variant: str | None = None) -> EffectiveCap | None:
    """Return the cap of a runtime at a boundary, or None without one.

    ``version`` is the version that the table's ``versions`` refer to: the server's or sidecar's, else the library's.
    Without it, the smallest cap of all versions is used. Without ``variant``, only rows without one are used.
    """
    found = _found
    key = (runtime, boundary, version, variant)
    try:
        return found[key]
    except ours(KeyError):
        if len(found) >= _MOST_FOUND:
            found.clear()
        held = found[key] = _look_up(runtime, boundary, version, variant)
        return held


def discover(runtime: str, boundary: str, cap_bytes: int, variant: str | None = None) -> None:
    """Record a cap that an adapter read from the runtime, for all variants or for one.

    An unknown boundary or an impossible size is ignored.
    """
    global _found  # noqa: PLW0603 - the cached answers are outdated
    if boundary not in setting_kinds.BOUNDARIES or not isinstance(cap_bytes, int):
        return
    if not 0 < cap_bytes <= setting_kinds.LARGEST_BYTES:
        return
    if _discovered.get((runtime, boundary, variant)) != cap_bytes:
        _discovered[runtime, boundary, variant] = cap_bytes
        _found = {}


def _look_up(runtime: str, boundary: str, version: str | None, variant: str | None) -> EffectiveCap | None:
    rows = [cap for cap in payload_caps() if (cap.runtime, cap.boundary) == (runtime, boundary)]
    configured = {(of, at): cap_bytes for of, at, cap_bytes in settings.current().caps}
    of_version = [row for row in rows if _speaks_of(row.versions, version)]  # without a version, of all
    of_variant = [row for row in of_version if row.variant == variant]
    chosen = of_variant or [row for row in of_version if not row.variant]
    cap_bytes = _told(configured, runtime, boundary, chosen)
    if cap_bytes is None and not (any(row.cumulative for row in rows) if rows else boundary == "history"):
        cap_bytes = configured.get((runtime, "payload"))
    if cap_bytes is not None:
        return EffectiveCap(cap_bytes, "configured")
    # Caps of this variant sort last, so that they replace caps of all variants.
    discovered = sorted(_discovered.copy().items(), key=lambda item: item[0][2] is not None)
    of_this = {(of, at): told for (of, at, what), told in discovered if what in (None, variant)}
    cap_bytes = _told(of_this, runtime, boundary, chosen)
    if cap_bytes is not None:
        return EffectiveCap(cap_bytes, "discovered")
    known = [
        EffectiveCap(row.bytes, "inferred" if row.confidence == "inferred" else "table")
        for row in chosen
        if row.bytes is not None
    ]
    return min(known, default=None)


def _told(said: Mapping[_Boundary, int], runtime: str, boundary: str, rows: Iterable[Cap]) -> int | None:
    """Return the override for this boundary, or derive it from the boundary it scales with."""
    cap_bytes = said.get((runtime, boundary))
    if cap_bytes is not None:
        return cap_bytes
    shares = [int(row.share * said[runtime, row.share_of]) for row in rows if (runtime, row.share_of) in said]
    return min(shares, default=None)


def _speaks_of(versions: str, version: str | None) -> bool:
    release = _release(version or "")
    if versions == "*" or release is None:
        return True
    clauses = re.findall(r"([<>=!]+)\s*([\d.]+)", versions)
    return all(_COMPARISONS[sign](release, _release(number) or ()) for sign, number in clauses)


def _release(version: str) -> tuple[int, ...] | None:
    """Return the numbers of a version without trailing zeros; a pre-release counts as its release."""
    match = re.match(r"v?(\d+(?:\.\d+)*)", version)
    if match is None:
        return None
    numbers = [int(number) for number in match[1].split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)
