"""Object stores through obstore: Amazon S3 and compatible stores, Google Cloud Storage, Azure Blob Storage."""

from __future__ import annotations

import contextlib
import os
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from agent_otel._internal import errors
from agent_otel.remedies.claim_check.stores.base import (
    FRAME_BYTES,
    Head,
    NotFoundError,
    StoreError,
    end,
    frame,
    library,
    translated,
    unframe,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Factor between the timeout of a connection and that of a whole request.
_REQUEST = 20

_used_by: set[int] = set()


class ObjectStore:
    """A bucket or container, and a prefix in it: ``s3://bucket/prefix``, ``gs://…``, ``az://…``.

    obstore reads credentials, endpoint and region from the environment (``AWS_ACCESS_KEY_ID``, ``AWS_ENDPOINT_URL`` …).
    ``timeout`` is in seconds, for connecting; a whole request, which may transfer many bytes, has 20 times that.
    Requests are not retried. Expired values are never returned, but remain until a lifecycle rule of the bucket removes
    them. A process that has used the store cannot be forked to use it in the child.
    """

    def __init__(self, url: str, timeout: float) -> None:
        self._obstore = library("obstore", "objects")
        stores = library("obstore.store", "objects")
        limit = timedelta(seconds=timeout)
        local = url.startswith("s3:") and os.environ.get("AWS_ENDPOINT_URL", "").startswith("http:")
        with translated("objects"):
            self._bucket = stores.from_url(
                url,
                client_options={
                    "connect_timeout": limit,
                    "timeout": _REQUEST * limit,
                    **({"allow_http": True} if local else {}),
                },
                retry_config={"max_retries": 0},
            )
        scheme = url.partition(":")[0]
        errors.warn_once(
            f"expiry {scheme}",
            f"The claim check's store {scheme}: keeps expired results, unreadable, until a life-cycle rule of the "
            f"bucket removes them. docs/remedies/stored-results.md has the rule.",
        )

    def put(self, key: str, data: bytes, ttl: float) -> None:
        """Store bytes under a key."""
        with _asking(key):
            self._obstore.put(self._bucket, key, frame(ttl) + data, use_multipart=False)

    def get(self, key: str) -> bytes:
        """Return the value of a key."""
        with _asking(key):
            return unframe(bytes(self._obstore.get(self._bucket, key).bytes()))

    def get_range(self, key: str, start: int, end: int) -> bytes:
        """Return a byte range of a value."""
        size = self.head(key).size
        if start >= min(end, size):
            return b""
        with _asking(key):
            return bytes(self._obstore.get_range(self._bucket, key, **_span(start, min(end, size))))

    def head(self, key: str) -> Head:
        """Return the size and the expiry of a value."""
        with _asking(key):
            answer = self._obstore.get(self._bucket, key, options=_FRAME)
            return _head(answer.meta["size"], bytes(answer.bytes()))

    def delete(self, key: str) -> None:
        """Delete a key."""
        with _asking(key, missing_ok=True):
            self._obstore.delete(self._bucket, key)

    def delete_group(self, group: str) -> int:
        """Delete all keys of a group; return the number of values."""
        removed = 0
        with _asking(group):
            for found in self._obstore.list(self._bucket, prefix=group):
                paths = [each["path"] for each in found]
                self._obstore.delete(self._bucket, paths)
                removed += len(paths)
        return removed


_FRAME: dict[str, Any] = {"range": (0, FRAME_BYTES)}


def _span(start: int, end: int) -> dict[str, int]:
    return {"start": FRAME_BYTES + start, "end": FRAME_BYTES + end}


def _head(size: int, framed: bytes) -> Head:
    return Head(size - FRAME_BYTES, end(framed))


@contextlib.contextmanager
def _asking(key: str, *, missing_ok: bool = False) -> Iterator[None]:
    # obstore's threads do not survive a fork: the child would wait for them forever.
    _used_by.add(os.getpid())
    if len(_used_by) > 1:
        raise StoreError("objects: used before this process was forked; obstore does not survive that")
    with translated("objects"):
        try:
            yield
        except errors.ours(FileNotFoundError):
            if not missing_ok:
                raise NotFoundError(key) from None
