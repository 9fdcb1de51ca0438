"""Switches of all entry points of the core, read at each wrapped function."""

from __future__ import annotations

from contextvars import ContextVar

#: False after uninstrumenting: wrappers that other instrumentations have wrapped cannot be removed and must do nothing.
enabled = True
#: Integrations whose hooks beside another instrumentation open the span, instead of their wrapped functions.
hooked: set[str | None] = set()
#: True where nothing is measured: in the code of a durable workflow, because a replay would count it again, and in
#: functions of the program that this package calls.
muted: ContextVar[bool] = ContextVar("agent_otel_muted", default=False)
#: The number of last messages in the next request that a dialogue has added: they are not a turn of the program.
added_messages: ContextVar[int] = ContextVar("agent_otel_added_messages", default=0)
