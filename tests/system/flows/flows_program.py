"""Traces this package's functions through one flow, with a real framework or SDK around it; prints them as JSON.

``python -m tests.system.flows.flows_program FLOW BASE_URL``; the interpreter has the switch on.
"""

# mypy: disable-error-code="import-not-found,untyped-decorator,unused-ignore"
# The frameworks are not installed where types are checked.

from __future__ import annotations

import json
import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

#: Bodies of comprehensions are calls on some versions of Python only.
INLINE = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
#: Calls of each flow that come before the traced one: first calls load and bind what later ones find.
WARM = 3


def traced(run: Callable[[], object]) -> list[tuple[str, str]]:
    """Return the file and the name of each function of the package that is called in any thread, in order."""
    calls: list[tuple[str, str]] = []

    def profile(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        _, found, file = code.co_filename.rpartition("/agent_otel/")
        if event == "call" and found and code.co_name not in INLINE:
            calls.append((file, code.co_name))

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return calls


def tool_result(_: str, characters: int = 1_000) -> Callable[[], object]:
    """One call of a tool in LangGraph's ``ToolNode``: both stages, a recorded span, an execution."""
    _leave_runs_alone()
    from langchain_core.messages import AIMessage
    from langchain_core.tools import tool
    from langgraph.graph import END, START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode

    @tool
    def lookup(key: str) -> str:
        """Look a record up."""
        return f"{key}: " + "ß" * characters

    graph = StateGraph(MessagesState)
    graph.add_node("tools", ToolNode([lookup]))
    graph.add_edge(START, "tools")
    graph.add_edge("tools", END)
    compiled = graph.compile()
    number = 0

    def run() -> None:
        nonlocal number
        number += 1
        call: Any = {"name": "lookup", "args": {"key": f"key {number}"}, "id": f"call_{number}"}
        message = AIMessage("", tool_calls=[call])
        compiled.invoke({"messages": [message]}, {"configurable": {"thread_id": "thread-1"}})

    return run


def _leave_runs_alone() -> None:
    """Take the wrap sites of LangGraph's own runs out of the table, because they belong to the flow of a payload."""
    from agent_otel.integrations.registry import INTEGRATIONS

    (langgraph,) = (integration for integration in INTEGRATIONS if integration.name == "langgraph")
    langgraph.sites = [site for site in langgraph.sites if site.adapter == "frameworks.langchain"]


def model_request(base_url: str) -> Callable[[], object]:
    """One request of OpenAI's SDK with eight messages, of which three are results of recorded calls."""
    from openai import OpenAI

    import agent_otel

    client = OpenAI(base_url=base_url, api_key="scripted", max_retries=0)
    messages: list[Any] = [{"role": "system", "content": "You are a clerk."}, {"role": "user", "content": "Look up."}]
    for number in range(3):
        with agent_otel.tool_call("lookup", {"key": number}, call_id=f"call_{number}") as call:
            call.result("ß" * 1000)
        function = {"name": "lookup", "arguments": json.dumps({"key": number})}
        asked = {"id": f"call_{number}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [asked]})
        messages.append({"role": "tool", "tool_call_id": f"call_{number}", "content": "ß" * 1000})
    return lambda: client.chat.completions.create(model="scripted", messages=messages)


def payload(_: str) -> Callable[[], object]:
    """One checkpoint that LangGraph's saver puts away."""
    from langgraph.checkpoint.base import empty_checkpoint
    from langgraph.checkpoint.memory import InMemorySaver

    saver = InMemorySaver()
    number = 0

    def run() -> None:
        nonlocal number
        number += 1
        config: Any = {"configurable": {"thread_id": "thread-1", "checkpoint_ns": ""}}
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"] = {"messages": ["ß" * 100 * number]}
        saver.put(config, checkpoint, {"source": "loop", "step": number}, {"messages": number})

    return run


def claim_checked_result(base_url: str) -> Callable[[], object]:
    """One such call with a result that goes into the store."""
    return tool_result(base_url, 100_000)


FLOWS: dict[str, Callable[[str], Callable[[], object]]] = {
    "tool_result": tool_result,
    "model_request": model_request,
    "payload": payload,
    "claim_checked_result": claim_checked_result,
}


def main(flow: str, base_url: str) -> None:
    """Print the calls of the package that a flow makes."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider

    trace.set_tracer_provider(TracerProvider())
    run = FLOWS[flow](base_url)
    for _ in range(WARM):
        run()
    print(json.dumps(traced(run)))


if __name__ == "__main__":
    main(*sys.argv[1:])
