"""Redis and compatible servers: the server expires values and reads ranges."""

from __future__ import annotations

import asyncio
import re
import time
import weakref
from typing import Any, Final

from agent_otel.remedies.claim_check.stores.base import Head, NotFoundError, StoreError, library, translated

#: Keys that Redis scans in one step; it serves other clients between the steps.
_SCANNED: Final = 1000


class RedisStore:
    """A Redis database: ``redis://``, ``rediss://`` or ``unix://``, with redis-py's options in the URL's query.

    ``timeout`` is in seconds, for connecting and for each response. Requests are not retried: the caller's time budget
    is too short.
    """

    def __init__(self, url: str, timeout: float) -> None:
        redis = library("redis", "redis")
        self._asyncio = library("redis.asyncio", "redis")
        self._never = library("redis.backoff", "redis").NoBackoff()
        self._url = url
        self._options = {"socket_timeout": timeout, "socket_connect_timeout": timeout}
        retry = library("redis.retry", "redis").Retry(self._never, 0)
        try:
            self._client = redis.Redis.from_url(url, retry=retry, **self._options)
        except Exception:  # its message may contain the password
            raise StoreError("redis: not the URL of a database, as in redis://host:6379/0") from None
        #: Connections belong to the event loop that created them.
        self._clients: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Any] = weakref.WeakKeyDictionary()

    def put(self, key: str, data: bytes, ttl: float) -> None:
        """Store bytes under a key."""
        with translated("redis"):
            self._client.set(key, data, px=_milliseconds(ttl))

    def get(self, key: str) -> bytes:
        """Return the value of a key."""
        with translated("redis"):
            return _found(key, self._client.get(key))

    def get_range(self, key: str, start: int, end: int) -> bytes:
        """Return a byte range of a value."""
        with translated("redis"), self._client.pipeline() as both:
            return _part(key, start, end, both.exists(key).getrange(key, start, max(end - 1, 0)).execute())

    def head(self, key: str) -> Head:
        """Return the size and the expiry of a value."""
        with translated("redis"), self._client.pipeline() as both:
            return _head(key, both.strlen(key).pttl(key).execute())

    def delete(self, key: str) -> None:
        """Delete a key."""
        with translated("redis"):
            self._client.delete(key)

    def delete_group(self, group: str) -> int:
        """Delete all keys of a group, scanning all keys of the database; return the number of values."""
        with translated("redis"):
            found = self._client.scan_iter(match=_pattern(group), count=_SCANNED)
            return sum(self._client.delete(key) for key in found)

    async def aput(self, key: str, data: bytes, ttl: float) -> None:
        """Store bytes under a key."""
        with translated("redis"):
            await self._client_here().set(key, data, px=_milliseconds(ttl))

    async def aget(self, key: str) -> bytes:
        """Return the value of a key."""
        with translated("redis"):
            return _found(key, await self._client_here().get(key))

    async def aget_range(self, key: str, start: int, end: int) -> bytes:
        """Return a byte range of a value."""
        with translated("redis"):
            async with self._client_here().pipeline() as both:
                return _part(key, start, end, await both.exists(key).getrange(key, start, max(end - 1, 0)).execute())

    async def ahead(self, key: str) -> Head:
        """Return the size and the expiry of a value."""
        with translated("redis"):
            async with self._client_here().pipeline() as both:
                return _head(key, await both.strlen(key).pttl(key).execute())

    async def adelete(self, key: str) -> None:
        """Delete a key."""
        with translated("redis"):
            await self._client_here().delete(key)

    async def adelete_group(self, group: str) -> int:
        """Delete all keys of a group, scanning all keys of the database; return the number of values."""
        removed = 0
        with translated("redis"):
            client = self._client_here()
            async for key in client.scan_iter(match=_pattern(group), count=_SCANNED):
                removed += await client.delete(key)
        return removed

    def close(self) -> None:
        """Close the connections of the blocking methods."""
        self._client.close()

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        client: Any = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    def _client_here(self) -> Any:
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            retry = self._asyncio.retry.Retry(self._never, 0)
            client = self._asyncio.Redis.from_url(self._url, retry=retry, **self._options)
            self._clients[loop] = client
        return client


def _pattern(group: str) -> str:
    return re.sub(r"([*?\[\]\\])", r"\\\1", group) + "/*"


def _milliseconds(ttl: float) -> int:
    return max(1, round(ttl * 1000))


def _found(key: str, value: bytes | None) -> bytes:
    if value is None:
        raise NotFoundError(key)
    return value


def _part(key: str, start: int, end: int, answers: list[Any]) -> bytes:
    exists, part = answers
    if not exists:
        raise NotFoundError(key)
    return part if start < end else b""


def _head(key: str, answers: list[int]) -> Head:
    size, milliseconds = answers
    if milliseconds == -2:  # noqa: PLR2004 - PTTL's answer where there is no such key; -1 is one that does not end
        raise NotFoundError(key)
    return Head(size, None if milliseconds < 0 else time.time() + milliseconds / 1000)
