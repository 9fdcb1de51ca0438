"""Opens a file, a pipe or standard input, and recognises its format by the first bytes."""

from __future__ import annotations

import codecs
import contextlib
import os
import shutil
import stat
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from agent_otel.explain import langgraph_file, temporal_history
from agent_otel.explain.source import Source, SourceError, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

STANDARD_INPUT: Final = "-"
_SQLITE: Final = b"SQLite format 3\0"
_LOOK: Final = 4096
_SPOOLED_BYTES: Final = 4 * 1024 * 1024  # of a pipe that are kept in memory
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
            yield _recognised(name, stack.enter_context(_file(name)), thread, stack)
    except OSError as error:
        raise SourceError(f"{name} cannot be read: {error.strerror or error}") from error


def _recognised(name: str, file: IO[bytes], thread: str | None, stack: contextlib.ExitStack) -> Source:
    head = file.read(_LOOK)
    if head.startswith(_SQLITE):
        return langgraph_file.source(name, file, thread, stack)
    _check(name, head)
    if temporal_history.is_history(head):
        return temporal_history.source(lambda: text_of(file))
    return Source("JSON", lambda: text_of(file), file.seek(0, os.SEEK_END))


def _file(name: str) -> IO[bytes]:
    """Open a path for reading from any place; the content of a pipe is copied first."""
    if name == STANDARD_INPUT:
        return _spooled(os.fdopen(os.dup(0), "rb"))
    file = Path(name).open("rb")  # noqa: SIM115 - the caller closes it
    return file if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else _spooled(file)


def _spooled(pipe: IO[bytes]) -> IO[bytes]:
    copied = tempfile.SpooledTemporaryFile(_SPOOLED_BYTES)  # noqa: SIM115 - the caller closes it
    with pipe:
        shutil.copyfileobj(pipe, copied)
    copied.seek(0)
    return copied


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
