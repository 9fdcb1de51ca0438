"""What every store offers, and how it says that it cannot."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from agent_otel._internal.daemon_pool import Workers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_T = TypeVar("_T")
_workers = Workers("stores", 8)


class StoreError(Exception):
    """A store could not do what it was asked: it is down, full, refuses, or is not installed."""


class NotFoundError(StoreError, LookupError):
    """Nothing is stored under this key, or no longer, or it is not the reader's."""


class TooLargeError(StoreError):
    """The store takes no value of this size. It is well otherwise."""


class Head(NamedTuple):
    """What a store knows of a value without reading it: its bytes, and when it ends in seconds since 1970."""

    size: int
    expires_at: float | None


def group_of(key: str) -> str:
    """Return what the keys of one execution's results have in common: all but the node and the call."""
    return key.rsplit("/", 2)[0]


@runtime_checkable
class ClaimStore(Protocol):
    """Bytes in, bytes out, for a time.

    ``ttl`` is in seconds, and every write sets it anew. A write replaces the whole value at once: a reader sees the old
    one or the new one. A range is from byte ``start`` up to but not including ``end``; what is beyond the value is left
    out. Deleting what is not there is no error. Whatever goes wrong is a StoreError; a missing key, a NotFoundError.
    """

    def put(self, key: str, data: bytes, ttl: float) -> None:
        """Store bytes under a key."""

    def get(self, key: str) -> bytes:
        """Return what is stored."""

    def get_range(self, key: str, start: int, end: int) -> bytes:
        """Return a part of what is stored."""

    def head(self, key: str) -> Head:
        """Return the size of what is stored, and its end."""

    def delete(self, key: str) -> None:
        """Forget a key."""

    def delete_group(self, group: str) -> int:
        """Forget all keys of a group (see `group_of`); return how many values that were."""

    async def aput(self, key: str, data: bytes, ttl: float) -> None:
        """Store bytes under a key."""

    async def aget(self, key: str) -> bytes:
        """Return what is stored."""

    async def aget_range(self, key: str, start: int, end: int) -> bytes:
        """Return a part of what is stored."""

    async def ahead(self, key: str) -> Head:
        """Return the size of what is stored, and its end."""

    async def adelete(self, key: str) -> None:
        """Forget a key."""

    async def adelete_group(self, group: str) -> int:
        """Forget all keys of a group; return how many values that were."""


class Threaded:
    """The asynchronous half of a store whose other half blocks: each call in a thread."""

    put: Callable[[str, bytes, float], None]
    get: Callable[[str], bytes]
    get_range: Callable[[str, int, int], bytes]
    head: Callable[[str], Head]
    delete: Callable[[str], None]
    delete_group: Callable[[str], int]

    async def aput(self, key: str, data: bytes, ttl: float) -> None:
        """Store bytes under a key."""
        await _in_thread(lambda: self.put(key, data, ttl))

    async def aget(self, key: str) -> bytes:
        """Return what is stored."""
        return await _in_thread(lambda: self.get(key))

    async def aget_range(self, key: str, start: int, end: int) -> bytes:
        """Return a part of what is stored."""
        return await _in_thread(lambda: self.get_range(key, start, end))

    async def ahead(self, key: str) -> Head:
        """Return the size of what is stored, and its end."""
        return await _in_thread(lambda: self.head(key))

    async def adelete(self, key: str) -> None:
        """Forget a key."""
        await _in_thread(lambda: self.delete(key))

    async def adelete_group(self, group: str) -> int:
        """Forget all keys of a group; return how many values that were."""
        return await _in_thread(lambda: self.delete_group(group))


async def _in_thread(call: Callable[[], _T]) -> _T:
    return await asyncio.wrap_future(_workers.submit(call))


@contextlib.contextmanager
def translated(store: str) -> Iterator[None]:
    """Make a StoreError, of one line, of whatever a library raises."""
    try:
        yield
    except StoreError:
        raise
    except Exception as error:
        said = (str(error).splitlines() or [""])[0][:300]
        raise StoreError(f"{store}: {type(error).__name__}: {said}") from error


def library(module: str, extra: str) -> Any:
    """Import a third-party module when it is first needed; StoreError that says how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise StoreError(f"{module} cannot be imported ({error}); pip install 'agent-otel[{extra}]'") from error
