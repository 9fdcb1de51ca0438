"""Redis and compatible servers: the server expires values and reads ranges."""

from __future__ import annotations

import re
import time
from typing import Any, Final

from agent_otel._internal.errors import ours
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
        options: dict[str, Any] = {"socket_timeout": timeout, "socket_connect_timeout": timeout}
        retry = library("redis.retry", "redis").Retry(library("redis.backoff", "redis").NoBackoff(), 0)
        try:
            self._client = redis.Redis.from_url(url, retry=retry, **options)
        except ours(Exception):  # its message may contain the password
            raise StoreError("redis: not the URL of a database, as in redis://host:6379/0") from None

    def put(self, key: str, data: bytes, ttl: float) -> None:
        """Store bytes under a key."""
        with translated("redis"):
            self._client.set(key, data, px=max(1, round(ttl * 1000)))

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

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def _pattern(group: str) -> str:
    return re.sub(r"([*?\[\]\\])", r"\\\1", group) + "/*"


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
