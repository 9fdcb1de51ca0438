"""Payload caps of durable runtimes and truncation cliffs, as data: ``caps.toml``, typed.

A cap is looked up by runtime and boundary. What ``AGENT_OTEL_CAPS`` says goes before what the runtime itself told an
adapter (``discover``), and that before the table. All sizes are bytes.
"""

from __future__ import annotations

import functools
import importlib.resources
import operator
import re
import sys
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple, cast

from agent_otel import settings
from agent_otel._internal import setting_kinds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_COMPARISONS: dict[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cap:
    """The largest payload that a runtime takes at one boundary.

    ``bytes`` is the largest that passes, or None where there is no cap; ``warn_bytes`` is where the runtime itself
    begins to warn. ``versions`` are comma-separated comparisons (``>=1.17.7,<1.18``) or ``*``. ``variant`` is the
    backend, broker or plan that the row is true of, empty where nothing more special is known. ``cumulative`` caps
    are on all payloads of an execution together. A row with ``share_of`` scales with the runtime's cap of that
    boundary. ``confidence`` is ``ran``, ``read`` or ``inferred``; ``error`` is what a user sees, ``setting`` what
    changes it, ``source`` the owner's document or source code.
    """

    runtime: str
    boundary: str
    confidence: str
    error: str
    setting: str
    source: str
    bytes: int | None = None
    warn_bytes: int | None = None
    versions: str = "*"
    variant: str = ""
    cumulative: bool = False
    share_of: str = ""
    share: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cliff:
    """A place where tool results are cut on their way to the model or to a backend.

    ``limit`` is in ``unit`` (``characters``, ``bytes``, ``tokens``, ``lines`` or ``items``) and None where it is no
    fixed number. ``keeps`` says what is left, ``marker`` how the text says so, if it does.
    """

    project: str
    version: str
    where: str
    unit: str
    setting: str
    keeps: str
    confidence: str
    source: str
    limit: int | None = None
    marker: str = ""


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


def caps() -> tuple[Cap, ...]:
    """Return every known cap, in the order of ``caps.toml``."""
    return _tables()[0]


def cliffs() -> tuple[Cliff, ...]:
    """Return every known truncation cliff, in the order of ``caps.toml``."""
    return _tables()[1]


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
    rows = [cap for cap in caps() if (cap.runtime, cap.boundary) == (runtime, boundary)]
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


@functools.lru_cache(maxsize=1)
def _tables() -> tuple[tuple[Cap, ...], tuple[Cliff, ...]]:
    # Importing it takes 5 ms and reading the table as long: not before a payload or a person asks.
    if sys.version_info >= (3, 11):
        import tomllib  # noqa: PLC0415
    else:
        import tomli as tomllib  # noqa: PLC0415

    text = importlib.resources.files("agent_otel").joinpath("caps.toml").read_text(encoding="utf-8")
    tables = tomllib.loads(text)
    return tuple(Cap(**row) for row in tables["cap"]), tuple(Cliff(**row) for row in tables["cliff"])


class _Callable(ModuleType):
    """Makes ``agent_otel.caps()`` work: the import system binds that name to this module, not to the function."""

    __call__ = staticmethod(caps)
    cliffs = staticmethod(cliffs)
    cap_for = staticmethod(cap_for)
    discover = staticmethod(discover)


#: What ``agent_otel.caps`` is.
this = cast("_Callable", sys.modules[__name__])
this.__class__ = _Callable
