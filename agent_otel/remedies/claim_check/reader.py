"""Reading of stored results by their owners.

A reference that is forged, damaged, another owner's or older than the stored value, and a result that has expired or
never existed: all raise the same NotFoundError with the same message. The metrics distinguish them.
"""

from __future__ import annotations

import hmac
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

from agent_otel._internal.daemon_pool import Workers, run_now, settled
from agent_otel._internal.errors import ours
from agent_otel.remedies.claim_check.envelope import CHUNK_BYTES, HEADER_BYTES, CorruptError, current_owner
from agent_otel.remedies.claim_check.references import BadReferenceError, Reference, Reserved, owner_segment
from agent_otel.remedies.claim_check.stores.base import NotFoundError, StoreError, said

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.remedies.claim_check.envelope import Claims, Header, Operation, Result

_T = TypeVar("_T")

READ_SECONDS = 5.0

_workers = Workers("claim-check-read", 8)


class Place(NamedTuple):
    """The place of a result, for a caller without a reference."""

    execution: str
    node: str
    call: str


#: A reference, as text or object, or the place of a result.
What: TypeAlias = "str | Reference | Place"
#: The owner recorded when a result was written; None means the execution of the current call.
Caller: TypeAlias = "str | Reserved | None"


@dataclass(frozen=True)
class Resolved:
    """A stored result, or the requested part of it, with the header of the whole."""

    data: bytes
    header: Header

    @property
    def text(self) -> str | None:
        """The result as text; None for binary data. Characters that the part splits are replaced."""
        if self.header.encoding is None:
            return None
        whole = len(self.data) == self.header.bytes
        return self.data.decode(self.header.encoding, "surrogatepass" if whole else "replace")

    @property
    def content_type(self) -> str:
        """The stored media type."""
        return self.header.content_type


class ClaimReader:
    """Reader of results that waits for the store at most ``timeout`` seconds.

    ``what`` is a reference, as text or object, or a place. ``caller`` is the owner recorded when the result was
    written, from the server's own data, never from a client's; by default, the execution of the current call. Raises
    NotFoundError when this caller has no such result, StoreError when the store fails.
    """

    def __init__(self, claims: Claims, *, timeout: float = READ_SECONDS, workers: Workers = _workers) -> None:
        self._claims = claims
        self._timeout = timeout
        self._workers = workers

    def resolve(
        self, what: What, *, caller: Caller = None, start: int | None = None, end: int | None = None
    ) -> Resolved:
        """Return a result, or its bytes from ``start`` up to but not including ``end``, reading only their chunks."""
        return run_now(self.aresolve(what, caller=caller, start=start, end=end, blocks=True))

    async def aresolve(
        self,
        what: What,
        *,
        caller: Caller = None,
        start: int | None = None,
        end: int | None = None,
        blocks: bool = False,
    ) -> Resolved:
        """Return a result, or a part of it, as ``resolve`` does; ``blocks`` blocks the thread."""
        if start is None and end is None:
            return await self._ask("get", lambda: self._whole(what, caller), blocks=blocks)
        return await self._ask("range", lambda: self._part(what, caller, start or 0, end), blocks=blocks)

    async def ahead(self, what: What, *, caller: Caller = None, blocks: bool = False) -> Header:
        """Return the header of a result; ``blocks`` blocks the thread."""
        return await self._ask("head", lambda: self._sealed_header(what, caller)[1], blocks=blocks)

    def delete(self, what: What, *, caller: Caller = None) -> None:
        """Delete a result."""
        run_now(self.adelete(what, caller=caller, blocks=True))

    async def adelete(self, what: What, *, caller: Caller = None, blocks: bool = False) -> None:
        """Delete a result."""
        await self._ask(
            "delete", lambda: self._claims.store.delete(self._sealed_header(what, caller)[0].key), blocks=blocks
        )

    def _whole(self, what: What, caller: Caller) -> Resolved:
        wanted = self._wanted(what, caller)
        header, data = self._claims.envelopes.unpack(wanted.key, self._claims.store.get(wanted.key))
        wanted.check(header)
        return Resolved(data, header)

    def _part(self, what: What, caller: Caller, start: int, end: int | None) -> Resolved:
        wanted, header, block, digests = self._sealed_header(what, caller)
        start = max(start, 0)
        end = max(start, header.bytes if end is None else min(end, header.bytes))
        begin, stop = header.span(start, end)
        stored = self._claims.store.get_range(wanted.key, begin, stop) if begin < stop else b""
        if len(stored) != stop - begin:
            raise CorruptError("it is shorter than its header says")
        first = start // CHUNK_BYTES
        data = self._claims.envelopes.opened(header, block, digests, first, stored)
        return Resolved(data[start - first * CHUNK_BYTES : end - first * CHUNK_BYTES], header)

    def _sealed_header(self, what: What, caller: Caller) -> tuple[_Wanted, Header, bytes, bytes]:
        """Return the request, the header, as read and as stored, and the digests of the chunks, all checked."""
        wanted = self._wanted(what, caller)
        store, envelopes = self._claims.store, self._claims.envelopes
        block = store.get_range(wanted.key, 0, HEADER_BYTES)
        header = envelopes.read_header(block)
        at, end = header.digests
        digests = store.get_range(wanted.key, at, end) if at < end else b""
        envelopes.check_header(wanted.key, header, block, digests)
        wanted.check(header)
        return wanted, header, block, digests

    def _wanted(self, what: What, caller: Caller) -> _Wanted:
        owner = current_owner() if caller is None else caller
        if not isinstance(owner, str | Reserved) or not owner:
            raise _DeniedError("denied")
        if isinstance(what, Place):
            return _Wanted(self._claims.key(*what), owner, None)
        try:
            reference = Reference.parse(str(what))
        except BadReferenceError:
            raise _DeniedError("denied") from None
        if not self._claims.signer.vouches(reference, owner):
            raise _DeniedError("denied")
        return _Wanted(reference.key, owner, reference)

    async def _ask(self, operation: Operation, read: Callable[[], _T], *, blocks: bool) -> _T:
        """Read in a worker thread, within the timeout, and report how that ended."""
        started = time.perf_counter()
        try:
            reading = self._workers.submit(lambda: _answer(read))
        except ours(RuntimeError) as error:
            raise StoreError(f"the result could not be read: {said(error)}") from error
        await settled(reading, self._timeout, blocks=blocks)
        if reading.cancel() or not reading.done():
            self._claims.report(operation, "timeout", 0, started)
            raise StoreError(f"the store did not answer within {self._timeout:g} s")
        result, value, failure = reading.result()
        self._claims.report(operation, result, len(value.data) if isinstance(value, Resolved) else 0, started)
        if result == "error":
            raise StoreError("the result could not be read") from failure
        if result != "ok":
            raise NotFoundError("there is no such result")
        return value  # type: ignore[return-value]  # there is one where the result is ok


class _DeniedError(Exception):
    """The reason why a caller gets no result, for the metrics only."""

    def __init__(self, result: Result) -> None:
        super().__init__(result)
        self.result = result


@dataclass(frozen=True)
class _Wanted:
    """A key, its expected owner, and the reference if the caller has one."""

    key: str
    owner: str | Reserved
    reference: Reference | None

    def check(self, header: Header) -> None:
        if not hmac.compare_digest(header.owner, owner_segment(self.owner)):
            raise _DeniedError("denied")
        if not time.time() < header.expires_at:
            raise _DeniedError("expired")
        refers = self.reference
        if refers and not (header.digest.startswith(refers.digest) and header.bytes == refers.size):
            raise _DeniedError("corrupt")  # another result has replaced it


def _answer(read: Callable[[], _T]) -> tuple[Result, _T | None, Exception | None]:
    """Read in a worker thread, and return the outcome, the value and the failure."""
    try:
        return "ok", read(), None
    except _DeniedError as denied:
        return denied.result, None, None
    except NotFoundError:
        return "not_found", None, None
    except CorruptError:
        return "corrupt", None, None
    except ours(Exception) as error:
        return "error", None, error
