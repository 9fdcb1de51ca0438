"""A run that waits for an approval and the run that resumes it are one trace, with the model's own call id."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel.testing.servers.openai import OpenAIServer, Reply, ToolCall, tool_results
from tests.contract.suite import QUIET

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

_BEGIN = """
import json, sys
from tests.contract.child import Telemetry
telemetry = Telemetry()
def lookup(key: str) -> str:
    "Look a record up."
    return f"{key}: " + "words of the record " * 20
"""
_END = """
from agent_otel._internal import errors
print(json.dumps([said, telemetry.spans(), telemetry.metrics(), dict(errors.errors)]))
"""
_PROGRAMS = {
    "agno": """
from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno.models.openai import OpenAIChat
from agno.tools import tool
model = OpenAIChat(id="scripted", base_url=sys.argv[1], api_key="scripted")
agent = Agent(name="clerk", model=model, tools=[tool(requires_confirmation=True)(lookup)], db=InMemoryDb())
paused = agent.run("go")
for each in paused.tools:
    each.confirmed = True
said = agent.continue_run(run_response=paused).content
""",
    "langchain": """
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import MemorySaver
from langgraph.types import Command
model = ChatOpenAI(model="scripted", base_url=sys.argv[1], api_key="scripted", max_retries=0)
waiting = HumanInTheLoopMiddleware(interrupt_on={"lookup": True})
agent = create_agent(model, [lookup], name="clerk", checkpointer=MemorySaver(), middleware=[waiting])
config = {"configurable": {"thread_id": "thread-1"}}
agent.invoke({"messages": [("user", "go")]}, config)
made = agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), config)
said = made["messages"][-1].content
""",
    "pydantic-ai": """
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
model = OpenAIChatModel("scripted", provider=OpenAIProvider(base_url=sys.argv[1], api_key="scripted"))
agent = Agent(model, name="clerk", output_type=[str, DeferredToolRequests])
agent.tool_plain(requires_approval=True)(lookup)
paused = agent.run_sync("go")
approvals = {call.tool_call_id: True for call in paused.output.approvals}
results = DeferredToolResults(approvals=approvals)
said = agent.run_sync(message_history=paused.all_messages(), deferred_tool_results=results).output
""",
    "openai-agents": """
import openai
from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool
client = openai.AsyncOpenAI(base_url=sys.argv[1], api_key="scripted", max_retries=0)
model = OpenAIChatCompletionsModel("scripted", client)
agent = Agent(name="clerk", model=model, tools=[function_tool(needs_approval=True)(lookup)])
paused = Runner.run_sync(agent, "go")
state = paused.to_state()
for each in paused.interruptions:
    state.approve(each)
said = Runner.run_sync(agent, state).final_output
""",
}


def _decide(request: dict[str, Any]) -> Reply:
    return "done" if tool_results(request) else [ToolCall("call_77", "lookup", '{"key":"a"}')]


@pytest.mark.parametrize("framework", _PROGRAMS)
def test_both_halves_are_one_trace(environment: Callable[[str], Environment], framework: str) -> None:
    with OpenAIServer(_decide) as server:
        code = _BEGIN + _PROGRAMS[framework] + _END
        child = environment(framework).run(code, server.base_url, env={**QUIET, "AGENT_OTEL": "1"}, check=True)
    said, spans, metrics, errors = json.loads(child.stdout.splitlines()[-1])
    assert (said, errors) == ("done", {})
    ours = [span for span in spans if span["scope"] == "agent_otel"]
    assert len({span["trace"] for span in ours}) == 1
    runs = [(span["name"], span["parent"]) for span in ours if span["name"].startswith("invoke_agent")]
    assert runs == [("invoke_agent clerk", None), ("invoke_agent clerk", "invoke_agent clerk")]
    (call,) = [span["attributes"] for span in ours if span["name"] == "execute_tool lookup"]
    assert (call["gen_ai.tool.call.id"], call["tool.result.bytes"]) == ("call_77", 403)
    assert {span["attributes"].get("gen_ai.agent.name") for span in ours} == {"clerk"}
    bad = ("history.lost", "unmatched", "incomplete")
    assert not [metric for metric in metrics if metric["name"].endswith(bad) and metric["sum"]]
