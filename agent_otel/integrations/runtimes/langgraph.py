"""LangGraph: checkpoints and pending writes, measured where a saver serialises them.

``put`` and ``put_writes`` are wrapped on the class that defines them. While they run, the sizes of the serializer's
outputs are added up. If serializers wrap each other, only the saver's own serializer counts. Savers work on background
threads, so every name comes from the config and the arguments. A row's ids, versions and metadata are not counted. Some
savers write them as separate JSON.
"""

from __future__ import annotations

import re
from contextvars import ContextVar
from threading import get_ident
from typing import TYPE_CHECKING, Any

from agent_otel._internal.object_kinds import fields, identity, is_dict, is_named, is_text, listed, modules_of, text
from agent_otel.core import handler, step_handler
from agent_otel.core.payload_cap import discover
from agent_otel.core.types import AgentRun, Invocation, Payload, RunReader, Step
from agent_otel.integrations import patching, payloads
from agent_otel.integrations.hooks import Family, Hook, Within, after
from agent_otel.integrations.registry import Candidate, Integration, Site
from agent_otel.semconv import OUTPUT, STATE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


ENTRY = Integration(
    "langgraph",
    minimum="0.2.76",
    tested="0.2.76 to 1.2",
    uncovered="`RemoteGraph`: its tools run in another process",
    packages=("langgraph.graph", "langgraph.pregel"),
    sites=(
        Site(  # the second module up to 0.4
            Candidate("langgraph.pregel.main", run="Pregel.stream Pregel.astream Pregel.invoke Pregel.ainvoke"),
            Candidate("langgraph.pregel", run="Pregel.stream Pregel.astream Pregel.invoke Pregel.ainvoke"),
        ),
        # The node of a task.
        Site(
            Candidate("langgraph.pregel._loop", writing="PregelLoop.put_writes"),
            Candidate("langgraph.pregel.loop", writing="PregelLoop.put_writes"),  # up to 0.4
        ),
        Site(
            Candidate("langgraph.prebuilt.tool_node", tool_node="ToolNode._run_one ToolNode._arun_one"),
            adapter="frameworks.langchain",
        ),
    ),
)
CHECKPOINT_ENTRY = Integration(
    "langgraph-checkpoint",
    product="langgraph",
    minimum="2.0.10",
    tested="2.1 to 4.3: memory, SQLite, PostgreSQL",
    uncovered="a row's ids, versions and metadata",
    packages=("langgraph.checkpoint.base",),
    sites=(Candidate("langgraph.checkpoint.base", savers="BaseCheckpointSaver.__init__"),),
)
AWS_ENTRY = Integration(
    "langgraph-checkpoint-aws",
    product="langgraph",
    minimum="1.2",
    tested="1.2: DynamoDB and S3 (moto), AgentCore Memory (scripted)",
    uncovered="on Valkey and in Bedrock sessions, bytes that the serializer does not return",
    packages=("langgraph_checkpoint_aws",),
    sites=(
        Candidate(
            "langgraph_checkpoint_aws.checkpoint.dynamodb.storage_strategy",
            put_item="StorageStrategy._store_to_dynamodb",
            put_object="StorageStrategy._store_to_s3",
        ),
    ),
)
COSMOSDB_ENTRY = Integration(
    "langgraph-checkpoint-cosmosdb",
    product="langgraph",
    minimum="0.4",
    tested="0.4: the real SDK, a scripted service",
    uncovered="properties that the service adds, such as `_etag`",
    packages=("langgraph_checkpoint_cosmosdb",),
    sites=(
        Site(
            Candidate("azure.cosmos._synchronized_request", encoded="_request_body_from_data"),
            beside=("langgraph_checkpoint_cosmosdb",),  # other programs' Cosmos DB is left alone
        ),
    ),
)
MONGODB_ENTRY = Integration(
    "langgraph-checkpoint-mongodb",
    product="langgraph",
    minimum="0.1",
    tested="0.5: FerretDB, and a stand-in with MongoDB's limit",
    uncovered="the ids of a document",
    packages=("langgraph.checkpoint.mongodb",),
    sites=(Candidate("langgraph.checkpoint.mongodb.saver", savers="MongoDBSaver.__init__"),),
)
POSTGRES_ENTRY = Integration(
    "langgraph-checkpoint-postgres",
    product="langgraph",
    minimum="2.0",
    tested="2.0 to 3.2",
    uncovered="nothing known",
    packages=("langgraph.checkpoint.postgres",),
    sites=(Candidate("langgraph.checkpoint.postgres.base", inlined="Jsonb.__init__"),),
)
REDIS_ENTRY = Integration(
    "langgraph-checkpoint-redis",
    product="langgraph",
    minimum="0.3",
    tested="0.5: Redis with RedisJSON and RediSearch",
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

_RUNTIME = "langgraph"
_SQLITE_LIMIT_LENGTH = 0
#: Savers that make a document of each write. Their database limits the size of a document.
_ONE_DOCUMENT_EACH = ("mongodb",)
_CAPPED = {STATE: STATE, OUTPUT: "activity_output"}


class _Saving:
    """Totals of the payloads serialised so far in one call of a saver's method."""

    seen = is_beside = whole = False
    inline = 0

    def __init__(self, saver: Any) -> None:
        self.saver = saver
        #: The bytes of each value, in the order of serialisation.
        self.sizes: list[int] = []
        #: Bytes and variant of each item, if the database limits the size of an item.
        self.items: list[tuple[int, str | None]] = []
        #: The threads that run the saver's serializer.
        self.serializing: set[int] = set()


open_saving: Within[_Saving] = payloads.open_saving


def _begin(invocation: Invocation) -> _Saving | None:
    saving = open_saving.get()
    patching.adopt(serializers, invocation.instance)  # the program may have replaced the saver's serializer
    if saving is None:
        return _Saving(invocation.instance)
    # ``aput`` calls ``put``, or a saver wraps a saver. It is one payload, and the inner saver knows the database.
    saving.saver = invocation.instance
    return None


def _serializing(invocation: Invocation) -> _Saving | None:
    """Return the open call of the saver if its own serializer starts. Otherwise return None.

    The serializer may call its base class, or wrap another serializer. These inner calls do not count.
    """
    saving = open_saving.get()
    if saving is None or invocation.instance is not saving.saver.serde or get_ident() in saving.serializing:
        return None
    saving.serializing.add(get_ident())
    return saving


def _serialized(invocation: Invocation, value: Any, error: Any) -> None:
    saving: _Saving = invocation.state
    saving.serializing.discard(get_ident())
    if error is None:
        saving.seen = True
        saving.sizes.append(len(value[1]))
        if not saving.whole:
            given = invocation.arg(0, "obj")
            saving.whole = type(given) is dict and "channel_values" in fields(given)


def _put(invocation: Invocation, value: Any, error: BaseException | None) -> None:
    saving: _Saving = invocation.state
    if not saving.seen or payloads.is_lost(error):
        return
    config, metadata = invocation.arg(0, "config"), invocation.arg(2, "metadata") or {}
    new_versions = invocation.arg(3, "new_versions") or {}
    stored = channels = invocation.arg(1, "checkpoint")["channel_values"]
    if not saving.whole:
        stored = {name: of for name, of in channels.items() if name in new_versions or (saving.inline and is_text(of))}
    place, saving.is_beside = place_of(config)
    _report(saving, STATE, config, None, stored, kind_of(place, channels, metadata, new_versions), error)


def _put_writes(invocation: Invocation, value: Any, error: BaseException | None) -> None:
    saving: _Saving = invocation.state
    if not saving.seen or payloads.is_lost(error):
        return
    config, writes = invocation.arg(0, "config"), invocation.arg(1, "writes")
    path = invocation.arg(3, "task_path") or ""
    node = node_of(invocation.arg(2, "task_id"), path)
    if len(saving.sizes) == len(writes) and (variant := _variant(saving)) in _ONE_DOCUMENT_EACH:
        saving.items = [(size, variant) for size in saving.sizes]
    kind, saving.is_beside = place_of(config, path)
    stored = _by_channel(writes)
    if saving.items:
        items = [{channel: each} for (channel, each), _ in zip(writes, saving.items, strict=False)]
        for item in items[:-1]:
            _report(saving, OUTPUT, config, node, item, f"{kind} {','.join(item)}", None)
        if len(items) > 1:  # else one write, or one item of all of them
            stored = items[-1]
    _report(saving, OUTPUT, config, node, stored, kind, error)


def _by_channel(writes: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return the value of each written channel. A channel with several writes has a list."""
    written: dict[str, list[Any]] = {}
    for channel, each in writes:
        written.setdefault(channel, []).append(each)
    return {channel: each[0] if len(each) == 1 else each for channel, each in written.items()}


def _report(  # noqa: PLR0913, PLR0917 - all facts about a payload
    saving: _Saving,
    direction: str,
    config: Mapping[str, Any],
    node: str | None,
    stored: Mapping[str, Any],
    kind: str,
    error: BaseException | None,
) -> None:
    size, variant = saving.items.pop(0) if saving.items else (sum(saving.sizes) + saving.inline, _variant(saving))
    # A connection may lower SQLite's limit. It can report the limit from Python 3.11 on.
    limit = getattr(getattr(saving.saver, "conn", None), "getlimit", None)
    if limit is not None:
        discover(_RUNTIME, _CAPPED[direction], limit(_SQLITE_LIMIT_LENGTH), variant)
    step = Step(_RUNTIME, node, execution=identity(config["configurable"]["thread_id"]), variant=variant)
    carried = Payload(direction, size, value=stored, kind=kind, is_appended=saving.is_beside)
    step_handler.payload(step, carried, refused=payloads.refusal(error))


def _variant(saving: _Saving) -> str | None:
    """Return the package of the saver or its base, such as ``sqlite``. PostgreSQL has two caps, each with a variant."""
    for module in modules_of(saving.saver):
        if module.startswith("langgraph.checkpoint."):
            name = module.split(".")[2]
            # The cap of jsonb is a quarter of the cap of bytea.
            return "postgres-bytea" if name == "postgres" and saving.inline * 4 <= sum(saving.sizes) else name
    return None


put = Hook(_begin, _put, within=open_saving)
put_writes = Hook(_begin, _put_writes, within=open_saving)
serialized = Hook(_serializing, _serialized)

# --- savers that put each checkpoint, and each channel that a node writes, into a separate item or document ---

# The database's cap applies to each item. DynamoDB counts the bytes of an item's names and values. Large items may go
# to S3 instead. Cosmos DB and Redis get JSON texts with the ids and the serializer's output in Base64. The size of the
# text counts. MongoDB's saver sets its serializer after its base class has made another one. The size of the
# serialised values counts. The ids are not counted: they are some hundred bytes.

# The names of the attributes, and the sort key. The sort key is always the same.
_NAMES = len("PK" + "SK" + "CHUNK" + "payload")
# The name, and a time of ten digits. A byte has two digits, and there is one extra byte.
_TTL = len("ttl") + 6
#: The fields of a checkpoint's item and of a write's item in Cosmos DB. A reducer's items have neither field.
_ITEMS = frozenset({"checkpoint", "channel"})


def _add_item(size: int, variant: str) -> None:
    saving = open_saving.get()
    if saving is not None:
        saving.whole = True
        saving.items.append((size, variant))


@Hook
def put_item(invocation: Invocation) -> None:
    ttl = _TTL if invocation.instance.ttl_seconds else 0
    key, data = invocation.arg(0, "chunk_key"), invocation.arg(1, "data")
    _add_item(_NAMES + handler.text_bytes(key) + len(data) + ttl, "dynamodb")


put_object = Hook(lambda invocation: _add_item(len(invocation.arg(1, "data")), "s3"))


@after
def encoded(invocation: Invocation, value: Any, error: BaseException | None) -> None:
    given = invocation.arg(0, "data")
    if error is None and type(given) is dict and not _ITEMS.isdisjoint(fields(given)):
        _add_item(payloads.bytes_of(value), "cosmosdb")


@after
def document_encoded(_: Invocation, value: Any, error: BaseException | None) -> None:
    if error is None:
        _add_item(handler.text_bytes(value), "redis")


@Hook
def inlined(invocation: Invocation) -> None:
    """Add the texts that PostgreSQL's savers put into the checkpoint's jsonb. Its limit counts UTF-8 bytes."""
    saving = open_saving.get()
    if saving is not None:
        saving.seen = True
        given = invocation.arg(0, "obj")
        values = fields(fields(given).get("channel_values")) if is_dict(given) else {}
        saving.inline += sum(handler.text_bytes(each) for each in map(text, values.values()) if each is not None)


# The names of nodes and checkpoints come from the config, the arguments and the loop's tasks.


@Hook
def writing(invocation: Invocation) -> None:
    """Keep the task's name. Only the loop has it. The savers' threads run in a copy of this context."""
    task_id = invocation.arg(0, "task_id")
    task = getattr(invocation.instance, "tasks", {}).get(task_id)
    if task is not None:
        _task.set((task_id, task.name))


@Family
def savers(saver: Any) -> Iterable[tuple[type, str, Hook]]:
    for name, reader in (("put", put), ("aput", put), ("put_writes", put_writes), ("aput_writes", put_writes)):
        yield type(saver), name, reader


serializers = Family(lambda saver: ((type(saver.serde), "dumps_typed", serialized),))

#: The name of a graph if the program does not name it.
_UNNAMED = "LangGraph"
# Instrumentors that open a span for each run of LangChain.
_ALSO_TRACED_BY = (
    "openinference.instrumentation.langchain:LangChainInstrumentor",
    "opentelemetry.instrumentation.genai.langchain:LangChainInstrumentor",
    "opentelemetry.instrumentation.langchain:LangchainInstrumentor",
)

# LangGraph's runs. The entry and the checkpoints are above. The tools are in ``langchain.py``.


def _run(invocation: Invocation) -> AgentRun | None:
    """Read the graph's name and thread. Report the name for the thread. Savers of graph and subgraphs write to it."""
    graph = invocation.instance
    name = text(graph.name)
    agent = None if name == _UNNAMED else name
    for config in (invocation.arg(1, "config"), graph.config):
        configurable = fields(fields(config).get("configurable"))
        if text(configurable.get("checkpoint_ns")):
            return None  # inside another graph
        thread_id = identity(configurable.get("thread_id"))
        if thread_id is not None:
            handler.execution_named(thread_id, graph.name)
            given = invocation.arg(0, "input")
            resumes = given is None or is_named(given, "Command")
            return AgentRun(agent, thread_id, resumes=thread_id if resumes else None)
    return AgentRun(agent)


def _pauses(value: Any) -> bool:
    """Return true for a state or stream item with an interrupt. With several modes, an item is a tuple."""
    states = value if type(value) is tuple else (value,)
    return any(type(state) is dict and "__interrupt__" in state for state in states)


run = RunReader(_run, pauses=_pauses, also_traced_by=_ALSO_TRACED_BY)

_PULLED = re.compile(r"(?:~~\d{10})?~__pregel_pull, (.+)", re.DOTALL)
_SENT = re.compile(r"(?:~~\d{10})?~__pregel_push, (\d{10})(?:, \w+)?")
_MOST_BESIDE = 4
# Prefixes of the channels that start a node. Older versions have a prefix for each way to start it.
_TRIGGERS = ("branch:", "start:", "__start__")
_SENDS = "__pregel_tasks"

_task: ContextVar[tuple[str, str] | None] = ContextVar("agent_otel_langgraph_task", default=None)


def place_of(config: Mapping[str, Any], task_path: str = "") -> tuple[str, bool]:
    """Return the path to a subgraph without the ids of its runs, and the numbers of the tasks that a node has sent.

    These are the subgraph's run and the task that writes. Such tasks run in one step. Do not compare their payloads
    with each other as turns. If the path has no ids, the graph has separate memory. Its next turn is its next run,
    whichever task starts it. The second value is true for a parallel task after the first four. So many payloads would
    push out the graph's payloads.
    """
    path = text(config["configurable"].get("checkpoint_ns")) or ""
    task: Any = fields(config.get("metadata")).get("langgraph_path")
    is_sent = type(task) is tuple and len(task) > 1 and type(task[1]) is int and ":" in path
    numbers = [task[1]] if is_sent else []
    if (sent := _SENT.fullmatch(task_path)) is not None:
        numbers.append(int(sent[1]))
    names = "|".join(part.partition(":")[0] for part in path.split("|"))
    return " ".join((names, *map(str, numbers))), any(number >= _MOST_BESIDE for number in numbers)


def kind_of(place: str, channels: Mapping[str, Any], metadata: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Return the nodes that ran and the next nodes. They distinguish the checkpoints of an agent's turns."""
    ran = metadata.get("writes") or [name for name in new if name not in channels]  # a trigger is empty after use
    coming = {name for name in new if name in channels and name.startswith(_TRIGGERS)}
    if _SENDS in channels:
        coming.update(node for send in listed(channels[_SENDS]) if (node := text(send.node)) is not None)
    return f"{place} {','.join(sorted(ran))} > {','.join(sorted(coming))}"


def node_of(task_id: str, task_path: str) -> str | None:
    """Return the node that wrote. The path contains its name if the graph's edges started its task."""
    task = _task.get()
    if task is not None and task[0] == task_id:
        return task[1]
    pulled = _PULLED.fullmatch(task_path)
    return pulled[1] if pulled else None
