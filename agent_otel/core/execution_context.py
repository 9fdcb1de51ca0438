"""The execution of a call, a request or a stored result: `resolve` is the only place that decides it."""

from __future__ import annotations

import weakref
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from opentelemetry.trace import Span


def text_or_none(value: object) -> str | None:
    """Return a text as a plain ``str``; None for a value whose type is no text."""
    if value is None or type(value) is str:
        return value
    # type() and not isinstance(), which would read __class__ from the value.
    return str.__getitem__(value, slice(None)) if issubclass(type(value), str) else None  # type: ignore[index]


#: Characters; a longer id is replaced by its digest, because a client may choose an id of any length.
LONGEST_ID = 128


def short(text: str) -> str:
    """Return an id as it is stored and shown: above 128 characters, its SHA-256 digest."""
    if len(text) <= LONGEST_ID:
        return text
    import hashlib  # noqa: PLC0415 - nothing that starts up needs it

    return f"sha256:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


def id_or_none(value: object) -> str | None:
    """Return an id as `short` does; None for a value whose type is no text."""
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
    """A running step of a durable runtime, with the execution id that the runtime gave it.

    An interrupt may end a step before it removes itself from the context. Its visit has then been deleted, and code
    that runs later in this context does not belong to the step.
    """

    __slots__ = ("_visit", "attempt", "calls", "execution", "has_requested", "is_over", "let_go")

    def __init__(self, execution: str | None, visit: object = None, attempt: int = 1) -> None:
        self.execution = execution
        self.attempt = attempt
        #: Number of equal calls by their digest, where retried calls are answered from the store.
        self.calls: dict[str, int] | None = None
        self.is_over = visit is None
        #: True after the first model request of the step.
        self.has_requested = False
        self.let_go: Callable[[], None] | None = None
        self._visit = None if visit is None else weakref.ref(visit)

    def visit(self) -> object:
        """Return the visit of the step, or None when it has been deleted."""
        return None if self._visit is None else self._visit()


#: The step of a durable runtime that runs in this context.
runtime: ContextVar[Carrier | None] = ContextVar("agent_otel_runtime_execution", default=None)


def running_step() -> Carrier | None:
    """Return the step that runs in this context; a step that an interrupt ended is detached and not returned."""
    running = runtime.get()
    if running is None or running.is_over or running.visit() is not None:
        return running
    runtime.set(None)
    if running.let_go is not None:
        running.let_go()
    return None


def carrier() -> str | None:
    """Return the execution id that the durable runtime gave the running step."""
    running = running_step()
    return running.execution if running is not None else None


def agent_of(framework: str | None) -> str | None:
    """Return the agent of a call or a request: the framework's own, else the one that the program named."""
    if framework:
        return framework
    identity = explicit.get()
    return identity.agent if identity is not None else None


def named() -> str | None:
    """Return the id of the execution that the program named, else the durable runtime's."""
    identity = explicit.get()
    return carrier() if identity is None else identity.id


def resolve(framework: str | None, span: Span | None, owner: Callable[[], str | None] | None = None) -> str | None:
    """Return the id of the execution; None where there is no id.

    The order is: the execution that the program named, the durable runtime's, the one that made the results of a model
    request (``owner``), the framework's, and the trace of the current ``span``.
    """
    identity = explicit.get()
    if identity is not None:
        return identity.id
    step = runtime.get()
    if step is not None:
        step = running_step()
    found = None if step is None else step.execution
    if found is None and owner is not None:
        found = owner()
    if found is None:
        found = framework
    if found is None and span is not None:
        context = span.get_span_context()
        found = format(context.trace_id, "032x") if context.is_valid else None
    return found
