"""A durable agent's state with lean records: three searches of 200 KB a turn, a cap of 2 MiB.

The state of the LangGraph agent has the messages, and beside them a record of each call for a user interface. Without
the claim check both hold every result whole, and turn 1 is the last below the cap. With ``AGENT_OTEL_CLAIM_CHECK``, the
messages hold 32 KiB of each result, and the reducer ``lean_records`` keeps 4 KiB and the reference. No text is parsed:
the claim travels beside the message's text. Prints a table: ``python examples/systems/000_lean_state.py``.
"""

# mypy: disable-error-code="import-not-found,import-untyped,untyped-decorator,misc,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any, TypedDict

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

TURNS = 8
CALLS = 3
RESULT_BYTES = 200_000
CAP_BYTES = 2 * 1024 * 1024
VARIABLE = "AGENT_OTEL_CLAIM_CHECK"


def search(query: str) -> str:
    """Return 200,000 bytes, as a list of pull requests."""
    row = json.dumps({"query": query, "title": "A pull request", "body": "x" * 880, "merged": True})
    rows = ",".join([row] * (RESULT_BYTES // (len(row) + 1)))
    return f"[{rows}{' ' * (RESULT_BYTES - len(rows) - 2)}]"


def states(lean: bool) -> list[dict[str, Any]]:  # noqa: FBT001 - a way to run the example
    """Run the agent; return for each turn the bytes of its state and of the calls in it."""
    from langchain_core.messages import AIMessage, ToolMessage  # noqa: PLC0415 - only the child has it
    from langchain_core.tools import tool  # noqa: PLC0415
    from langgraph.checkpoint.memory import InMemorySaver  # noqa: PLC0415
    from langgraph.graph import StateGraph, add_messages  # noqa: PLC0415
    from langgraph.prebuilt import ToolNode  # noqa: PLC0415

    import agent_otel  # noqa: PLC0415

    def whole_records(calls: list[Any], update: list[Any]) -> list[Any]:
        """Keep each call with its whole result, as programs without a claim check do."""
        found = [message for message in update if isinstance(message, ToolMessage)]
        return [*calls, *({"id": one.tool_call_id, "name": one.name, "result": one.content} for one in found)]

    # As a class at the top of a module: calls: Annotated[list[Any], agent_otel.remedies.lean_records]
    reducer = agent_otel.remedies.lean_records if lean else whole_records
    fields = {"messages": Annotated[list[Any], add_messages], "calls": Annotated[list[Any], reducer]}
    state_type: Any = TypedDict("State", fields)  # type: ignore[misc]

    def model(state: Any) -> dict[str, Any]:
        turn = len(state["messages"]) // (CALLS + 1)
        calls = [{"id": f"call_{turn}_{n}", "name": "search", "args": {"query": f"{n}"}} for n in range(CALLS)]
        message = AIMessage("", tool_calls=calls)
        return {"messages": [message], "calls": [message]}

    node = ToolNode([tool(search)])

    def tools(state: Any) -> dict[str, Any]:
        messages = node.invoke({"messages": state["messages"]})["messages"]
        return {"messages": messages, "calls": messages}

    graph = StateGraph(state_type)
    graph.add_node("model", model)
    graph.add_node("tools", tools)
    graph.add_edge("model", "tools")
    graph.set_entry_point("model")
    agent = graph.compile(checkpointer=InMemorySaver())
    found = []
    for _ in range(TURNS):
        state = agent.invoke({"messages": [], "calls": []}, {"configurable": {"thread_id": "thread-1"}})
        contents = [message.model_dump(mode="json") for message in state["messages"]]
        found.append(
            {
                "state_bytes": len(json.dumps({"messages": contents, "calls": state["calls"]})),
                "calls_bytes": len(json.dumps(state["calls"])),
                "last": state["calls"][-1],
            }
        )
    return found


def measured(*, lean: bool, **variables: str) -> list[dict[str, Any]]:
    """Run the agent in a process of its own."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("AGENT_OTEL")}
    environ |= {"AGENT_OTEL": "1", "AGENT_OTEL_METRICS": "off", "AGENT_OTEL_CLAIM_CHECK_BUDGET": "30", **variables}
    arguments = (sys.executable, __file__, "lean" if lean else "whole")
    done = subprocess.run(arguments, env=environ, check=True, capture_output=True, text=True)
    found: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return found


def table() -> str:
    """Return the table of both runs."""
    before = measured(lean=False)
    after = measured(lean=True, **{VARIABLE: "memory:"})
    rows = ["| turn | state, whole results | with the claim check | of it lean records |"]
    rows.append("| ---: | ---: | ---: | ---: |")
    for turn, (whole, lean) in enumerate(zip(before, after, strict=True), 1):
        refused = " (above 2 MiB)" if whole["state_bytes"] > CAP_BYTES else ""
        cells = (f"{whole['state_bytes']:,}{refused}", f"{lean['state_bytes']:,}", f"{lean['calls_bytes']:,}")
        rows.append(f"| {turn} | {' | '.join(cells)} |")
    return "\n".join(rows)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        import agent_otel.auto  # noqa: F401 - switches the package on where start-up files do not run

        print(json.dumps(states(sys.argv[1] == "lean")))
    else:
        print(table())
