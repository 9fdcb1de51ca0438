"""The scripted model, driven by real clients: two majors of OpenAI's, LangChain's and the Agents SDK."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel.testing.servers.openai import Json, OpenAIServer, Reply, ToolCall, call_once, tool_results

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.environments import Environment

CALLS = [ToolCall("call_1", "big", {"n": 5}), ToolCall("call_2", "small", {"text": "größe"})]
RESULTS = {"call_1": "x" * 5, "call_2": "é"}

OPENAI = """
import json, sys
import openai

client = openai.OpenAI(max_retries=0)
results = json.loads(sys.argv[1])
question = [{"role": "user", "content": "go"}]
chat_results = [{"role": "tool", "tool_call_id": call, "content": text} for call, text in results.items()]
items = [{"type": "function_call_output", "call_id": call, "output": text} for call, text in results.items()]
said = []

def chat(completion):
    message = completion.choices[0].message
    return message.content or [(c.id, c.function.name, c.function.arguments) for c in message.tool_calls]

def chat_stream(**more):
    with client.chat.completions.stream(model="m", **more) as stream:
        return chat(stream.get_final_completion())

def response(answer):
    return answer.output_text or [(item.call_id, item.name, item.arguments) for item in answer.output]

def response_stream(**more):
    with client.responses.stream(model="m", **more) as stream:
        said.extend(event.type for event in stream)
        return response(stream.get_final_response())

print(json.dumps({
    "chat": [chat(client.chat.completions.create(model="m", messages=m)) for m in (question, chat_results)],
    "chat stream": [chat_stream(messages=m, stream_options={"include_usage": True}) for m in (question, chat_results)],
    "responses": [response(client.responses.create(model="m", input=i)) for i in ("go", items)],
    "responses stream": [response_stream(input=i) for i in ("go", items)],
    "events": said,
}))
"""

LANGCHAIN = """
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI

for responses in (False, True):
    model = ChatOpenAI(model="m", use_responses_api=responses)
    question = HumanMessage("go")
    whole = model.invoke([question])
    streamed = None
    for chunk in model.stream([question]):
        streamed = chunk if streamed is None else streamed + chunk
    for answer in (whole, streamed):
        assert [call["name"] for call in answer.tool_calls] == ["big", "small"], answer
        assert [call["args"] for call in answer.tool_calls] == [{"n": 5}, {"text": "größe"}], answer
    results = [ToolMessage("x" * 5, tool_call_id="call_1"), ToolMessage("é", tool_call_id="call_2")]
    assert model.invoke([question, whole, *results]).text == "all done"
"""

AGENTS = """
import asyncio
from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool
from openai import AsyncOpenAI

@function_tool
def big(n: int) -> str:
    return "x" * n

@function_tool
def small(text: str) -> str:
    return text[-1].replace("e", "é")

async def main():
    for model in (OpenAIResponsesModel, OpenAIChatCompletionsModel):
        agent = Agent("a", tools=[big, small], model=model("m", AsyncOpenAI()))
        assert (await Runner.run(agent, "go")).final_output == "all done"
        streamed = Runner.run_streamed(agent, "go")
        async for _ in streamed.stream_events():
            pass
        assert streamed.final_output == "all done"

asyncio.run(main())
"""

ITEM = [
    "response.output_item.added",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.output_item.done",
]
MESSAGE = [
    "response.output_item.added",
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
]
BEGIN, END = ["response.created", "response.in_progress"], ["response.completed"]


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(call_once(CALLS, final="all done")) as running:
        yield running


def wire_results(server: OpenAIServer) -> list[dict[str, str]]:
    """Return what the requests after a tool's turn carried."""
    return [found for request in server.requests if (found := tool_results(request))]


@pytest.mark.parametrize("name", ["langchain", "langchain-oldest"])  # openai 3 and 2
def test_openai(environment: Callable[[str], Environment], server: OpenAIServer, name: str) -> None:
    child = environment(name).run(OPENAI, json.dumps(RESULTS), env=server.environment, check=True)
    said: dict[str, Any] = json.loads(child.stdout)
    events = said.pop("events")
    asked = [[call.id, call.name, json.dumps(call.arguments)] for call in CALLS]
    assert said == {way: [asked, "all done"] for way in ("chat", "chat stream", "responses", "responses stream")}
    assert events == [*BEGIN, *ITEM, *ITEM, *END, *BEGIN, *MESSAGE, *END]
    assert wire_results(server) == [RESULTS] * 4
    assert server.tool_results() == RESULTS


def test_langchain(environment: Callable[[str], Environment], server: OpenAIServer) -> None:
    environment("langchain").run(LANGCHAIN, env=server.environment, check=True)
    assert wire_results(server) == [RESULTS] * 2


def test_openai_agents(environment: Callable[[str], Environment], server: OpenAIServer) -> None:
    env = {**server.environment, "OPENAI_AGENTS_DISABLE_TRACING": "1"}
    environment("openai-agents").run(AGENTS, env=env, check=True)
    assert wire_results(server) == [RESULTS] * 4


def test_content_in_parts_is_read_as_text() -> None:
    parts = [{"type": "text", "text": "one"}, {"type": "text", "text": " two"}]
    assert tool_results({"messages": [{"role": "tool", "tool_call_id": "c", "content": parts}]}) == {"c": "one two"}
    assert tool_results({"input": [{"type": "function_call_output", "call_id": "c", "output": parts}]}) == {
        "c": "one two"
    }


def test_a_failing_script_is_an_error_at_once(environment: Callable[[str], Environment]) -> None:
    def fail(_: Json) -> Reply:
        raise KeyError("lost")

    ask = "import openai; openai.OpenAI().responses.create(model='m', input='go')"
    with OpenAIServer(fail) as broken:
        child = environment("langchain").run(ask, env=broken.environment)
        assert "BadRequestError" in child.stderr
        assert "the script failed, KeyError: 'lost'" in child.stderr
        assert len(broken.requests) == 1
