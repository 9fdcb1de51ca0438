"""LangGraph's saver for DynamoDB: the items that it puts, each of which meets DynamoDB's cap of an item.

A checkpoint with its metadata is an item, and so is each channel that a node writes. The saver may put large ones into
S3 instead. What DynamoDB counts are the bytes of an item's names and values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_otel.core import handler
from agent_otel.integrations.hooks import Hook
from agent_otel.integrations.registry.entries import Candidate, Integration, Wrap
from agent_otel.integrations.runtimes.langgraph import open_saving

if TYPE_CHECKING:
    from agent_otel.core.types import Invocation

ENTRY = Integration(
    "langgraph-checkpoint-aws",
    product="langgraph",
    distribution="langgraph-checkpoint-aws",
    minimum="1.2",
    tested="1.2: DynamoDB and S3, as moto has them; AgentCore Memory beside a scripted service",
    uncovered="on Valkey and in Bedrock sessions, what is stored besides what the serializer returns",
    packages=("langgraph_checkpoint_aws",),
    sites=(
        Candidate(
            "langgraph_checkpoint_aws.checkpoint.dynamodb.storage_strategy",
            Wrap("StorageStrategy._store_to_dynamodb", "put_item"),
            Wrap("StorageStrategy._store_to_s3", "put_object"),
        ),
    ),
)

# The names of the attributes, and the sort key, which is always the same.
_NAMES = len("PK" + "SK" + "CHUNK" + "payload")
# A time of ten digits: two in each byte, and one byte more.
_TTL = len("ttl") + 6


def _put_item(invocation: Invocation) -> None:
    saving = open_saving.get()
    if saving is not None:
        ttl = _TTL if invocation.instance.ttl_seconds else 0
        key, data = invocation.arg(0, "chunk_key"), invocation.arg(1, "data")
        saving.whole = True
        saving.items.append((_NAMES + handler.text_bytes(key) + len(data) + ttl, "dynamodb"))


def _put_object(invocation: Invocation) -> None:
    saving = open_saving.get()
    if saving is not None:
        saving.whole = True
        saving.items.append((len(invocation.arg(1, "data")), "s3"))


put_item = Hook(_put_item)
put_object = Hook(_put_object)
