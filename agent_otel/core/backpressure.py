"""Registration of the remedy that lets model requests wait, by which the core calls it without importing it."""

from __future__ import annotations

import functools
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

from agent_otel import settings
from agent_otel._internal import errors

if TYPE_CHECKING:
    import weakref
    from collections.abc import Callable

    from agent_otel.core.model_tokens import Reservation, SentRequest
    from agent_otel.telemetry.setup import Telemetry


class Waiting(Protocol):
    """A request that a remedy sends itself, and its tokens."""

    @property
    def reservation(self) -> Reservation:
        """The tokens that are set aside for it."""

    async def over(self, most_seconds: float, *, blocks: bool) -> None:
        """Wait until it may be sent. Raises TimeoutError where that is later."""


class Backpressure(Protocol):
    """Remedy that lets model requests wait for tokens and for rate limits."""

    def before_request(self, out: Telemetry, model: str | None, sent: SentRequest | None) -> None:
        """Wait before a model request; ``sent`` is None while only the layers below know the request."""

    async def abefore_request(self, out: Telemetry, model: str | None, sent: SentRequest | None) -> None:
        """Do the same as `before_request` without blocking the event loop."""

    def sent(self, sent: SentRequest) -> None:
        """Count a request that was sent without a reservation."""

    def apart(self, model: str | None, tokens: int) -> Waiting:
        """Take the tokens of a request that a remedy sends itself."""


class Sending(Protocol):
    """A request that its SDK is sending, perhaps several times."""

    @property
    def reservation(self) -> Reservation | None:
        """The tokens that are set aside for it."""


#: The request that this task or thread is sending.
sending: ContextVar[weakref.ref[Sending] | None] = ContextVar("agent_otel_sending", default=None)

#: Registered by `agent_otel.integrations.preload`.
make: Callable[[], Backpressure | None] | None = None


@functools.lru_cache(maxsize=1)
def backpressure() -> Backpressure | None:
    """Return the remedy that lets model requests wait; None when it is off."""
    return None if make is None or settings.current().tokens_per_minute is None else make()


@errors.guarded("model_request.retry")
def attempt_refused(refused: Any) -> None:
    """Report a response, or an exception, after which an SDK may send the running request again."""
    reservation = _reservation()
    if reservation is not None:
        reservation.attempt_refused(refused)


def retry_delay(seconds: float) -> float:
    """Return the seconds before an SDK sends the running request again: its own, or more after refusals."""
    try:
        reservation = _reservation()
        return seconds if reservation is None else reservation.delay(seconds)
    except errors.ours(Exception):
        errors.report_error("model_request.retry")
        return seconds


def _reservation() -> Reservation | None:
    reference = sending.get()
    request = None if reference is None else reference()
    return None if request is None else request.reservation
