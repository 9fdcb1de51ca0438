"""Ids of calls that frameworks keep, and those with which they send the results to the model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel.testing.servers.openai import OllamaServer, OpenAIServer, ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_otel.testing.servers.openai import Json, Reply
    from tests.environments import Environment

BEGIN = """
import asyncio, json, sys
from tests.contract.child import Telemetry
telemetry = Telemetry()

def big(n: int) -> str:
    "Return so many letters."
    return "x" * n

"""
END = """
spans = [span["attributes"] for span in telemetry.spans() if "tool.args_hash" in span["attributes"]]
ids = [span.get("gen_ai.tool.call.id") for span in spans]
metrics = telemetry.metrics()
sums = {
    name: sum(metric["sum"] for metric in metrics if metric["name"] == "agent_otel." + name)
    for name in ("tool.result.delivered", "tool.results.unmatched", "execution.tool_calls", "model.history.lost")
}
print(json.dumps({**sums, "ids": ids}))
"""


def by_turns(*turns: Sequence[tuple[str, int]], name: str = "big") -> Callable[[Json], Reply]:
    """Ask for the calls of one turn after the other, each an id and the bytes of its result; answer without any."""
    left = iter(turns)

    def decide(_: Json) -> Reply:
        calls = next(left, ())
        return "done" if not calls else [ToolCall(id_, name, json.dumps({"n": n})) for id_, n in calls]

    return decide


def told(environment: Environment, server: OpenAIServer | OllamaServer, program: str, *, has_run: bool = True) -> Json:
    """Return what a program recorded; the results of 300, 5,000 and 700 bytes have been delivered, of three calls."""
    done = environment.run(f"{BEGIN}{program}\n{END}", server.base_url, env={"AGENT_OTEL": "1"}, check=True)
    report: Json = json.loads(done.stdout.splitlines()[-1])
    assert report["tool.result.delivered"] == 6000
    assert report["tool.results.unmatched"] == 0
    assert report["execution.tool_calls"] == (3 if has_run else 0)
    assert report["model.history.lost"] == 0
    return report


OLLAMA = """
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.tools import FunctionTool
from llama_index.llms.ollama import Ollama

async def main():
    model = Ollama("scripted", base_url=sys.argv[1], context_window=8000)
    await FunctionAgent(name="clerk", tools=[FunctionTool.from_defaults(big)], llm=model).run(user_msg="go")

asyncio.run(main())
"""


def test_a_tools_name_is_no_id_of_its_calls(environment: Callable[[str], Environment]) -> None:
    """LlamaIndex takes the name as the id where Ollama gives none: two calls at once looked like one and its retry."""
    with OllamaServer(by_turns([("", 300), ("", 5000)], [("", 700)])) as server:
        assert told(environment("llama-index-ollama"), server, OLLAMA)["ids"] == [None] * 3


EMPTY = """
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai import OpenAI

def big(n: int) -> str:
    "Return a record."
    return f"record {n}: {'abcdefgh' * n}"[: n - 8] + f"end {n:4}"

async def main():
    model = OpenAI("gpt-4o", api_base=sys.argv[1], api_key="scripted", max_retries=0)
    await FunctionAgent(name="clerk", tools=[FunctionTool.from_defaults(big)], llm=model).run(user_msg="go")

asyncio.run(main())
"""


def test_an_empty_id_is_none(environment: Callable[[str], Environment]) -> None:
    """Some servers of OpenAI's API write empty ids; the results are known by their beginnings."""
    with OpenAIServer(by_turns([("", 300), ("", 5000)], [("", 700)])) as server:
        assert told(environment("llama-index"), server, EMPTY)["ids"] == [None] * 3


REACT = """
from llama_index.core.agent.workflow import AgentWorkflow, ReActAgent
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai import OpenAI

async def main():
    model = OpenAI("gpt-4o", api_base=sys.argv[1], api_key="scripted", max_retries=0)
    clerk = ReActAgent(name="clerk", description="It helps.", tools=[FunctionTool.from_defaults(big)], llm=model)
    await {agent}.run(user_msg="go")

asyncio.run(main())
"""


@pytest.mark.parametrize("agent", ["clerk", "AgentWorkflow([clerk], root_agent='clerk')"])
def test_an_id_that_an_agent_of_texts_makes_up_is_in_no_request(
    environment: Callable[[str], Environment], agent: str
) -> None:
    steps = [f'Thought: so.\nAction: big\nAction Input: {{"n": {n}}}' for n in (300, 5000, 700)]
    left = iter([*steps, "Thought: I can answer without using any more tools.\nAnswer: done"])
    with OpenAIServer(lambda _: next(left)) as server:
        report = told(environment("llama-index"), server, REACT.format(agent=agent))
    assert report["ids"] == [None] * 3


HAYSTACK = """
from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIResponsesChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import create_tool_from_function
from haystack.utils import Secret

model = OpenAIResponsesChatGenerator(api_key=Secret.from_token("scripted"), model="gpt-4o", api_base_url=sys.argv[1])
Agent(chat_generator=model, tools=[create_tool_from_function(big)]).run(messages=[ChatMessage.from_user("go")])
"""
SEMANTIC_KERNEL = """
from openai import AsyncOpenAI
from semantic_kernel.agents import OpenAIResponsesAgent
from semantic_kernel.functions import kernel_function

async def main():
    client = AsyncOpenAI(base_url=sys.argv[1], api_key="scripted")
    clerk = OpenAIResponsesAgent(ai_model_id="gpt-4o", client=client, name="clerk", instructions="Help.")
    clerk.kernel.add_function("toolbox", kernel_function(big))
    await clerk.get_response("go")

asyncio.run(main())
"""
AGNO = """
from agno.agent import Agent
from agno.models.openai import OpenAIChat, OpenAIResponses

model = {model}("gpt-4o", base_url=sys.argv[1], api_key="scripted", max_retries=0)
clerk = Agent(model=model, tools=[big], name="clerk", session_id="thread-1", telemetry=False)
for _ in range({runs}):
    clerk.run("go")
"""


@pytest.mark.parametrize(
    ("row", "program", "name"),
    [
        ("haystack", HAYSTACK, "big"),
        ("semantic-kernel", SEMANTIC_KERNEL, "toolbox-big"),
        ("agno", AGNO.format(model="OpenAIResponses", runs=1), "big"),
    ],
)
def test_results_go_to_openais_responses_with_the_ids_of_the_calls(
    environment: Callable[[str], Environment], row: str, program: str, name: str
) -> None:
    """The frameworks keep those of the items."""
    decide = by_turns([("call_1", 300), ("call_2", 5000)], [("call_3", 700)], name=name)
    with OpenAIServer(decide) as server:
        report = told(environment(row), server, program, has_run=row != "semantic-kernel")
    sent = [_sent(item) for request in server.requests for item in request["input"]]
    assert {pair for pair in sent if pair} == {("call_1", 300), ("call_2", 5000), ("call_3", 700)}
    if row == "haystack":
        assert report["ids"] == ["call_1", "call_2", "call_3"]


def _sent(item: Json) -> tuple[str, int] | None:
    """Return the id and the size of a result; Haystack sends it as text in a list."""
    if item.get("type") != "function_call_output":
        return None
    output: Any = item["output"]
    text = output if isinstance(output, str) else "".join(part["text"] for part in output)
    return item["call_id"], len(text)


def test_agno_writes_other_ids_for_another_provider(environment: Callable[[str], Environment]) -> None:
    """Each request begins to count anew, so that the ids of the second run are those of the first."""
    with OpenAIServer(by_turns([("toolu_1", 300), ("toolu_2", 5000)], [], [("toolu_3", 700)], [])) as server:
        report = told(environment("agno"), server, AGNO.format(model="OpenAIChat", runs=2))
    assert report["ids"] == ["toolu_1", "toolu_2", "toolu_3"]
    sent = [[m["tool_call_id"] for m in request["messages"] if m["role"] == "tool"] for request in server.requests]
    ids = [f"call_{number:035x}" for number in range(2)]
    assert sent == [[], ids, [], ids[:1]]
