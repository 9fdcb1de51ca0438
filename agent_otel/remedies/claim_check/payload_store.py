"""Whole payloads of a durable runtime in the store of the claim check, for the runtime's storage drivers.

A tool result that cannot be stored goes on in another form; a payload moved out of a history exists nowhere else.
Therefore payloads have a longer TTL and a longer timeout, failures are raised, and a key is required.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import weakref
from typing import TYPE_CHECKING, Final

from agent_otel import settings
from agent_otel._internal.daemon_pool import Workers
from agent_otel._internal.errors import ours
from agent_otel.remedies.claim_check.envelope import Origin
from agent_otel.remedies.claim_check.keys import Claims
from agent_otel.remedies.claim_check.policy import report
from agent_otel.remedies.claim_check.reader import ClaimReader
from agent_otel.remedies.claim_check.references import BadReferenceError, Reference, Reserved
from agent_otel.remedies.claim_check.serialization import BINARY
from agent_otel.remedies.claim_check.stores import NotFoundError, StoreError, open_store
from agent_otel.remedies.claim_check.stores.base import said
from agent_otel.settings.kinds import KEYS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future

    from agent_otel.remedies.claim_check.stores import ClaimStore

KEEP_SECONDS: Final = 30 * 86_400.0
"""TTL of a payload from each write: the history that refers to it has to end before."""

TIMEOUT_SECONDS: Final = 10.0

#: All payloads have one owner, which no execution's id can equal: access to the history gives access to its payloads.
_OWNER: Final = Reserved("payloads")

#: Payloads that wait for a thread, each as long as its timeout: a runtime hands over those of all its tasks at once.
_MOST_WAITING: Final = 16_384

_workers = Workers("payloads", 8, _MOST_WAITING)
_reading = Workers("payloads-read", 8, _MOST_WAITING)

#: The payload stores that this process uses, for erasing an execution.
opened: Final[weakref.WeakSet[Claims]] = weakref.WeakSet()


class Payloads:
    """Writer and reader of payloads; a read returns every byte as written or fails."""

    def __init__(self, claims: Claims, *, keep_seconds: float, timeout: float) -> None:
        self._claims = claims
        opened.add(claims)
        self._keep_seconds = keep_seconds
        self._timeout = timeout
        self._reader = ClaimReader(claims, timeout=timeout, workers=_reading)

    def put(self, data: bytes, execution: str, node: str) -> Reference:
        """Store a payload of a node in an execution; an equal payload has the same key. Raises StoreError."""
        with self._writing(data, execution, node) as writing:
            return writing.result(self._timeout)

    async def aput(self, data: bytes, execution: str, node: str) -> Reference:
        """Store a payload as `put` does, without blocking asyncio's event loop."""
        with self._writing(data, execution, node) as writing:
            return await asyncio.wait_for(asyncio.wrap_future(writing), self._timeout)

    def get(self, reference: str) -> bytes:
        """Return a payload; NotFoundError when it expired or has another key, StoreError when the store fails."""
        try:
            return self._reader.resolve(reference, caller=_OWNER).data
        except NotFoundError:
            raise self._gone(reference) from None

    async def aget(self, reference: str) -> bytes:
        """Return a payload as `get` does, without blocking asyncio's event loop."""
        try:
            return (await self._reader.aresolve(reference, caller=_OWNER)).data
        except NotFoundError:
            raise self._gone(reference) from None

    def knows(self, text: str) -> bool:
        """Return True for a reference that was sealed with this key."""
        try:
            return self._claims.signer.vouches(Reference.parse(text), _OWNER)
        except BadReferenceError:
            return False

    @contextlib.contextmanager
    def _writing(self, data: bytes, execution: str, node: str) -> Iterator[Future[Reference]]:
        """Let a thread store a payload, and report how that ended; a failure is a StoreError."""
        started = time.perf_counter()
        try:
            writing = _workers.submit(lambda: self._write(data, execution, node))
        except ours(RuntimeError) as error:
            raise StoreError(f"a payload could not be stored: {said(error)}") from error
        try:
            yield writing
        except ours(Exception) as error:
            timed_out = writing.cancel() or not writing.done()
            self._claims.report("put", "timeout" if timed_out else "error", 0, started)
            if timed_out:
                raise StoreError(f"a payload could not be stored: no answer within {self._timeout:g} s") from None
            raise StoreError(f"a payload could not be stored: {said(error)}") from error
        self._claims.report("put", "ok", len(data), started)

    def _write(self, data: bytes, execution: str, node: str) -> Reference:
        """Store a payload, in a worker thread."""
        call = self._claims.signer.seal("payload", data)
        origin = Origin(_OWNER, execution, node, "payload", call)
        sealed = self._claims.sealed(data, origin, content_type=BINARY, ttl=self._keep_seconds)
        self._claims.store.put(sealed.reference.key, sealed.data, self._keep_seconds)
        return sealed.reference

    def _gone(self, reference: str) -> NotFoundError:
        return NotFoundError(
            f"the payload {reference[:200]} is not in the store: it was kept for {self._keep_seconds:g} s, or "
            f"AGENT_OTEL_CLAIM_CHECK_KEY was another one"
        )


def open_payloads(store: str | ClaimStore | None, key: str | None, keep_seconds: float, timeout: float) -> Payloads:
    """Open a store by its URL; None means ``AGENT_OTEL_CLAIM_CHECK`` and ``AGENT_OTEL_CLAIM_CHECK_KEY``.

    Raises ValueError without a store or a key: without a key, no process could read the payloads after a restart.
    Raises StoreError when the URL names no store, or its library is not installed.
    """
    chosen = settings.current()
    wanted, secret = store or chosen.claim_check, key or chosen.claim_check_key
    if not wanted:
        raise ValueError("no store is named: give the URL of one, or set AGENT_OTEL_CLAIM_CHECK")
    if not secret:
        raise ValueError("no key is given: without AGENT_OTEL_CLAIM_CHECK_KEY a restart would lose every payload")
    try:
        secret = KEYS.parse(secret)
    except ours(ValueError) as error:
        raise ValueError(f"the key is not {error}") from None
    if not (keep_seconds > 0 and timeout > 0):
        raise ValueError("keep_seconds and timeout are above 0")
    opened = open_store(wanted, timeout) if isinstance(wanted, str) else wanted
    claims = Claims(
        opened,
        key=secret,
        encryption_key=chosen.claim_check_encryption_key,
        tenant=chosen.claim_check_tenant,
        report=report,
    )
    return Payloads(claims, keep_seconds=keep_seconds, timeout=timeout)
