"""Which execution a call belongs to: the explicit one, else the durable runtime's, the framework's, the trace's."""

from __future__ import annotations

import weakref
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


def text_or_none(value: object) -> str | None:
    """Return a plain text; None for anything that is no text by its type."""
    if value is None or type(value) is str:
        return value
    # The class alone decides: isinstance() would read __class__ from the value.
    return str.__getitem__(value, slice(None)) if issubclass(type(value), str) else None  # type: ignore[index]


#: A longer id is not kept: a client may choose one of any length.
LONGEST_ID = 128


def short(text: str) -> str:
    """Return an id as it is kept and shown: above 128 characters its digest, which costs the same at any length."""
    if len(text) <= LONGEST_ID:
        return text
    import hashlib  # noqa: PLC0415 - nothing that starts up needs it

    return f"sha256:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


def id_or_none(value: object) -> str | None:
    """Return an id as `short` does; None for anything that is no text by its type."""
    text = text_or_none(value)
    return text if text is None else short(text)


class Identity(NamedTuple):
    """An execution as the program named it."""

    id: str
    workflow: str | None = None
    agent: str | None = None


#: The execution named by ``agent_otel.execution``.
explicit: ContextVar[Identity | None] = ContextVar("agent_otel_execution", default=None)


class Carrier:
    """A step of a durable runtime while it runs, and the id that the runtime gives its run.

    An interrupt may tear the step off before it can take itself out of the context. Its visit is gone then, and what
    runs later in the same context does not belong to it.
    """

    __slots__ = ("_visit", "execution", "is_over", "let_go")

    def __init__(self, execution: str | None, visit: object = None) -> None:
        self.execution = execution
        self.is_over = visit is None
        self.let_go: Callable[[], None] | None = None
        self._visit = None if visit is None else weakref.ref(visit)

    def visit(self) -> object:
        """Return the visit of the step, while there is one."""
        return None if self._visit is None else self._visit()


#: The step of a durable runtime that runs here.
runtime: ContextVar[Carrier | None] = ContextVar("agent_otel_runtime_execution", default=None)


def running_step() -> Carrier | None:
    """Return the step that runs here; one that an interrupt has torn off does not."""
    running = runtime.get()
    if running is None or running.is_over or running.visit() is not None:
        return running
    runtime.set(None)
    if running.let_go is not None:
        running.let_go()
    return None


def carrier() -> str | None:
    """Return the id that the durable runtime gives the run whose step this is."""
    running = running_step()
    return running.execution if running is not None else None
