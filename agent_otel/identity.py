"""Which execution a call belongs to: the explicit one, else the durable runtime's, the framework's, the trace's."""

from __future__ import annotations

from contextvars import ContextVar
from typing import NamedTuple


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
#: The id that the durable runtime gives the run whose step this is.
runtime: ContextVar[str | None] = ContextVar("agent_otel_runtime_execution", default=None)
