"""Whole payloads of a durable runtime in the store of the claim check, for the drivers that a runtime asks.

A tool's result that cannot be stored goes on in another way; a payload that is moved out of a history is nowhere else.
So it is kept for longer, the store is waited for longer, what fails is said, and a key is wanted.
"""

from __future__ import annotations

import asyncio
import time
import weakref
from typing import TYPE_CHECKING, Final, NoReturn

from agent_otel import settings
from agent_otel._internal.daemon_pool import Workers
from agent_otel._internal.setting_kinds import KEYS
from agent_otel.remedies.claim_check.envelope import Origin
from agent_otel.remedies.claim_check.keys import Claims
from agent_otel.remedies.claim_check.policy import report
from agent_otel.remedies.claim_check.reader import ClaimReader
from agent_otel.remedies.claim_check.references import BadReferenceError, Reference, Reserved
from agent_otel.remedies.claim_check.serialization import BINARY
from agent_otel.remedies.claim_check.stores import NotFoundError, StoreError, open_store

if TYPE_CHECKING:
    from concurrent.futures import Future

    from agent_otel.remedies.claim_check.stores import ClaimStore

KEEP_SECONDS: Final = 30 * 86_400.0
"""For so long a payload is kept, from each write: the history that refers to it has to end before."""

TIMEOUT_SECONDS: Final = 10.0

#: Who has the history may have what was in it: all payloads have one owner, which is no execution's id.
_OWNER: Final = Reserved("payloads")

_workers = Workers("payloads", 8)

#: The stores of payloads that this process uses, for who erases an execution.
opened: Final[weakref.WeakSet[Claims]] = weakref.WeakSet()


class Payloads:
    """Puts payloads into a store and gets them back, byte for byte or not at all."""

    def __init__(self, claims: Claims, *, keep_seconds: float, timeout: float) -> None:
        self._claims = claims
        opened.add(claims)
        self._keep_seconds = keep_seconds
        self._timeout = timeout
        self._reader = ClaimReader(claims, timeout=timeout)

    def put(self, data: bytes, execution: str, node: str) -> Reference:
        """Store a payload of a node in an execution, again under the same key when it is the same; StoreError."""
        started = time.perf_counter()
        writing = self._begin(data, execution, node)
        try:
            stored = writing.result(self._timeout)
        except Exception as error:
            self._failed(error, writing, started)
        self._claims.report("put", "ok", len(data), started)
        return stored

    async def aput(self, data: bytes, execution: str, node: str) -> Reference:
        """As `put`, while asyncio's event loop goes on."""
        started = time.perf_counter()
        writing = self._begin(data, execution, node)
        try:
            stored = await asyncio.wait_for(asyncio.wrap_future(writing), self._timeout)
        except Exception as error:
            self._failed(error, writing, started)
        self._claims.report("put", "ok", len(data), started)
        return stored

    def get(self, reference: str) -> bytes:
        """Return a payload; NotFoundError when it is gone or was stored with another key, StoreError."""
        try:
            return self._reader.resolve(reference, caller=_OWNER).data
        except NotFoundError:
            raise self._gone(reference) from None

    async def aget(self, reference: str) -> bytes:
        """As `get`, while asyncio's event loop goes on."""
        try:
            return (await self._reader.aresolve(reference, caller=_OWNER)).data
        except NotFoundError:
            raise self._gone(reference) from None

    def knows(self, text: str) -> bool:
        """Whether a text is a reference that was made here, or by whoever has the same key."""
        try:
            return self._claims.signer.vouches(Reference.parse(text), _OWNER)
        except BadReferenceError:
            return False

    def _begin(self, data: bytes, execution: str, node: str) -> Future[Reference]:
        try:
            return _workers.submit(lambda: self._write(data, execution, node))
        except RuntimeError as error:
            raise StoreError(f"a payload could not be stored: {error}") from error

    def _write(self, data: bytes, execution: str, node: str) -> Reference:
        """Store a payload, in a thread of the workers."""
        call = self._claims.signer.seal("payload", data)
        origin = Origin(_OWNER, execution, node, "payload", call)
        sealed = self._claims.sealed(data, origin, content_type=BINARY, ttl=self._keep_seconds)
        self._claims.store.put(sealed.reference.key, sealed.data, self._keep_seconds)
        return sealed.reference

    def _failed(self, error: Exception, writing: Future[Reference], started: float) -> NoReturn:
        timed_out = writing.cancel() or not writing.done()
        self._claims.report("put", "timeout" if timed_out else "error", 0, started)
        if timed_out:
            raise StoreError(f"a payload could not be stored: no answer within {self._timeout:g} s") from None
        raise StoreError(f"a payload could not be stored: {error}") from error

    def _gone(self, reference: str) -> NotFoundError:
        return NotFoundError(
            f"the payload {reference[:200]} is not in the store: it was kept for {self._keep_seconds:g} s, or "
            f"AGENT_OTEL_CLAIM_CHECK_KEY was another one"
        )


def open_payloads(store: str | ClaimStore | None, key: str | None, keep_seconds: float, timeout: float) -> Payloads:
    """Open a store by its URL; None is what ``AGENT_OTEL_CLAIM_CHECK`` and ``AGENT_OTEL_CLAIM_CHECK_KEY`` say.

    ValueError where neither names a store and a key: without one, nobody could read the payloads after a restart.
    StoreError when the URL names no store, or its library is not installed.
    """
    chosen = settings.current()
    wanted, secret = store or chosen.claim_check, key or chosen.claim_check_key
    if not wanted:
        raise ValueError("no store is named: give the URL of one, or set AGENT_OTEL_CLAIM_CHECK")
    if not secret:
        raise ValueError("no key is given: without AGENT_OTEL_CLAIM_CHECK_KEY a restart would lose every payload")
    try:
        secret = KEYS.parse(secret)
    except ValueError as error:
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
