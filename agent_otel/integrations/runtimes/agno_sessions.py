"""Agno: sessions that ``SqliteDb`` and ``AsyncSqliteDb`` keep.

Each run is a row that is appended, and the next run of its session begins with all of them. The bytes are those of the
JSON texts that the database gets. The entry is in ``frameworks/agno.py``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agent_otel.core.plain import fields, listed, text
from agent_otel.integrations import stores
from agent_otel.integrations.hooks import Hook
from agent_otel.integrations.registry.entries import Candidate, Site, Wrap
from agent_otel.semconv import HISTORY, STATE

if TYPE_CHECKING:
    from agent_otel.core.types import Invocation

_ADAPTER = "runtimes.agno_sessions"
_RUNTIME = "agno"
_SINCE = "3.1"


def _database(module: str, name: str) -> Site:
    methods = (
        ("upsert_run", "saved"),
        ("get_session", "read"),
        ("_get_session_run_rows", "rows"),
        ("_get_session_runs_data", "runs"),
    )
    wraps = (Wrap(f"{name}.{method}", hook) for method, hook in methods)
    return Site(Candidate(f"agno.db.sqlite.{module}", *wraps), adapter=_ADAPTER, minimum=_SINCE)


SESSIONS = (
    Site(Candidate("agno.db.utils", Wrap("json_serializer", "encoded")), adapter=_ADAPTER, minimum=_SINCE),
    _database("sqlite", "SqliteDb"),
    _database("async_sqlite", "AsyncSqliteDb"),
)


def _saved(invocation: Invocation, _: Any, error: BaseException | None) -> None:
    size = invocation.state.bytes
    if size:
        run, session = invocation.arg(0, "run"), text(invocation.arg(1, "session_id"))
        stores.report(_RUNTIME, session, STATE, size, [_parts(run)], error=error, is_appended=True)


def _read(invocation: Invocation, session: Any, error: BaseException | None) -> None:
    """Report the session that a run begins with; a read of a part of it is no payload."""
    size = invocation.state.bytes
    if size and error is None and invocation.arg(4, "runs_limit") is None and stores.in_run():
        value = [_parts(run) for run in listed(getattr(session, "runs", None))]
        stores.report(_RUNTIME, text(invocation.arg(0, "session_id")), HISTORY, size, value)


def _parts(run: Any) -> dict[str, Any]:
    """Return the parts of a run that hold results; all its fields are more paths than are counted by name."""
    known = fields(run)
    return {name: known.get(name) for name in ("messages", "tools", "content")}


def _encoded(_: Invocation, value: Any, error: BaseException | None) -> None:
    if error is None:
        stores.add(value)


def _rows(_: Invocation, rows: Any, error: BaseException | None) -> None:
    for _, data in listed(rows) if error is None else ():
        stores.add(data, is_read=True)


def _runs(_: Invocation, runs: Any, error: BaseException | None) -> None:
    """Add the bytes of runs that come from `json.loads`, and were written as `json.dumps` writes by default."""
    for run in listed(runs) if error is None and stores.is_reading() else ():
        stores.add(json.dumps(run), is_read=True)


saved = Hook(stores.begin, _saved, within=stores.open_transfer)
read = Hook(stores.begin_reading, _read, within=stores.open_transfer)
encoded = Hook(after=_encoded)
rows = Hook(after=_rows)
runs = Hook(after=_runs)
