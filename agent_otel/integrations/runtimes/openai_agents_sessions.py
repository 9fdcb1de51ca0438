"""OpenAI's Agents SDK: sessions, which keep a conversation's items in a database.

A session appends the items of each turn, and a run begins with all items of the session. Each append is a payload of
the direction ``state``, and what a run begins with one of the direction ``history``. The bytes are those of the items'
texts, as the database has them. The entry is in ``frameworks/openai_agents.py``.

On Dapr a session is one value, which each append writes whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import wrapt

from agent_otel._internal import errors
from agent_otel.core import handler
from agent_otel.core.plain import is_text, listed, text
from agent_otel.integrations import stores
from agent_otel.integrations.hooks import Hook, Revising
from agent_otel.integrations.registry.entries import Candidate, Site, Wrap
from agent_otel.semconv import HISTORY, STATE

if TYPE_CHECKING:
    from agent_otel.core.types import Invocation

_ADAPTER = "runtimes.openai_agents_sessions"


def _encoding(module: str, name: str) -> Site:
    methods = ("add_items", "added"), ("get_items", "read")
    encoding = ("_serialize_item", "serialized"), ("_deserialize_item", "deserialized")
    wraps = (Wrap(f"{name}.{method}", hook) for method, hook in methods + encoding)
    return Site(Candidate(f"agents.extensions.memory.{module}", *wraps), adapter=_ADAPTER)


SESSIONS = (
    Site(
        Candidate(
            "agents.memory.sqlite_session",
            Wrap("SQLiteSession._insert_items", "inserting"),
            Wrap("SQLiteSession._get_connection", "connected"),
            Wrap("SQLiteSession.get_items", "read"),
        ),
        adapter=_ADAPTER,
        minimum="0.15",
    ),
    Site(
        Candidate("agents.extensions.memory.advanced_sqlite_session", Wrap("AdvancedSQLiteSession.get_items", "read")),
        adapter=_ADAPTER,
        minimum="0.15",
    ),
    _encoding("sqlalchemy_session", "SQLAlchemySession"),
    _encoding("redis_session", "RedisSession"),
    Site(
        Candidate(
            "agents.extensions.memory.dapr_session",
            Wrap("DaprSession.add_items", "rewritten"),
            Wrap("DaprSession.get_items", "read"),
            Wrap("DaprSession._decode_messages", "loaded"),
        ),
        adapter=_ADAPTER,
    ),
)
#: Of Dapr's client, which an entry of Dapr's names.
DAPR_SAVES = Site(
    Candidate("dapr.aio.clients.grpc.client", Wrap("DaprGrpcClientAsync.save_state", "saving")), adapter=_ADAPTER
)
_RUNTIME = "openai-agents"


def _added(session: Any, items: Any, size: int, error: BaseException | None) -> None:
    if size:
        stores.report(_RUNTIME, text(session.session_id), STATE, size, listed(items), error=error, is_appended=True)


def _read(invocation: Invocation, items: Any, size: int) -> None:
    if size:
        stores.report(_RUNTIME, text(invocation.instance.session_id), HISTORY, size, listed(items))


def _is_whole(invocation: Invocation, error: BaseException | None) -> bool:
    """Return true where a run begins with the session; a read of a part of it is no payload."""
    limits = (invocation.arg(0, "limit"), getattr(invocation.instance.session_settings, "limit", None))
    return error is None and limits == (None, None) and stores.in_run()


# --- SQLite, whose rows are made inside of functions -----------------------------------------------------------------


class _Connection(wrapt.ObjectProxy):  # type: ignore[type-arg]
    """The connection of one append, which shows the rows that the database gets."""

    def __init__(self, connection: Any, session: Any, items: Any) -> None:
        super().__init__(connection)
        self._self_session = session
        self._self_items = items

    def executemany(self, query: str, rows: Any) -> Any:
        """Execute, and report the rows."""
        try:
            cursor = self.__wrapped__.executemany(query, rows)
        except Exception as error:
            self._report(rows, error)
            raise
        self._report(rows, None)
        return cursor

    @errors.guarded("session.rows")
    def _report(self, rows: Any, error: BaseException | None) -> None:
        size = sum(handler.text_bytes(row[-1]) for row in listed(rows))
        _added(self._self_session, self._self_items, size, error)


def _inserting(invocation: Invocation) -> None:
    connection, items = invocation.arg(0, "conn"), invocation.arg(1, "items")
    invocation.put(0, "conn", _Connection(connection, invocation.instance, items))


class _Reading(wrapt.ObjectProxy):  # type: ignore[type-arg]
    """A connection, or a cursor of it, while a session's items are read; it adds up the rows' texts."""

    def cursor(self, *args: Any, **kwargs: Any) -> Any:
        """Return a cursor that adds up its rows."""
        return _Reading(self.__wrapped__.cursor(*args, **kwargs))

    def execute(self, *args: Any) -> Any:
        """Execute; return a cursor that adds up its rows."""
        return _Reading(self.__wrapped__.execute(*args))

    def fetchall(self) -> Any:
        """Return all rows."""
        rows = self.__wrapped__.fetchall()
        _count(rows)
        return rows


@errors.guarded("session.rows")
def _count(rows: Any) -> None:
    for row in listed(rows):
        if is_text(row[0]):
            stores.add(row[0], is_read=True)


def _connected(_: Invocation, connection: Any) -> Any:
    return _Reading(connection) if stores.is_reading() else connection


inserting = Hook(_inserting)
connected = Revising(_connected)

# --- sessions with a serializer of their own -------------------------------------------------------------------------


def _encoded(invocation: Invocation, _: Any, error: BaseException | None) -> None:
    _added(invocation.instance, invocation.arg(0, "items"), invocation.state.bytes, error)


def _decoded(invocation: Invocation, items: Any, error: BaseException | None) -> None:
    if _is_whole(invocation, error):
        _read(invocation, items, invocation.state.bytes)


def _serialized(_: Invocation, value: Any, error: BaseException | None) -> None:
    if error is None:
        stores.add(value)


added = Hook(stores.begin, _encoded, within=stores.open_transfer)
read = Hook(stores.begin_reading, _decoded, within=stores.open_transfer)
serialized = Hook(after=_serialized)
deserialized = Hook(lambda invocation: stores.add(invocation.arg(0, "item"), is_read=True))

# --- Dapr ------------------------------------------------------------------------------------------------------------


def _rewritten(invocation: Invocation, _: Any, error: BaseException | None) -> None:
    size, session = invocation.state.bytes, text(invocation.instance.session_id)
    if size:
        stores.report(_RUNTIME, session, STATE, size, None, variant="dapr", error=error)


def _saving(invocation: Invocation) -> None:
    """Take the size of a session's value, again when it is written again; another value has its metadata."""
    if (text(invocation.arg(1, "key")) or "").endswith(":messages"):
        stores.add(invocation.arg(2, "value"), is_whole=True)


def _loaded(invocation: Invocation) -> None:
    data = invocation.arg(0, "data")
    if data:
        stores.add(data, is_read=True)


rewritten = Hook(stores.begin, _rewritten, within=stores.open_transfer)
saving = Hook(_saving)
loaded = Hook(_loaded)
