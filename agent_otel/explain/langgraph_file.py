"""LangGraph's SQLite files: the last checkpoint of a thread as JSON, and the sizes of its checkpoints.

``langgraph-checkpoint-sqlite`` writes them. A checkpoint is msgpack; LangGraph itself is not needed to read it, and no
class that a checkpoint names is imported.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from agent_otel._internal.installing import installed_with
from agent_otel.explain.source import Source, SourceError, Step
from agent_otel.measure.breakdown.json_window import chunks_of

if TYPE_CHECKING:
    from contextlib import ExitStack

RUNTIME: Final = "langgraph"
_VARIANT: Final = "sqlite"
#: A view and a virtual table run what the file says.
_IS_TABLE: Final = """
SELECT 1 FROM sqlite_master WHERE name = 'checkpoints' AND type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'
"""
_LARGEST_THREAD: Final = "SELECT thread_id FROM checkpoints ORDER BY length(checkpoint) DESC LIMIT 1"
_SIZES: Final = """
SELECT checkpoint_ns, length(checkpoint) FROM (
    SELECT * FROM checkpoints WHERE thread_id = ? ORDER BY checkpoint_id DESC LIMIT 100000
) ORDER BY checkpoint_id
"""
_LAST: Final = """
SELECT type, rowid, length(checkpoint) FROM checkpoints
WHERE thread_id = ? ORDER BY checkpoint_ns, checkpoint_id DESC LIMIT 1
"""
_THREADS: Final = "SELECT count(DISTINCT thread_id) FROM checkpoints"
_CHECKPOINT: Final = "SELECT CAST(checkpoint AS BLOB) FROM checkpoints WHERE rowid = ?"
_MOST_BYTES: Final = 128 * 1024 * 1024  # of a checkpoint, which is in memory as a whole
_MOST_SECONDS: Final = 30.0
_INSTRUCTIONS: Final = 10_000  # of SQLite, between two looks at the clock


def source(name: str, file: IO[bytes], thread: str | None, stack: ExitStack) -> Source:
    """Return the source of a file, for a thread or for the one with the largest checkpoint; ``stack`` closes it.

    Raises:
        SourceError: the file has no checkpoints, not this thread, or takes too long or too much memory.
    """
    try:
        return _read(name, _connected(name, file, stack), thread)
    except sqlite3.Error as error:
        why = "it takes too long to read" if "interrupted" in str(error) else error
        raise SourceError(f"{name} is no LangGraph SQLite file: {why}") from error


def _connected(name: str, file: IO[bytes], stack: ExitStack) -> sqlite3.Connection:
    """Open the database to read; what came from a pipe is copied, because SQLite reads files alone."""
    path = Path(name).absolute()
    if not path.is_file():
        path = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "copied.sqlite"
        file.seek(0)
        with path.open("wb") as copied:
            shutil.copyfileobj(file, copied)
    connection = stack.enter_context(closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)))
    end = time.monotonic() + _MOST_SECONDS
    connection.set_progress_handler(lambda: time.monotonic() > end, _INSTRUCTIONS)
    return connection


def _read(name: str, connection: sqlite3.Connection, thread: str | None) -> Source:
    if connection.execute(_IS_TABLE).fetchone() is None:
        raise SourceError(f"{name} is no LangGraph SQLite file: it has no table of checkpoints")
    found = connection.execute(_LARGEST_THREAD).fetchone()
    if found is None:
        raise SourceError(f"{name} has no checkpoints")
    chosen = found[0] if thread is None else thread
    last = connection.execute(_LAST, (chosen,)).fetchone()
    if last is None:
        raise SourceError(f"{name} has no thread {thread}")
    kind, row, size = last
    text = _text(kind, size, connection, row)
    sizes = connection.execute(_SIZES, (chosen,)).fetchall()
    steps = [Step(str(namespace), "state", int(size or 0)) for namespace, size in sizes]
    (threads,) = connection.execute(_THREADS).fetchone()
    notes = [f"Thread {chosen}, one of {threads:,}: the last of its {len(steps):,} checkpoints, as JSON."]
    return Source("LangGraph checkpoint", lambda: chunks_of(text), None, RUNTIME, _VARIANT, steps, notes)


def _text(kind: str, size: int | None, connection: sqlite3.Connection, row: int) -> str | bytes:
    """Return a checkpoint as JSON text.

    Raises:
        SourceError: it is of another kind, damaged, or too large.
    """
    if kind not in ("json", "msgpack"):
        raise SourceError(f"the last checkpoint is {kind}, which is not read: only json and msgpack are")
    if size is None or size > _MOST_BYTES:
        what = "nothing" if size is None else f"{size:,} bytes, more than {_MOST_BYTES:,}"
        raise SourceError(f"the last checkpoint cannot be decoded: it is {what}")
    data: bytes = connection.execute(_CHECKPOINT, (row,)).fetchone()[0]
    if kind == "json":
        return data
    try:
        from agent_otel.explain.msgpack_text import json_text  # noqa: PLC0415 - needs an extra
    except ImportError as error:
        raise SourceError(f"LangGraph checkpoints need msgpack: {installed_with('cli')}") from error
    try:
        return json_text(data)
    except ValueError as error:
        raise SourceError(f"the last checkpoint cannot be decoded: {error}") from error
