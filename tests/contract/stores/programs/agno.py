"""An agent of Agno with a session in SQLite, sync and async, and what the database has of it."""

# mypy: disable-error-code="import-not-found,import-untyped,untyped-decorator,misc,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agno.agent import Agent
from agno.db.sqlite import AsyncSqliteDb, SqliteDb
from agno.models.openai import OpenAIChat

from agent_otel.testing.servers.openai import OpenAIServer
from tests.contract.runtimes.steps import produce
from tests.contract.stores.model import decide

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Json = dict[str, Any]


def search(n: int) -> str:
    """Find so many letters."""
    return produce(n)


def _bytes(file: str) -> int:
    """Return the bytes of the runs that the database has."""
    with contextlib.closing(sqlite3.connect(file)) as connection:
        query = "SELECT sum(length(CAST(run_data AS BLOB))) FROM agno_runs"
        size: int = connection.execute(query).fetchone()[0]
        return size


async def _run(url: str, file: str, name: str, given: Json) -> Json:
    database: Any = AsyncSqliteDb(db_file=file) if name == "async" else SqliteDb(db_file=file)
    said, sizes = [], []
    for n in given["letters"]:
        model = OpenAIChat(id="scripted", base_url=url, api_key="scripted", max_retries=0)
        agent = Agent(
            model=model, tools=[search], name="clerk", telemetry=False, db=database, add_history_to_context=True
        )
        asked: Json = {"session_id": f"session-{name}"}
        answer = await agent.arun(f"é {n}", **asked) if name == "async" else agent.run(f"é {n}", **asked)
        said.append(str(answer.content))
        sizes.append(_bytes(file))
    return {"said": said, "sizes": sizes, "session": f"session-{name}"}


@contextlib.contextmanager
def running(_: Json) -> Iterator[Callable[[str, Any], Any]]:
    """Yield what runs an agent a few times in one session, each time a new one that reads the session."""
    with tempfile.TemporaryDirectory() as folder, OpenAIServer(decide) as server:
        yield lambda name, given: asyncio.run(_run(server.base_url, str(Path(folder) / name), name, given))
