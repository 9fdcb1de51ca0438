"""Stores of the claim check: one protocol, and a store for each URL scheme.

A store's library is imported when the store is opened.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import url2pathname

from agent_otel._internal.errors import ours
from agent_otel.remedies.claim_check.stores.base import ClaimStore, Head, NotFoundError, StoreError, TooLargeError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["SCHEMES", "ClaimStore", "Head", "NotFoundError", "StoreError", "TooLargeError", "open_store"]


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


def _memory(_: str, __: float) -> ClaimStore:
    from agent_otel.remedies.claim_check.stores.memory import MemoryStore  # noqa: PLC0415 - one store is used, not all

    return MemoryStore()


def _files(url: str, _: float) -> ClaimStore:
    if os.name == "nt":
        raise StoreError("file: needs a system where folders are opened by descriptor, as POSIX systems do")
    from agent_otel.remedies.claim_check.stores.files import FileStore  # noqa: PLC0415 - one store is used, not all

    parts = urlsplit(url)
    root = Path(url2pathname(parts.path))
    if parts.netloc not in ("", "localhost") or not root.is_absolute():
        raise StoreError("file: wants the absolute path of a folder, as in file:///var/lib/agent/results")
    return FileStore(root)


def _redis(url: str, timeout: float) -> ClaimStore:
    from agent_otel.remedies.claim_check.stores.redis import RedisStore  # noqa: PLC0415 - one store is used, not all

    return RedisStore(url, timeout)


def _objects(url: str, timeout: float) -> ClaimStore:
    from agent_otel.remedies.claim_check.stores.objects import ObjectStore  # noqa: PLC0415 - one store is used, not all

    return ObjectStore(url, timeout)


def _dapr(url: str, _: float) -> ClaimStore:
    from agent_otel.remedies.claim_check.stores.dapr import DaprStore  # noqa: PLC0415 - one store is used, not all

    component = urlsplit(url).netloc
    if not component:
        raise StoreError("dapr: wants the name of a state store component, as in dapr://statestore")
    return DaprStore(component)


_OPENERS: dict[str, Callable[[str, float], ClaimStore]] = {
    "memory": _memory,
    "file": _files,
    "redis": _redis,
    "rediss": _redis,
    "unix": _redis,
    "s3": _objects,
    "gs": _objects,
    "az": _objects,
    "dapr": _dapr,
}
#: The schemes that ``open_store`` supports.
SCHEMES = tuple(_OPENERS)
