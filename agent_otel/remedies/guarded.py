"""Writing a result to the store, so that neither a slow nor a broken store is ever noticed by the agent.

The outcome is known when the call returns, within the budget: stored, or not stored and why.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from agent_otel import _shield
from agent_otel.remedies.breaker import Breaker
from agent_otel.remedies.raw import BINARY, TEXT
from agent_otel.remedies.stores.base import TooLargeError
from agent_otel.remedies.workers import Workers, is_in_asyncio

if TYPE_CHECKING:
    from concurrent.futures import Future

    from agent_otel.remedies.claims import Claims
    from agent_otel.remedies.envelope import Origin
    from agent_otel.remedies.references import Reference

DAY_SECONDS = 86_400.0
BUDGET_SECONDS = 0.25

_FAILED: Final = (
    "The store of the claim check failed: until it is back, of results that do not fit into the next payload the model "
    "gets the beginning, and the rest is lost."
)

_workers = Workers("claim-check", 8)


class Stored(NamedTuple):
    """A result is in the store; ``reference`` is what to exchange for it, ``size`` its bytes."""

    reference: Reference
    size: int


class NotStored(NamedTuple):
    """A result is not in the store.

    ``timeout``: it was not there within the budget. ``error``: the store failed. ``open``: it has failed too often to
    be tried now. ``too_large``: it takes no value of this size. ``no_owner``: nobody would be allowed to read it.
    """

    reason: Literal["timeout", "error", "open", "too_large", "no_owner"]


class ClaimWriter:
    """Writes results, each within ``budget`` seconds, to be kept for ``ttl`` seconds.

    At most eight threads write, and the rest waits for them, within its budget. A write that hangs keeps its thread
    until the store lets go of it. What it then still stores nobody has a reference to; should another attempt at the
    same call have stored something else by then, that one's reference is not found any more, never mistaken.
    """

    def __init__(
        self,
        claims: Claims,
        *,
        budget: float = BUDGET_SECONDS,
        ttl: float = DAY_SECONDS,
        breaker: Breaker | None = None,
        workers: Workers = _workers,
    ) -> None:
        self._claims = claims
        self._budget = budget
        self._ttl = ttl
        self._breaker = breaker or Breaker()
        self._workers = workers

    def put(
        self, data: bytes | str, origin: Origin, *, content_type: str | None = None, truncated: bool = False
    ) -> Stored | NotStored:
        """Store a result; ``truncated``: it had been cut before. Waits for the budget at most; never raises."""
        started = time.perf_counter()
        try:
            refused = self._refused(origin)
            if refused is None:
                writing = self._workers.submit(lambda: self._write(data, origin, content_type, truncated=truncated))
                with contextlib.suppress(FutureTimeoutError):
                    writing.result(self._budget)
            return self._concluded(refused or _outcome(writing), started)
        except Exception:
            _shield.failed("remedies.claim_check")
            return NotStored("error")

    async def aput(
        self, data: bytes | str, origin: Origin, *, content_type: str | None = None, truncated: bool = False
    ) -> Stored | NotStored:
        """Store a result as ``put`` does, while asyncio's event loop goes on; another kind of loop waits."""
        if not is_in_asyncio():
            return self.put(data, origin, content_type=content_type, truncated=truncated)
        started = time.perf_counter()
        try:
            refused = self._refused(origin)
            if refused is None:
                writing = self._workers.submit(lambda: self._write(data, origin, content_type, truncated=truncated))
                waiting = asyncio.wrap_future(writing)
                waiting.add_done_callback(_seen)
                await asyncio.wait((waiting,), timeout=self._budget)
            return self._concluded(refused or _outcome(writing), started)
        except Exception:
            _shield.failed("remedies.claim_check")
            return NotStored("error")

    def _refused(self, origin: Origin) -> NotStored | None:
        if not origin.owner:
            return NotStored("no_owner")
        return None if self._breaker.allows() else NotStored("open")

    def _write(
        self, data: bytes | str, origin: Origin, content_type: str | None, *, truncated: bool
    ) -> Stored | NotStored:
        """Store a result, in a thread of the workers."""
        is_text = isinstance(data, str)
        raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else bytes(data)
        sealed = self._claims.sealed(
            raw,
            origin,
            content_type=content_type or (TEXT if is_text else BINARY),
            encoding="utf-8" if is_text else None,
            truncated=truncated,
            ttl=self._ttl,
        )
        try:
            self._claims.store.put(sealed.reference.key, sealed.data, self._ttl)
        except TooLargeError:
            return NotStored("too_large")
        except Exception as error:
            _shield.say_once("claim check", f"{_FAILED} {error}")
            return NotStored("error")
        return Stored(sealed.reference, len(raw))

    def _concluded(self, outcome: Stored | NotStored, started: float) -> Stored | NotStored:
        if isinstance(outcome, Stored):
            self._breaker.succeeded()
            self._claims.report("put", "ok", outcome.size, started)
        elif outcome.reason in ("timeout", "error"):
            self._breaker.failed()
            self._claims.report("put", outcome.reason, 0, started)
        else:
            self._claims.report("put", "open" if outcome.reason == "open" else "error", 0, started)
        return outcome


def _outcome(writing: Future[Stored | NotStored]) -> Stored | NotStored:
    """What has come of a write by now; one that has not begun is taken back."""
    if writing.cancel() or not writing.done():
        return NotStored("timeout")
    return writing.result()


def _seen(waiting: asyncio.Future[Stored | NotStored]) -> None:
    """Keep asyncio from logging a failure that is told already."""
    if not waiting.cancelled():
        waiting.exception()
