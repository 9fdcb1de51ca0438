"""Reading a program's values without running their code, for adapters, which import nothing of `agent_otel.measure`.

``isinstance`` would read ``__class__`` from the value, which may be a lazy proxy; methods, truth and comparisons may be
the program's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_otel._internal.failures import cause_of, context_of, is_raised_within, text_of, traceback_of
from agent_otel._internal.object_kinds import (
    attributes,
    class_of,
    dictionaries,
    field_at,
    fields,
    given,
    identity,
    is_dict,
    is_empty,
    is_named,
    is_text,
    listed,
    modules_of,
    number,
    sole,
)
from agent_otel._internal.object_kinds import plain_text as text

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "attributes",
    "cause_of",
    "class_of",
    "context_of",
    "dictionaries",
    "field_at",
    "fields",
    "given",
    "identity",
    "is_dict",
    "is_empty",
    "is_named",
    "is_raised_within",
    "is_text",
    "listed",
    "modules_of",
    "number",
    "properties",
    "reworded",
    "sole",
    "text",
    "text_of",
    "traceback_of",
]


def properties(schema: Any) -> tuple[str, ...]:
    """Return the names of the parameters in the JSON schema of a tool; empty for anything else."""
    return tuple(fields(fields(schema).get("properties")))


def reworded(value: Any, reword: Callable[[str], str]) -> Any:
    """Return a value of a request with other texts; what does not change, and the SDK's objects, are the same."""
    if type(value) is str:
        return reword(value)
    if type(value) is list:
        made: Any = [reworded(each, reword) for each in value]
        return value if all(new is old for new, old in zip(made, value, strict=True)) else made
    if type(value) is dict:
        made = {name: reworded(each, reword) for name, each in value.items()}
        return value if all(made[name] is value[name] for name in value) else made
    return value
