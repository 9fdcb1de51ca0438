"""Agents whose window drops the beginning of the history, over real frameworks and SDKs.

``python -m tests.system.dropped_history.programs AGENT URL`` prints the bytes, turns and tasks that were dropped, and
the user's messages of each request.
"""

# mypy: disable-error-code="import-not-found,import-untyped,untyped-decorator,misc,unused-ignore"
# The SDKs are not installed where types are checked.

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from opentelemetry import trace

import agent_otel
from tests.contract.child import Messages, Telemetry

TURNS = 6
WINDOW = 4
TASK = "t" * 20
TOOL = "read_page"
SCHEMA = {"type": "object", "properties": {"page": {"type": "integer"}}}


def page_of(page: int) -> str:
    """Return the result of the tool: 100 bytes and one more for each page."""
    return "r" * (100 + page)


def openai_chat(url: str) -> None:
    """Run a loop that sends the last messages by Chat Completions."""
    import openai

    client = openai.OpenAI(base_url=url, api_key="scripted", max_retries=0)
    tools: Any = [{"type": "function", "function": {"name": TOOL, "parameters": SCHEMA}}]
    history: list[Any] = [{"role": "user", "content": TASK}]
    while True:
        messages: Any = [{"role": "system", "content": "Be kind."}, *history[-WINDOW:]]
        message = client.chat.completions.create(model="scripted", messages=messages, tools=tools).choices[0].message
        if not message.tool_calls:
            return
        history.append(message.model_dump(exclude_none=True))
        for asked in message.tool_calls:
            text = page_of(**json.loads(asked.function.arguments))  # type: ignore[union-attr]
            history.append({"role": "tool", "tool_call_id": asked.id, "content": text})


def anthropic(url: str) -> None:
    """Run a loop that sends the last messages by Messages."""
    import anthropic as sdk

    client = sdk.Anthropic(base_url=url, api_key="scripted", max_retries=0)
    tools: Any = [{"name": TOOL, "input_schema": SCHEMA}]
    history: list[Any] = [{"role": "user", "content": TASK}]
    while True:
        message = client.messages.create(
            model="scripted", max_tokens=100, system="Be kind.", tools=tools, messages=history[-WINDOW:]
        )
        history.append({"role": "assistant", "content": message.content})
        calls = [block for block in message.content if block.type == "tool_use"]
        if not calls:
            return
        results = [{"type": "tool_result", "tool_use_id": call.id, "content": page_of(**call.input)} for call in calls]
        history.append({"role": "user", "content": results})


def langchain(url: str) -> None:
    """Run an agent of LangChain whose middleware trims the messages of each request."""
    from langchain.agents import create_agent
    from langchain.agents.middleware import wrap_model_call
    from langchain_core.messages import trim_messages
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI

    @tool
    def read_page(page: int) -> str:
        """Read a page."""
        return page_of(page)

    @wrap_model_call
    def trim(request: Any, handler: Any) -> Any:
        messages = trim_messages(request.messages, max_tokens=WINDOW, token_counter=len, strategy="last")
        return handler(request.override(messages=messages))

    model = ChatOpenAI(model="scripted", base_url=url, api_key="scripted", max_retries=0)
    agent = create_agent(model, [read_page], system_prompt="Be kind.", middleware=[trim])
    agent.invoke({"messages": [("user", TASK)]}, {"recursion_limit": 100})


def langgraph(url: str) -> None:
    """Run a chat of three questions on a graph with a checkpointer, whose model node trims to whole exchanges."""
    from langchain_core.messages import trim_messages
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode, tools_condition

    @tool
    def read_page(page: int) -> str:
        """Read a page."""
        return page_of(page)

    model = ChatOpenAI(model="scripted", base_url=url, api_key="scripted", max_retries=0).bind_tools([read_page])

    def ask(state: MessagesState) -> Any:
        messages = trim_messages(
            state["messages"],
            max_tokens=7,
            token_counter=len,
            strategy="last",
            start_on="human",
            end_on=("human", "tool"),
        )
        return {"messages": [model.invoke(messages)]}

    graph = StateGraph(MessagesState)
    graph.add_node("ask", ask)
    graph.add_node("tools", ToolNode([read_page]))
    graph.add_edge(START, "ask")
    graph.add_conditional_edges("ask", tools_condition)
    graph.add_edge("tools", "ask")
    compiled = graph.compile(InMemorySaver())
    for number in range(3):
        compiled.invoke({"messages": [("user", f"q{number}".ljust(20))]}, {"configurable": {"thread_id": "chat"}})


def langchain_summary(url: str) -> None:
    """Run an agent of LangChain that replaces old messages by a summary."""
    from langchain.agents import create_agent
    from langchain.agents.middleware import SummarizationMiddleware
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI

    @tool
    def read_page(page: int) -> str:
        """Read a page."""
        return page_of(page)

    model = ChatOpenAI(model="scripted", base_url=url, api_key="scripted", max_retries=0)
    summary = SummarizationMiddleware(model, trigger=("messages", 9), keep=("messages", 2))
    agent = create_agent(model, [read_page], system_prompt="Be kind.", middleware=[summary])
    agent.invoke({"messages": [("user", TASK)]}, {"recursion_limit": 100})


def agents_compaction(url: str) -> None:
    """Run three questions in a session of the Agents SDK that the provider compacts behind the second."""
    _in_session(url, _compacted)


def agents_window(url: str) -> None:
    """Run three questions in a session of the Agents SDK that keeps all, and hands on the last four items."""
    from agents.memory import SessionSettings

    _in_session(url, lambda store, _: store, SessionSettings(limit=4))


def _compacted(store: Any, client: Any) -> Any:
    from agents.memory import OpenAIResponsesCompactionSession

    return OpenAIResponsesCompactionSession(
        "chat",
        store,
        client=client,
        compaction_mode="input",
        should_trigger_compaction=lambda context: len(context["compaction_candidate_items"]) >= TURNS,
    )


def _in_session(url: str, made: Any, settings: Any = None) -> None:
    from agents import Agent, OpenAIResponsesModel, RunConfig, Runner, SQLiteSession, function_tool
    from openai import AsyncOpenAI

    @function_tool
    def read_page(page: int) -> str:
        """Read a page."""
        return page_of(page)

    async def chat() -> None:
        client = AsyncOpenAI(base_url=url, api_key="scripted", max_retries=0)
        session = made(SQLiteSession("chat"), client)
        model = OpenAIResponsesModel("gpt-scripted", client)
        agent = Agent("reader", "Be kind.", tools=[read_page], model=model)
        config = RunConfig(tracing_disabled=True, session_settings=settings)
        for number in range(3):
            await Runner.run(agent, f"q{number}".ljust(20), session=session, run_config=config)

    asyncio.run(chat())


def autogen(url: str) -> None:
    """Run an agent of AutoGen with a buffered context."""
    from autogen_agentchat.agents import AssistantAgent
    from autogen_core.model_context import BufferedChatCompletionContext
    from autogen_ext.models.openai import OpenAIChatCompletionClient

    async def read_page(page: int) -> str:
        """Read a page."""
        return page_of(page)

    info: Any = {"vision": False, "function_calling": True, "json_output": False, "family": "unknown"}
    client = OpenAIChatCompletionClient(
        model="scripted", base_url=url, api_key="scripted", model_info={**info, "structured_output": False}
    )
    agent = AssistantAgent(
        "reader",
        client,
        tools=[read_page],
        system_message="Be kind.",
        model_context=BufferedChatCompletionContext(WINDOW),
        max_tool_iterations=TURNS + 1,
    )
    asyncio.run(agent.run(task=TASK))


def main(name: str, url: str) -> None:
    """Run an agent and print what was counted."""
    messages, telemetry = Messages(), Telemetry()
    if name == "langgraph":
        langgraph(url)
    else:
        span = trace.get_tracer("program").start_as_current_span("agent")
        with span, agent_otel.execution("run", agent="reader"):
            globals()[name](url)
    prefix = "agent_otel.model.history."
    counted = {
        metric["name"].removeprefix(prefix): metric["sum"]
        for metric in telemetry.metrics()
        if metric["name"].startswith(prefix)
    }
    is_summarized = any("agent_otel.history.summarized" in span["attributes"] for span in telemetry.spans())
    summarized = {"summarized": True} if is_summarized else {}
    print(json.dumps({"counted": counted, **summarized, "messages": messages.take()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
