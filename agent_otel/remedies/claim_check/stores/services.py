"""Stores on servers: Redis, object stores through obstore, and Dapr state stores through the sidecar."""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from agent_otel._internal import errors
from agent_otel.remedies.claim_check.stores.base import (
    FRAME_BYTES,
    IndexedStore,
    NotFoundError,
    StoreError,
    TooLargeError,
    frame,
    library,
    translated,
    unframe,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Keys that Redis scans in one step; it serves other clients between the steps.
_SCANNED: Final = 1000
#: Factor between the timeout of a connection to an object store and the timeout of a whole request.
_REQUEST: Final = 20


class RedisStore:
    """A Redis database, which expires values and reads ranges; requests are not retried."""

    def __init__(self, url: str, timeout: float) -> None:
        redis = library("redis", "redis")
        options: dict[str, Any] = {"socket_timeout": timeout, "socket_connect_timeout": timeout}
        retry = library("redis.retry", "redis").Retry(library("redis.backoff", "redis").NoBackoff(), 0)
        try:
            self._client = redis.Redis.from_url(url, retry=retry, **options)
        except errors.ours(Exception):  # its message may contain the password
            raise StoreError("redis: not the URL of a database, as in redis://host:6379/0") from None

    def put(self, key: str, data: bytes, ttl: float) -> None:
        """Store bytes under a key."""
        with translated("redis"):
            self._client.set(key, data, px=max(1, round(ttl * 1000)))

    def get(self, key: str) -> bytes:
        """Return the value of a key."""
        with translated("redis"):
            value: bytes | None = self._client.get(key)
        if value is None:
            raise NotFoundError(key)
        return value

    def get_range(self, key: str, start: int, end: int) -> bytes:
        """Return a byte range of a value."""
        with translated("redis"), self._client.pipeline() as both:
            exists, part = both.exists(key).getrange(key, start, max(end - 1, 0)).execute()
        if not exists:
            raise NotFoundError(key)
        return part if start < end else b""

    def delete(self, key: str) -> None:
        """Delete a key."""
        with translated("redis"):
            self._client.delete(key)

    def delete_group(self, group: str) -> int:
        """Delete all keys of a group, scanning all keys of the database; return the number of values."""
        pattern = re.sub(r"([*?\[\]\\])", r"\\\1", group) + "/*"
        with translated("redis"):
            return sum(self._client.delete(key) for key in self._client.scan_iter(match=pattern, count=_SCANNED))


class ObjectStore:
    """A bucket or container, and a prefix in it. A lifecycle rule removes expired values.

    ``timeout`` is in seconds, for connecting; a whole request, which may transfer many bytes, has 20 times that.
    """

    _used_by: Final[set[int]] = set()

    def __init__(self, url: str, timeout: float) -> None:
        self._obstore = library("obstore", "objects")
        stores = library("obstore.store", "objects")
        limit = timedelta(seconds=timeout)
        local = url.startswith("s3:") and os.environ.get("AWS_ENDPOINT_URL", "").startswith("http:")
        with translated("objects"):
            options = {"connect_timeout": limit, "timeout": _REQUEST * limit, **({"allow_http": True} if local else {})}
            self._bucket = stores.from_url(url, client_options=options, retry_config={"max_retries": 0})
        scheme = url.partition(":")[0]
        errors.warn_once(
            f"expiry {scheme}",
            f"The claim check's store {scheme}: keeps expired results, unreadable, until a life-cycle rule of the "
            f"bucket removes them. docs/remedies/stored-results.md has the rule.",
        )

    def put(self, key: str, data: bytes, ttl: float) -> None:
        """Store bytes under a key."""
        with self._asking(key):
            self._obstore.put(self._bucket, key, frame(ttl) + data, use_multipart=False)

    def get(self, key: str) -> bytes:
        """Return the value of a key."""
        with self._asking(key):
            return unframe(bytes(self._obstore.get(self._bucket, key).bytes()))

    def get_range(self, key: str, start: int, end: int) -> bytes:
        """Return a byte range of a value."""
        with self._asking(key):
            head = self._obstore.get(self._bucket, key, options={"range": (0, FRAME_BYTES)})
            unframe(bytes(head.bytes()))
            start, end = FRAME_BYTES + start, min(FRAME_BYTES + end, head.meta["size"])
            return bytes(self._obstore.get_range(self._bucket, key, start=start, end=end)) if start < end else b""

    def delete(self, key: str) -> None:
        """Delete a key."""
        with contextlib.suppress(NotFoundError), self._asking(key):
            self._obstore.delete(self._bucket, key)

    def delete_group(self, group: str) -> int:
        """Delete all keys of a group; return the number of values."""
        removed = 0
        with self._asking(group):
            for found in self._obstore.list(self._bucket, prefix=group):
                paths = [each["path"] for each in found]
                self._obstore.delete(self._bucket, paths)
                removed += len(paths)
        return removed

    @contextlib.contextmanager
    def _asking(self, key: str) -> Iterator[None]:
        # obstore's threads do not survive a fork: the child would wait for them forever.
        self._used_by.add(os.getpid())
        if len(self._used_by) > 1:
            raise StoreError("objects: used before this process was forked; obstore does not survive that")
        with translated("objects", key):
            yield


class DaprStore(IndexedStore):
    """A Dapr state store component; it has no range reads, and expired values are never returned."""

    name = "dapr"

    def __init__(self, component: str) -> None:
        self._component = component
        self._clients = library("dapr.clients", "dapr")
        super().__init__()

    def _reset(self) -> None:
        super()._reset()
        self._lock = threading.Lock()
        self._client: Any = None

    def get(self, key: str) -> bytes:
        """Return the value of a key."""
        return unframe(self._read(key))

    def _entry(self, key: str) -> bytes:
        return self._read(key)[FRAME_BYTES:]

    def _remove(self, key: str, expires_at: float = 0.0) -> bool:
        with translated(self.name):
            self._connected().delete_state(self._component, key)
        return expires_at > time.time()

    def _write(self, key: str, data: bytes, ttl: float) -> None:
        seconds = {"ttlInSeconds": str(max(1, round(ttl)))}
        with translated(self.name):
            try:
                self._connected().save_state(self._component, key, frame(ttl) + data, state_metadata=seconds)
            except Exception as error:
                code = getattr(error, "code", None)
                if getattr(code() if callable(code) else None, "name", "") == "RESOURCE_EXHAUSTED":
                    raise TooLargeError(f"dapr: {len(data)} bytes are more than the sidecar takes") from error
                raise

    def _read(self, key: str) -> bytes:
        with translated(self.name):
            found: bytes = self._connected().get_state(self._component, key).data
        if not found:
            raise NotFoundError(key)
        return found

    def _connected(self) -> Any:
        """Return the client; its creation waits until the sidecar is healthy."""
        with self._lock:
            if self._client is None:
                self._client = self._clients.DaprClient()
                self._check_expiry(self._client)
            return self._client

    @errors.guarded("remedies.dapr")
    def _check_expiry(self, client: Any) -> None:
        for component in client.get_metadata().registered_components:
            if component.name == self._component and "TTL" not in component.capabilities:
                errors.warn_once(
                    f"expiry dapr {self._component}",
                    f"The claim check's store dapr://{self._component} keeps expired results, unreadable: a component "
                    f"of type {component.type} does not remove them.",
                )
