"""Agents whose answer is a call of an output tool, after a result that is cut, over real frameworks."""

# mypy: disable-error-code="import-not-found,import-untyped,untyped-decorator,misc,unused-ignore"
# The frameworks are not installed where types are checked.

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import agent_otel
from tests.contract.child import LOOP
from tests.system.answers.programs import CUT_BYTES, ROWS, incomplete

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.contract.child import Telemetry


def search(query: str) -> str:
    """Search.

    Args:
        query: What to find.
    """
    return json.dumps(ROWS)[:CUT_BYTES] if query == "cut" else "found"


def _answer() -> Any:
    """Return the type of an answer; some environments are without Pydantic."""
    import pydantic

    return pydantic.create_model("Answer", __doc__="The answer.", text=(str, ...))


def pydantic_ai(url: str) -> Any:
    """Run an agent with a type of output, which has a tool of a reserved name."""
    agent = _pydantic_ai(url)
    return agent.run_sync("go").output.text


def pydantic_ai_streamed(url: str) -> Any:
    """Run the same, streamed."""

    async def run() -> Any:
        async with _pydantic_ai(url).run_stream("go") as result:
            return (await result.get_output()).text

    return LOOP.run_until_complete(run())


def _pydantic_ai(url: str) -> Any:
    from openai import AsyncOpenAI
    from pydantic_ai import Agent, ToolOutput
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    client = AsyncOpenAI(base_url=url, api_key="scripted", max_retries=0)
    model = OpenAIChatModel("scripted", provider=OpenAIProvider(openai_client=client))
    return Agent(model, tools=[search], output_type=ToolOutput(_answer()))


def langchain(url: str) -> Any:
    """Run an agent whose output tool has the name of the type."""
    return _langchain(url).invoke({"messages": [("user", "go")]})["structured_response"].text


def langchain_streamed(url: str) -> Any:
    """Run the same, streamed."""
    *_, last = _langchain(url).stream({"messages": [("user", "go")]}, stream_mode="values")
    return last["structured_response"].text


def langchain_paused(url: str) -> Any:
    """Run the same with a tool that waits for an approval: the run ends with a call, and is no answer."""
    from langchain.agents.middleware import HumanInTheLoopMiddleware
    from langgraph.checkpoint.memory import InMemorySaver

    def send(text: str) -> str:
        """Send a mail."""
        return text

    agent = _langchain(
        url,
        send,
        middleware=[HumanInTheLoopMiddleware(interrupt_on={"send": True})],
        checkpointer=InMemorySaver(),
    )
    state = agent.invoke({"messages": [("user", "go")]}, {"configurable": {"thread_id": "thread"}})
    return "paused" if "__interrupt__" in state else state


def _langchain(url: str, *tools: Any, **more: Any) -> Any:
    from langchain.agents import create_agent
    from langchain.agents.structured_output import ToolStrategy
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model="scripted", base_url=url, api_key="scripted", max_retries=0)
    return create_agent(model, [search, *tools], response_format=ToolStrategy(_answer()), **more)


def smolagents(url: str) -> Any:
    """Run an agent whose framework has a tool for the answer."""
    from smolagents import OpenAIServerModel, ToolCallingAgent, tool

    model = OpenAIServerModel("scripted", api_base=url, api_key="scripted", client_kwargs={"max_retries": 0})
    return ToolCallingAgent([tool(search)], model, max_steps=4, verbosity_level=0).run("go")


def by_hand(url: str) -> Any:
    """Run a loop that requires a call each time, and reads the answer from one."""
    import openai

    client = openai.OpenAI(base_url=url, api_key="scripted", max_retries=0)
    names: tuple[tuple[str, Any], ...] = (("search", {"query": {"type": "string"}}), ("Answer", {}))
    tools: Any = [
        {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": properties}}}
        for name, properties in names
    ]
    history: list[Any] = [{"role": "user", "content": "go"}]
    with agent_otel.execution("run"):
        while True:
            message = (
                client.chat.completions.create(model="scripted", messages=history, tools=tools, tool_choice="required")
                .choices[0]
                .message
            )
            history.append(message)
            for call in message.tool_calls or ():
                arguments = json.loads(call.function.arguments)  # type: ignore[union-attr]
                if call.function.name == "Answer":  # type: ignore[union-attr]
                    return arguments["text"]
                with agent_otel.tool_call("search", arguments, call_id=call.id) as measured:
                    text = measured.result(search(**arguments))
                history.append({"role": "tool", "tool_call_id": call.id, "content": text})


def gemini(url: str) -> Any:
    """Run the same loop over Gemini."""
    from google import genai
    from google.genai import types

    from agent_otel.testing.servers.providers import MODEL

    client = genai.Client(api_key="scripted", http_options={"base_url": url})
    declared = [types.FunctionDeclaration(name=name) for name in ("search", "Answer")]
    calling = types.FunctionCallingConfig(mode=types.FunctionCallingConfigMode.ANY)
    config = types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=declared)],
        tool_config=types.ToolConfig(function_calling_config=calling),
    )
    contents: list[Any] = [types.Content(role="user", parts=[types.Part.from_text(text="go")])]

    def ask() -> Any:
        said: Any = client.models.generate_content(model=MODEL, contents=contents, config=config).candidates
        contents.append(said[0].content)
        return [
            (part.function_call.id, part.function_call.name, part.function_call.args) for part in said[0].content.parts
        ]

    def answer(call_id: str, text: str) -> None:
        response = types.FunctionResponse(id=call_id, name="search", response={"result": text})
        contents.append(types.Content(role="user", parts=[types.Part(function_response=response)]))

    return _loop(ask, answer)


def bedrock(url: str) -> Any:
    """Run the same loop over Converse."""
    import boto3

    keys = {"aws_access_key_id": "scripted", "aws_secret_access_key": "scripted"}
    client = boto3.client("bedrock-runtime", endpoint_url=url, region_name="us-east-1", **keys)
    specs: Any = [{"toolSpec": {"name": name, "inputSchema": {"json": {}}}} for name in ("search", "Answer")]
    messages: list[Any] = [{"role": "user", "content": [{"text": "go"}]}]

    def ask() -> Any:
        config = {"tools": specs, "toolChoice": {"any": {}}}
        message = client.converse(modelId="scripted", messages=messages, toolConfig=config)["output"]["message"]
        messages.append(message)
        calls = [block["toolUse"] for block in message["content"]]
        return [(call["toolUseId"], call["name"], call["input"]) for call in calls]

    def answer(call_id: str, text: str) -> None:
        result = {"toolResult": {"toolUseId": call_id, "content": [{"text": text}]}}
        messages.append({"role": "user", "content": [result]})

    return _loop(ask, answer)


def mistral(url: str) -> Any:
    """Run the same loop over Mistral's client."""
    from mistralai.client import Mistral

    tools: Any = [
        {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
        for name in ("search", "Answer")
    ]
    messages: Any = [{"role": "user", "content": "go"}]
    client = Mistral(api_key="scripted", server_url=url)

    def ask() -> Any:
        said = (
            client.chat.complete(model="scripted", messages=messages, tools=tools, tool_choice="any").choices[0].message
        )
        messages.append(said)
        return [(call.id, call.function.name, _arguments(call.function.arguments)) for call in said.tool_calls]

    def answer(call_id: str, text: str) -> None:
        messages.append({"role": "tool", "tool_call_id": call_id, "name": "search", "content": text})

    return _loop(ask, answer)


def _arguments(given: Any) -> Any:
    return json.loads(given) if isinstance(given, str) else given


def _loop(ask: Callable[[], Any], answer: Callable[[str, str], None]) -> Any:
    with agent_otel.execution("run"):
        while True:
            for call_id, name, arguments in ask():
                if name == "Answer":
                    return arguments["text"]
                with agent_otel.tool_call("search", arguments, call_id=call_id) as measured:
                    answer(call_id, measured.result(search(**arguments)))


def main(name: str, url: str, telemetry: Telemetry) -> Any:
    """Run an agent; return its answer, and which answers were counted as incomplete."""
    return {"said": globals()[name](url), "counted": incomplete(telemetry)}
