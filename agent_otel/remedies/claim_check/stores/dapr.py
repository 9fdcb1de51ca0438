"""A Dapr state store, through Dapr's SDK and the sidecar."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Any

from agent_otel._internal import errors, fork
from agent_otel.remedies.claim_check.stores.base import (
    FRAME_BYTES,
    Head,
    NotFoundError,
    TooLargeError,
    end,
    frame,
    library,
    translated,
    unframe,
)
from agent_otel.remedies.claim_check.stores.index import Index, added, entries_of, keys_in

_index = Index()


class DaprStore:
    """A Dapr state store component.

    The component and the sidecar limit the size of a value (4 MiB unless ``--max-body-size`` sets another). Some
    components do not remove expired values; this store never returns them. Dapr has no range reads: a range is cut from
    the whole value.
    """

    def __init__(self, component: str) -> None:
        self._component = component
        self._clients = library("dapr.clients", "dapr")
        self._reset()
        fork.after_fork(self._reset)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._listing = threading.Lock()
        self._client: Any = None

    def put(self, key: str, data: bytes, ttl: float) -> None:
        """Store bytes under a key."""
        self._list(key, ttl)  # the index is first, so that every stored key can be found
        self._put(key, data, ttl)

    def get(self, key: str) -> bytes:
        """Return the value of a key."""
        return unframe(self._get(key))

    def get_range(self, key: str, start: int, end: int) -> bytes:
        """Return a byte range of a value."""
        return self.get(key)[start:end]

    def head(self, key: str) -> Head:
        """Return the size and the expiry of a value."""
        framed = self._get(key)
        return Head(len(framed) - FRAME_BYTES, end(framed))

    def delete(self, key: str) -> None:
        """Delete a key."""
        with translated("dapr"):
            self._connected().delete_state(self._component, key)

    def delete_group(self, group: str) -> int:
        """Delete all keys of a group; return the number of values that had not expired."""
        keys: set[str] = set()
        for entry in entries_of(group):
            listed = self._listed(entry)
            for key in listed:
                self.delete(key)
            self.delete(entry)
            keys.update(key for key, end in listed.items() if end > time.time())
        return len(keys)

    def _list(self, key: str, ttl: float) -> None:
        """Add a key to the index: Dapr has no call to list keys that all components support."""
        entry = _index.entry_of(key)
        with self._listing:
            more = added(self._listed(entry), key, ttl)
            self._put(entry, more.entry, more.ttl)
        for each in more.expired:
            self.delete(each)

    def _listed(self, entry: str) -> dict[str, float]:
        """Return the keys of an index entry, even an expired one: the component may still hold the listed values."""
        with translated("dapr"), contextlib.suppress(NotFoundError):
            return keys_in(self._get(entry)[FRAME_BYTES:])
        return {}

    def _put(self, key: str, data: bytes, ttl: float) -> None:
        seconds = {"ttlInSeconds": str(max(1, round(ttl)))}
        with translated("dapr"):
            try:
                self._connected().save_state(self._component, key, frame(ttl) + data, state_metadata=seconds)
            except Exception as error:
                if _is_too_large(error):
                    raise TooLargeError(f"dapr: {len(data)} bytes are more than the sidecar takes") from error
                raise

    def _get(self, key: str) -> bytes:
        with translated("dapr"):
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


def _is_too_large(error: Exception) -> bool:
    code = getattr(error, "code", None)
    return getattr(code() if callable(code) else None, "name", "") == "RESOURCE_EXHAUSTED"
