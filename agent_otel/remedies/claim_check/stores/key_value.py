"""An adapter for any py-key-value-aio store, for programs that have one already."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import hashlib
import threading
import time
from typing import TYPE_CHECKING, Any, TypeVar

from agent_otel._internal import fork
from agent_otel._internal.errors import ours
from agent_otel.remedies.claim_check.stores.base import Head, NotFoundError, StoreError, translated
from agent_otel.remedies.claim_check.stores.index import Index, added, entries_of, keys_in
from agent_otel.remedies.claim_check.stores.sweeper import sweeper

if TYPE_CHECKING:
    from collections.abc import Coroutine

_T = TypeVar("_T")
_index = Index()


class KeyValueStore:
    """A py-key-value-aio store, with any wrappers: ``KeyValueStore(RedisStore(url=…))``.

    These stores hold JSON, so bytes are encoded as base64. Some do not accept every key, so keys are hashed. A store's
    connections belong to one event loop, so the adapter runs the store in its own loop, in a thread that the first use
    starts. The store expires values itself; if it has ``cull``, the sweeper calls that.
    """

    def __init__(self, store: Any, collection: str = "tool-results") -> None:
        self._store = store
        self._collection = collection
        self._reset()
        fork.after_fork(self._reset)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listing = asyncio.Lock()

    def put(self, key: str, data: bytes, ttl: float) -> None:
        """Store bytes under a key."""
        self._wait(self._put(key, data, ttl))

    def get(self, key: str) -> bytes:
        """Return the value of a key."""
        return self._wait(self._get(key))

    def get_range(self, key: str, start: int, end: int) -> bytes:
        """Return a byte range of a value."""
        return self.get(key)[start:end]

    def head(self, key: str) -> Head:
        """Return the size and the expiry of a value."""
        return self._wait(self._head(key))

    def delete(self, key: str) -> None:
        """Delete a key."""
        self._wait(self._delete(key))

    def delete_group(self, group: str) -> int:
        """Delete all keys of a group; return the number of values."""
        return self._wait(self._delete_group(group))

    def sweep_if_due(self, _: float) -> None:
        """Have the store remove expired values."""
        self._wait(self._store.cull())

    async def _put(self, key: str, data: bytes, ttl: float) -> None:
        await self._list(key, ttl)  # the index is first, so that every stored key can be found
        await self._put_value(key, data, ttl)
        if hasattr(self._store, "cull"):
            sweeper.expect(self, ttl)

    async def _put_value(self, key: str, data: bytes, ttl: float) -> None:
        value = {"base64": base64.b64encode(data).decode()}
        await self._store.put(_hashed(key), value, collection=self._collection, ttl=ttl)

    async def _list(self, key: str, ttl: float) -> None:
        """Add a key to the index: some stores cannot list their keys, and keys are hashed."""
        entry = _index.entry_of(key)
        async with self._listing:
            more = added(await self._listed(entry), key, ttl)
            await self._put_value(entry, more.entry, more.ttl)
        for each in more.expired:
            await self._delete(each)

    async def _listed(self, entry: str) -> dict[str, float]:
        with contextlib.suppress(NotFoundError):
            return keys_in(await self._get(entry))
        return {}

    async def _get(self, key: str) -> bytes:
        return _data(key, await self._store.get(_hashed(key), collection=self._collection))

    async def _head(self, key: str) -> Head:
        value, seconds = await self._store.ttl(_hashed(key), collection=self._collection)
        return Head(len(_data(key, value)), None if seconds is None else time.time() + seconds)

    async def _delete(self, key: str) -> None:
        await self._store.delete(_hashed(key), collection=self._collection)

    async def _delete_group(self, group: str) -> int:
        removed = 0
        for entry in entries_of(group):
            for key in await self._listed(entry):
                removed += await self._store.delete(_hashed(key), collection=self._collection)
            await self._delete(entry)
        return removed

    def _wait(self, asked: Coroutine[Any, Any, _T]) -> _T:
        with translated("key_value"):
            return asyncio.run_coroutine_threadsafe(asked, self._running()).result()

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="agent_otel-key-value", daemon=True).start()
            return self._loop


def _hashed(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def _data(key: str, value: dict[str, Any] | None) -> bytes:
    if value is None:
        raise NotFoundError(key)
    try:
        return base64.b64decode(value["base64"], validate=True)
    except ours(KeyError, TypeError, binascii.Error) as error:
        raise StoreError("what is stored under this key was written by somebody else") from error
