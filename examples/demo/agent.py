"""A LangGraph agent that reads commits of a git repository; SQLite keeps its state. Nothing in it knows agent_otel.

Its middleware cuts each result for the model, as many adapters do, and keeps the whole for a user interface beside it.
So the state has the whole results, and grows with each question. ``python -m examples.demo.agent`` asks the questions
of its standard input, and prints a line of JSON for each.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Any

from langchain.agents import create_agent
from langchain.agents.middleware import wrap_tool_call
from langchain_core.messages import ToolMessage
from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.sqlite import SqliteSaver

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain.agents.middleware import ToolCallRequest
    from langgraph.types import Command

_SQLITE_LIMIT_LENGTH = 0


def main() -> None:
    """Answer each question in one conversation."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--repository", required=True)
    parser.add_argument("--cap", type=int, required=True, help="bytes of the longest value of the database")
    parser.add_argument("--cut", type=int, required=True, help="characters of a result that the model gets")
    given = parser.parse_args()

    def get_commit(sha: str) -> str:
        """Show one commit: its subject and the full diff."""
        command = ("git", "-C", given.repository, "show", "--format=%h %s", "--no-renames", "--no-color", sha)
        return subprocess.run(command, capture_output=True, check=True, encoding="utf-8", errors="replace").stdout

    @wrap_tool_call
    def cut(
        request: ToolCallRequest, call: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        message = call(request)
        if isinstance(message, ToolMessage) and len(message.text) > given.cut:
            shown = f"{message.text[: given.cut]}\n... [{len(message.text) - given.cut} characters truncated] ..."
            return message.model_copy(update={"content": shown, "artifact": message.text})
        return message

    connection: Any = sqlite3.connect(":memory:", check_same_thread=False)
    with closing(connection):
        if hasattr(connection, "setlimit"):  # Python 3.11
            connection.setlimit(_SQLITE_LIMIT_LENGTH, given.cap)
        agent = create_agent(
            ChatOpenAI(model="scripted"),
            [StructuredTool.from_function(get_commit)],
            system_prompt="You explain what changed in a git repository.",
            middleware=[cut],
            checkpointer=SqliteSaver(connection),
        )
        for line in sys.stdin:
            question = {"messages": [{"role": "user", "content": line.strip()}]}
            try:
                # No step begins before the one before it is saved.
                state = agent.invoke(question, {"configurable": {"thread_id": "demo"}}, durability="sync")
            except sqlite3.DataError as error:
                print(json.dumps({"error": f"sqlite3.DataError: {error}"}), flush=True)
                return
            print(json.dumps({"answer": state["messages"][-1].text}), flush=True)


if __name__ == "__main__":
    main()
