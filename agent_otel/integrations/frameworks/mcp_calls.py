"""The calls that clients of the Model Context Protocol in this process wait for.

A server in the same process leaves them to the client, and no others of the same tool: a client of another process may
call it at any time. The entry is in ``mcp.py``.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from agent_otel._internal import fork
from agent_otel.core.plain import fields, text
from agent_otel.integrations.hooks import Hook

if TYPE_CHECKING:
    from agent_otel.core.types import Invocation

#: The tool of the call that is measured at the client in this context.
asked: ContextVar[str | None] = ContextVar("agent_otel_mcp_client", default=None)
#: The tools of the calls that have been sent and not been answered, one entry each.
_called: list[str] = []


def is_called(tool: str) -> bool:
    """Return true while a client in this process waits for a call of a tool of this name."""
    return tool in _called


def _sending(invocation: Invocation) -> str | None:
    known = fields(invocation.arg(0, "request"))
    known = fields(known.get("root", known))
    name = text(fields(known.get("params")).get("name"))
    if name is None or name != asked.get() or text(known.get("method")) != "tools/call":
        return None
    _called.append(name)
    return name


def _sent(invocation: Invocation, _: Any, __: BaseException | None) -> None:
    if invocation.state in _called:  # a fork forgets them
        _called.remove(invocation.state)


sending = Hook(_sending, _sent)
fork.after_fork(_called.clear)
