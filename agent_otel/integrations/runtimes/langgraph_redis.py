"""LangGraph's savers for Redis: the JSON documents that they send.

A checkpoint with its metadata is a document, and so is each channel that a node writes, in Base64. What the serializer
returns is parsed and encoded again, with the ids beside it: the bytes are those of the texts that Redis gets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_otel.core import handler
from agent_otel.integrations.hooks import Hook
from agent_otel.integrations.registry.entries import Candidate, Integration, Site, Wrap
from agent_otel.integrations.runtimes.langgraph import open_saving

if TYPE_CHECKING:
    from agent_otel.core.types import Invocation

ENTRY = Integration(
    "langgraph-checkpoint-redis",
    product="langgraph",
    distribution="langgraph-checkpoint-redis",
    minimum="0.3",
    tested="0.5: a real Redis with RedisJSON and RediSearch",
    uncovered="keys, and the flag of a checkpoint that has writes",
    packages=("langgraph.checkpoint.redis",),
    sites=(
        Site(
            Candidate("redis.commands.json", Wrap("_JSONBase._encode", "encoded")),
            Candidate("redis.commands.json", Wrap("JSON._encode", "encoded")),  # up to redis 7
            beside=("langgraph.checkpoint.redis",),  # other programs' Redis is left alone
        ),
    ),
)


def _encoded(_: Invocation, value: Any, error: BaseException | None) -> None:
    saving = open_saving.get()
    if saving is not None and error is None:
        saving.whole = True
        saving.items.append((handler.text_bytes(value), "redis"))


encoded = Hook(after=_encoded)
