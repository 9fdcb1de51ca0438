"""LangGraph's SQLite files: the last checkpoint of a thread as JSON, and the sizes of all its checkpoints.

``langgraph-checkpoint-sqlite`` writes them. A checkpoint is msgpack; LangGraph itself is not needed to read it, and no
class that a checkpoint names is imported.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from agent_otel._internal.installing import installed_with
from agent_otel.explain.source import Source, SourceError, Step
from agent_otel.measure.breakdown.json_window import chunks_of

if TYPE_CHECKING:
    from collections.abc import Iterator

RUNTIME: Final = "langgraph"
_VARIANT: Final = "sqlite"
_LARGEST_THREAD: Final = "SELECT thread_id FROM checkpoints ORDER BY length(checkpoint) DESC LIMIT 1"
_SIZES: Final = """
SELECT checkpoint_ns, length(checkpoint) FROM checkpoints WHERE thread_id = ? ORDER BY checkpoint_id
"""
_LAST: Final = """
SELECT type, checkpoint FROM checkpoints WHERE thread_id = ? ORDER BY checkpoint_ns, checkpoint_id DESC LIMIT 1
"""
_THREADS: Final = "SELECT count(DISTINCT thread_id) FROM checkpoints"
#: Codes of LangGraph's extension types: (module, name, argument, …); of a NumPy array only the size is of interest.
_CONSTRUCTORS: Final = range(6)


def source(name: str, file: IO[bytes], thread: str | None) -> Source:
    """Return the source of a file, for a thread or for the one with the largest checkpoint.

    Raises:
        SourceError: the file has no checkpoints, or not this thread.
    """
    try:
        with _connected(name, file) as connection:
            return _read(name, connection, thread)
    except sqlite3.Error as error:
        raise SourceError(f"{name} is no LangGraph SQLite file: {error}") from error


def _connected(name: str, file: IO[bytes]) -> closing[sqlite3.Connection]:
    """Open the database to read; what came from a pipe is copied, because SQLite reads files alone."""
    path = Path(name)
    if not path.is_file():
        copied = tempfile.NamedTemporaryFile(suffix=".sqlite")  # noqa: SIM115 - it goes with the connection
        file.seek(0)
        shutil.copyfileobj(file, copied)
        copied.flush()
        memory = sqlite3.connect(":memory:")
        with copied, closing(sqlite3.connect(f"{Path(copied.name).as_uri()}?mode=ro", uri=True)) as connection:
            connection.backup(memory)
        return closing(memory)
    return closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True))


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
    data = json.dumps(_decoded(*last), ensure_ascii=False, default=str).encode("utf-8", "replace")
    notes = [f"Thread {chosen}, one of {threads:,}: the last of its {len(steps):,} checkpoints, as JSON."]

    def chunks() -> Iterator[str]:
        return chunks_of(data)

    return Source("LangGraph checkpoint", chunks, len(data), RUNTIME, _VARIANT, steps, notes)


def _decoded(kind: str, blob: bytes) -> Any:
    """Return the value of a checkpoint.

    Raises:
        SourceError: it is encrypted, pickled or truncated.
    """
    try:
        if kind == "json":
            return json.loads(blob)
        if kind == "msgpack":
            return _unpacked(blob)
    except (ValueError, RecursionError) as error:
        raise SourceError(f"the last checkpoint cannot be decoded: {error}") from error
    raise SourceError(f"the last checkpoint is {kind}, which is not read: only json and msgpack are")


def _unpacked(blob: bytes) -> Any:
    try:
        import ormsgpack  # noqa: PLC0415 - only for these files
    except ImportError as error:
        raise SourceError(f"LangGraph checkpoints need ormsgpack: {installed_with('cli')}") from error
    return ormsgpack.unpackb(blob, ext_hook=_extension, option=ormsgpack.OPT_NON_STR_KEYS)


def _extension(code: int, data: bytes) -> Any:
    """Return the arguments with which LangGraph would build an object; fields of a message, for a message."""
    inner = _unpacked(data)
    if code in _CONSTRUCTORS and isinstance(inner, list | tuple) and len(inner) > 2:  # noqa: PLR2004 - see above
        return inner[2]
    return "0" * len(data)
