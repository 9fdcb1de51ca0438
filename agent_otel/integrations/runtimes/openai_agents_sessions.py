"""OpenAI's Agents SDK: sessions, which keep a conversation's items in a database.

A session appends the items of each turn, and a run begins with all items of the session. Each append is a payload of
the direction ``state``, and what a run begins with one of the direction ``history``. The bytes are those of the items'
texts, as the database has them. The entry is in ``frameworks/openai_agents.py``.

On Dapr a session is one value, which each append writes whole. On MongoDB an append is one document from version 0.20
on, whose cap it meets; before it is one for each item.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_otel.core.plain import listed, modules_of, text
from agent_otel.integrations import stores
from agent_otel.integrations.hooks import Hook
from agent_otel.integrations.registry.entries import Candidate, Site, Wrap
from agent_otel.semconv import HISTORY, STATE

if TYPE_CHECKING:
    from agent_otel.core.types import Invocation

_MEMORY = "agents.extensions.memory"
_ADAPTER = "runtimes.openai_agents_sessions"
_SQLITE = "runtimes.openai_agents_sqlite"


def _encoding(module: str, name: str, minimum: str = "") -> Site:
    methods = ("add_items", "added"), ("get_items", "read")
    encoding = ("_serialize_item", "serialized"), ("_deserialize_item", "deserialized")
    wraps = (Wrap(f"{name}.{method}", hook) for method, hook in methods + encoding)
    return Site(Candidate(f"{_MEMORY}.{module}", *wraps), adapter=_ADAPTER, minimum=minimum)


SESSIONS = (
    Site(
        Candidate(
            "agents.memory.sqlite_session",
            Wrap("SQLiteSession._insert_items", "inserting"),
            Wrap("SQLiteSession._get_connection", "connected"),
            Wrap("SQLiteSession.get_items", "read"),
        ),
        adapter=_SQLITE,
        minimum="0.15",
    ),
    Site(
        Candidate("agents.extensions.memory.advanced_sqlite_session", Wrap("AdvancedSQLiteSession.get_items", "read")),
        adapter=_SQLITE,
        minimum="0.15",
    ),
    Site(
        Candidate(
            "agents.extensions.memory.async_sqlite_session",
            Wrap("AsyncSQLiteSession._insert_items", "inserting_async"),
            Wrap("AsyncSQLiteSession._get_connection", "connected_async"),
            Wrap("AsyncSQLiteSession.get_items", "read"),
        ),
        adapter=_SQLITE,
        minimum="0.20",
    ),
    _encoding("sqlalchemy_session", "SQLAlchemySession"),
    _encoding("redis_session", "RedisSession"),
    _encoding("mongodb_session", "MongoDBSession", minimum="0.15"),
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


def report_added(session: Any, items: Any, size: int, error: BaseException | None) -> None:
    """Report an append to a session, unless it has no bytes."""
    if size:
        whose, variant = text(session.session_id), _variant(session)
        stores.report(_RUNTIME, whose, STATE, size, listed(items), variant=variant, error=error, is_appended=True)


def _variant(session: Any) -> str | None:
    """Return the database of the session or of its base, where an append meets a cap of it."""
    return "mongodb" if f"{_MEMORY}.mongodb_session" in modules_of(session) else None


def _read(invocation: Invocation, items: Any, size: int) -> None:
    if size:
        stores.report(_RUNTIME, text(invocation.instance.session_id), HISTORY, size, listed(items))


def _is_whole(invocation: Invocation, error: BaseException | None) -> bool:
    """Return true where a run begins with the session; a read of a part of it is no payload."""
    own = getattr(invocation.instance, "session_settings", None)  # from 0.9 on
    limits = (invocation.arg(0, "limit"), getattr(own, "limit", None))
    return error is None and limits == (None, None) and stores.in_run()


# --- sessions with a serializer of their own -------------------------------------------------------------------------


def _encoded(invocation: Invocation, _: Any, error: BaseException | None) -> None:
    report_added(invocation.instance, invocation.arg(0, "items"), invocation.state.bytes, error)


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
