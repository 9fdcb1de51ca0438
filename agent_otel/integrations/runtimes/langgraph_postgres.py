"""LangGraph's savers for PostgreSQL: the values that they put into a column of their own, not into the serializer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_otel.core import handler
from agent_otel.core.plain import fields, is_dict, text
from agent_otel.integrations.hooks import Hook
from agent_otel.integrations.registry.entries import Candidate, Integration, Wrap
from agent_otel.integrations.runtimes.langgraph import open_saving

if TYPE_CHECKING:
    from agent_otel.core.types import Invocation

ENTRY = Integration(
    "langgraph-checkpoint-postgres",
    product="langgraph",
    distribution="langgraph-checkpoint-postgres",
    minimum="2.0",
    tested="2.0 to 3.2",
    uncovered="nothing known",
    packages=("langgraph.checkpoint.postgres",),
    sites=(Candidate("langgraph.checkpoint.postgres.base", Wrap("Jsonb.__init__", "inlined")),),
)


def _inlined(invocation: Invocation) -> None:
    """Add the texts that PostgreSQL's savers put into the checkpoint's jsonb, whose limit counts UTF-8 bytes."""
    saving = open_saving.get()
    if saving is not None:
        saving.seen = True
        given = invocation.arg(0, "obj")
        values = fields(fields(given).get("channel_values")) if is_dict(given) else {}
        saving.inline += sum(handler.text_bytes(each) for each in map(text, values.values()) if each is not None)


inlined = Hook(_inlined)
