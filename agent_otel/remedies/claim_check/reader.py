"""Reading of stored results by their owners.

A reference that is forged, damaged, another owner's or older than the stored value, and a result that has expired or
never existed: all raise the same NotFoundError with the same message. The metrics distinguish them.
"""

from __future__ import annotations

import asyncio
import hmac
import time
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from agent_otel._internal.daemon_pool import Workers, is_in_asyncio
from agent_otel._internal.errors import ours, suppressed
from agent_otel.remedies.claim_check.cipher import CorruptError
from agent_otel.remedies.claim_check.envelope import CHUNK_BYTES, HEADER_BYTES
from agent_otel.remedies.claim_check.keys import current_owner
from agent_otel.remedies.claim_check.references import BadReferenceError, Reference, Reserved, owner_segment
from agent_otel.remedies.claim_check.stores.base import NotFoundError, StoreError, said

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from agent_otel.remedies.claim_check.envelope import Header
    from agent_otel.remedies.claim_check.keys import Claims, Operation, Result

_T = TypeVar("_T")

READ_SECONDS = 5.0

_workers = Workers("claim-check-read", 8)


class Place(NamedTuple):
    """The place of a result, for a caller without a reference."""

    execution: str
    node: str
    call: str


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
        self,
        what: str | Reference | Place,
        *,
        caller: str | Reserved | None = None,
        start: int | None = None,
        end: int | None = None,
    ) -> Resolved:
        """Return a result, or its bytes from ``start`` up to but not including ``end``, reading only their chunks."""
        return self._wait(*self._reading(what, caller, start, end))

    async def aresolve(
        self,
        what: str | Reference | Place,
        *,
        caller: str | Reserved | None = None,
        start: int | None = None,
        end: int | None = None,
    ) -> Resolved:
        """Return a result, or a part of it, as ``resolve`` does."""
        return await self._await(*self._reading(what, caller, start, end))

    def head(self, what: str | Reference | Place, *, caller: str | Reserved | None = None) -> Header:
        """Return the header of a result."""
        return self._wait("head", lambda: self._header(_wanted(self._claims, what, caller)))

    async def ahead(self, what: str | Reference | Place, *, caller: str | Reserved | None = None) -> Header:
        """Return the header of a result."""
        return await self._await("head", lambda: self._header(_wanted(self._claims, what, caller)))

    def delete(self, what: str | Reference | Place, *, caller: str | Reserved | None = None) -> None:
        """Delete a result."""
        self._wait("delete", lambda: self._delete(_wanted(self._claims, what, caller)))

    async def adelete(self, what: str | Reference | Place, *, caller: str | Reserved | None = None) -> None:
        """Delete a result."""
        await self._await("delete", lambda: self._delete(_wanted(self._claims, what, caller)))

    def _reading(
        self, what: str | Reference | Place, caller: str | Reserved | None, start: int | None, end: int | None
    ) -> tuple[Operation, Callable[[], Resolved]]:
        if start is None and end is None:
            return "get", lambda: self._whole(_wanted(self._claims, what, caller))
        return "range", lambda: self._part(_wanted(self._claims, what, caller), start or 0, end)

    def _whole(self, wanted: _Wanted) -> Resolved:
        header, data = self._claims.envelopes.unpack(wanted.key, self._claims.store.get(wanted.key))
        wanted.check(header)
        return Resolved(data, header)

    def _part(self, wanted: _Wanted, start: int, end: int | None) -> Resolved:
        header, block, digests = self._sealed_header(wanted)
        start = max(start, 0)
        end = max(start, header.bytes if end is None else min(end, header.bytes))
        begin, stop = header.span(start, end)
        stored = self._claims.store.get_range(wanted.key, begin, stop) if begin < stop else b""
        if len(stored) != stop - begin:
            raise CorruptError("it is shorter than its header says")
        first = start // CHUNK_BYTES
        data = self._claims.envelopes.opened(header, block, digests, first, stored)
        return Resolved(data[start - first * CHUNK_BYTES : end - first * CHUNK_BYTES], header)

    def _header(self, wanted: _Wanted) -> Header:
        return self._sealed_header(wanted)[0]

    def _sealed_header(self, wanted: _Wanted) -> tuple[Header, bytes, bytes]:
        """Return the header, as read and as stored, and the digests of the chunks, all checked."""
        store, envelopes = self._claims.store, self._claims.envelopes
        block = store.get_range(wanted.key, 0, HEADER_BYTES)
        header = envelopes.read_header(block)
        at = header.digests_start
        digests = store.get_range(wanted.key, at, at + header.digests_bytes) if header.digests_bytes else b""
        envelopes.check_header(wanted.key, header, block, digests)
        wanted.check(header)
        return header, block, digests

    def _delete(self, wanted: _Wanted) -> None:
        self._header(wanted)
        self._claims.store.delete(wanted.key)

    def _wait(self, operation: Operation, read: Callable[[], _T]) -> _T:
        started = time.perf_counter()
        reading = self._begin(read)
        with suppressed(FutureTimeoutError):
            reading.result(self._timeout)
        return self._concluded(operation, reading, started)

    async def _await(self, operation: Operation, read: Callable[[], _T]) -> _T:
        if not is_in_asyncio():
            return self._wait(operation, read)
        started = time.perf_counter()
        reading = self._begin(read)
        await asyncio.wait((asyncio.wrap_future(reading),), timeout=self._timeout)
        return self._concluded(operation, reading, started)

    def _begin(self, read: Callable[[], _T]) -> Future[_Answer[_T]]:
        try:
            return self._workers.submit(lambda: _answer(read))
        except ours(RuntimeError) as error:
            raise StoreError(f"the result could not be read: {said(error)}") from error

    def _concluded(self, operation: Operation, reading: Future[_Answer[_T]], started: float) -> _T:
        if reading.cancel() or not reading.done():
            self._claims.report(operation, "timeout", 0, started)
            raise StoreError(f"the store did not answer within {self._timeout:g} s")
        answer = reading.result()
        size = len(answer.value.data) if isinstance(answer.value, Resolved) else 0
        self._claims.report(operation, answer.result, size, started)
        if answer.result == "error":
            raise StoreError("the result could not be read") from answer.error
        if answer.result != "ok":
            raise NotFoundError("there is no such result")
        return answer.value  # type: ignore[return-value]  # there is one where the result is ok


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


def _wanted(claims: Claims, what: str | Reference | Place, caller: str | Reserved | None) -> _Wanted:
    owner = current_owner() if caller is None else caller
    if not isinstance(owner, str | Reserved) or not owner:
        raise _DeniedError("denied")
    if isinstance(what, Place):
        return _Wanted(claims.key(*what), owner, None)
    try:
        reference = Reference.parse(str(what))
    except BadReferenceError:
        raise _DeniedError("denied") from None
    if not claims.signer.vouches(reference, owner):
        raise _DeniedError("denied")
    return _Wanted(reference.key, owner, reference)


@dataclass(frozen=True)
class _Answer(Generic[_T]):
    result: Result
    value: _T | None = None
    error: Exception | None = None


def _answer(read: Callable[[], _T]) -> _Answer[_T]:
    """Read in a worker thread, and return the outcome."""
    try:
        return _Answer("ok", read())
    except _DeniedError as denied:
        return _Answer(denied.result)
    except NotFoundError:
        return _Answer("not_found")
    except CorruptError:
        return _Answer("corrupt")
    except ours(Exception) as error:
        return _Answer("error", error=error)
