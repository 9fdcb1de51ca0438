"""Agents of real frameworks whose checkpoints carry texts that no model request holds.

``python -m tests.system.dead_weight.programs AGENT URL`` prints what the spans of the analysed payloads say.
"""

# mypy: disable-error-code="import-not-found,import-untyped,untyped-decorator,unused-ignore"
# The frameworks are not installed where types are checked.

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import agent_otel
from agent_otel.core import payload as payloads
from tests.contract.child import Messages, Telemetry
from tests.system.dead_weight.texts import NOTES, page, rows

if TYPE_CHECKING:
    from collections.abc import Callable

# One thread saves, and each checkpoint is saved before the next step starts: what a request has held when the writes of
# a node are saved is no race.
CONFIG: Any = {"configurable": {"thread_id": "thread-1"}, "max_concurrency": 1}
SAVED_FIRST: Any = {"durability": "sync"}


def _model(url: str) -> Any:
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(model="scripted", base_url=url, api_key="scripted", max_retries=0)


def files(url: str) -> None:
    """Run an agent of deepagents, which puts a large result into a file of its own, and hand its state on."""
    from deepagents import create_deep_agent
    from langgraph.checkpoint.memory import InMemorySaver

    def fetch_page(number: int) -> str:
        """Fetch a page."""
        return page(number)

    agent = create_deep_agent(_model(url), [fetch_page], checkpointer=InMemorySaver())
    state = agent.invoke({"messages": [("user", "go")]}, CONFIG, **SAVED_FIRST)
    carried = json.dumps({"files": state["files"], "messages": [message.model_dump() for message in state["messages"]]})
    agent_otel.payload(carried, runtime="queue", direction="state", workflow="files", execution="thread-1")
    payloads._analyst.drain(60)


def artifacts(url: str) -> None:
    """Run LangChain's agent with a tool whose artifact is for the program alone."""
    _agent_with_artifacts(url).invoke({"messages": [("user", NOTES)]}, CONFIG, **SAVED_FIRST)


def named(url: str) -> None:
    """Run the same in an execution that the program names."""
    with agent_otel.execution("job-1"):
        artifacts(url)


def _agent_with_artifacts(url: str) -> Any:
    from langchain.agents import create_agent
    from langchain_core.tools import tool
    from langgraph.checkpoint.memory import InMemorySaver

    @tool(response_format="content_and_artifact")
    def query(number: int) -> Any:
        """Query a table."""
        found = rows(number)
        return json.dumps(found[:10]), found

    return create_agent(_model(url), [query], checkpointer=InMemorySaver())


AGENTS: dict[str, Callable[[str], None]] = {"files": files, "artifacts": artifacts, "named": named}


def main() -> None:
    """Run the agent, and print what was found."""
    name, url = sys.argv[1:]
    messages, telemetry = Messages(), Telemetry()
    AGENTS[name](url)
    found = [span["attributes"] for span in telemetry.spans() if "workflow.payload.largest_path" in span["attributes"]]
    counted = {
        metric["attributes"]["component"]: metric["sum"]
        for metric in telemetry.metrics()
        if metric["name"] == "agent_otel.workflow.payload.unread"
    }
    print(json.dumps({"found": found, "counted": counted, "messages": messages.take()}))


if __name__ == "__main__":
    main()
