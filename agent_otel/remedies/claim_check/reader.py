"""Reading of stored results by their owners; anybody else gets the same NotFoundError whatever the reason is."""

from __future__ import annotations

import hmac
import inspect
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar
from urllib.parse import quote, unquote_to_bytes

from agent_otel._internal.daemon_pool import Workers, run_now
from agent_otel._internal.errors import ours, suppressed
from agent_otel.remedies.claim_check.envelope import (
    CHUNK_BYTES,
    HEADER_BYTES,
    BadReferenceError,
    CorruptError,
    Reference,
    Reserved,
    current_owner,
    owner_segment,
)
from agent_otel.remedies.claim_check.stores.base import NotFoundError, StoreError, said

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    from agent_otel.remedies.claim_check.envelope import Claims, Header, Operation, Result

    Scope = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
    Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
    Authorize = Callable[[Scope, str], "str | Awaitable[str | None] | None"]

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
    """Reader of results for a ``caller``, within ``timeout`` seconds. Raises NotFoundError and StoreError."""

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
        delete = self._claims.store.delete
        await self._ask("delete", lambda: delete(self._sealed_header(what, caller)[0].key), blocks=blocks)

    def _whole(self, what: What, caller: Caller) -> Resolved:
        wanted = self._wanted(what, caller)
        header, data = self._claims.unpack(wanted.key, self._claims.store.get(wanted.key))
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
        data = self._claims.opened(header, block, digests, first, stored)
        return Resolved(data[start - first * CHUNK_BYTES : end - first * CHUNK_BYTES], header)

    def _sealed_header(self, what: What, caller: Caller) -> tuple[_Wanted, Header, bytes, bytes]:
        """Return the request, the header, as read and as stored, and the digests of the chunks, all checked."""
        wanted = self._wanted(what, caller)
        claims, store = self._claims, self._claims.store
        block = store.get_range(wanted.key, 0, HEADER_BYTES)
        header = claims.read_header(block)
        at, end = header.digests
        digests = store.get_range(wanted.key, at, end) if at < end else b""
        claims.check_header(wanted.key, header, block, digests)
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
            result, value, failure = await self._workers.call(lambda: _answer(read), self._timeout, blocks=blocks)
        except ours(TimeoutError):
            self._claims.report(operation, "timeout", 0, started)
            raise StoreError(f"the store did not answer within {self._timeout:g} s") from None
        except ours(RuntimeError) as error:
            raise StoreError(f"the result could not be read: {said(error)}") from error
        self._claims.report(operation, result, len(value.data) if isinstance(value, Resolved) else 0, started)
        if result == "error":
            raise StoreError("the result could not be read") from failure
        if result != "ok":
            raise NotFoundError("there is no such result")
        return value  # type: ignore[return-value]  # there is one where the result is ok


class _DeniedError(Exception):
    """A refusal; its argument is the reason why a caller gets no result, for the metrics only."""


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
        return denied.args[0], None, None
    except NotFoundError:
        return "not_found", None, None
    except CorruptError:
        return "corrupt", None, None
    except ours(Exception) as error:
        return "error", None, error


# Starlette has ranges of files only, and Werkzeug's parser would replace no more than this line.
_RANGE = re.compile(r"bytes=(?=[0-9]|-[0-9])([0-9]{0,15})-([0-9]{0,15})", re.ASCII)
_SAFE = {
    "cache-control": "private, no-store",
    "content-security-policy": "default-src 'none'; sandbox",
    "x-content-type-options": "nosniff",
}


class ResultsApp:
    """ASGI application that serves the results of ``reader``; the program mounts it at any path.

    It answers ``GET`` and ``HEAD`` of ``/executions/{execution}/tool-results/{node}/{call}``, the ids percent-encoded,
    with ranges. An unauthorised caller gets the response for a result that does not exist.

    Each request calls ``authorize(scope, execution)``. The function returns the owner under which the caller may read
    this execution's results, or None when the caller may not. It may be a coroutine function. It must use its own
    sessions and records and trust no id in the request.
    """

    def __init__(self, reader: ClaimReader, authorize: Authorize) -> None:
        self._reader = reader
        self._authorize = authorize

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request or a lifespan event."""
        if scope["type"] == "lifespan":
            event = ""
            while event != "lifespan.shutdown":
                event = (await receive())["type"]
                await send({"type": f"{event}.complete"})
        elif scope["type"] == "http":
            status, headers, body = await self._answer(scope)
            fields = {**_SAFE, "content-length": str(len(body)), **headers}
            raw = [(name.encode("ascii"), value.encode("ascii")) for name, value in fields.items()]
            await send({"type": "http.response.start", "status": status, "headers": raw})
            await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})
        else:
            await send({"type": "websocket.close", "code": 1000})

    async def _answer(self, scope: Scope) -> _Answer:
        if scope["method"] not in ("GET", "HEAD"):
            return 405, {"allow": "GET, HEAD", "content-type": "text/plain"}, b"method not allowed"
        place = _place(scope)
        if place is None:
            return _NOT_FOUND
        owner = self._authorize(scope, place.execution)
        if inspect.isawaitable(owner):
            owner = await owner
        try:
            return await self._read(scope, place, owner or "")
        except NotFoundError:
            return _NOT_FOUND
        except StoreError:
            return 503, {"content-type": "text/plain"}, b"the store does not answer"

    async def _read(self, scope: Scope, place: Place, owner: str) -> _Answer:
        asked = {name.lower().decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        if scope["method"] == "HEAD":
            header = await self._reader.ahead(place, caller=owner)
            return 200, {**_described(header), "content-length": str(header.bytes)}, b""
        if "range" in asked:
            header = await self._reader.ahead(place, caller=owner)
            part = _span(asked, header)
            if part is not None:
                start, end = part
                read = await self._reader.aresolve(place, caller=owner, start=start, end=end)
                # Use the header that came with these bytes: another result may have replaced the first one between the
                # two reads.
                if not read.data:
                    return 416, {"content-range": f"bytes */{read.header.bytes}", "content-type": "text/plain"}, b""
                within = f"bytes {start}-{start + len(read.data) - 1}/{read.header.bytes}"
                return 206, {**_described(read.header), "content-range": within}, read.data
        read = await self._reader.aresolve(place, caller=owner)
        return 200, _described(read.header), read.data


_Answer = tuple[int, dict[str, str], bytes]
_NOT_FOUND: _Answer = (404, {"content-type": "text/plain"}, b"not found")


def _place(scope: Scope) -> Place | None:
    """Parse the path in its percent-encoded form: a decoded slash in an id looks like a separator."""
    raw = scope.get("raw_path") or quote(scope["path"]).encode()
    sent = raw.partition(b"?")[0].split(b"/")
    mounted = quote(scope.get("root_path", "").rstrip("/")).encode().split(b"/")
    if list(map(unquote_to_bytes, sent[: len(mounted)])) != list(map(unquote_to_bytes, mounted)):
        mounted = [b""]  # the server has removed it already
    match sent[len(mounted) :]:
        case [b"executions", execution, b"tool-results", node, call]:
            with suppressed(UnicodeDecodeError):
                return Place(
                    *(unquote_to_bytes(part).decode("utf-8", "surrogatepass") for part in (execution, node, call))
                )
    return None


def _described(header: Header) -> dict[str, str]:
    return {
        "accept-ranges": "bytes",
        "content-disposition": "attachment",
        "content-type": header.content_type,
        "etag": f'"{header.digest}"',
    }


def _span(asked: dict[str, str], header: Header) -> tuple[int, int] | None:
    """Return the requested byte range, which may be empty; None when the whole is to be sent (RFC 9110, 14.2)."""
    etag = f'"{header.digest}"'
    match = _RANGE.fullmatch(asked["range"].strip())
    if match is None or asked.get("if-range", etag) != etag:
        return None
    first, last = match.groups()
    if first and last and int(last) < int(first):
        return None
    if first:
        return int(first), min(header.bytes, int(last) + 1) if last else header.bytes
    return max(0, header.bytes - int(last)), header.bytes
