"""A hand-written loop over LangChain's model and tools, without LangGraph."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,no-redef,assignment,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool, ToolException, tool
from langchain_openai import ChatOpenAI

from tests.contract import toolbox

if TYPE_CHECKING:
    from collections.abc import Sequence


def native(function: Any) -> BaseTool:
    """The framework's tool for a plain function."""
    return function if isinstance(function, BaseTool) else tool(function)


def bind(base_url: str, tools: Sequence[Any]) -> tuple[Any, dict[str, BaseTool]]:
    """The model that knows the tools, and the tools."""
    natives = {each.name: each for each in map(native, tools)}
    model = ChatOpenAI(model="scripted", base_url=base_url, api_key="scripted", max_retries=0)
    return model.bind_tools(list(natives.values())), natives


def _text(message: Any) -> str:
    return str(message.content)


def run(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, sync; ``outside`` calls the tools without a model."""
    model, natives = bind(base_url, tools)
    if setting == "outside":
        return "".join(str(each.invoke({"key": "größe"})) for each in natives.values())
    messages: list[Any] = [HumanMessage(prompt)]
    while True:
        messages.append(model.invoke(messages))
        if not messages[-1].tool_calls:
            return _text(messages[-1])
        messages += [natives[call["name"]].invoke(call) for call in messages[-1].tool_calls]


async def arun(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run."""
    del setting
    model, natives = bind(base_url, tools)
    messages: list[Any] = [HumanMessage(prompt)]
    while True:
        messages.append(await model.ainvoke(messages))
        if not messages[-1].tool_calls:
            return _text(messages[-1])
        messages += [await natives[call["name"]].ainvoke(call) for call in messages[-1].tool_calls]


async def astream(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, the model's answers streamed."""
    del setting
    model, natives = bind(base_url, tools)
    messages: list[Any] = [HumanMessage(prompt)]
    while True:
        answer: Any = AIMessageChunk("")
        async for chunk in model.astream(messages):
            answer += chunk
        messages.append(answer)
        if not answer.tool_calls:
            return _text(answer)
        messages += [await natives[call["name"]].ainvoke(call) for call in answer.tool_calls]


@tool
def nested(key: str) -> str:
    """Look a record up with another tool."""
    return str(native(toolbox.lookup).invoke({"key": key}))


@tool(response_format="content_and_artifact")
def with_artifact(key: str) -> tuple[str, dict[str, Any]]:
    """Look a record up and keep a table beside it."""
    return toolbox.lookup(key), toolbox.table(2)


def _refuse(key: str) -> str:
    raise ToolException(f"not {key}")


handled = StructuredTool.from_function(_refuse, name="handled", description="Refuse.", handle_tool_error=True)
handled_with_text = StructuredTool.from_function(
    _refuse, name="handled_with_text", description="Refuse.", handle_tool_error="please ask again"
)


@tool
def message(key: str) -> Any:
    """Look a record up and write the message about it."""
    return ToolMessage(toolbox.lookup(key), tool_call_id="call_25")


TOOLS: dict[str, Any] = {
    "nested": nested,
    "with_artifact": with_artifact,
    "handled": handled,
    "handled_with_text": handled_with_text,
    "message": message,
}
