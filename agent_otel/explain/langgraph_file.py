"""LangGraph's SQLite files: the last checkpoint of a thread as JSON, and the sizes of all its checkpoints.

``langgraph-checkpoint-sqlite`` writes them. A checkpoint is msgpack; LangGraph itself is not needed to read it, and no
class that a checkpoint names is imported.
"""

from __future__ import annotations

import io
import shutil
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from agent_otel._internal.installing import installed_with
from agent_otel.explain.source import Source, SourceError, Step, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import ExitStack

RUNTIME: Final = "langgraph"
_VARIANT: Final = "sqlite"
_LARGEST_THREAD: Final = "SELECT thread_id FROM checkpoints ORDER BY length(checkpoint) DESC LIMIT 1"
_SIZES: Final = """
SELECT checkpoint_ns, length(checkpoint) FROM checkpoints WHERE thread_id = ? ORDER BY checkpoint_id
"""
_LAST: Final = """
SELECT type, rowid FROM checkpoints WHERE thread_id = ? ORDER BY checkpoint_ns, checkpoint_id DESC LIMIT 1
"""
_THREADS: Final = "SELECT count(DISTINCT thread_id) FROM checkpoints"


def source(name: str, file: IO[bytes], thread: str | None, stack: ExitStack) -> Source:
    """Return the source of a file, for a thread or for the one with the largest checkpoint; ``stack`` closes it.

    Raises:
        SourceError: the file has no checkpoints, or not this thread.
    """
    try:
        return _read(name, _connected(name, file, stack), thread)
    except sqlite3.Error as error:
        raise SourceError(f"{name} is no LangGraph SQLite file: {error}") from error


def _connected(name: str, file: IO[bytes], stack: ExitStack) -> sqlite3.Connection:
    """Open the database to read; what came from a pipe is copied, because SQLite reads files alone."""
    path = Path(name).absolute()
    if not path.is_file():
        path = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "copied.sqlite"
        file.seek(0)
        with path.open("wb") as copied:
            shutil.copyfileobj(file, copied)
    return stack.enter_context(closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)))


def _read(name: str, connection: sqlite3.Connection, thread: str | None) -> Source:
    found = connection.execute(_LARGEST_THREAD).fetchone()
    if found is None:
        raise SourceError(f"{name} has no checkpoints")
    chosen = found[0] if thread is None else thread
    last = connection.execute(_LAST, (chosen,)).fetchone()
    if last is None:
        raise SourceError(f"{name} has no thread {thread}")
    sizes = connection.execute(_SIZES, (chosen,)).fetchall()
    steps = [Step(namespace, "state", size) for namespace, size in sizes]
    (threads,) = connection.execute(_THREADS).fetchone()
    notes = [f"Thread {chosen}, one of {threads:,}: the last of its {len(steps):,} checkpoints, as JSON."]
    kind, row = last
    if kind not in _TEXTS:
        raise SourceError(f"the last checkpoint is {kind}, which is not read: only json and msgpack are")

    def chunks() -> Iterator[str]:
        return _chunks(connection, kind, row)

    return Source("LangGraph checkpoint", chunks, None, RUNTIME, _VARIANT, steps, notes)


def _chunks(connection: sqlite3.Connection, kind: str, row: int) -> Iterator[str]:
    """Yield a checkpoint as JSON text.

    Raises:
        SourceError: it is damaged, or the file changes while it is read.
    """
    try:
        with _blob(connection, row) as blob:
            yield from _TEXTS[kind](blob)
    except (ValueError, RecursionError, sqlite3.Error) as error:
        raise SourceError(f"the last checkpoint cannot be decoded: {error}") from error


def _blob(connection: sqlite3.Connection, row: int) -> Any:
    """Open a checkpoint as a file; Python 3.10 has no way to read it piece by piece."""
    if sys.version_info >= (3, 11):
        return connection.blobopen("checkpoints", "checkpoint", row, readonly=True)
    (data,) = connection.execute("SELECT checkpoint FROM checkpoints WHERE rowid = ?", (row,)).fetchone()
    return io.BytesIO(data)


def _text_of_msgpack(blob: IO[bytes]) -> Iterator[str]:
    try:
        from agent_otel.explain.msgpack_text import json_text  # noqa: PLC0415 - needs an extra
    except ImportError as error:
        raise SourceError(f"LangGraph checkpoints need msgpack: {installed_with('cli')}") from error
    return json_text(blob.read)


_TEXTS: Final = {"json": text_of, "msgpack": _text_of_msgpack}
