"""An adapter for any py-key-value-aio store, for programs that have one already."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import threading
from typing import TYPE_CHECKING, Any, TypeVar

from agent_otel._internal.errors import ours
from agent_otel.remedies.claim_check.stores.base import (
    IndexedStore,
    NotFoundError,
    StoreError,
    sweeper,
    translated,
)

if TYPE_CHECKING:
    from collections.abc import Coroutine

_T = TypeVar("_T")


class KeyValueStore(IndexedStore):
    """A py-key-value-aio store, with any wrappers, in an event loop and a thread of its own."""

    name = "key_value"

    def __init__(self, store: Any, collection: str = "tool-results") -> None:
        self._store = store
        self._collection = collection
        super().__init__()

    def _reset(self) -> None:
        super()._reset()
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def put(self, key: str, data: bytes, ttl: float) -> None:
        """Store bytes under a key."""
        super().put(key, data, ttl)
        if hasattr(self._store, "cull"):
            sweeper.expect(self, ttl)

    def get(self, key: str) -> bytes:
        """Return the value of a key."""
        value = self._wait(self._store.get(_hashed(key), collection=self._collection))
        if value is None:
            raise NotFoundError(key)
        try:
            return base64.b64decode(value["base64"], validate=True)
        except ours(KeyError, TypeError, binascii.Error) as error:
            raise StoreError("what is stored under this key was written by somebody else") from error

    def sweep_if_due(self, _: float) -> None:
        """Have the store remove expired values."""
        self._wait(self._store.cull())

    def _write(self, key: str, data: bytes, ttl: float) -> None:
        value = {"base64": base64.b64encode(data).decode()}
        self._wait(self._store.put(_hashed(key), value, collection=self._collection, ttl=ttl))

    def _entry(self, key: str) -> bytes:
        return self.get(key)

    def _remove(self, key: str, _: float = 0.0) -> bool:
        return bool(self._wait(self._store.delete(_hashed(key), collection=self._collection)))

    def _wait(self, asked: Coroutine[Any, Any, _T]) -> _T:
        with translated(self.name):
            with self._lock:
                if self._loop is None:
                    self._loop = asyncio.new_event_loop()
                    threading.Thread(target=self._loop.run_forever, name="agent_otel-key-value", daemon=True).start()
            return asyncio.run_coroutine_threadsafe(asked, self._loop).result()


def _hashed(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
