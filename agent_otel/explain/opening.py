"""Opens a file, a pipe or standard input, and recognises its format by the first bytes."""

from __future__ import annotations

import codecs
import contextlib
import os
import select
import stat
import tempfile
import time
from typing import IO, TYPE_CHECKING, Final

from agent_otel.explain import langgraph_file, temporal_history
from agent_otel.explain.source import Source, SourceError, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

STANDARD_INPUT: Final = "-"
_SQLITE: Final = b"SQLite format 3\0"
_LOOK: Final = 4096
_SPOOLED_BYTES: Final = 4 * 1024 * 1024  # of a pipe that are kept in memory
_MOST_BYTES: Final = 2**29  # of a pipe, which is copied
_MOST_SECONDS: Final = 120.0  # for a whole pipe
_SILENT_SECONDS: Final = 20.0  # without a byte
_BLOCK: Final = 64 * 1024
_UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@contextlib.contextmanager
def opened(name: str, thread: str | None = None) -> Iterator[Source]:
    """Open the payload of a path, or of standard input; ``thread`` is one of a LangGraph file.

    Raises:
        SourceError: it cannot be read, is empty, or holds neither JSON nor a known format.
    """
    if "\0" in name:
        raise SourceError(f"{name!r} is no path")
    try:
        with contextlib.ExitStack() as stack:
            yield _recognised(name, _file(name, stack), thread, stack)
    except OSError as error:
        raise SourceError(f"{name} cannot be read: {error.strerror or error}") from error


def _recognised(name: str, file: IO[bytes], thread: str | None, stack: contextlib.ExitStack) -> Source:
    head = file.read(_LOOK)
    if head.startswith(_SQLITE):
        return langgraph_file.source(name, file, thread, stack)
    _check(name, head)
    size = file.seek(0, os.SEEK_END)
    if temporal_history.is_history(head):
        return temporal_history.source(lambda: text_of(file, size))
    return Source("JSON", lambda: text_of(file, size), size)


def _file(name: str, stack: contextlib.ExitStack) -> IO[bytes]:
    """Open a path for reading from any position; the content of a pipe is copied first.

    Raises:
        SourceError: it is a device, or a pipe that does not end.
    """
    # To open a pipe without O_NONBLOCK waits for its writer.
    descriptor = os.dup(0) if name == STANDARD_INPUT else os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    file = stack.enter_context(os.fdopen(descriptor, "rb", buffering=0))
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) and status.st_size:
        return file
    if stat.S_ISBLK(status.st_mode) or (stat.S_ISCHR(status.st_mode) and not file.isatty()):
        raise SourceError(f"{name} is a device, which may have no end")
    copied = stack.enter_context(tempfile.SpooledTemporaryFile(_SPOOLED_BYTES))  # noqa: SIM115 - the stack closes it
    _copy(name, file, copied)
    return copied


def _copy(name: str, pipe: IO[bytes], copied: IO[bytes]) -> None:
    """Copy a pipe, which may be endless, or have no writer."""
    end = time.monotonic() + _MOST_SECONDS
    while select.select([pipe], [], [], _SILENT_SECONDS)[0] and time.monotonic() < end:
        block = pipe.read(_BLOCK)
        if block == b"":
            copied.seek(0)
            return
        copied.write(block or b"")
        if copied.tell() > _MOST_BYTES:
            raise SourceError(f"{name} has more than {_MOST_BYTES:,} bytes: write it to a file first")
    raise SourceError(f"{name} does not end: write it to a file first")


def _check(name: str, head: bytes) -> None:
    """Raise SourceError for a beginning that cannot be JSON text."""
    if not head.strip():
        raise SourceError(f"{name} is empty")
    if head.startswith(_UTF_16):
        raise SourceError(f"{name} is UTF-16: convert it to UTF-8")
    if b"\0" in head:
        raise SourceError(f"{name} is a binary file: neither JSON nor a LangGraph SQLite file")
    first = head.removeprefix(codecs.BOM_UTF8).lstrip()[:1]
    if first not in b'{["':
        raise SourceError(f"{name} is not JSON: it begins with {first.decode('ascii', 'replace')!r}")
