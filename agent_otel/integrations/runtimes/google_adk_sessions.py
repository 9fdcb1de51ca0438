"""Google's Agent Development Kit: sessions that ``DatabaseSessionService`` keeps.

Each event is appended, with the state that it changes, and a run begins with all events of its session. The bytes are
those of the JSON texts that the database gets; PostgreSQL's columns of JSON are none. The entry is in
``frameworks/google_adk.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_otel.core.plain import fields, is_text, listed, text
from agent_otel.integrations import stores
from agent_otel.integrations.hooks import Hook
from agent_otel.integrations.registry.entries import Candidate, Site, Wrap
from agent_otel.semconv import HISTORY, STATE

if TYPE_CHECKING:
    from agent_otel.core.types import Invocation

_ADAPTER = "runtimes.google_adk_sessions"
_RUNTIME = "google-adk"

SESSIONS = (
    Site(
        Candidate(
            "google.adk.sessions.database_session_service",
            Wrap("DatabaseSessionService.append_event", "appended"),
            Wrap("DatabaseSessionService.get_session", "read"),
        ),
        adapter=_ADAPTER,
        minimum="2.10",
    ),
    Site(
        Candidate(
            "google.adk.sessions.schemas.shared",
            Wrap("DynamicJSON.process_bind_param", "bound"),
            Wrap("DynamicJSON.process_result_value", "result"),
        ),
        adapter=_ADAPTER,
        minimum="2.10",
    ),
)


def _appended(invocation: Invocation, _: Any, error: BaseException | None) -> None:
    size = invocation.state.bytes
    if size:
        session, event = invocation.arg(0, "session"), invocation.arg(1, "event")
        stores.report(_RUNTIME, text(session.id), STATE, size, _parts(event), error=error, is_appended=True)


def _read(invocation: Invocation, session: Any, error: BaseException | None) -> None:
    """Report the session that a run begins with; a read of a part of it is no payload."""
    events = listed(getattr(session, "events", None))
    if error is None and events and not invocation.arg(3, "config") and stores.in_run():
        value = [part for event in events for part in _parts(event)]
        stores.report(_RUNTIME, text(session.id), HISTORY, invocation.state.bytes, value)


def _parts(event: Any) -> list[Any]:
    """Return the parts of an event's content, as the fields that its texts and results are found by."""
    return [_part(part) for part in listed(getattr(event.content, "parts", None))]


def _part(part: Any) -> Any:
    answer = getattr(part, "function_response", None)
    if answer is None:
        return fields(part)
    return {"name": answer.name, "tool_call_id": answer.id, "response": answer.response}


def _bound(_: Invocation, value: Any, error: BaseException | None) -> None:
    if error is None and is_text(value):
        stores.add(value)


def _result(invocation: Invocation) -> None:
    value = invocation.arg(0, "value")
    if is_text(value):
        stores.add(value, is_read=True)


appended = Hook(stores.begin, _appended, within=stores.open_transfer)
read = Hook(stores.begin_reading, _read, within=stores.open_transfer)
bound = Hook(after=_bound)
result = Hook(_result)
