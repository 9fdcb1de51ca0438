"""Sessions of OpenAI's Agents SDK: SQLite, SQLAlchemy, a real Redis, stand-ins for MongoDB and Dapr's sidecar."""

# ruff: noqa: D102 - a test's name and body say it
from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from agent_otel.testing.servers.openai import OpenAIServer
from tests.contract.stores.suite import LETTERS, StoreContract
from tests.system.engines import redis

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.contract.runtimes.suite import Json, Runs
    from tests.environments import Environment

MIB = 1024 * 1024


class TestOpenAIAgentsSessions(StoreContract):
    """openai-agents 0.24."""

    program = "openai_agents"
    environment = "openai-agents-sessions"
    runtime = "openai-agents"
    integrations: ClassVar[dict[str, list[str]]] = {
        "openai-agents": [
            "agents.memory.sqlite_session:SQLiteSession._insert_items",
            "agents.extensions.memory.advanced_sqlite_session:AdvancedSQLiteSession.get_items",
            "agents.extensions.memory.async_sqlite_session:AsyncSQLiteSession._insert_items",
            "agents.extensions.memory.mongodb_session:MongoDBSession.add_items",
            "agents.extensions.memory.sqlalchemy_session:SQLAlchemySession.add_items",
            "agents.extensions.memory.redis_session:RedisSession.add_items",
        ],
    }
    cases: ClassVar[dict[str, Any]] = {
        **{
            kind: {"letters": LETTERS}
            for kind in ("sqlite", "async", "counting", "advanced", "sqlalchemy", "redis", "mongodb")
        },
        # The server refuses the first one, and pymongo the other: it leaves 16 KiB for the command.
        "mongodb-limited": {"letters": [100, 3000, 30_000], "refused": 2},
        "large": {"kind": "sqlite", "letters": [MIB, MIB, 10]},
        **({"limited": {"letters": [100, 3000, 4000], "refused": 2}} if sys.version_info >= (3, 11) else {}),
    }
    writes = 3

    @classmethod
    @contextlib.contextmanager
    def engine(cls, environment: Callable[[str], Environment]) -> Iterator[Json]:
        del environment
        with redis.server() as url:
            yield {"redis": url}

    def test_whose_bytes_they_are_and_which_are_there_twice(self, runs: Runs) -> None:
        """The two results of a mebibyte each are equal."""
        told = [said for said in self.told(runs, "large") if "workflow.payload.largest_path" in said]
        session = told[-1]
        assert session["workflow.payload.direction"] == "history"
        assert session["workflow.payload.bytes"] == runs.on["cases"]["large"]["said"]["sizes"][1]
        assert session["workflow.payload.largest_tool"] == "search"
        assert session["workflow.payload.largest_tool_bytes"] == pytest.approx(2 * MIB, rel=0.001)
        assert session["workflow.payload.duplicate_bytes"] == pytest.approx(MIB, rel=0.001)
        assert session["workflow.execution.id"] == runs.on["cases"]["large"]["said"]["session"]
        assert "workflow.payload.cap_bytes" not in session

    @pytest.mark.skipif("limited" not in cases, reason="no limit to set")
    def test_a_refused_write_is_counted(self, runs: Runs) -> None:
        assert self.total(runs, "limited", "rejected") == 2
        refused = [said for said in self.told(runs, "limited") if said.get("workflow.payload.rejected")]
        assert len(refused) == 2

    def test_an_append_is_compared_with_the_cap_of_mongodb_s_documents(self, runs: Runs) -> None:
        assert self.total(runs, "mongodb-limited", "rejected") == 2
        refused = [said for said in self.told(runs, "mongodb-limited") if said.get("workflow.payload.rejected")]
        assert [said["workflow.payload.cap_bytes"] for said in refused] == [16 * MIB] * 2


class TestDaprSessions(StoreContract):
    """openai-agents 0.24 and dapr 1.19; the stand-in has daprd's limit on what it receives."""

    program = "openai_agents_dapr"
    environment = "openai-agents-sessions"
    runtime = "openai-agents"
    integrations: ClassVar[dict[str, list[str]]] = {
        "openai-agents": ["agents.extensions.memory.dapr_session:DaprSession.add_items"],
        "dapr": ["dapr.aio.clients.grpc.client:DaprGrpcClientAsync.save_state"],
    }
    cases: ClassVar[dict[str, Any]] = {
        "dapr": {"letters": LETTERS},
        "large": {"letters": [MIB, MIB, 10]},
        "limited": {"letters": [3 * MIB, 2 * MIB], "refused": 1},
    }
    writes = 3
    is_whole = True

    def test_the_growth_is_that_of_the_session(self, runs: Runs) -> None:
        """Each write is a turn: from the first, with the question alone, to the last."""
        said = runs.on["cases"]["large"]["said"]
        assert self.total(runs, "large", "growth") == said["sizes"][-1] - said["first"]

    def test_a_run_begins_with_the_whole_value(self, runs: Runs) -> None:
        sizes = runs.on["cases"]["dapr"]["said"]["sizes"]
        assert self.sizes(runs, "dapr", "history") == (len(sizes) - 1, sum(sizes[:-1]))

    def test_a_refused_write_is_counted(self, runs: Runs) -> None:
        assert self.total(runs, "limited", "rejected") == 1
        (refused,) = (said for said in self.told(runs, "limited") if said.get("workflow.payload.rejected"))
        assert refused["workflow.payload.cap_bytes"] == 4 * MIB


del StoreContract

_WRITTEN = """
import asyncio, sqlite3, sys
from agents import Agent, OpenAIChatCompletionsModel, Runner, SQLiteSession, set_tracing_disabled
from openai import AsyncOpenAI
from prometheus_client import REGISTRY

set_tracing_disabled(disabled=True)
client = AsyncOpenAI(base_url=sys.argv[1], api_key="scripted", max_retries=0)
session = SQLiteSession("session", sys.argv[2])
database = sqlite3.connect(sys.argv[2])
database.execute("INSERT INTO agent_sessions (session_id) VALUES ('session')")
item = ("session", '{"role": "user",     "content": "größe"}')
database.execute("INSERT INTO agent_messages (session_id, message_data) VALUES (?, ?)", item)
database.commit()
agent = Agent("clerk", model=OpenAIChatCompletionsModel("scripted", client))
asyncio.run(Runner.run(agent, "hello", session=session))
labels = {"workflow_runtime": "openai-agents", "gen_ai_agent_name": "clerk", "gen_ai_workflow_name": "clerk"}
print(REGISTRY.get_sample_value("agent_otel_workflow_history_size_bytes_sum", labels))
"""


def test_a_history_has_the_bytes_that_the_database_has(
    environment: Callable[[str], Environment], tmp_path: Path
) -> None:
    """The texts of the rows count, as another program has written them: no item is serialised again."""
    with OpenAIServer(lambda _: "done") as server:
        done = environment("openai-agents-sessions").run(
            _WRITTEN, server.base_url, str(tmp_path / "sessions"), env={"AGENT_OTEL": "1"}, check=True
        )

    # {"role": "user",     "content": "größe"} has 40 characters, two of them of two bytes.
    assert done.stdout == "42.0\n"


_WITHOUT_SETTINGS = """
import asyncio, sqlite3, sys
from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from agents.extensions.memory import SQLAlchemySession
from openai import AsyncOpenAI
from prometheus_client import REGISTRY
from agent_otel._internal import errors

set_tracing_disabled(disabled=True)
client = AsyncOpenAI(base_url=sys.argv[1], api_key="scripted", max_retries=0)
agent = Agent("clerk", model=OpenAIChatCompletionsModel("scripted", client))

async def main():
    session = SQLAlchemySession.from_url("session", url=f"sqlite+aiosqlite:///{sys.argv[2]}", create_tables=True)
    await Runner.run(agent, "hello", session=session)
    query = "SELECT sum(length(CAST(message_data AS BLOB))) FROM agent_messages"
    ((stored,),) = sqlite3.connect(sys.argv[2]).execute(query)
    await Runner.run(agent, "again", session=session)
    return stored

labels = {"workflow_runtime": "openai-agents", "gen_ai_agent_name": "clerk", "gen_ai_workflow_name": "clerk"}
stored = asyncio.run(main())
counted = REGISTRY.get_sample_value("agent_otel_workflow_history_size_bytes_sum", labels)
print(counted == stored, dict(errors.errors))
"""


@pytest.mark.weekly
def test_a_session_before_0_9_has_a_history_too(environment: Callable[[str], Environment], tmp_path: Path) -> None:
    with OpenAIServer(lambda _: "done") as server:
        done = environment("openai-agents-sessions-0.7").run(
            _WITHOUT_SETTINGS, server.base_url, str(tmp_path / "sessions"), env={"AGENT_OTEL": "1"}, check=True
        )
    assert done.stdout == "True {}\n"
