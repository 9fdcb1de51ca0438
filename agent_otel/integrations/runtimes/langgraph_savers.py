"""LangGraph's saver for DynamoDB: the items that it puts, each of which meets DynamoDB's cap of an item.

A checkpoint with its metadata is an item, and so is each channel that a node writes. The saver may put large ones into
S3 instead. What DynamoDB counts are the bytes of an item's names and values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_otel.core import handler
from agent_otel.core.plain import fields, is_dict, is_text, text
from agent_otel.integrations.hooks import Hook, after
from agent_otel.integrations.registry.entries import Candidate, Integration, Site
from agent_otel.integrations.runtimes import langgraph
from agent_otel.integrations.runtimes.langgraph import open_saving

if TYPE_CHECKING:
    from agent_otel.core.types import Invocation


AWS_ENTRY = Integration(
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
            put_item="StorageStrategy._store_to_dynamodb",
            put_object="StorageStrategy._store_to_s3",
        ),
    ),
)

# The names of the attributes, and the sort key, which is always the same.
_NAMES = len("PK" + "SK" + "CHUNK" + "payload")
# A time of ten digits: two in each byte, and one byte more.
_TTL = len("ttl") + 6


@Hook
def put_item(invocation: Invocation) -> None:
    saving = open_saving.get()
    if saving is not None:
        ttl = _TTL if invocation.instance.ttl_seconds else 0
        key, data = invocation.arg(0, "chunk_key"), invocation.arg(1, "data")
        saving.whole = True
        saving.items.append((_NAMES + handler.text_bytes(key) + len(data) + ttl, "dynamodb"))


@Hook
def put_object(invocation: Invocation) -> None:
    saving = open_saving.get()
    if saving is not None:
        saving.whole = True
        saving.items.append((len(invocation.arg(1, "data")), "s3"))


COSMOSDB_ENTRY = Integration(
    "langgraph-checkpoint-cosmosdb",
    product="langgraph",
    distribution="langgraph-checkpoint-cosmosdb",
    minimum="0.4",
    tested="0.4: the real SDK beside a scripted service with Cosmos DB's limit of an item",
    uncovered="the properties that the service adds to an item, such as `_etag`",
    packages=("langgraph_checkpoint_cosmosdb",),
    sites=(
        Site(
            Candidate("azure.cosmos._synchronized_request", encoded="_request_body_from_data"),
            beside=("langgraph_checkpoint_cosmosdb",),  # other programs' Cosmos DB is left alone
        ),
    ),
)

#: The field of a checkpoint's item, and the one of a write's; what a reducer stores in the meantime has neither.
_ITEMS = frozenset({"checkpoint", "channel"})

# LangGraph's saver for Azure Cosmos DB: the items that it writes, each of which meets Cosmos DB's cap of an item. A
# checkpoint with its metadata is an item, and so is each channel that a node writes. What the serializer returns
# stands there in Base64, with the ids beside it: the bytes are those of the bodies that the SDK sends.


@after
def encoded(invocation: Invocation, value: Any, error: BaseException | None) -> None:
    saving = open_saving.get()
    if saving is None or error is not None:
        return
    given = invocation.arg(0, "data")
    if type(given) is dict and not _ITEMS.isdisjoint(fields(given)):
        saving.whole = True
        saving.items.append((handler.text_bytes(value) if is_text(value) else len(value), "cosmosdb"))


# LangGraph's saver for MongoDB, which takes its serializer after its base class has made another one. A checkpoint
# with its metadata is a document, and so is each channel that a node writes: each meets MongoDB's cap of a document.
# The bytes are the size of the serialised values; the ids besides are some hundred bytes.


MONGODB_ENTRY = Integration(
    "langgraph-checkpoint-mongodb",
    product="langgraph",
    distribution="langgraph-checkpoint-mongodb",
    minimum="0.1",
    tested="0.5: FerretDB, and a stand-in with MongoDB's limit; both speak its wire protocol",
    uncovered="the ids of a document",
    packages=("langgraph.checkpoint.mongodb",),
    sites=(Candidate("langgraph.checkpoint.mongodb.saver", savers="MongoDBSaver.__init__"),),
)

savers = langgraph.savers

POSTGRES_ENTRY = Integration(
    "langgraph-checkpoint-postgres",
    product="langgraph",
    distribution="langgraph-checkpoint-postgres",
    minimum="2.0",
    tested="2.0 to 3.2",
    uncovered="nothing known",
    packages=("langgraph.checkpoint.postgres",),
    sites=(Candidate("langgraph.checkpoint.postgres.base", inlined="Jsonb.__init__"),),
)

# LangGraph's savers for PostgreSQL: the values that they put into a column of their own, not into the serializer.


@Hook
def inlined(invocation: Invocation) -> None:
    """Add the texts that PostgreSQL's savers put into the checkpoint's jsonb, whose limit counts UTF-8 bytes."""
    saving = open_saving.get()
    if saving is not None:
        saving.seen = True
        given = invocation.arg(0, "obj")
        values = fields(fields(given).get("channel_values")) if is_dict(given) else {}
        saving.inline += sum(handler.text_bytes(each) for each in map(text, values.values()) if each is not None)


REDIS_ENTRY = Integration(
    "langgraph-checkpoint-redis",
    product="langgraph",
    distribution="langgraph-checkpoint-redis",
    minimum="0.3",
    tested="0.5: a real Redis with RedisJSON and RediSearch",
    uncovered="keys, and the flag of a checkpoint that has writes",
    packages=("langgraph.checkpoint.redis",),
    sites=(
        Site(
            Candidate("redis.commands.json", document_encoded="_JSONBase._encode"),
            Candidate("redis.commands.json", document_encoded="JSON._encode"),  # up to redis 7
            beside=("langgraph.checkpoint.redis",),  # other programs' Redis is left alone
        ),
    ),
)

# LangGraph's savers for Redis: the JSON documents that they send. A checkpoint with its metadata is a document, and
# so is each channel that a node writes, in Base64. What the serializer returns is parsed and encoded again, with the
# ids beside it: the bytes are those of the texts that Redis gets.


@after
def document_encoded(_: Invocation, value: Any, error: BaseException | None) -> None:
    saving = open_saving.get()
    if saving is not None and error is None:
        saving.whole = True
        saving.items.append((handler.text_bytes(value), "redis"))
