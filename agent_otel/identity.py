"""Which execution a call belongs to: the explicit one, else the framework's, else the trace's."""

from __future__ import annotations

from contextvars import ContextVar
from typing import NamedTuple


class Identity(NamedTuple):
    """An execution as the program named it."""

    id: str
    workflow: str | None = None
    agent: str | None = None


#: The execution named by ``agent_otel.execution``.
explicit: ContextVar[Identity | None] = ContextVar("agent_otel_execution", default=None)
