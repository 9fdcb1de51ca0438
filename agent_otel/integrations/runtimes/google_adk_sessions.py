"""Google's Agent Development Kit: sessions in databases and on Vertex AI.

Each event is appended, with the state that it changes, and a run begins with all events of its session. The bytes are
those of the JSON texts that the database gets; PostgreSQL's columns of JSON are none. ``SqliteSessionService`` merges
changes of the state inside of SQL: they do not count. The bytes on Vertex AI are those of the bodies of requests and
responses. The entry is in ``frameworks/google_adk.py``.
"""

from __future__ import annotations

import json
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
            "google.adk.sessions.sqlite_session_service",
            Wrap("SqliteSessionService.append_event", "appended"),
            Wrap("SqliteSessionService.get_session", "read"),
            Wrap("Event.model_dump_json", "bound"),
            Wrap("Event.model_validate_json", "validated"),
        ),
        adapter=_ADAPTER,
        minimum="2.10",
    ),
    Site(
        Candidate(
            "google.adk.sessions.vertex_ai_session_service",
            Wrap("VertexAiSessionService.append_event", "appended"),
            Wrap("VertexAiSessionService.get_session", "read"),
        ),
        adapter=_ADAPTER,
        minimum="2.10",
    ),
    Site(
        Candidate("google.genai._api_client", Wrap("BaseApiClient._async_request_once", "requested")),
        adapter=_ADAPTER,
        minimum="2.10",
        beside=("google.adk.utils.vertex_ai_utils",),  # which that service imports
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


def _validated(invocation: Invocation) -> None:
    stores.add(invocation.arg(0, "json_data"), is_read=True)


def _sent(invocation: Invocation) -> stores.Transfer | None:
    """Take the size of an event's body, again when it is sent again; google-genai makes its text with these options."""
    transfer = stores.open_transfer.get()
    if transfer is not None and not transfer.is_read:
        data = fields(invocation.arg(0, "http_request")).get("data")
        if data:
            stores.add(data if type(data) is bytes else json.dumps(data), is_whole=True)
    return transfer


def _answered(_: Invocation, response: Any, error: BaseException | None) -> None:
    if error is None and stores.is_reading():
        for body in listed(getattr(response, "response_stream", None)):
            stores.add(body, is_read=True)


appended = Hook(stores.begin, _appended, within=stores.open_transfer)
read = Hook(stores.begin_reading, _read, within=stores.open_transfer)
bound = Hook(after=_bound)
result = Hook(_result)
validated = Hook(_validated)
requested = Hook(_sent, _answered)
