"""Reading a program's values without running their code, for adapters: the class alone decides what a value is.

``isinstance`` would read ``__class__`` from the value, which may be a lazy proxy; methods, truth and comparisons may be
the program's own.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from agent_otel.measure.object_kinds import fields, is_named
from agent_otel.measure.object_kinds import plain_text as text

__all__ = ["fields", "given", "identity", "is_dict", "is_empty", "is_named", "is_text", "listed", "number", "text"]


def is_text(value: object) -> bool:
    """Return whether a value is a text."""
    return issubclass(type(value), str)


def is_dict(value: object) -> bool:
    """Return whether a value is a dictionary."""
    return issubclass(type(value), dict)


def listed(value: Any) -> list[Any]:
    """Return a list or a tuple as a list; nothing of anything else, such as the sentinels of omitted keys."""
    cls = type(value)
    if issubclass(cls, list):
        return list.__getitem__(value, slice(None))
    return list(tuple.__iter__(value)) if issubclass(cls, tuple) else []


def number(value: object) -> int | None:
    """Return a plain whole number, or nothing."""
    return value if type(value) is int else None


def is_empty(value: Any) -> bool:
    """Return whether a value is None or a plain one that is false; no other is asked for its truth."""
    kind = type(value)
    if kind is str or kind is int or kind is bool or kind is float or kind is dict or kind is list or kind is tuple:
        return not value
    return value is None


def given(*values: Any) -> Any:
    """Return the first of these values that is not empty, else an empty text."""
    for value in values:
        if not is_empty(value):
            return value
    return ""


def identity(value: object) -> str | None:
    """Return an id as text: of a text, a whole number or a UUID; None for anything else, which has code of its own."""
    kind = type(value)
    return str(value) if kind is int or kind is UUID else text(value)
