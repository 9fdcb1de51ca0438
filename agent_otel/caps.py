"""Payload caps of durable runtimes and truncation cliffs, as data: ``caps.toml``, typed. All sizes are bytes."""

from __future__ import annotations

import functools
import importlib.resources
import sys
from dataclasses import dataclass


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


def payload_caps() -> tuple[Cap, ...]:
    """Return every known cap, in the order of ``caps.toml``."""
    return _tables()[0]


def cliffs() -> tuple[Cliff, ...]:
    """Return every known truncation cliff, in the order of ``caps.toml``."""
    return _tables()[1]


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
