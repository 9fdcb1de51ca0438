"""A graph of LangGraph whose checkpoints are items of Cosmos DB, and the bytes of the items as they came over HTTP."""

# mypy: disable-error-code="import-not-found,import-untyped,untyped-decorator,misc,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import TYPE_CHECKING, Any

from azure.cosmos import CosmosClient
from azure.cosmos.exceptions import CosmosHttpResponseError
from langchain_core.messages import HumanMessage
from langgraph_checkpoint_cosmosdb import CosmosDBSaver

from tests.contract.stores.programs.langgraph_graph import graph
from tests.system.engines import cosmosdb

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Json = dict[str, Any]


def _of_items(received: list[cosmosdb.Received]) -> Json:
    """Return the bytes of the items: of checkpoints with metadata, and of what nodes wrote."""
    states = [size for item, size in received if "checkpoint" in item]
    outputs = [size for item, size in received if "channel" in item]
    assert len(states) + len(outputs) == len(received)
    return {"state": sum(states), "output": sum(outputs), "writes": len(outputs)}


def _run(kind: str, given: Json, saver: Any, received: list[cosmosdb.Received]) -> Json:
    app = graph().compile(checkpointer=saver)
    app.name = "clerk"
    config = {"configurable": {"thread_id": f"thread-{kind}-ä"}}
    said: list[Any] = []
    sizes: list[Json] = []
    for n in given["letters"]:
        question: Any = {"messages": [HumanMessage(str(n))]}
        before = len(received)
        try:
            if kind == "async":
                state = asyncio.run(app.ainvoke(question, config, durability="sync"))
            else:
                state = app.invoke(question, config, durability="sync")
            said.append(len(state["messages"]))
        except CosmosHttpResponseError as error:
            said.append([error.status_code, str(error).partition("\r\n")[0]])
        sizes.append(_of_items(received[before:]))
    return {
        "said": said,
        "sizes": [size["state"] for size in sizes],
        "received": sum(size["state"] for size in sizes),
        "output": [sum(size[name] for size in sizes) for name in ("writes", "output")],
    }


@contextlib.contextmanager
def running(_: Json) -> Iterator[Callable[[str, Any], Any]]:
    """Yield what runs a graph a few times in one thread of a conversation."""
    with cosmosdb.server() as (url, received):
        os.environ.update(COSMOSDB_ENDPOINT=url, COSMOSDB_KEY=cosmosdb.KEY, AGENTSTATE_QUIET="1")

        def start(kind: str, given: Json) -> Json:
            saver = CosmosDBSaver("checkpoints", kind)
            if kind == "compact":
                client = CosmosClient(url, cosmosdb.KEY, enable_compact_utf8_item_writes=True)
                saver.container = client.get_database_client("checkpoints").get_container_client(kind)
            return _run(kind, given, saver, received)

        yield start
