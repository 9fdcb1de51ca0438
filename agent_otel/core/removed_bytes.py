"""Bytes that remedies keep out of requests: those missing in their results, and those taken out of their history."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_otel.telemetry.setup import Telemetry

_next: ContextVar[Mapping[str, int] | None] = ContextVar("agent_otel_removed_bytes", default=None)


def removed(out: Telemetry, strategy: str, removed_bytes: int, counted_bytes: int = 0) -> None:
    """Count the bytes that a remedy takes out of the request that is about to be sent.

    ``counted_bytes`` are those of them that the metric has already.
    """
    out.metrics.removed(strategy, max(removed_bytes - counted_bytes, 0))
    _next.set({**(_next.get() or {}), strategy: removed_bytes})


def of_request(in_results: Mapping[str, int]) -> Mapping[str, int]:
    """Return the bytes by remedy that a request lacks; ``in_results`` are those of the results in it."""
    own = _next.get()
    if own is None:
        return in_results
    _next.set(None)
    return {name: in_results.get(name, 0) + own.get(name, 0) for name in {*in_results, *own}}
