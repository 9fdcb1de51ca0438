"""Writing of results to the store: a slow or broken store costs the agent its time budget at most."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from agent_otel._internal import errors, fork
from agent_otel._internal.daemon_pool import BusyError, Workers, run_now, settled
from agent_otel.remedies.claim_check.serialization import Content
from agent_otel.remedies.claim_check.stores.base import TooLargeError, said

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel._internal.daemon_pool import Job
    from agent_otel.remedies.claim_check.envelope import Claims, Origin, Reference


class Breaker:
    """Circuit breaker that opens after failures in a row, without a lock, which a fork could leave locked."""

    def __init__(self, failures: int = 3, seconds: float = 10.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = failures
        self._seconds = seconds
        self._clock = clock
        self._failures = 0
        self._retry_at = 0.0

    def allows(self) -> bool:
        """Return True when an attempt is allowed."""
        if self._failures < self._most:
            return True
        now = self._clock()
        if now < self._retry_at:
            return False
        self._retry_at = now + self._seconds
        return True

    def succeeded(self) -> None:
        """Close the circuit."""
        self._failures = 0

    def failed(self) -> None:
        """Count a failure; the last allowed one opens the circuit."""
        self._failures += 1
        self._retry_at = self._clock() + self._seconds


DAY_SECONDS = 86_400.0
BUDGET_SECONDS = 0.25
MAX_BYTES = 32 * 1024 * 1024

_QUICK_BYTES: Final = 1024 * 1024
#: A large write does not start while this many threads run writes beyond their budgets: small writes need threads, too.
_MOST_LATE: Final = 4
_NODE_DIGITS: Final = 16
_FAILED: Final = (
    "The store of the claim check failed: until it is back, the model gets the beginning of a large result, and the "
    "rest is lost."
)
_NO_OWNER: Final = (
    "A result is not stored, because it belongs to no execution and nobody would be allowed to read it; it goes on "
    "whole. Name an execution with agent_otel.execution, or give the framework a thread or session id."
)

_workers = Workers("claim-check", 8)


class Stored(NamedTuple):
    """A stored result: its reference, its size in bytes and its text."""

    reference: Reference
    size: int
    text: str | None = None


Reason = Literal["timeout", "error", "open", "too_large", "no_owner"]


class NotStored(NamedTuple):
    """The reason why a result is not stored; ``no_owner``: no caller would be allowed to read it."""

    reason: Reason


@dataclass(eq=False, slots=True)
class _Write:
    """A write, shared by the thread that does it and the call that waits for it."""

    content: Content | None
    origin: Origin
    is_distinct: bool
    #: Breaker that counts a timeout of this write; None for a write that has not reached the store.
    breaker: Breaker | None = None


class ClaimWriter:
    """Writer of results within ``budget`` seconds each; a write that hangs keeps one of eight threads."""

    def __init__(  # noqa: PLR0913 - the knobs of writing
        self,
        claims: Claims,
        *,
        budget: float = BUDGET_SECONDS,
        ttl: float = DAY_SECONDS,
        max_bytes: int = MAX_BYTES,
        breaker: Breaker | None = None,
        large_breaker: Breaker | None = None,
        workers: Workers = _workers,
    ) -> None:
        self._claims = claims
        self._budget = budget
        self._ttl = ttl
        self._max_bytes = max_bytes
        self._breaker = breaker or Breaker()
        self._large_breaker = large_breaker or Breaker()
        self._workers = workers
        self._late: set[Job[Stored | NotStored]] = set()
        fork.after_fork(self._late.clear)

    def put(self, data: Content | bytes | str, origin: Origin, *, distinct: bool = False) -> Stored | NotStored:
        """Store a result within the budget; never raises. ``distinct`` adds a digest of it to the origin's node."""
        return run_now(self.aput(data, origin, distinct=distinct, blocks=True))

    async def aput(
        self, data: Content | bytes | str, origin: Origin, *, distinct: bool = False, blocks: bool = False
    ) -> Stored | NotStored:
        """Store a result as ``put`` does, without blocking asyncio's event loop; any other event loop blocks."""
        started = time.perf_counter()
        try:
            content = data if isinstance(data, Content) else Content(data, len(data))
            refused = self._refused(content, origin)
            if refused is not None:
                return self._reported(NotStored(refused), started)
            write = _Write(content, origin, distinct)
            writing = self._workers.submit(lambda: self._write(write))
            try:
                await settled(writing, self._budget, blocks=blocks)
            finally:
                is_late = self._give_up(writing, write)
            return self._concluded(NotStored("timeout") if is_late else writing.result(), write, started)
        except BusyError:
            return self._reported(NotStored("timeout"), started)
        except errors.ours(Exception):
            errors.report_error("remedies.claim_check")
            return NotStored("error")

    def _refused(self, content: Content, origin: Origin) -> Reason | None:
        """Return the reason why a write is not tried."""
        if not origin.owner:
            errors.warn_once("claim check owner", _NO_OWNER)
            return "no_owner"
        if content.least_bytes > self._max_bytes:
            return "too_large"
        return None if self._breaker.allows() else "open"

    def _write(self, write: _Write) -> Stored | NotStored:
        """Store a result, in a worker thread."""
        origin, raw = write.origin, None if write.content is None else write.content.raw()
        write.content = None  # a hanging store keeps its own copy only
        if raw is None or not raw.is_whole or len(raw.data) > self._max_bytes:
            return NotStored("too_large")
        is_large = len(raw.data) > _QUICK_BYTES
        if is_large and (len(self._late) >= _MOST_LATE or not self._large_breaker.allows()):
            return NotStored("open")
        if write.is_distinct:
            # The digest is keyed, because it leaves the process in the reference.
            seal = self._claims.signer.seal("node", origin.tool.encode("utf-8", "surrogatepass"), raw.data)
            origin = origin._replace(node=f"{origin.node}-{seal[:_NODE_DIGITS]}")
        reference, stored = self._claims.sealed(
            raw.data,
            self._claims.apart(origin),
            content_type=raw.content_type,
            encoding=None if raw.text is None else "utf-8",
            ttl=self._ttl,
        )
        write.breaker = self._large_breaker if is_large else self._breaker
        try:
            self._claims.store.put(reference.key, stored, self._ttl)
        except TooLargeError:
            return NotStored("too_large")
        except errors.ours(Exception) as error:
            errors.warn_once("claim check", f"{_FAILED} {said(error)}")
            return NotStored("error")
        return Stored(reference, len(raw.data), raw.text)

    def _give_up(self, writing: Job[Stored | NotStored], write: _Write) -> bool:
        """Return True when a write has no outcome yet: it is cancelled, or watched if it has begun."""
        if writing.cancel():
            return True
        if writing.done():
            return False
        self._late.add(writing)
        writing.add_done_callback(lambda _: self._arrived_late(writing, write))
        return True

    @errors.guarded("remedies.claim_check")
    def _arrived_late(self, writing: Job[Stored | NotStored], write: _Write) -> None:
        self._late.discard(writing)
        if writing.exception() is None and isinstance(writing.result(), Stored):
            self._succeeded(write)

    def _concluded(self, outcome: Stored | NotStored, write: _Write, started: float) -> Stored | NotStored:
        if isinstance(outcome, Stored):
            self._succeeded(write)
        elif outcome.reason in ("timeout", "error"):
            is_slow = time.perf_counter() - started >= self._budget
            breaker = write.breaker if is_slow else self._breaker
            if breaker is not None:
                breaker.failed()
        return self._reported(outcome, started)

    def _succeeded(self, write: _Write) -> None:
        """Close what a write speaks for: one above 1 MiB for all."""
        self._breaker.succeeded()
        if write.breaker is self._large_breaker:
            self._large_breaker.succeeded()

    def _reported(self, outcome: Stored | NotStored, started: float) -> Stored | NotStored:
        if isinstance(outcome, Stored):
            self._claims.report("put", "ok", outcome.size, started)
        else:
            self._claims.report("put", "skipped" if outcome.reason == "no_owner" else outcome.reason, 0, started)
        return outcome
