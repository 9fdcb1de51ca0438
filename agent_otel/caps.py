"""Payload caps of durable runtimes: the typed rows of ``caps.toml``. All sizes are bytes."""

from __future__ import annotations

import functools
from typing import NamedTuple

from agent_otel._internal import cap_table


class Cap(NamedTuple):
    """The largest payload that a runtime accepts at one boundary.

    ``bytes`` is the largest accepted size, or None where there is no cap. ``warn_bytes`` is the size from which the
    runtime itself warns. ``versions`` are comma-separated comparisons (``>=1.17.7,<1.18``) or ``*``. ``variant`` is the
    backend, broker or plan of the row; a row without one applies where no more specific row does. ``cumulative`` caps
    limit all payloads of an execution together. The cap of a row with ``share_of`` is ``share`` times the runtime's
    cap at that boundary. ``confidence`` is ``ran``, ``read`` or ``inferred``. ``error`` is the message that a user
    sees, ``setting`` the runtime's setting that changes the cap, and ``source`` the vendor's document or source code.
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


@functools.lru_cache(maxsize=1)
def payload_caps() -> tuple[Cap, ...]:
    """Return all caps, in the order of ``caps.toml``."""
    return tuple(Cap(*row) for row in cap_table.CAPS)
