"""Connections of the Model Context Protocol: the transport of a session, and the id that an HTTP server gave it.

A client's session gets two streams and nothing of the transport. The transport that opened last in its context is the
session's, unless two opened before a session did. A server gets the HTTP request with each message.

The entry is in ``mcp.py``.
"""

from __future__ import annotations

import weakref
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from agent_otel._internal.named_tuples import NamedTuple
from agent_otel.core.plain import fields, text
from agent_otel.core.types import Invocation, McpCall
from agent_otel.integrations.hooks import Hook
from agent_otel.semconv import PIPE, TCP

if TYPE_CHECKING:
    from collections.abc import Callable

_SESSION_ID = "mcp-session-id"


class _Connection(NamedTuple):
    """An open connection: its network transport, and the object that has the id of an HTTP session."""

    transport: str | None = None
    owner: Callable[[], Any] | None = None


#: The connection that opened last in this context, until a session takes it.
_opened: ContextVar[_Connection | None] = ContextVar("agent_otel_mcp_connection", default=None)
_sessions: WeakKeyDictionary[Any, _Connection] = WeakKeyDictionary()
_UNKNOWN = _Connection()
#: Names that the servers of sessions give themselves.
_names: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
#: Holds an element when this process serves over its standard input and output.
_served: list[str] = []


def _open(connection: _Connection) -> None:
    """Remember a connection; of two that wait for a session, only a common transport is certain."""
    before = _opened.get()
    if before is not None:
        connection = _Connection(connection.transport if before.transport == connection.transport else None)
    _opened.set(connection)


def _beginning(invocation: Invocation) -> None:
    """Give a session the connection that has opened for it; an in-memory one has none."""
    connection = _opened.get()
    if connection is not None:
        _opened.set(None)
        _sessions[invocation.instance] = connection


def _introduced(invocation: Invocation, answer: Any, error: BaseException | None) -> None:
    """Keep the name that a server gives itself in its answer to ``initialize``."""
    known = fields(answer)
    name = text(fields(known.get("serverInfo", known.get("server_info"))).get("name"))
    if error is None and name is not None:
        _names[invocation.instance] = name


def _serving(_: Invocation) -> None:
    if not _served:
        _served.append(PIPE)


def of_client(client: Any) -> McpCall:
    """Return the connection of a session, or of a client that has one."""
    known = fields(client)
    session = known.get("_session", fields(known.get("_session_state")).get("session", client))
    connection = _UNKNOWN if session is None else _sessions.get(session, _UNKNOWN)
    owner = None if connection.owner is None else connection.owner()
    server = None if session is None else _names.get(session)
    if server is None:  # a session of mcp 2 may have asked for it in another way
        server = text(fields(fields(session).get("_discover_server_info")).get("name"))
    return McpCall(text(fields(owner).get("session_id")), connection.transport, server)


def of_server(message: Any) -> McpCall:
    """Return the connection that a message with its metadata came over."""
    request = fields(fields(message).get("message_metadata")).get("request_context")
    if request is None:
        return McpCall(transport=_served[0] if _served else None)
    return McpCall(text(request.headers.get(_SESSION_ID)), TCP)


piping = Hook(lambda _: _open(_Connection(PIPE)))
requesting = Hook(lambda invocation: _open(_Connection(TCP, weakref.ref(invocation.instance))))
subscribing = Hook(lambda _: _open(_Connection(TCP)))
beginning = Hook(_beginning)
introduced = Hook(after=_introduced)
serving = Hook(_serving)
