"""LangGraph's ready-made agent: LangChain's ``create_agent``, or ``create_react_agent`` where there is none."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,no-redef,assignment,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document
from langchain_core.messages import ToolMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import create_retriever_tool, tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import MemorySaver
from langgraph.func import entrypoint, task
from langgraph.types import interrupt

from tests.contract import toolbox
from tests.contract.agents import langchain

if TYPE_CHECKING:
    from collections.abc import Sequence

try:
    from langchain.agents import create_agent
    from langchain.agents.middleware import AgentMiddleware
except ImportError:
    from langgraph.prebuilt import create_react_agent as create_agent

    AgentMiddleware = None

CONFIG: Any = {"configurable": {"thread_id": "thread-1"}}


def make(base_url: str, tools: Sequence[Any], setting: str, name: str = "clerk") -> Any:
    """An agent with these tools."""
    model = ChatOpenAI(model="scripted", base_url=base_url, api_key="scripted", max_retries=0)
    natives: Any = [delegate(base_url) if each == "delegate" else langchain.native(each) for each in tools]
    more: Any = {}
    if setting in MIDDLEWARE:
        more["middleware"] = [MIDDLEWARE[setting]()]
    if setting == "interrupt":
        more["checkpointer"] = MemorySaver()
    return create_agent(model, natives, name=name, **more)


def _said(state: Any) -> str:
    if "__interrupt__" in state or not state["messages"][-1].content:
        return "interrupted"
    return str(state["messages"][-1].content)


def run(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, sync."""
    if setting == "functional":
        return str(functional(base_url, tools).invoke(prompt, CONFIG))
    return _said(make(base_url, tools, setting).invoke({"messages": [("user", prompt)]}, CONFIG))


async def arun(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run."""
    return _said(await make(base_url, tools, setting).ainvoke({"messages": [("user", prompt)]}, CONFIG))


async def astream(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, streamed."""
    last: Any = None
    agent = make(base_url, tools, setting)
    async for state in agent.astream({"messages": [("user", prompt)]}, CONFIG, stream_mode="values"):
        last = state
    return _said(last)


def functional(base_url: str, tools: Sequence[Any]) -> Any:
    """Return a loop in LangGraph's functional API, whose tasks call the model and the tools."""
    model, natives = langchain.bind(base_url, tools)

    @task
    def ask(messages: Any) -> Any:
        return model.invoke(messages)

    @task
    def call(asked: Any) -> Any:
        return natives[asked["name"]].invoke(asked)

    @entrypoint()
    def loop(prompt: str) -> str:
        messages: list[Any] = [("user", prompt)]
        while (answer := ask(messages).result()).tool_calls:
            results = [call(asked) for asked in answer.tool_calls]
            messages += [answer, *(result.result() for result in results)]
        return str(answer.content)

    return loop


def delegate(base_url: str) -> Any:
    """A tool that is an agent with a tool of its own."""

    @tool
    async def delegate(input: str) -> str:  # noqa: A002 - as the other frameworks name it
        """Ask the assistant."""
        agent = make(base_url, [toolbox.lookup], "", name="assistant")
        return _said(await agent.ainvoke({"messages": [("user", input)]}))

    return delegate


@tool
def asks(key: str) -> str:
    """Look a record up once a human agrees."""
    return toolbox.lookup(key) if interrupt("may I?") else ""


class _Shelf(BaseRetriever):
    """Has two documents, for any question."""

    def _get_relevant_documents(self, query: str, **_: Any) -> list[Document]:
        return [Document(page_content=f"{query}: "), Document(page_content="x" * 1000)]


class _Flaky:
    failures = 0


@tool
def flaky(key: str) -> str:
    """Look a record up; the first time it is not there."""
    _Flaky.failures += 1
    if _Flaky.failures % 2:
        raise toolbox.BROKEN
    return toolbox.lookup(key)


MIDDLEWARE: dict[str, Any] = {}
if AgentMiddleware is not None:

    class Shorten(AgentMiddleware):
        """Keeps the first hundred letters of a result."""

        def wrap_tool_call(self, request: Any, handler: Any) -> Any:
            """Run the tool and shorten what it says."""
            message = handler(request)
            return message.model_copy(update={"content": message.content[:100]})

        async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
            """Run the tool and shorten what it says."""
            message = await handler(request)
            return message.model_copy(update={"content": message.content[:100]})

    class Retry(AgentMiddleware):
        """Tries a tool twice."""

        async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
            """Run the tool, and again when it fails."""
            try:
                return await handler(request)
            except toolbox.BrokenError:
                return await handler(request)

    class Forgive(AgentMiddleware):
        """Tells the model what went wrong."""

        async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
            """Run the tool, or say why it could not."""
            try:
                return await handler(request)
            except toolbox.BrokenError as error:
                return ToolMessage(f"sorry: {error}", tool_call_id=request.tool_call["id"], status="error")

    MIDDLEWARE = {"shorten": Shorten, "retry": Retry, "forgive": Forgive}

TOOLS: dict[str, Any] = {**langchain.TOOLS, "delegate": "delegate", "asks": asks, "flaky": flaky}
TOOLS["shelf"] = create_retriever_tool(_Shelf(), "shelf", "Search the shelf.")
