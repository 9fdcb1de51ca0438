"""An ASGI application that serves stored results; the program mounts it at any path.

``GET`` and ``HEAD`` of ``/executions/{execution}/tool-results/{node}/{call}``, the ids percent-encoded, with ranges.
The server's own function decides who may read: an unauthorised caller gets the response for a result that does not
exist.
"""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote_to_bytes

from agent_otel._internal.errors import ours
from agent_otel.remedies.claim_check.reader import Place
from agent_otel.remedies.claim_check.stores.base import NotFoundError, StoreError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    from agent_otel.remedies.claim_check.envelope import Header
    from agent_otel.remedies.claim_check.reader import ClaimReader

    Scope = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
    Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
    Authorize = Callable[[Scope, str], "str | Awaitable[str | None] | None"]

# Starlette has ranges of files only, and Werkzeug's parser would replace no more than this line.
_RANGE = re.compile(r"bytes=(?=[0-9]|-[0-9])([0-9]{0,15})-([0-9]{0,15})", re.ASCII)
_SAFE = {
    "cache-control": "private, no-store",
    "content-security-policy": "default-src 'none'; sandbox",
    "x-content-type-options": "nosniff",
}


class ResultsApp:
    """ASGI application that serves the results of ``reader``.

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
            try:
                return Place(
                    *(unquote_to_bytes(part).decode("utf-8", "surrogatepass") for part in (execution, node, call))
                )
            except ours(UnicodeDecodeError):
                return None
        case _:
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
