"""Opens a payload in a file, a pipe, standard input or PostgreSQL as JSON text: JSON, a Temporal history, a checkpoint.

``temporal workflow show --output json``, ``WorkflowHistory.to_json`` and the Web UI's download write histories as JSON.
Their payloads are base64, and are decoded on the way. ``langgraph-checkpoint-sqlite`` writes LangGraph's files. A
checkpoint is msgpack; LangGraph itself is not needed to read it, and no class that a checkpoint names is imported.
"""

from __future__ import annotations

import binascii
import codecs
import contextlib
import json
import os
import re
import select
import shutil
import sqlite3
import stat
import tempfile
import time
from base64 import b64decode
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from agent_otel._internal.installing import installed_with
from agent_otel.measure.breakdown.json_reader import WINDOW, chunks_of
from agent_otel.measure.forecast import turns_until_full
from agent_otel.measure.size import text_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

STANDARD_INPUT: Final = "-"
_LOOK: Final = 4096
_COMPRESSED: Final = (b"\x1f\x8b", b"BZh", b"PK\3\4", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")
_SPOOLED_BYTES: Final = 4 * 1024 * 1024  # of a pipe that are kept in memory
_MOST_BYTES: Final = 2**29  # of a pipe, which is copied
_MOST_SECONDS: Final = 120.0  # for a whole pipe
_SILENT_SECONDS: Final = 20.0  # without a byte
_COPIED: Final = 64 * 1024


class SourceError(Exception):
    """A source that cannot be explained; the message is for the user."""


@dataclass(frozen=True, slots=True)
class Step:
    """A payload of a durable runtime: its name, its boundary, and its bytes without the runtime's encoding."""

    name: str
    boundary: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Source:
    """A payload as JSON text; each call of ``chunks`` reads it from the beginning.

    ``bytes`` is the size of the text, None where only reading finds it. ``steps`` are the payloads of a runtime's
    history, and ``history`` its bytes and events after each of them, complete when ``chunks`` has been read once.
    """

    kind: str
    chunks: Callable[[], Iterator[str]]
    bytes: int | None
    runtime: str = ""
    variant: str = ""
    steps: list[Step] = field(default_factory=list)
    history: list[tuple[int, int]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@contextlib.contextmanager
def opened(name: str, thread: str | None = None) -> Iterator[Source]:
    """Open the payload of a path, a PostgreSQL URL or standard input; ``thread`` is one of LangGraph's.

    Raises:
        SourceError: it cannot be read, is empty, or holds neither JSON nor a known format.
    """
    if "\0" in name:
        raise SourceError(f"{name!r} is no path")
    try:
        with contextlib.ExitStack() as stack:
            if name.startswith(_POSTGRES):
                yield _in_postgres(name, thread, stack)
                return
            yield _recognised(name, _file(name, stack), thread, stack)
    except OSError as error:
        raise SourceError(f"{name} cannot be read: {error.strerror or error}") from error
    except sqlite3.Error as error:
        if "locked" in str(error) or "busy" in str(error):
            raise SourceError(f"{name} is in use: copy it, and explain the copy") from error
        why = "it takes too long to read" if "interrupted" in str(error) else error
        if "no such column" in str(error):
            why = f"its tables are of another version ({error})"
        raise SourceError(f"{name} is no LangGraph SQLite file: {why}") from error


def _file(name: str, stack: contextlib.ExitStack) -> IO[bytes]:
    """Open a path for reading from any position; the content of a pipe, which may be endless, is copied first."""
    # To open a pipe without O_NONBLOCK waits for its writer.
    descriptor = os.dup(0) if name == STANDARD_INPUT else os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    pipe = stack.enter_context(os.fdopen(descriptor, "rb", buffering=0))
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) and status.st_size:
        return pipe
    if stat.S_ISBLK(status.st_mode) or (stat.S_ISCHR(status.st_mode) and not pipe.isatty()):
        raise SourceError(f"{name} is a device, which may have no end")
    copied = stack.enter_context(tempfile.SpooledTemporaryFile(_SPOOLED_BYTES))  # noqa: SIM115 - the stack closes it
    end = time.monotonic() + _MOST_SECONDS
    while select.select([pipe], [], [], _SILENT_SECONDS)[0] and time.monotonic() < end:
        block = pipe.read(_COPIED)
        if block == b"":
            copied.seek(0)
            return copied
        copied.write(block or b"")
        if copied.tell() > _MOST_BYTES:
            raise SourceError(f"{name} has more than {_MOST_BYTES:,} bytes: write it to a file first")
    raise SourceError(f"{name} does not end: write it to a file first")


def _recognised(name: str, file: IO[bytes], thread: str | None, stack: contextlib.ExitStack) -> Source:
    """Return the source of a file by its first bytes."""
    head = file.read(_LOOK)
    if head.startswith(b"SQLite format 3\0"):
        return _checkpoint(name, _connected(name, file, stack), thread)
    if not head.strip():
        raise SourceError(f"{name} is empty")
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise SourceError(f"{name} is UTF-16: convert it to UTF-8")
    if head.startswith(_COMPRESSED):
        raise SourceError(f"{name} is compressed: unpack it first")
    if b"\0" in head:
        raise SourceError(f"{name} is a binary file: neither JSON nor a LangGraph SQLite file")
    first = head.removeprefix(codecs.BOM_UTF8).lstrip()[:1]
    if first not in b'{["':
        raise SourceError(f"{name} is not JSON: it begins with {first.decode('ascii', 'replace')!r}")
    size = file.seek(0, os.SEEK_END)
    if re.search(rb'"events"\s*:\s*\[', head) and re.search(rb'"eventType"\s*:', head):
        found = Source("Temporal history", lambda: _Decoder(_text_of(file, size), found).chunks(), None, "temporal")
        return found
    return Source("JSON", lambda: _text_of(file, size), size)


def _text_of(file: IO[bytes], size: int) -> Iterator[str]:
    """Yield so many bytes of a file as text, without bytes that are not UTF-8; the file may grow meanwhile."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")("ignore")
    file.seek(0)
    while size > 0 and (block := file.read(min(WINDOW, size))):
        size -= len(block)
        yield decoder.decode(block)
    yield decoder.decode(b"", final=True)


# Temporal's histories.

#: Kind of event and field -> boundary of its payloads.
_BOUNDARIES: Final = {
    ("workflowExecutionStarted", "input"): "workflow_input",
    ("activityTaskScheduled", "input"): "activity_input",
    ("activityTaskCompleted", "result"): "activity_output",
    ("workflowExecutionCompleted", "result"): "workflow_output",
}
_JSON: Final = tuple(binascii.b2a_base64(name, newline=False).decode() for name in (b"json/plain", b"json/protobuf"))
_FIELDS: Final = "input|result|header|memo|searchAttributes|details|failure|lastCompletionResult"
_MARK: Final = re.compile(
    r'"(?P<event>\w+)EventAttributes"\s*:|"activityType"\s*:\s*\{\s*"name"\s*:\s*"(?P<name>[^"]{0,256})"'
    rf'|"(?P<field>{_FIELDS})"\s*:\s*[{{\[]|"encoding"\s*:\s*"(?P<encoding>[^"]{{0,64}})"|"data"\s*:\s*"(?P<data>)'
)
_LONGEST_MARK: Final = 512
_BLOCK: Final = 32 * 1024  # characters of base64, a multiple of four
_EVENT_BYTES: Final = 150  # of an event beside its payloads, about


class _Decoder:
    """Replaces the base64 text of each JSON payload by the JSON, and records the payloads' sizes."""

    def __init__(self, text: Iterator[str], found: Source) -> None:
        self._text = text
        self._found = found
        found.steps.clear()
        found.history.clear()
        self._events = self._all_bytes = self._step_bytes = 0
        self._buffer = ""
        #: The event, its name, its field and the encoding of its payload.
        self._at = dict.fromkeys(("event", "name", "field", "encoding"), "")

    def chunks(self) -> Iterator[str]:
        """Yield the decoded text."""
        while True:
            mark = _MARK.search(self._buffer)
            if mark is None:
                yield self._taken(max(0, len(self._buffer) - _LONGEST_MARK))
                if self._has_more():
                    continue
                yield self._buffer
                self._finish_step()
                return
            kind = str(mark.lastgroup)
            is_json = kind == "data" and self._at["encoding"] in _JSON
            yield self._taken(mark.end() - is_json)
            if is_json:
                yield from self._payload()
            elif kind != "data":
                if kind in ("event", "field"):
                    self._finish_step()
                if kind == "event":
                    self._events += 1
                    self._at.update(name="", field="")
                self._at[kind] = mark[kind]

    def _taken(self, count: int) -> str:
        """Remove the first characters of the buffer and return them."""
        taken, self._buffer = self._buffer[:count], self._buffer[count:]
        return taken

    def _has_more(self) -> bool:
        chunk = next(self._text, None)
        self._buffer += chunk or ""
        return chunk is not None

    def _payload(self) -> Iterator[str]:
        """Yield the JSON of a payload, a block at a time, instead of the text and its quotes."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._at["encoding"] = ""
        self._taken(1)
        is_last = False
        while not is_last:
            while (end := self._buffer.find('"')) < 0 and len(self._buffer) < _BLOCK and self._has_more():
                pass
            block = self._taken(end if 0 <= end <= _BLOCK else _BLOCK)
            is_last = len(block) < _BLOCK or self._buffer.startswith('"')
            try:
                decoded = decoder.decode(b64decode(block), final=is_last)
            except binascii.Error:
                decoded = "null"
            self._step_bytes += text_bytes(decoded)
            yield decoded
        self._buffer = self._buffer.removeprefix('"')

    def _finish_step(self) -> None:
        """Record the payloads of a field of an event: their cap is on all of them together."""
        boundary = _BOUNDARIES.get((self._at["event"], self._at["field"]))
        self._all_bytes += self._step_bytes
        if boundary is not None and self._step_bytes:
            self._found.steps.append(Step(self._at["name"], boundary, self._step_bytes))
            self._found.history.append((self._all_bytes + self._events * _EVENT_BYTES, self._events))
        self._step_bytes = 0


# LangGraph's files. Plain tables only are read: a view or a virtual table can run code from the file.

_IS_TABLE: Final = """
SELECT 1 FROM sqlite_master WHERE name = ? AND type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'
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
_WRITES: Final = "SELECT coalesce(sum(length(value)), 0) FROM writes WHERE thread_id = ?"
#: Bytes of a thread in a store; the report says when it reaches them.
_MILESTONES: Final = {"10 MB": 10_000_000, "100 MB": 100_000_000, "1 GB": 1_000_000_000}
_LARGEST_SESSION: Final = """
SELECT session_id FROM agent_messages GROUP BY session_id ORDER BY sum(length(message_data)) DESC LIMIT 1
"""
_ITEMS: Final = "SELECT message_data FROM agent_messages WHERE session_id = ? ORDER BY id"
_CHECKPOINT: Final = "SELECT CAST(checkpoint AS BLOB) FROM checkpoints WHERE rowid = ?"
_NOTED_BYTES: Final = 10_000
_LARGEST_CHECKPOINT: Final = 128 * 1024 * 1024  # which is in memory as a whole
_DATABASE_SECONDS: Final = 30.0
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


def _connected(name: str, file: IO[bytes], stack: contextlib.ExitStack) -> sqlite3.Connection:
    """Open the database to read. Data from a pipe is copied to a file, because SQLite reads only files."""
    path = Path(name).absolute()
    if not path.is_file():
        path = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "copied.sqlite"
        file.seek(0)
        with path.open("wb") as copied:
            shutil.copyfileobj(file, copied)
    connection = stack.enter_context(contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)))
    end = time.monotonic() + _DATABASE_SECONDS
    connection.set_progress_handler(lambda: time.monotonic() > end, _INSTRUCTIONS)
    return connection


def _checkpoint(name: str, connection: sqlite3.Connection, thread: str | None) -> Source:
    """Return the last checkpoint of a thread, or of the one with the largest checkpoint, and the sizes of all."""
    if connection.execute(_IS_TABLE, ("agent_messages",)).fetchone() is not None:
        return _session(name, connection, thread)
    if connection.execute(_IS_TABLE, ("checkpoints",)).fetchone() is None:
        raise SourceError(f"{name} is no LangGraph SQLite file: it has no table of checkpoints")
    found = connection.execute(_LARGEST_THREAD).fetchone()
    if found is None:
        raise SourceError(f"{name} has no checkpoints")
    chosen = found[0] if thread is None else thread
    last = connection.execute(_LAST, (chosen,)).fetchone()
    if last is None:
        raise SourceError(f"{name} has no thread {thread}")
    kind, row, size = last
    unread = []
    try:
        text = _decoded(connection, kind, row, size)
    except ValueError as error:  # such as an encrypted one
        text, unread = f'"{"x" * (size - 2)}"', [f"Only sizes are known: {error}."]
    sizes = connection.execute(_SIZES, (chosen,)).fetchall()
    steps = [Step(str(namespace), "state", int(size or 0)) for namespace, size in sizes]
    (threads,) = connection.execute(_THREADS).fetchone()
    has_writes = connection.execute(_IS_TABLE, ("writes",)).fetchone() is not None
    written = connection.execute(_WRITES, (chosen,)).fetchone()[0] if has_writes else 0
    notes = [*unread, *_stored(chosen, threads, steps, int(written)), *_equal(connection, str(chosen), text)]
    return Source("LangGraph checkpoint", lambda: chunks_of(text), None, "langgraph", "sqlite", steps, notes=notes)


def _stored(thread: object, threads: int, steps: list[Step], more_bytes: int) -> list[str]:
    """Return the size of a thread in a store with all its checkpoints, and when it reaches milestones."""
    sizes = [step.bytes for step in steps]
    all_bytes = sum(sizes) + more_bytes
    said = f"The store has {all_bytes:,} bytes of it, {all_bytes / max(1, sizes[-1]):,.1f} times the last checkpoint"
    more = max(0, sizes[-1] - sizes[-2]) if len(sizes) > 1 else 0
    ahead = []
    for name, limit in _MILESTONES.items():
        fit = turns_until_full(limit - 1 - all_bytes, sizes[-1], more) if limit > all_bytes else None
        ahead += [] if fit is None else [f"{name} after {fit + 1:,} more"]
    what = f"Thread {thread}, one of {threads:,}: the last of its {len(steps):,} checkpoints, as JSON."
    return [what, f"{said}: {', '.join(ahead)}." if ahead else f"{said}."]


# PostgreSQL keeps each version of a channel once, beside the checkpoints that name it.

_POSTGRES: Final = ("postgresql://", "postgres://")
_READ_ONLY: Final = "-c default_transaction_read_only=on -c statement_timeout=30000"
_LARGEST_IN_POSTGRES: Final = """
SELECT thread_id, count(*) OVER () FROM checkpoint_blobs GROUP BY thread_id ORDER BY sum(length(blob)) DESC NULLS LAST
"""
_CHECKPOINTS: Final = """
SELECT checkpoint_ns, length(checkpoint::text), checkpoint->'channel_versions' FROM checkpoints
WHERE thread_id = %s ORDER BY checkpoint_id
"""
_BLOBS: Final = (
    "SELECT checkpoint_ns, channel, version, coalesce(length(blob), 0) FROM checkpoint_blobs WHERE thread_id = %s"
)
_BLOB: Final = """
SELECT type, blob FROM checkpoint_blobs WHERE thread_id = %s AND checkpoint_ns = %s AND channel = %s AND version = %s
"""
_LAST_IN_POSTGRES: Final = """
SELECT checkpoint, checkpoint_ns FROM checkpoints WHERE thread_id = %s
ORDER BY checkpoint_ns, checkpoint_id DESC LIMIT 1
"""
_WRITES_IN_POSTGRES: Final = "SELECT coalesce(sum(length(blob)), 0) FROM checkpoint_writes WHERE thread_id = %s"


def without_secrets(name: str) -> str:
    """Return a name as it may be shown: a URL without user, password and options."""
    return re.sub(r"//.*@", "//", name.partition("?")[0]) if name.startswith(_POSTGRES) else name


def _in_postgres(url: str, thread: str | None, stack: contextlib.ExitStack) -> Source:
    """Return the last checkpoint of a thread of ``langgraph-checkpoint-postgres``, and each checkpoint's writes."""
    shown = without_secrets(url)
    try:
        import psycopg  # type: ignore[import-not-found,unused-ignore] # noqa: PLC0415 - needs an extra
    except ImportError as error:
        raise SourceError(f"PostgreSQL needs psycopg: {installed_with('postgres')}") from error
    try:
        connection = stack.enter_context(psycopg.connect(url, connect_timeout=10, options=_READ_ONLY))
        found = connection.execute(_LARGEST_IN_POSTGRES).fetchone()
        chosen = thread or (found[0] if found else None)
        last = connection.execute(_LAST_IN_POSTGRES, (chosen,)).fetchone()
        if found is None or last is None:
            raise SourceError(f"{shown} has no thread {thread}" if thread else f"{shown} has no checkpoints")
        checkpoint, namespace = last
        for channel, version in checkpoint["channel_versions"].items():
            blob = connection.execute(_BLOB, (chosen, namespace, channel, str(version))).fetchone()
            if blob is not None and blob[1] is not None:
                checkpoint.setdefault("channel_values", {})[channel] = _channel(*blob)
        blobs = {tuple(key): size for *key, size in connection.execute(_BLOBS, (chosen,))}
        steps = []
        for of, size, versions in connection.execute(_CHECKPOINTS, (chosen,)):
            written = (blobs.pop((of, channel, str(version)), 0) for channel, version in (versions or {}).items())
            steps.append(Step(of, "state", size + sum(written)))
        (writes,) = connection.execute(_WRITES_IN_POSTGRES, (chosen,)).fetchone() or (0,)
    except psycopg.Error as error:
        raise SourceError(f"{shown} cannot be read: {str(error).strip().splitlines()[0]}") from error
    text = _written(checkpoint)
    notes = _stored(chosen, found[1], steps, int(writes) + sum(blobs.values()))
    return Source("LangGraph checkpoint", lambda: chunks_of(text), None, "langgraph", "postgres", steps, notes=notes)


def _channel(kind: str, blob: bytes) -> Any:
    """Return the value of a channel, or text of the same size where it cannot be read."""
    try:
        return json.loads(json_text(blob) if kind == "msgpack" else blob if kind == "json" else "")
    except ValueError:
        return _masked(blob)


def _equal(connection: sqlite3.Connection, thread: str, text: str | bytes) -> list[str]:
    """Return a note on the channels that the last two checkpoints of a thread have in common."""
    before = connection.execute(f"{_LAST.rstrip()} OFFSET 1", (thread,)).fetchone()
    if before is None:
        return []
    try:
        channels, old = (json.loads(one)["channel_values"] for one in (text, _decoded(connection, *before)))
    except (SourceError, ValueError, RecursionError, LookupError, TypeError):
        return []
    if not isinstance(channels, dict) or not isinstance(old, dict):
        return []
    same = {name: len(_written(value).encode()) for name, value in channels.items() if old.get(name) == value}
    large = sorted((size, name) for name, size in same.items() if size >= _NOTED_BYTES)[::-1]
    named = ", ".join(f"channel_values.{name} ({size:,} bytes)" for size, name in large[:3])
    return [f"The checkpoint before it has the same {named}."] if named else []


def _decoded(connection: sqlite3.Connection, kind: str, row: int, size: int | None) -> str | bytes:
    """Return a checkpoint as JSON text; raise ValueError for another encoding, and for a damaged one."""
    if size is None or size > _LARGEST_CHECKPOINT:
        what = "nothing" if size is None else f"{size:,} bytes, more than {_LARGEST_CHECKPOINT:,}"
        raise SourceError(f"the last checkpoint cannot be decoded: it is {what}")
    if kind not in ("json", "msgpack"):
        raise ValueError(f"the last checkpoint is {kind}, which is not read: only json and msgpack are")
    data: bytes = connection.execute(_CHECKPOINT, (row,)).fetchone()[0]
    try:
        return data if kind == "json" else json_text(data)
    except ValueError as error:
        raise ValueError(f"the last checkpoint cannot be decoded: {str(error).rstrip('.')}") from error


def _session(name: str, connection: sqlite3.Connection, session: str | None) -> Source:
    """Return the items of a session of OpenAI's Agents SDK: of the one with most bytes, or of ``session``."""
    largest = connection.execute(_LARGEST_SESSION).fetchone()
    chosen = session or (largest[0] if largest else None)
    if chosen is None or connection.execute(f"{_ITEMS} LIMIT 1", (chosen,)).fetchone() is None:
        raise SourceError(f"{name} has no session {session or ''}".rstrip())

    def chunks() -> Iterator[str]:
        yield "["
        for number, (item,) in enumerate(connection.execute(_ITEMS, (chosen,))):
            yield f"{',' * bool(number)}{item}"
        yield "]"

    return Source("session of OpenAI's Agents SDK", chunks, None, notes=[f"Session {chosen}."])


def json_text(data: bytes) -> str:
    """Return a msgpack value as JSON text: https://github.com/msgpack/msgpack/blob/master/spec.md has the format.

    An object of LangGraph becomes the argument of its constructor. For a message, this is the fields of the message.
    Other binary data, and an extension that is nested too deeply, becomes text of the same size.

    Raises:
        ValueError: the bytes are not msgpack, end too early, or need more memory than there is.
    """
    try:
        import msgpack  # type: ignore[import-untyped] # noqa: PLC0415 - needs an extra
    except ImportError as error:
        raise SourceError(f"LangGraph checkpoints need msgpack: {installed_with('cli')}") from error

    def decoded(data: bytes, levels: int) -> Any:
        def constructed(code: int, data: bytes) -> Any:
            inner = decoded(data, levels - 1) if levels and code in _CONSTRUCTORS else None
            if isinstance(inner, list):
                return inner[_ARGUMENT] if len(inner) > _ARGUMENT else None
            return _masked(data)

        return msgpack.unpackb(
            data,
            ext_hook=constructed,
            object_pairs_hook=_named,
            strict_map_key=False,
            unicode_errors="replace",
            max_array_len=_MOST_ELEMENTS,
        )

    try:
        return _written(decoded(data, _LEVELS))
    except msgpack.FormatError:
        raise ValueError("a byte begins no value") from None
    except (MemoryError, RecursionError, msgpack.StackError):
        raise ValueError("it is nested too deeply or too large") from None


def _masked(value: Any) -> str:
    return value.translate(_MASK).decode("ascii") if isinstance(value, bytes) else str(value)


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=_masked)


def _named(pairs: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
    """Return an object with texts as keys."""
    return {
        _masked(key) if isinstance(key, str | bytes) else _written(key)[:_LONGEST_KEY]: value for key, value in pairs
    }
