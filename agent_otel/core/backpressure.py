"""Registration of the remedy that lets model requests wait, by which the core calls it without importing it."""

from __future__ import annotations

import functools
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from agent_otel import settings
from agent_otel._internal import errors

if TYPE_CHECKING:
    import weakref
    from collections.abc import Callable


#: The request that this task or thread is sending; its ``reservation`` are the tokens that are set aside for it.
sending: ContextVar[weakref.ref[Any] | None] = ContextVar("agent_otel_sending", default=None)

#: Registered by `agent_otel.integrations.preload`.
make: Callable[[], Any] | None = None


@functools.lru_cache(maxsize=1)
def backpressure() -> Any:
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
    with errors.reported("model_request.retry"):
        reservation = _reservation()
        return seconds if reservation is None else reservation.delay(seconds)
    return seconds


def _reservation() -> Any:
    reference = sending.get()
    return getattr(None if reference is None else reference(), "reservation", None)
