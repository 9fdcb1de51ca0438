"""A graph of LangGraph with a saver of documents, in Redis or MongoDB, and what they received."""

# mypy: disable-error-code="import-not-found,import-untyped,untyped-decorator,misc,unused-ignore"
# The frameworks are not installed where types are checked.

from __future__ import annotations

import ast
import asyncio
import contextlib
import os
import re
import socket
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.mongodb import MongoDBSaver
from langgraph.checkpoint.redis import RedisSaver
from langgraph.checkpoint.redis.aio import AsyncRedisSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from pymongo import MongoClient
from pymongo.errors import DocumentTooLarge
from redis import Redis

from tests.contract.stores.programs.langgraph_graph import graph
from tests.system.engines import mongodb

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Json = dict[str, Any]


class Reversing(JsonPlusSerializer):
    """A program's own serializer, which is around the saver's default one."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Return the bytes in the other direction, and one more."""
        kind, data = super().dumps_typed(obj)
        return kind, data[::-1] + b"!"

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Undo it."""
        return super().loads_typed((data[0], data[1][-2::-1]))


class Monitor:
    """The commands that a Redis receives, as it tells them itself."""

    def __init__(self, url: str) -> None:
        self._client = Redis.from_url(url)
        address = urlsplit(url)
        self._socket = socket.create_connection((address.hostname or "", address.port or 0))
        self._socket.sendall(b"MONITOR\r\n")
        self._lines = self._socket.makefile("rb")
        self._lines.readline()

    def documents(self) -> Json:
        """Return the bytes of the documents that have come since the last call: checkpoints, and writes of nodes."""
        self._client.echo("all")
        sizes = {"state": 0, "output": 0, "writes": 0}
        for line in self._lines:
            texts = re.findall(r'"(?:[^"\\]|\\.)*"', line.decode())
            name, *values = (ast.literal_eval(f"b{text}") for text in texts)
            if name == b"ECHO":
                break
            if name == b"JSON.SET":
                is_write = values[0].startswith(b"checkpoint_write")
                sizes["output" if is_write else "state"] += len(values[2])
                sizes["writes"] += is_write
        return sizes

    def close(self) -> None:
        """Leave."""
        self._lines.close()
        self._socket.close()
        self._client.close()


def _bytes(value: Any) -> int:
    """Return the bytes of the serialised values in a document of metadata."""
    return sum(map(_bytes, value.values())) if isinstance(value, dict) else len(value[1])


def of_documents(stored: mongodb.Stored | mongodb.Database) -> Json:
    """Return the bytes of the serialised values of the documents: checkpoints with metadata, and writes of nodes."""
    return {
        "state": sum(len(each["checkpoint"]) + _bytes(each["metadata"]) for each in stored.get("checkpoints", ())),
        "output": sum(len(each["value"]) for each in stored.get("checkpoint_writes", ())),
        "writes": len(stored.get("checkpoint_writes", ())),
    }


async def _run(kind: str, given: Json, saver: Any, received: Callable[[], Json]) -> Json:
    app = graph().compile(checkpointer=saver)
    app.name = "clerk"
    config = {"configurable": {"thread_id": f"thread-{kind}-{os.getpid()}"}}
    said: list[Any] = []
    sizes: list[Json] = []
    for n in given["letters"]:
        question: Any = {"messages": [HumanMessage(str(n))]}
        try:
            if kind == "async-redis":
                state = await app.ainvoke(question, config, durability="sync")
            else:
                state = app.invoke(question, config, durability="sync")
            said.append(len(state["messages"]))
        except DocumentTooLarge as error:
            said.append(str(error))
        sizes.append(received())
    return {
        "said": said,
        "sizes": [size["state"] for size in sizes],
        "received": sum(size["state"] for size in sizes),
        "output": [sum(size[name] for size in sizes) for name in ("writes", "output")],
    }


async def _in_redis(kind: str, given: Json, url: str) -> Json:
    monitor = Monitor(url)
    try:
        if kind == "async-redis":
            async with AsyncRedisSaver.from_conn_string(url) as saver:
                await saver.asetup()
                return await _run(kind, given, saver, monitor.documents)
        with RedisSaver.from_conn_string(url) as saver:
            saver.setup()
            return await _run(kind, given, saver, monitor.documents)
    finally:
        monitor.close()


async def _in_mongodb(kind: str, given: Json, running: str | None) -> Json:
    with mongodb.found(running, "checkpointing_db") as (url, stored), MongoClient(url) as client:
        saver = MongoDBSaver(client, serde=Reversing() if kind == "own-serializer" else None)
        before = of_documents(stored)

        def received() -> Json:
            after = of_documents(stored)
            new = {name: size - before[name] for name, size in after.items()}
            before.update(after)
            return new

        return await _run(kind, given, saver, received)


@contextlib.contextmanager
def running(engine: Json) -> Iterator[Callable[[str, Any], Any]]:
    """Yield what runs a graph a few times in one thread of a conversation."""

    def start(kind: str, given: Json) -> Json:
        wanted = given.get("kind", kind)
        if "redis" in wanted:
            return asyncio.run(_in_redis(wanted, given, engine["redis"]))
        return asyncio.run(_in_mongodb(wanted, given, engine.get("mongodb")))

    yield start
