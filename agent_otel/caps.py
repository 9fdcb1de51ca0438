"""Payload caps of durable runtimes: the typed rows of ``caps.toml``. All sizes are bytes."""

from __future__ import annotations

import functools
import json
import pkgutil
from typing import Any, Final, NamedTuple

# Read with the module: an event loop may ask for the first cap.
_TABLES: Final[dict[str, Any]] = json.loads(pkgutil.get_data("agent_otel", "caps.json") or "{}")
#: Bytes of a response that carries results, by the variable that the platform sets.
TRANSPORTS: Final[dict[str, int]] = _TABLES["transports"]
#: Bytes of a result that hosts of MCP servers pass on to their models, by the name of their client.
HOSTS: Final[dict[str, int]] = _TABLES["hosts"]


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
    return tuple(Cap(*row) for row in _TABLES["caps"])
