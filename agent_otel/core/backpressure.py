"""Registration of the remedy that lets model requests wait, by which the core calls it without importing it."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Protocol

from agent_otel import settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.core.sent_request import SentRequest
    from agent_otel.telemetry.setup import Telemetry


class Backpressure(Protocol):
    """Remedy that lets model requests wait for tokens and for rate limits."""

    def before_request(self, out: Telemetry, model: str | None, sent: SentRequest | None) -> None:
        """Wait before a model request; ``sent`` is None while only the layers below know the request."""

    async def abefore_request(self, out: Telemetry, model: str | None, sent: SentRequest | None) -> None:
        """Do the same as `before_request` without blocking the event loop."""

    def sent(self, sent: SentRequest) -> None:
        """Count a request that was sent without a reservation."""


#: Registered by `agent_otel.integrations.preload`.
make: Callable[[], Backpressure | None] | None = None


@functools.lru_cache(maxsize=1)
def backpressure() -> Backpressure | None:
    """Return the remedy that lets model requests wait; None when it is off."""
    return None if make is None or settings.current().tokens_per_minute is None else make()
