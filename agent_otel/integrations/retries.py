"""Retries of an SDK: the functions by which it sends a refused request again, behind the measured one.

Other calls of the process learn of a refusal at the first attempt, and further attempts wait for the refusals of all.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from agent_otel._internal.daemon_pool import is_in_asyncio
from agent_otel.core.remedy_hooks import attempt_refused, retry_delay
from agent_otel.integrations.hooks import Hook, Passing, revising

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.core.types import Invocation


def refused(response: Callable[[Invocation], Any]) -> Hook:
    """Return the hook before a function that decides about another attempt; ``response`` returns the refusal."""
    return Hook(before=lambda invocation: attempt_refused(response(invocation)))


def delay(response: Callable[[Invocation], Any] | None = None) -> Passing:
    """Return the reader of a function that returns the seconds before another attempt.

    ``response`` returns the refusal, where this function is the first that has it.
    """

    def longer(invocation: Invocation, seconds: float) -> float:
        if response is not None:
            attempt_refused(response(invocation))
        return retry_delay(seconds)

    return revising(longer)


def blocking(response: Callable[[Invocation], Any]) -> Hook:
    """Return the hook around a function that waits itself, and returns True when there is another attempt."""

    def before(invocation: Invocation) -> bool:
        attempt_refused(response(invocation))
        return True

    def after(_: Invocation, goes_on: Any, __: BaseException | None) -> None:
        if goes_on is True and not is_in_asyncio():
            time.sleep(max(0.0, retry_delay(0.0)))

    return Hook(before, after)
