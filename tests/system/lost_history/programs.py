"""Agents whose request builders never append the conversation, over real SDKs.

``python -m tests.system.lost_history.programs SDK URL`` prints how many requests of each shape had lost their history.
"""

# mypy: disable-error-code="import-not-found,import-untyped,untyped-decorator,unused-ignore"
# The SDKs are not installed where types are checked.

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import agent_otel
from tests.contract.child import Messages, Telemetry

if TYPE_CHECKING:
    from collections.abc import Callable

    #: Sends a system prompt (or None) and the user's messages.
    Send = Callable[[str | None, list[str]], object]

CONTEXT = "These are the files of the repository. " * 20
FIRST = ("Be kind.", [CONTEXT, "Which file is the largest?"])
#: What each request after the first holds.
SHAPES: dict[str, tuple[str | None, list[str]]] = {
    "the same": FIRST,
    "filled slots": ("Be kind. The user's name is Bob.", FIRST[1]),
    "system only": ("Be kind.", []),
    "context only": (None, [CONTEXT]),
    "another user text": ("Be kind.", [CONTEXT, "And which file is the smallest of them all, and why?"]),
    "user text only": (None, ["And which file is the smallest of them all, and why?"]),
    "slots and another question": ("You look for files.", ["Find the largest file."]),
}
TOOL = "list_files"
SCHEMA = {"type": "object", "properties": {}}


def openai_chat(url: str) -> Send:
    """Return what sends by Chat Completions."""
    import openai

    client = openai.OpenAI(base_url=url, api_key="scripted", max_retries=0)
    tools: Any = [{"type": "function", "function": {"name": TOOL, "parameters": SCHEMA}}]

    def send(system: str | None, users: list[str]) -> object:
        messages: Any = [{"role": "system", "content": system}] if system else []
        messages += [{"role": "user", "content": text} for text in users]
        return client.chat.completions.create(model="scripted", messages=messages, tools=tools)

    return send


def openai_responses(url: str) -> Send:
    """Return what sends by Responses."""
    import openai

    client = openai.OpenAI(base_url=url, api_key="scripted", max_retries=0)
    tools: Any = [{"type": "function", "name": TOOL, "parameters": SCHEMA, "strict": False}]

    def send(system: str | None, users: list[str]) -> object:
        said: Any = [{"role": "user", "content": text} for text in users]
        return client.responses.create(model="scripted", instructions=system, input=said, tools=tools)

    return send


def anthropic(url: str) -> Send:
    """Return what sends by Messages."""
    import anthropic as sdk

    client = sdk.Anthropic(base_url=url, api_key="scripted", max_retries=0)
    more: Any = {"model": "scripted", "max_tokens": 100, "tools": [{"name": TOOL, "input_schema": SCHEMA}]}

    def send(system: str | None, users: list[str]) -> object:
        messages = [{"role": "user", "content": text} for text in users]
        return client.messages.create(messages=messages, **more, **({"system": system} if system else {}))

    return send


def gemini(url: str) -> Send:
    """Return what sends by generateContent, which refuses a request without messages."""
    from google import genai
    from google.genai import types

    from agent_otel.testing.servers.providers import MODEL

    client = genai.Client(api_key="scripted", http_options={"base_url": url})
    tools = [types.Tool(function_declarations=[types.FunctionDeclaration(name=TOOL)])]

    def send(system: str | None, users: list[str]) -> object:
        contents = [types.Content(role="user", parts=[types.Part.from_text(text=text)]) for text in users]
        config = types.GenerateContentConfig(system_instruction=system, tools=tools)
        return client.models.generate_content(model=MODEL, contents=contents, config=config)

    return send


def bedrock(url: str) -> Send:
    """Return what sends by Converse."""
    import boto3

    keys = {"aws_access_key_id": "scripted", "aws_secret_access_key": "scripted"}
    client = boto3.client("bedrock-runtime", endpoint_url=url, region_name="us-east-1", **keys)
    tools = {"tools": [{"toolSpec": {"name": TOOL, "inputSchema": {"json": SCHEMA}}}]}

    def send(system: str | None, users: list[str]) -> object:
        messages = [{"role": "user", "content": [{"text": text}]} for text in users]
        prompt = {"system": [{"text": system}]} if system else {}
        return client.converse(modelId="scripted", messages=messages, toolConfig=tools, **prompt)

    return send


def langgraph(url: str) -> Callable[[str, tuple[str | None, list[str]]], object]:
    """Return what runs a graph whose model node drops ``state["messages"]``."""
    from langchain_core.messages import HumanMessage, SystemMessage
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode, tools_condition

    @tool
    def list_files() -> str:
        """List the files."""
        return "x" * 300

    model = ChatOpenAI(model="scripted", base_url=url, api_key="scripted", max_retries=0).bind_tools([list_files])

    def run(name: str, later: tuple[str | None, list[str]]) -> object:
        def ask(state: MessagesState) -> Any:
            system, users = FIRST if len(state["messages"]) == 1 else later
            prompt: list[Any] = [SystemMessage(system)] if system else []
            return {"messages": [model.invoke([*prompt, *map(HumanMessage, users)])]}

        graph = StateGraph(MessagesState)
        graph.add_node("ask", ask)
        graph.add_node("tools", ToolNode([list_files]))
        graph.add_edge(START, "ask")
        graph.add_conditional_edges("ask", tools_condition)
        graph.add_edge("tools", "ask")
        with agent_otel.execution(name, agent=name):
            return graph.compile().invoke({"messages": [("user", "Which file is the largest?")]})

    return run


def main(sdk: str, url: str) -> None:
    """Run each shape, with three requests after the first, and print what was counted by shape."""
    messages, telemetry = Messages(), Telemetry()
    shapes = {name: shape for name, shape in SHAPES.items() if shape[1] or sdk != "gemini"}
    if sdk == "langgraph":
        run = langgraph(url)
        for name, shape in shapes.items():
            run(name, shape)
    else:
        send = globals()[sdk](url)
        for name, shape in shapes.items():
            with agent_otel.execution(name, agent=name):
                send(*FIRST)
                for number in range(3):
                    with agent_otel.tool_call(TOOL, {"page": number}, call_id=f"call_{number}") as call:
                        call.result("x" * 300)
                    send(*shape)
    lost = {
        metric["attributes"]["gen_ai.agent.name"]: metric["sum"]
        for metric in telemetry.metrics()
        if metric["name"] == "agent_otel.model.history.lost"
    }
    print(json.dumps({"lost": lost, "messages": messages.take()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
