"""Tools that raise a long exception, in frameworks that make a text of it for the model.

``python failures_program.py <framework> <base URL>``; prints as JSON what the model would read of each call, how many
results were counted as large, and the attributes of the tools' spans.
"""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,no-redef,assignment,unused-ignore"
# The frameworks are not installed where types are checked.

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib
import json
import logging
import sys
from typing import Any

from tests.contract.child import Telemetry

LONG = 300_000


def fail(n: int) -> str:
    """Raise an exception whose text has so many characters."""
    raise ValueError("x" * n)


def give(n: int) -> str:
    """Return so many characters."""
    return "y" * n


def langgraph(_: str, *, is_async: bool = False, handled: bool = False) -> list[Any]:
    """ToolNode makes a message of the exception, or the tool itself a text."""
    from langchain_core.messages import AIMessage
    from langchain_core.tools import StructuredTool, ToolException
    from langgraph.graph import END, START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode

    def refuse(n: int) -> str:
        """Raise what LangChain's tools turn into text themselves."""
        raise ToolException("x" * n)

    made = StructuredTool.from_function(refuse if handled else fail, name="fail", handle_tool_error=handled)
    graph: Any = StateGraph(MessagesState)
    graph.add_node("tools", ToolNode([made], handle_tool_errors=True))
    graph.add_edge(START, "tools")
    graph.add_edge("tools", END)
    compiled = graph.compile()
    calls = [
        {"name": "fail", "args": {"n": n}, "id": f"call_{number}", "type": "tool_call"}
        for number, n in enumerate((LONG, 10))
    ]
    config: Any = {"configurable": {"thread_id": "thread-1"}}
    state = {"messages": [AIMessage("", tool_calls=calls)]}
    said = asyncio.run(compiled.ainvoke(state, config)) if is_async else compiled.invoke(state, config)
    return [{"text": message.content, "is_error": message.status == "error"} for message in said["messages"][1:]]


def agents(base_url: str) -> list[Any]:
    """The SDK makes a text of the exception; the model server keeps what it was sent."""
    from agents import Runner, function_tool

    from tests.contract.agents import openai_agents

    made = function_tool(fail, failure_error_function=lambda _, error: str(error))
    Runner.run_sync(openai_agents.make(base_url, [made], ""), "go", run_config=openai_agents.CONFIG)
    return []


def mcp(_: str) -> list[Any]:
    """The server makes a result of the exception."""
    from tests.contract.agents import mcp_client, mcp_server
    from tests.contract.remedies.agents.mcp_results import shown

    mcp_server.FUNCTIONS[:] = [fail]

    async def call() -> list[Any]:
        async with mcp_client.connect("") as client:
            return [shown(await client.call_tool("fail", {"n": n})) for n in (LONG, 10)]

    return asyncio.run(call())


def _telling(function: Any) -> Any:
    """Return a tool of the Agents SDK that gives the model the text of an exception."""
    from agents import function_tool

    return function_tool(function, failure_error_function=lambda _, error: str(error))


def dapr_agents(base_url: str) -> list[Any]:
    """A durable agent beside stand-ins for daprd."""
    from dapr.conf import settings
    from dapr.ext.workflow import DaprWorkflowClient, WorkflowRuntime
    from dapr_agents import DurableAgent, OpenAIChatClient, tool
    from dapr_agents.agents.configs import AgentStateConfig
    from dapr_agents.storage.daprstores.stateservice import StateStoreService

    from tests.system.engines.dapr_sidecar import sidecar
    from tests.system.engines.dapr_state import state_api

    with contextlib.ExitStack() as started:
        started.enter_context(sidecar())
        workflows = {"host": settings.DAPR_RUNTIME_HOST, "port": str(settings.DAPR_GRPC_PORT)}
        stored = started.enter_context(state_api())  # whose port is from here on that of the settings
        client = DaprWorkflowClient(**workflows)
        agent = DurableAgent(
            name="clerk",
            role="clerk",
            llm=OpenAIChatClient(api_key="scripted", model="scripted", base_url=base_url),
            tools=[tool(fail), tool(give)],
            state=AgentStateConfig(store=StateStoreService(store_name="states", retry_attempts=1)),
            runtime=WorkflowRuntime(**workflows),
        )
        agent.start()
        instance = client.schedule_new_workflow(agent.agent_workflow_name, input={"task": "go"})
        client.wait_for_workflow_completion(instance, timeout_in_seconds=50)
        agent.stop()
        agent.runtime.shutdown()
        assert max(map(len, stored.values())) < LONG, "the state holds the whole text"
    return []


def loop(name: str, base_url: str, setting: str = "", *, is_async: bool = False) -> list[Any]:
    """An agent of the contract's, whose framework makes a text of the exception; the model server keeps it."""
    agent = importlib.import_module(f"tests.contract.agents.{name}")
    if name == "agno":
        logging.disable(logging.CRITICAL)  # its log colours the text with regular expressions, which takes a minute
    kinds = {"pydantic_ai": "ModelRetry", "anthropic_runner": "ToolError"}  # of others, the latter's newest cuts it
    kind = getattr(agent, kinds[name]) if name in kinds and not is_async else ValueError

    def function(n: int) -> str:
        """Raise what the framework makes a long text of."""
        raised.append(kind("x" * n))
        raise raised[0]

    raised: list[Exception] = []
    function.__name__ = "fail"
    made = _telling(function) if name == "openai_agents" else function
    if is_async:
        asyncio.run(agent.arun(base_url, [made, give], "go", setting))
    else:
        agent.run(base_url, [made, give], "go", setting)
    for error in raised:
        assert "x" * LONG in str(error), "the tool's own exception has changed"
    return []


KINDS: dict[str, Any] = {
    "langgraph": langgraph,
    "langgraph async": lambda url: langgraph(url, is_async=True),
    "langchain": lambda url: langgraph(url, handled=True),
    "openai-agents": agents,
    "mcp": mcp,
    **{
        name: functools.partial(loop, name)
        for name in (
            "agentscope",
            "agno",
            "anthropic_runner",
            "claude_agent_sdk",
            "crewai",
            "dspy",
            "google_functions",
            "haystack",
            "llama_index",
            "openai_agents",
            "pydantic_ai",
            "semantic_kernel",
            "smolagents",
            "strands",
        )
    },
    "dapr_agents": dapr_agents,
    # Of a tool that a callback does not answer for, the exception ends the run.
    "google_adk": functools.partial(loop, "google_adk", setting="forgive"),
    "google_adk results": functools.partial(loop, "google_adk"),
    "dspy v2": functools.partial(loop, "dspy", setting="v2"),
    "crewai text": functools.partial(loop, "crewai", setting="text"),
    "anthropic_runner async": functools.partial(loop, "anthropic_runner", is_async=True),
}


def main(kind: str, base_url: str) -> None:
    """Run one of them."""
    telemetry = Telemetry()
    import agent_otel
    import agent_otel.auto
    from agent_otel._internal import errors

    with agent_otel.execution("run-1"):
        said = KINDS[kind](base_url)
    spans = [span["attributes"] for span in telemetry.spans() if "tool.args_hash" in span["attributes"]]
    metrics = [each for each in telemetry.metrics() if each["name"] == "agent_otel.tool.results.large"]
    large: dict[str, float] = {}
    for each in metrics:
        threshold = each["attributes"]["threshold"]
        large[threshold] = large.get(threshold, 0) + each["sum"]
    print(json.dumps({"said": said, "spans": spans, "large": large, "errors": dict(errors.errors)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
