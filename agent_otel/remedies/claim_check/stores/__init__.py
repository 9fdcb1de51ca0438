"""Stores of the claim check: a store for each URL scheme, whose library is imported when it is opened."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

from agent_otel._internal.errors import ours
from agent_otel.remedies.claim_check.stores.base import (
    ClaimStore,
    MemoryStore,
    NotFoundError,
    StoreError,
    TooLargeError,
)
from agent_otel.remedies.claim_check.stores.services import DaprStore, ObjectStore, RedisStore

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["SCHEMES", "ClaimStore", "NotFoundError", "StoreError", "TooLargeError", "open_store"]


def open_store(url: str, timeout: float = 0.25) -> ClaimStore:
    """Open the store of a URL, without connecting to it yet.

    ``memory:`` · ``file:///folder`` · ``redis://host:6379/0`` · ``s3://bucket/prefix``, ``gs://…``, ``az://…`` ·
    ``dapr://component``. ``timeout`` is in seconds, for one request to a server. Raises StoreError for any other URL,
    or when the library is not installed; the message contains only the URL's scheme.
    """
    try:
        opener = _OPENERS[urlsplit(url).scheme]
    except ours(KeyError, ValueError):
        raise StoreError(f"not the URL of a store; known are {', '.join(f'{scheme}:' for scheme in SCHEMES)}") from None
    return opener(url, timeout)


def _files(url: str, _: float) -> ClaimStore:
    if os.name == "nt":
        raise StoreError("file: needs a system where folders are opened by descriptor, as POSIX systems do")
    from agent_otel.remedies.claim_check.stores.files import FileStore  # noqa: PLC0415 - needs a POSIX system

    parts = urlsplit(url)
    root = Path(url2pathname(parts.path))
    if parts.netloc not in ("", "localhost") or not root.is_absolute():
        raise StoreError("file: wants the absolute path of a folder, as in file:///var/lib/agent/results")
    return FileStore(root)


def _dapr(url: str, _: float) -> ClaimStore:
    component = urlsplit(url).netloc
    if not component:
        raise StoreError("dapr: wants the name of a state store component, as in dapr://statestore")
    return DaprStore(component)


_OPENERS: Final[dict[str, Callable[[str, float], ClaimStore]]] = {
    "memory": lambda _, __: MemoryStore(),
    "file": _files,
    **dict.fromkeys(("redis", "rediss", "unix"), RedisStore),
    **dict.fromkeys(("s3", "gs", "az"), ObjectStore),
    "dapr": _dapr,
}
SCHEMES: Final = tuple(_OPENERS)
