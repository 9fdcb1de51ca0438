"""LangGraph's saver for Azure Cosmos DB: the items that it writes, each of which meets Cosmos DB's cap of an item.

A checkpoint with its metadata is an item, and so is each channel that a node writes. What the serializer returns stands
there in Base64, with the ids beside it: the bytes are those of the bodies that the SDK sends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_otel.core import handler
from agent_otel.core.plain import fields, is_text
from agent_otel.integrations.hooks import Hook
from agent_otel.integrations.registry.entries import Candidate, Integration, Site, Wrap
from agent_otel.integrations.runtimes.langgraph import open_saving

if TYPE_CHECKING:
    from agent_otel.core.types import Invocation

ENTRY = Integration(
    "langgraph-checkpoint-cosmosdb",
    product="langgraph",
    distribution="langgraph-checkpoint-cosmosdb",
    minimum="0.4",
    tested="0.4: the real SDK beside a scripted service with Cosmos DB's limit of an item",
    uncovered="the properties that the service adds to an item, such as `_etag`",
    packages=("langgraph_checkpoint_cosmosdb",),
    sites=(
        Site(
            Candidate("azure.cosmos._synchronized_request", Wrap("_request_body_from_data", "encoded")),
            beside=("langgraph_checkpoint_cosmosdb",),  # other programs' Cosmos DB is left alone
        ),
    ),
)

#: The field of a checkpoint's item, and the one of a write's; what a reducer stores in the meantime has neither.
_ITEMS = frozenset({"checkpoint", "channel"})


def _encoded(invocation: Invocation, value: Any, error: BaseException | None) -> None:
    saving = open_saving.get()
    if saving is None or error is not None:
        return
    given = invocation.arg(0, "data")
    if type(given) is dict and not _ITEMS.isdisjoint(fields(given)):
        saving.whole = True
        saving.items.append((handler.text_bytes(value) if is_text(value) else len(value), "cosmosdb"))


encoded = Hook(after=_encoded)
