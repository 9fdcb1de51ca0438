"""Reading a program's values without running their code, for adapters, which import nothing of `agent_otel.measure`.

``isinstance`` would read ``__class__`` from the value, which may be a lazy proxy; methods, truth and comparisons may be
the program's own.
"""

from __future__ import annotations

from agent_otel._internal.failures import cause_of, context_of, is_raised_within, text_of, traceback_of
from agent_otel.measure.object_kinds import (
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
from agent_otel.measure.object_kinds import plain_text as text

__all__ = [
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
    "sole",
    "text",
    "text_of",
    "traceback_of",
]
