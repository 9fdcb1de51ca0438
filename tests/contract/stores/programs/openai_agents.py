"""An agent of OpenAI's Agents SDK with a session in a database, and what the database has of it."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents import Agent, OpenAIChatCompletionsModel, Runner, SQLiteSession, function_tool, set_tracing_disabled
from agents.extensions.memory import (
    AdvancedSQLiteSession,
    AsyncSQLiteSession,
    MongoDBSession,
    RedisSession,
    SQLAlchemySession,
)
from openai import AsyncOpenAI
from pymongo import MongoClient
from pymongo.errors import DocumentTooLarge, WriteError

from agent_otel.testing.servers.openai import OpenAIServer
from tests.contract.runtimes.steps import produce
from tests.contract.stores.model import decide
from tests.system.engines import mongodb

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Json = dict[str, Any]
LIMIT_BYTES = 2_000

set_tracing_disabled(disabled=True)


class Counting(SQLiteSession):
    """A program's own session."""

    async def add_items(self, items: Any) -> None:
        """Add, as the base does."""
        await super().add_items(items)


@function_tool
def search(n: int) -> str:
    """Find so many letters."""
    return produce(n)


def session_of(kind: str, name: str, file: str, engine: Json) -> Any:
    """One session, by the name of its kind."""
    if kind == "redis":
        return RedisSession.from_url(name, url=engine["redis"])
    if kind.startswith("mongodb"):
        return MongoDBSession.from_uri(name, uri=engine[kind])
    if kind == "async":
        return AsyncSQLiteSession(name, file)
    if kind == "sqlalchemy":
        return SQLAlchemySession.from_url(
            name, url=f"sqlite+aiosqlite:///{file}", create_tables=True, ensure_ascii=False
        )
    if kind == "advanced":
        return AdvancedSQLiteSession(session_id=name, db_path=file, create_tables=True)
    session = {"sqlite": SQLiteSession, "counting": Counting, "limited": SQLiteSession}[kind](
        name, ":memory:" if kind == "limited" else file
    )
    if kind == "limited":
        session._shared_connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LIMIT_BYTES)  # type: ignore[attr-defined]
    return session


async def stored(kind: str, session: Any, file: str, documents: Json) -> int:
    """Bytes of the session's items in the database."""
    if kind.startswith("mongodb"):
        own = (each for each in documents[kind].get("agent_messages", ()) if each["session_id"] == session.session_id)
        return sum(len(text.encode()) for each in own for text in each["message_data"] if type(text) is str)
    if kind == "redis":
        return sum(map(len, await session._redis.lrange(session._messages_key, 0, -1)))
    connection = session._shared_connection if kind == "limited" else sqlite3.connect(file)
    query = "SELECT sum(length(CAST(message_data AS BLOB))) FROM agent_messages WHERE session_id = ?"
    size = connection.execute(query, (session.session_id,)).fetchone()[0]
    if kind != "limited":
        connection.close()
    return int(size or 0)


@contextlib.contextmanager
def running(engine: Json) -> Iterator[Callable[[str, Any], Any]]:
    """Yield what runs an agent a few times in one session."""
    names = iter(range(1000))
    with (
        tempfile.TemporaryDirectory() as folder,
        OpenAIServer(decide) as server,
        mongodb.found(engine.get("mongodb"), "agents") as (whole, documents),
        mongodb.server(max_document_bytes=LIMIT_BYTES) as (limited, few),
    ):
        file = str(Path(folder) / "sessions")
        urls = {**engine, "mongodb": whole, "mongodb-limited": limited}
        held = {"mongodb": documents, "mongodb-limited": few}

        async def start(kind: str, given: Json) -> Json:
            client = AsyncOpenAI(base_url=server.base_url, api_key="scripted", max_retries=0)
            agent = Agent("clerk", tools=[search], model=OpenAIChatCompletionsModel("scripted", client))
            session = session_of(kind, f"session-{os.getpid()}-{next(names)}", file, urls)
            if kind == "mongodb":  # what the session skips
                damaged = {"session_id": session.session_id, "seq": -1, "generation": 0, "message_data": [None, 7]}
                with MongoClient(urls[kind]) as connection:
                    connection["agents"]["agent_messages"].insert_one(damaged)
            sizes, said = [], []
            for n in given["letters"]:
                try:
                    said.append((await Runner.run(agent, f"é {n}", session=session)).final_output)
                except (sqlite3.DataError, DocumentTooLarge, WriteError) as error:
                    said.append(type(error).__name__)
                sizes.append(await stored(kind, session, file, held))
            await session.get_items()  # outside of a run
            if kind == "async":
                await session.close()
            return {"said": said, "sizes": sizes, "session": session.session_id}

        yield lambda kind, given: asyncio.run(start(given.get("kind", kind), given))
