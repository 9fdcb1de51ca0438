"""Tools that OpenAI's Agents SDK runs itself: a policy and a limit hold for shells, patches and custom tools."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel.testing.servers.openai import ToolCall
from tests.contract.frameworks.test_openai_agents import Server

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agent_otel.testing.servers.openai import Json, Reply
    from tests.environments import Environment

PROGRAM = """
import json, sys
import agent_otel.auto
import agents
from agents import Agent, OpenAIResponsesModel, Runner
from openai import AsyncOpenAI
ran = []

async def shell(request):
    ran.append("shell")
    return "a secret"

class Editor:
    def create_file(self, operation):
        ran.append("apply_patch")
        return "done"

    update_file = delete_file = create_file

async def custom(context, given):
    ran.append("custom")
    return "a secret"

agents.set_tracing_disabled(True)
tools = [
    agents.ShellTool(executor=shell),
    agents.ApplyPatchTool(editor=Editor()),
    agents.CustomTool(name="custom", description="Look up.", on_invoke_tool=custom),
]
client = AsyncOpenAI(base_url=sys.argv[1], api_key="scripted", max_retries=0)
agent = Agent("clerk", tools=tools, model=OpenAIResponsesModel("scripted", client))
print(json.dumps({"said": Runner.run_sync(agent, "go").final_output, "ran": ran}))
"""
CALLS = [
    ToolCall("call_1", "shell", json.dumps({"commands": ["ls"]})),
    ToolCall("call_2", "apply_patch", json.dumps({"type": "create_file", "path": "a.txt", "diff": "+a"})),
    ToolCall("call_3", "custom", "look"),
]


def decide(request: Json) -> Reply:
    """Ask for the three calls, then say so."""
    answered = any(str(item.get("type", "")).endswith("_output") for item in request["input"])
    return "done" if answered else CALLS


@pytest.fixture
def run(environment: Callable[[str], Environment]) -> Callable[..., tuple[Json, dict[str, Any]]]:
    """Run the program; return what it reports, and the outputs that the model got."""

    def run(**variables: str) -> tuple[Json, dict[str, Any]]:
        with Server(decide) as model:
            done = environment("openai-agents").run(
                PROGRAM, model.base_url, env={"AGENT_OTEL": "1", **variables}, check=True
            )
        items = [item for item in model.requests[-1]["input"] if str(item.get("type", "")).endswith("_output")]
        return json.loads(done.stdout.splitlines()[-1]), {item["call_id"]: item for item in items}

    return run


def test_a_policy_that_denies_by_default_lets_none_of_them_run(run: Callable[..., Any], tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text("")
    report, outputs = run(AGENT_OTEL_TOOL_POLICY=str(policy))
    assert report == {"said": "done", "ran": []}
    told = [outputs["call_1"]["output"][0]["stderr"], outputs["call_2"]["output"], outputs["call_3"]["output"]]
    assert [json.loads(each)["error"] for each in told] == ["tool_denied"] * 3
    assert outputs["call_2"]["status"] == "failed"


def test_a_limit_of_calls_holds_for_them(run: Callable[..., Any]) -> None:
    report, outputs = run(AGENT_OTEL_MAX_TOOL_CALLS="1")
    assert len(report["ran"]) == 1
    assert len(outputs) == 3


def test_without_a_policy_they_run(run: Callable[..., Any]) -> None:
    report, outputs = run()
    assert sorted(report["ran"]) == ["apply_patch", "custom", "shell"]
    assert outputs["call_3"]["output"] == "a secret"
