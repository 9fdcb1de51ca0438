"""The protocol of stores and their errors."""

from __future__ import annotations

import contextlib
import importlib
import struct
import time
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from agent_otel._internal import errors
from agent_otel._internal.installing import installed_with

if TYPE_CHECKING:
    from collections.abc import Iterator


class StoreError(Exception):
    """A failed operation: the store is down, full, refuses, or is not installed."""


class NotFoundError(StoreError, LookupError):
    """A missing value: nothing is stored under the key, it has expired, or the reader is not its owner."""


class TooLargeError(StoreError):
    """A value above the store's maximum size; the store is healthy otherwise."""


class Head(NamedTuple):
    """The size of a value in bytes and its expiry in seconds since 1970, available without reading the value."""

    size: int
    expires_at: float | None


def group_of(key: str) -> str:
    """Return the common prefix of one execution's keys: all but the node and the call."""
    return key.rsplit("/", 2)[0]


@runtime_checkable
class ClaimStore(Protocol):
    """A key-value store of bytes with a TTL.

    ``ttl`` is in seconds, and every write renews it. A write replaces the whole value at once: a reader gets the old
    value or the new one. A range is from byte ``start`` up to but not including ``end``; bytes beyond the value are
    left out. Deleting a missing key is no error. Every failure is a StoreError, a missing key a NotFoundError. All
    methods block: callers on an event loop run them in a thread.
    """

    def put(self, key: str, data: bytes, ttl: float) -> None:
        """Store bytes under a key."""

    def get(self, key: str) -> bytes:
        """Return the value of a key."""

    def get_range(self, key: str, start: int, end: int) -> bytes:
        """Return a byte range of a value."""

    def head(self, key: str) -> Head:
        """Return the size and the expiry of a value."""

    def delete(self, key: str) -> None:
        """Delete a key."""

    def delete_group(self, group: str) -> int:
        """Delete all keys of a group (see `group_of`); return the number of values."""


@contextlib.contextmanager
def translated(store: str) -> Iterator[None]:
    """Translate every exception of a library into a StoreError without its text, which may hold a value."""
    try:
        yield
    except StoreError:
        raise
    except errors.ours(Exception) as error:
        raise StoreError(f"{store}: {errors.described(error)}") from error


def said(error: BaseException) -> str:
    """Return the text of an error of ours; of any other its class and its place."""
    return str(error) if type(error) in (StoreError, NotFoundError, TooLargeError) else errors.described(error)


def library(module: str, extra: str) -> Any:
    """Import a third-party module on first use; StoreError with the install command when it is missing."""
    try:
        return importlib.import_module(module)
    except errors.ours(ImportError) as error:
        raise StoreError(f"{module} cannot be imported; {installed_with(extra)}") from error
    except errors.ours(Exception) as error:  # such as generated code that another version of its own library refuses
        raise StoreError(f"{module} cannot be imported: {errors.described(error)}") from error


_FRAME = struct.Struct(">4sd")  # mark; expiry in seconds since 1970
_MARK = b"aot1"
#: Bytes of the header.
FRAME_BYTES = _FRAME.size

# TTL header for stores without reliable expiry.


def frame(ttl: float) -> bytes:
    """Return the header of a value that expires ``ttl`` seconds from now."""
    return _FRAME.pack(_MARK, time.time() + ttl)


def end(framed: bytes) -> float:
    """Return the expiry of a framed value; NotFoundError when it has expired, StoreError for any other value."""
    if framed[:4] != _MARK or len(framed) < FRAME_BYTES:
        raise StoreError("what is stored under this key was written by somebody else")
    expires_at: float = _FRAME.unpack_from(framed)[1]
    if not time.time() < expires_at:
        raise NotFoundError("expired")
    return expires_at


def unframe(framed: bytes) -> bytes:
    """Return the value without its header; raises as ``end``."""
    end(framed)
    return framed[FRAME_BYTES:]
