"""Offloaders of frameworks with limits of the program's own: the budget on the spans is the limit of the offloader."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING

import pytest

from agent_otel.testing.servers.openai import OpenAIServer, ToolCall, tool_results

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.testing.servers.openai import Json, Reply
    from tests.environments import Environment

# A view of a stored result has to stay below the offloader's limit, or its reference is lost.
CLAIM_CHECK = "memory://"

PROGRAM = """
import json, sys
sys.path.insert(0, {root!r})
from tests.contract.child import Telemetry
telemetry = Telemetry()
import agent_otel

base_url = {base_url!r}

def big(n: int) -> str:
    "Return so many letters."
    return "x" * n

{body}

with agent_otel.execution("offloading"):
    run(True)
with agent_otel.execution("plain"):
    run(False)

from agent_otel._internal import errors
budgets = [
    [span["attributes"]["tool.result.budget_bytes"], span["attributes"]["tool.result.budget_layer"]]
    for span in telemetry.spans() if "tool.result.budget_layer" in span["attributes"]
]
print(json.dumps([budgets, dict(errors.errors)]))
"""

DEEPAGENTS = """
from deepagents.middleware.filesystem import FilesystemMiddleware
from langchain.agents import create_agent
from langchain.agents.middleware import ToolCallLimitMiddleware, ToolRetryMiddleware
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

model = ChatOpenAI(model="scripted", base_url=base_url, api_key="scripted", max_retries=0)

def run(offloads):
    limited = FilesystemMiddleware(tool_token_limit_before_evict=3000)
    middleware = [ToolRetryMiddleware(), limited, ToolCallLimitMiddleware(run_limit=9)] if offloads else []
    create_agent(model, [tool(big)], middleware=middleware).invoke({"messages": [("user", "go")]})
"""

STRANDS = """
from strands import Agent, tool
from strands.models.openai import OpenAIModel
from strands.vended_plugins.context_offloader import ContextOffloader, InMemoryStorage

def run(offloads):
    client = {"base_url": base_url, "api_key": "scripted", "max_retries": 0}
    offloader = ContextOffloader(InMemoryStorage(), max_result_tokens=3000)
    model, plugins = OpenAIModel(client_args=client, model_id="scripted"), [offloader] if offloads else []
    Agent(model=model, tools=[tool(big)], callback_handler=None, plugins=plugins)("go")
"""

AGNO = """
from agno.agent import Agent
from agno.db.sqlite import SqliteDb
from agno.models.openai import OpenAIChat
from agno.offload import ResultStore

def run(offloads):
    model = OpenAIChat(id="scripted", base_url=base_url, api_key="scripted", max_retries=0)
    store, db = ResultStore(threshold_chars=12_000), SqliteDb(db_url="sqlite://")
    more = {"offload_tool_results": store, "db": db} if offloads else {}
    Agent(model=model, tools=[big], telemetry=False, **more).run("go", session_id="thread-1")
"""


def one_by_one(*sizes: int) -> Callable[[Json], Reply]:
    """Ask for a call in each turn, until there are no more."""

    def decide(request: Json) -> Reply:
        answered = len(tool_results(request))
        if answered == len(sizes):
            return "done"
        return [ToolCall(f"call_{answered}", "big", {"n": sizes[answered]})]

    return decide


@pytest.mark.parametrize(
    ("row", "body"),
    [("deepagents", DEEPAGENTS), ("strands", STRANDS), ("strands-1.61", STRANDS), ("agno", AGNO)],
)
def test_the_limit_of_an_offloader_is_the_budget(
    environment: Callable[[str], Environment], request: pytest.FixtureRequest, row: str, body: str
) -> None:
    """Of 3,000 tokens or 12,000 characters: the framework stores 12,001 letters, and hands 12,000 on.

    A result that is stored by the claim check has a view within the limit, so that its reference is in it.
    """
    with OpenAIServer(one_by_one(12_000, 12_001, 40_000)) as server:
        code = PROGRAM.format(root=str(request.config.rootpath), base_url=server.base_url, body=textwrap.dedent(body))
        env = {"AGENT_OTEL": "1", "AGENT_OTEL_CLAIM_CHECK": CLAIM_CHECK, "LANGSMITH_TRACING": "false"}
        done = environment(row).run(code, env=env, check=True)
    budgets, errors = json.loads(done.stdout.splitlines()[-1])
    assert errors == {}
    assert budgets == [[12_000, "framework"]] * 3 + [[32_768, "ceiling"]] * 3
    offloading, plain = (list(tool_results(sent).values()) for sent in server.requests if len(tool_results(sent)) == 3)
    assert [len(text) for text in offloading[:1]] == [12_000]
    assert len(offloading[1]) < 12_000
    assert "claim:" not in offloading[1]
    if row == "strands-1.61":  # until there, remedies see what the framework has stored
        assert "claim:" not in offloading[2]
        assert len(offloading[2]) < 12_000
    else:
        assert "claim:" in offloading[2]
        assert 11_000 < len(offloading[2].encode()) <= 12_000
    assert [len(text) for text in plain[:2]] == [12_000, 12_001]
    assert 12_001 < len(plain[2].encode()) <= 32_768
