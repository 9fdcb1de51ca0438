"""One instrumentation of LangChain in one process: what it adds to ``tool.invoke``. Run by ``benchmarks.peers``.

``python -m benchmarks.peer NAME`` prints a JSON object: result kind and size -> time added, in U.
"""

# mypy: disable-error-code="import-not-found,unused-ignore"
# The frameworks are not installed where types are checked.

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import TYPE_CHECKING, Any

from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.tools import StructuredTool
from langgraph.prebuilt import ToolNode
from langgraph.runtime import Runtime
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from benchmarks import clock

if TYPE_CHECKING:
    from collections.abc import Callable

ROW = {"id": 17, "title": "a pull request", "body": "x" * 60, "open": True}


def text(size: int) -> str:
    """A text result of this many bytes."""
    return "x" * size


def rows(size: int) -> dict[str, Any]:
    """A structured result of about this many bytes of JSON."""
    one = len(json.dumps(ROW)) + 2
    return {"items": [dict(ROW) for _ in range(max(1, size // one))]}


# No lengths at which a layer is known to cut: of a text that looks cut, more is recorded.
RESULTS = {
    f"{kind} {label}": make(size)
    for kind, make in (("text", text), ("dict", rows))
    for label, size in (("200 B", 210), ("16 KB", 16_110), ("1 MB", 1_000_110))
}
TEXTS = tuple(name for name in RESULTS if name.startswith("text"))
LOOP = asyncio.new_event_loop()


class Nowhere(SpanExporter):
    """Takes spans and drops them."""

    def export(self, spans: Any) -> SpanExportResult:
        """Drop them."""
        return SpanExportResult.SUCCESS


def agent_otel() -> None:
    """This package."""
    os.environ["AGENT_OTEL_METRICS"] = "prometheus"
    import agent_otel.auto  # noqa: F401


def span(attributes: dict[str, str] | None = None) -> None:
    """A bare wrap that opens and ends one span, which is the floor for all who make one."""
    from langchain_core.tools import BaseTool

    tracer, run, arun = trace.get_tracer("floor"), BaseTool.run, BaseTool.arun

    def traced(self: BaseTool, *args: Any, **kwargs: Any) -> Any:
        with tracer.start_as_current_span(f"execute_tool {self.name}", attributes=attributes):
            return run(self, *args, **kwargs)

    async def traced_async(self: BaseTool, *args: Any, **kwargs: Any) -> Any:
        with tracer.start_as_current_span(f"execute_tool {self.name}", attributes=attributes):
            return await arun(self, *args, **kwargs)

    BaseTool.run, BaseTool.arun = traced, traced_async  # type: ignore[method-assign]


def span_with_attributes() -> None:
    """The same with the attributes that the conventions require and recommend for each tool call."""
    names = ("operation.name", "tool.name", "tool.type", "tool.call.id", "tool.description", "agent.name")
    span({f"gen_ai.{name}": name for name in names})


def openllmetry() -> None:
    """OpenLLMetry, with content as it is by default."""
    from opentelemetry.instrumentation.langchain import LangchainInstrumentor

    LangchainInstrumentor().instrument()


def openllmetry_without_content() -> None:
    """OpenLLMetry at its cheapest."""
    os.environ["TRACELOOP_TRACE_CONTENT"] = "false"
    openllmetry()


def openinference() -> None:
    """OpenInference with content."""
    from openinference.instrumentation.langchain import LangChainInstrumentor

    LangChainInstrumentor().instrument()


def genai() -> None:
    """OpenTelemetry's own instrumentation, without content, as by default."""
    from opentelemetry.instrumentation.genai.langchain import LangChainInstrumentor

    LangChainInstrumentor().instrument()


def langsmith() -> None:
    """LangSmith in its OpenTelemetry mode; the calling thread's share only, its work is on another."""
    variables = {"TRACING": "true", "OTEL_ENABLED": "true", "OTEL_ONLY": "true", "API_KEY": "none"}
    os.environ.update({f"LANGSMITH_{name}": value for name, value in variables.items()})
    os.environ["LANGSMITH_ENDPOINT"] = "http://127.0.0.1:9"
    from langsmith import utils

    utils.get_env_var.cache_clear()


PEERS: dict[str, Callable[[], None]] = {
    "agent_otel": agent_otel,
    "span": span,
    "span-with-attributes": span_with_attributes,
    "openllmetry": openllmetry,
    "openllmetry-without-content": openllmetry_without_content,
    "openinference": openinference,
    "genai": genai,
    "langsmith": langsmith,
}


def tool(result: Any) -> StructuredTool:
    """A tool of LangChain that returns this very object."""

    def fetch(query: str) -> Any:
        """Fetch."""
        return result

    async def fetch_async(query: str) -> Any:
        return result

    return StructuredTool.from_function(fetch, fetch_async)


def invoke(result: Any) -> Callable[[], object]:
    """A call of a tool that returns this very object."""
    made = tool(result)
    return lambda: made.invoke({"query": "where is it"})


def invoke_async(result: Any) -> Callable[[], object]:
    """The same by the async method."""
    made = tool(result)
    return lambda: LOOP.run_until_complete(made.ainvoke({"query": "where is it"}))


def invoke_in_node(result: Any) -> Callable[[], object]:
    """A call with an id in a ToolNode of LangGraph; the async one, because the sync one runs tools in other threads."""
    node = ToolNode([tool(result)])
    call = {"name": "fetch", "args": {"query": "where is it"}, "id": "call_1"}
    asked = {"messages": [AIMessage("", tool_calls=[call])]}
    config: Any = {"configurable": {"thread_id": "a thread", "__pregel_runtime": Runtime()}}
    return lambda: LOOP.run_until_complete(node.ainvoke(asked, config))


def request(messages: int) -> Callable[[], object]:
    """A request of this many messages to a chat model of LangChain that answers at once, in a thread with its calls."""
    config: Any = {"configurable": {"thread_id": f"thread of {messages}"}}
    made, history = tool(text(2_000)), [SystemMessage("You search."), HumanMessage("Where is it?")]
    while len(history) < messages:
        call = {"name": "fetch", "args": {"query": f"{len(history)}"}, "id": f"call_{len(history)}"}
        history += [AIMessage("", tool_calls=[call]), made.invoke({**call, "type": "tool_call"}, config)]
    model = FakeListChatModel(responses=["It is here."])
    return lambda: model.invoke(history, config)


def cases() -> dict[str, Callable[[], object]]:
    """All that is measured, by its name."""
    calls = {name: invoke(result) for name, result in RESULTS.items()}
    calls |= {f"{name}, async": invoke_async(RESULTS[name]) for name in TEXTS}
    calls |= {f"{name}, ToolNode": invoke_in_node(RESULTS[name]) for name in TEXTS}
    return calls | {f"request of {messages} messages": request(messages) for messages in (8, 200)}


def main() -> None:
    """Measure before and after switching on."""
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(Nowhere()))
    trace.set_tracer_provider(provider)
    rounds = int(os.environ.get("ROUNDS", "25"))
    before = clock.measure(cases(), rounds)
    PEERS[sys.argv[1]]()
    made = cases()
    after = clock.measure(made, rounds)
    added = {name: after[name] - before[name] for name in made}
    print(json.dumps({**added, "seconds per U": before["seconds per U"]}))


if __name__ == "__main__":
    main()
