"""LangGraph's SQLite files: the last checkpoint of a thread as JSON, and the sizes of its checkpoints.

``langgraph-checkpoint-sqlite`` writes them. A checkpoint is msgpack; LangGraph itself is not needed to read it, and no
class that a checkpoint names is imported.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from agent_otel._internal.installing import installed_with
from agent_otel.explain.source import Source, SourceError, Step
from agent_otel.measure.breakdown.json_window import chunks_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import ExitStack

RUNTIME: Final = "langgraph"
_VARIANT: Final = "sqlite"
#: Read plain tables only: a view or a virtual table can run code from the file.
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
_INSTRUCTIONS: Final = 10_000  # of SQLite, between two checks of the clock
#: Extensions inside of extensions that are decoded. Each level takes about 50 KB of the C stack.
_LEVELS: Final = 16
#: A header of five bytes reserves memory for this many elements.
_MOST_ELEMENTS: Final = 2**20
#: LangGraph's extension types that build an object from (module, name, argument, …).
_CONSTRUCTORS: Final = range(6)
_ARGUMENT: Final = 2
_LONGEST_KEY: Final = 256  # if it is not text: the quotes of a key in a key are escaped again at each level
#: Binary data as characters that JSON writes unescaped: sizes and differences are kept.
_PRINTABLE: Final = bytes(range(48, 92)) + bytes(range(93, 127))
_MASK: Final = bytes(_PRINTABLE[byte % len(_PRINTABLE)] for byte in range(256))


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
    """Open the database to read. Data from a pipe is copied to a file, because SQLite reads only files."""
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
        return json_text(data)
    except ImportError as error:
        raise SourceError(f"LangGraph checkpoints need msgpack: {installed_with('cli')}") from error
    except ValueError as error:
        raise SourceError(f"the last checkpoint cannot be decoded: {error}") from error


def json_text(data: bytes) -> str:
    """Return a msgpack value as JSON text: https://github.com/msgpack/msgpack/blob/master/spec.md has the format.

    An object of LangGraph becomes the argument of its constructor. For a message, this is the fields of the message.
    Other binary data, and an extension that is nested too deeply, becomes text of the same size.

    Raises:
        ValueError: the bytes are not msgpack, end too early, or need more memory than there is.
    """
    import msgpack  # type: ignore[import-untyped] # noqa: PLC0415 - needs an extra

    try:
        return _written(_decoded(msgpack.unpackb, data, _LEVELS))
    except msgpack.FormatError:
        raise ValueError("a byte begins no value") from None
    except (MemoryError, RecursionError, msgpack.StackError):
        raise ValueError("it is nested too deeply or too large") from None


def _decoded(unpack: Callable[..., Any], data: bytes, levels: int) -> Any:
    return unpack(
        data,
        ext_hook=partial(_object, unpack, levels),
        object_pairs_hook=_named,
        strict_map_key=False,
        unicode_errors="replace",
        max_array_len=_MOST_ELEMENTS,
    )


def _object(unpack: Callable[..., Any], levels: int, code: int, data: bytes) -> Any:
    """Return the argument of a constructor; for other extensions, text."""
    if levels and code in _CONSTRUCTORS:
        inner = _decoded(unpack, data, levels - 1)
        if isinstance(inner, list):
            return inner[_ARGUMENT] if len(inner) > _ARGUMENT else None
    return _masked(data)


def _masked(data: bytes) -> str:
    return data.translate(_MASK).decode("ascii")


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=_other)


def _other(value: Any) -> str:
    return _masked(value) if isinstance(value, bytes) else str(value)


def _named(pairs: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
    return {_name(key): value for key, value in pairs}


def _name(key: Any) -> str:
    if isinstance(key, bytes):
        return _masked(key)
    return key if isinstance(key, str) else _written(key)[:_LONGEST_KEY]
