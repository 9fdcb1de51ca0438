"""Providers whose requests have no ids of calls: results are matched by name and order, within the run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from agent_otel.testing.servers.openai import OllamaServer, ToolCall
from agent_otel.testing.servers.providers import GeminiServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.testing.servers.replies import Json, Reply
    from tests.environments import Environment

_BEGIN = """
import json, sys
from tests.contract.child import Telemetry
telemetry = Telemetry()

def big(n: int) -> str:
    "Return so many letters."
    return "x" * n

"""
_END = """
spans = [span for span in telemetry.spans() if "tool.args_hash" in span["attributes"]]
found = [[span["name"], span["parent"], span["attributes"].get("tool.result.bytes")] for span in spans]
metrics = telemetry.metrics()
sums = [
    sum(metric["sum"] for metric in metrics if metric["name"] == "agent_otel." + name)
    for name in ("tool.result.delivered", "execution.tool_calls")
]
print(json.dumps([found, *sums]))
"""


def _in_order(*replies: Reply) -> Callable[[Json], Reply]:
    left = iter(replies)
    return lambda _: next(left)


def _calls(*sizes: int) -> list[ToolCall]:
    return [ToolCall("", "big", json.dumps({"n": n})) for n in sizes]


QUIET = {"CREWAI_DISABLE_TRACKING": "true", "CREWAI_DISABLE_VERSION_CHECK": "true", "CREWAI_TRACING_ENABLED": "false"}
_CREWAI = """
from crewai import Agent, Crew, Task
from crewai.llms.providers.gemini.completion import GeminiCompletion
from crewai.tools import tool

model = GeminiCompletion(
    model="gemini-2.0-flash", api_key="scripted", client_params={"http_options": {"base_url": sys.argv[1]}}
)
clerk = Agent(role="clerk", goal="help", backstory="none", llm=model, tools=[tool(big)])
Crew(agents=[clerk], tasks=[Task(description="go", expected_output="a word", agent=clerk)]).kickoff()
"""


def test_a_crew_of_gemini(environment: Callable[[str], Environment]) -> None:
    """The crew's id is on its calls, and in no request."""
    with GeminiServer(_in_order(_calls(300, 400), _calls(500), "done")) as server:
        done = environment("crewai-gemini").run(
            _BEGIN + _CREWAI + _END, server.base_url, env={"AGENT_OTEL": "1", **QUIET}, check=True
        )
    report = json.loads(done.stdout.splitlines()[-1])
    assert sorted(report[0]) == [["execute_tool big", "invoke_agent clerk", size] for size in (300, 400, 500)]
    assert report[1:] == [1200, 3]


_AGNO = """
from agno.agent import Agent
from agno.models.ollama import Ollama

def agent(tool, **more):
    return Agent(model=Ollama("scripted", host=sys.argv[1]), tools=[tool], telemetry=False, **more)

def ask(question: str) -> str:
    "Ask the assistant."
    return agent(big).run(question).content

agent(ask, {session}).run("go")
"""


@pytest.mark.parametrize("session", ["", "session_id='thread-1'"])
def test_an_agent_of_agno_with_and_without_a_session(environment: Callable[[str], Environment], session: str) -> None:
    """The framework makes a session up for the agent behind the tool."""
    asked = [ToolCall("", "ask", '{"question":"who?"}')]
    with OllamaServer(_in_order(asked, _calls(300, 400), "help", "done")) as server:
        done = environment("agno-ollama").run(
            _BEGIN + _AGNO.format(session=session) + _END, server.base_url, env={"AGENT_OTEL": "1"}, check=True
        )
    report = json.loads(done.stdout.splitlines()[-1])
    within = [["execute_tool big", "execute_tool ask", size] for size in (300, 400)]
    assert sorted(report[0]) == [["execute_tool ask", "invoke_agent", 4], *within]
    assert report[1:] == [704, 3]


_STRANDS = """
from strands import Agent, tool
from strands.models.ollama import OllamaModel
from strands.multiagent import GraphBuilder

@tool
def small(n: int) -> str:
    "Return so many letters."
    return "y" * n

def agent(name, *tools):
    model = OllamaModel(sys.argv[1], model_id="scripted")
    return Agent(model=model, tools=list(tools), name=name, description="It helps.", callback_handler=None)

clerk = agent("clerk", tool(big), small)
{run}
delivered = {{
    metric["attributes"]["gen_ai.tool.name"]: metric["sum"]
    for metric in telemetry.metrics() if metric["name"] == "agent_otel.tool.result.delivered"
}}
print(json.dumps(delivered))
"""


@pytest.mark.parametrize(
    ("run", "asked", "delivered"),
    [
        ("clerk('go')", [], {}),
        # The runs of the two below are those of another agent, and of the graph.
        ("agent('boss', clerk.as_tool())('go')", [ToolCall("", "clerk", '{"input":"go"}')], {"clerk": 5}),
        ("graph = GraphBuilder()\ngraph.add_node(clerk, 'clerk')\ngraph.build()('go')", [], {}),
    ],
    ids=["alone", "behind a tool", "in a graph"],
)
def test_an_agent_of_strands(
    environment: Callable[[str], Environment], run: str, asked: list[ToolCall], delivered: dict[str, int]
) -> None:
    """Each call of a turn is in a message of its own, and behind all of them are their results."""
    calls = [ToolCall("", "big", '{"n":300}'), ToolCall("", "small", '{"n":400}')]
    replies: list[Reply] = [asked, calls, "help", "done"] if asked else [calls, "help"]
    with OllamaServer(_in_order(*replies)) as server:
        done = environment("strands-ollama").run(
            _BEGIN + _STRANDS.format(run=run), server.base_url, env={"AGENT_OTEL": "1"}, check=True
        )
    assert json.loads(done.stdout.splitlines()[-1]) == {"big": 300, "small": 400, **delivered}


_SEMANTIC_KERNEL = """
import asyncio
from ollama import AsyncClient
from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.connectors.ai.ollama import OllamaChatCompletion
from semantic_kernel.functions import kernel_function

async def main():
    model = OllamaChatCompletion(ai_model_id="scripted", client=AsyncClient(host=sys.argv[1]))
    clerk = ChatCompletionAgent(service=model, name="clerk")
    clerk.kernel.add_function("toolbox", kernel_function(big))
    await clerk.get_response("go")

asyncio.run(main())
from agent_otel._internal import errors
assert not errors.errors, errors.errors
"""
_AUTOGEN = """
import asyncio
from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.ollama import OllamaChatCompletionClient

model = OllamaChatCompletionClient(model="llama3.1", host=sys.argv[1])
asyncio.run(AssistantAgent("clerk", model, tools=[big], reflect_on_tool_use=True).run(task="go"))
"""


@pytest.mark.parametrize(
    ("row", "program", "tool"),
    [
        ("semantic-kernel-ollama", _SEMANTIC_KERNEL, "toolbox-big"),
        # The framework gives all calls of a turn the same id.
        ("autogen-ollama", _AUTOGEN, "big"),
    ],
)
def test_two_calls_of_a_turn_at_ollama(
    environment: Callable[[str], Environment], row: str, program: str, tool: str
) -> None:
    calls = [ToolCall("", tool, json.dumps({"n": n})) for n in (300, 400)]
    with OllamaServer(_in_order(calls, "done")) as server:
        done = environment(row).run(_BEGIN + program + _END, server.base_url, env={"AGENT_OTEL": "1"}, check=True)
    assert json.loads(done.stdout.splitlines()[-1])[1:] == [700, 2]


_AGENT_FRAMEWORK = """
import asyncio
from agent_framework import Agent, tool
from agent_framework_ollama import OllamaChatClient

def agent(name, tool):
    return Agent(OllamaChatClient(host=sys.argv[1], model="scripted"), "Help.", name=name, tools=[tool])

async def main():
    helper = agent("helper", tool(approval_mode="never_require")(big))
    boss = agent("boss", helper.as_tool())
    await boss.run("go", session=boss.create_session())

asyncio.run(main())
"""


def test_an_agent_of_agent_framework_behind_a_tool(environment: Callable[[str], Environment]) -> None:
    """The framework makes a session up for it."""
    asked = [ToolCall("", "helper", '{"task":"go"}')]
    with OllamaServer(_in_order(asked, _calls(300, 400), "help", "done")) as server:
        done = environment("agent-framework-ollama").run(
            _BEGIN + _AGENT_FRAMEWORK + _END, server.base_url, env={"AGENT_OTEL": "1"}, check=True
        )
    report = json.loads(done.stdout.splitlines()[-1])
    within = [["execute_tool big", "invoke_agent helper", size] for size in (300, 400)]
    assert sorted(report[0]) == [*within, ["execute_tool helper", "invoke_agent boss", 4]]
    assert report[1:] == [704, 3]


_HAYSTACK = """
from haystack import component
from haystack.components.agents import Agent
from haystack.dataclasses import ChatMessage, ToolCall
from haystack.tools import create_tool_from_function

@component
class Model:
    def __init__(self, *turns):
        self.left = iter(turns)

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage], tools: list | None = None):
        turn = next(self.left)
        if isinstance(turn, str):
            return {"replies": [ChatMessage.from_assistant(turn)]}
        calls = [ToolCall(tool_name=name, arguments=arguments) for name, arguments in turn]
        return {"replies": [ChatMessage.from_assistant(tool_calls=calls)]}

def agent(tool, *turns):
    return Agent(chat_generator=Model(*turns), tools=[create_tool_from_function(tool)])

def ask(question: str) -> str:
    "Ask the assistant."
    behind = agent(nested, [("nested", {"n": 300}), ("nested", {"n": 400})], "help")
    return behind.run(messages=[ChatMessage.from_user(question)])["last_message"].text

def nested(n: int) -> str:
    "Return so many letters with another tool."
    return create_tool_from_function(big).invoke(n=n)

agent(ask, [("ask", {"question": "who?"})], "done").run(messages=[ChatMessage.from_user("go")])
"""


def test_an_agent_behind_a_tool_of_haystack(environment: Callable[[str], Environment]) -> None:
    """The calls of a model without ids, as Ollama's, are its own; a tool that a tool's body calls is part of it."""
    done = environment("haystack").run(_BEGIN + _HAYSTACK + _END, env={"AGENT_OTEL": "1"}, check=True)
    within = [["execute_tool nested", "execute_tool ask", size] for size in (300, 400)]
    report = json.loads(done.stdout.splitlines()[-1])
    assert sorted(report[0]) == [["execute_tool ask", "invoke_agent", 4], *within]
    assert report[2] == 3
