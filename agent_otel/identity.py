"""Which execution a call belongs to: the explicit one, else the durable runtime's, the framework's, the trace's."""

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
#: The id that the durable runtime gives the run whose step this is.
runtime: ContextVar[str | None] = ContextVar("agent_otel_runtime_execution", default=None)
