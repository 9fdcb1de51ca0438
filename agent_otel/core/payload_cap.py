"""The cap that a payload meets: configured, as the runtime itself says, or from the table of `agent_otel.caps`.

A cap is looked up by runtime and boundary. ``AGENT_OTEL_CAPS`` goes before what the runtime told an adapter
(``discover``), and that before the table. All sizes are bytes.
"""

from __future__ import annotations

import operator
import re
from typing import TYPE_CHECKING, NamedTuple

from agent_otel import settings
from agent_otel._internal import setting_kinds
from agent_otel.caps import payload_caps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from agent_otel.caps import Cap

_COMPARISONS: dict[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}


class Held(NamedTuple):
    """The cap that a payload is held against, in bytes.

    ``source`` is ``configured``, ``discovered``, ``table``, or ``inferred`` for a row of the table that nobody has
    seen in force.
    """

    bytes: int
    source: str


_Boundary = tuple[str, str]

# A look-up is on the path of every payload. What changes the answers puts a new dictionary here, so that an answer
# found meanwhile goes into the old one and is forgotten with it.
_found: dict[tuple[str, str, str | None, str | None], Held | None] = {}
_discovered: dict[tuple[str, str, str | None], int] = {}


def cap_for(runtime: str, boundary: str, version: str | None = None, variant: str | None = None) -> Held | None:
    """Return the cap of a runtime at a boundary, or None where none is known.

    ``version`` is that of what the table's ``versions`` speak of: the server or sidecar, else the library. Without it
    the smallest cap of any version counts. Without ``variant`` only rows without one count.
    """
    found = _found
    key = (runtime, boundary, version, variant)
    try:
        return found[key]
    except KeyError:
        held = found[key] = _look_up(runtime, boundary, version, variant)
        return held


def discover(runtime: str, boundary: str, cap_bytes: int, variant: str | None = None) -> None:
    """Take a cap that the runtime told of itself, or of one variant of it.

    An unknown boundary or an impossible size is ignored.
    """
    global _found  # noqa: PLW0603 - the answers so far are no longer true
    if boundary not in setting_kinds.BOUNDARIES or not isinstance(cap_bytes, int):
        return
    if not 0 < cap_bytes <= setting_kinds.LARGEST_BYTES:
        return
    if _discovered.get((runtime, boundary, variant)) != cap_bytes:
        _discovered[runtime, boundary, variant] = cap_bytes
        _found = {}


def _look_up(runtime: str, boundary: str, version: str | None, variant: str | None) -> Held | None:
    rows = [cap for cap in payload_caps() if (cap.runtime, cap.boundary) == (runtime, boundary)]
    configured = {(of, at): cap_bytes for of, at, cap_bytes in settings.current().caps}
    chosen = _choose(rows, version, variant)
    cap_bytes = _told(configured, runtime, boundary, chosen)
    if cap_bytes is None and not _is_cumulative(boundary, rows):
        cap_bytes = configured.get((runtime, "payload"))
    if cap_bytes is not None:
        return Held(cap_bytes, "configured")
    # What was told of this variant comes last and goes before what was told of all.
    discovered = sorted(_discovered.copy().items(), key=lambda item: item[0][2] is not None)
    of_this = {(of, at): told for (of, at, what), told in discovered if what in (None, variant)}
    cap_bytes = _told(of_this, runtime, boundary, chosen)
    if cap_bytes is not None:
        return Held(cap_bytes, "discovered")
    known = [
        Held(row.bytes, "inferred" if row.confidence == "inferred" else "table")
        for row in chosen
        if row.bytes is not None
    ]
    return min(known, default=None)


def _choose(rows: Iterable[Cap], version: str | None, variant: str | None) -> list[Cap]:
    """The rows that speak of this version and variant; several when the version is not known."""
    rows = [row for row in rows if _speaks_of(row.versions, version)]
    return [row for row in rows if row.variant == variant] or [row for row in rows if not row.variant]


def _told(said: Mapping[_Boundary, int], runtime: str, boundary: str, rows: Iterable[Cap]) -> int | None:
    """What was said of this boundary, or of the one that its cap is a share of."""
    cap_bytes = said.get((runtime, boundary))
    if cap_bytes is not None:
        return cap_bytes
    shares = [int(row.share * said[runtime, row.share_of]) for row in rows if (runtime, row.share_of) in said]
    return min(shares, default=None)


def _is_cumulative(boundary: str, rows: list[Cap]) -> bool:
    return any(row.cumulative for row in rows) if rows else boundary == "history"


def _speaks_of(versions: str, version: str | None) -> bool:
    release = _release(version or "")
    if versions == "*" or release is None:
        return True
    clauses = re.findall(r"([<>=!]+)\s*([\d.]+)", versions)
    return all(_COMPARISONS[sign](release, _release(number) or ()) for sign, number in clauses)


def _release(version: str) -> tuple[int, ...] | None:
    """The numbers of a version without zeros at the end; a pre-release counts as its release."""
    match = re.match(r"v?(\d+(?:\.\d+)*)", version)
    if match is None:
        return None
    numbers = [int(number) for number in match[1].split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)
