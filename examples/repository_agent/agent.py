"""An agent that is asked for the latest changes in a codebase: LangGraph, OpenAI's client, real tools over git.

    python examples/repository_agent/agent.py --repository . --question "What changed lately?"

Without ``OPENAI_API_KEY`` a scripted model on loopback answers. Nothing here knows that the agent can be watched.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

if not __package__:  # started as a file
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from langchain.agents import create_agent
from langchain.agents.middleware import wrap_tool_call
from langchain_core.messages import AnyMessage, ToolMessage
from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import MemorySaver
from pydantic import SecretStr

from examples.repository_agent.model_server import scripted_model
from examples.repository_agent.tools import GitError, Repository

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from langchain.agents.middleware import ToolCallRequest
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.types import Command

QUESTION = "What changed lately in this codebase?"
PROMPT = "You explain what changed in a git repository. Look before you answer; name the commits you rely on."
MODEL = "gpt-5-mini"


def build(repository: Repository, model: ChatOpenAI) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Return the agent; it remembers each conversation by its ``thread_id``."""
    functions = (
        repository.list_commits,
        repository.get_commit,
        repository.list_changed_files,
        repository.search_code,
        repository.get_repository_tree,
    )
    return create_agent(
        model,
        [StructuredTool.from_function(function) for function in functions],
        system_prompt=PROMPT,
        middleware=[tell_the_model],
        checkpointer=MemorySaver(),
    )


@wrap_tool_call
def tell_the_model(
    request: ToolCallRequest, call: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
) -> ToolMessage | Command[Any]:
    """Hand git's complaint to the model, which can then try something else."""
    try:
        return call(request)
    except GitError as error:
        asked = request.tool_call
        return ToolMessage(str(error), name=asked["name"], tool_call_id=asked["id"], status="error")


@contextlib.contextmanager
def chat_model() -> Iterator[ChatOpenAI]:
    """Return the model that ``OPENAI_API_KEY`` and ``OPENAI_BASE_URL`` name, else the scripted one."""
    if os.environ.get("OPENAI_API_KEY"):
        yield ChatOpenAI(model=os.environ.get("OPENAI_MODEL", MODEL))
        return
    with scripted_model() as server:
        yield ChatOpenAI(model="scripted", base_url=server.base_url, api_key=SecretStr("scripted"))


def steps(repository: Repository, question: str) -> Iterator[tuple[str, list[AnyMessage]]]:
    """Run the agent; yield each step's node, ``model`` or ``tools``, with the messages that it added."""
    with chat_model() as model:
        update = build(repository, model).stream(
            {"messages": [{"role": "user", "content": question}]},
            {"configurable": {"thread_id": uuid4().hex}, "recursion_limit": 60},
            stream_mode="updates",
        )
        for step in update:
            for node, added in step.items():
                if added and added.get("messages"):
                    yield node, added["messages"]


def arguments(description: str) -> argparse.ArgumentParser:
    """Return a parser with what every way of starting the agent takes."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--repository", type=Path, default=Path.cwd(), help="a git repository (default: this folder)")
    parser.add_argument("--question", default=QUESTION)
    return parser


def main() -> int:
    """Ask once and print the answer."""
    given = arguments("Ask an agent about a git repository.").parse_args()
    try:
        repository = Repository.at(given.repository)
    except GitError as error:
        print(error, file=sys.stderr)
        return 1
    for node, messages in steps(repository, given.question):
        for message in messages:
            if node == "model" and isinstance(message.content, str) and message.content:
                print(message.content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
