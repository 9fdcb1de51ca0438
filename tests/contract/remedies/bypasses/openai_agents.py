"""OpenAI's Agents SDK: tools in tools, agents as tools, and a hand-written tool inside."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,no-any-return,unused-ignore"
# The framework is not installed where types are checked.
# ruff: noqa: ARG001, PLW0108 - attempts, written as a program would
from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from agents import Agent, ModelResponse, Runner, Usage, function_tool, set_tracing_disabled
from agents.models.interface import Model
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

import agent_otel
from agent_otel.remedies import use_policy

if TYPE_CHECKING:
    from collections.abc import Callable

set_tracing_disabled(disabled=True)
ran: list[str] = []


class Scripted(Model):  # type: ignore[no-any-unimported]
    """A model that calls one tool and then answers with what it got."""

    def __init__(self, name: str, arguments: str = "{}") -> None:
        self.name = name
        self.arguments = arguments

    async def get_response(self, *args: Any, **kwargs: Any) -> Any:
        """Return the call, or the answer."""
        given = kwargs["input"] if "input" in kwargs else args[1]
        outputs = [
            item["output"] for item in given if isinstance(item, dict) and item.get("type") == "function_call_output"
        ]
        if outputs:
            text = ResponseOutputText(text=str(outputs[-1]), type="output_text", annotations=[])
            item: Any = ResponseOutputMessage(
                id="1", content=[text], role="assistant", status="completed", type="message"
            )
        else:
            item = ResponseFunctionToolCall(
                arguments=self.arguments, call_id="call_1", name=self.name, type="function_call"
            )
        return ModelResponse(output=[item], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        """Stream nothing."""
        raise NotImplementedError


@agent_otel.tool(name="delete")
def handwritten(path: str = "/") -> str:
    """Delete."""
    ran.append("handwritten")
    return "deleted"


@function_tool
def delete(path: str = "/") -> str:
    """Delete."""
    ran.append("delete")
    return "deleted"


@function_tool
def around() -> str:
    """Call a hand-written tool."""
    return handwritten()


@function_tool
async def threaded() -> str:
    """Call a hand-written tool in a thread."""
    return await asyncio.to_thread(handwritten)


@function_tool
async def inner_run() -> str:
    """Run another agent, whose calls have the same ids."""
    return str((await Runner.run(agent(delete), "go")).final_output)


def agent(tool: Any, arguments: str = "{}") -> Any:
    return Agent("helper", model=Scripted(tool.name, arguments), tools=[tool])


def answer(tool: Any, arguments: str = "{}") -> str:
    """Return the answer of an agent whose model calls this tool."""
    return str(Runner.run_sync(agent(tool, arguments), "go").final_output)


def outcome(call: Callable[[], Any]) -> Any:
    """Return what ran and what came back of a call."""
    ran.clear()
    return [list(ran), str(call()), list(ran)][:0:-1]


helper = agent(delete).as_tool("ask_helper", "Ask.")
report = {}
use_policy({"rules": [{"tools": ["around", "threaded", "inner_run", "ask_helper", "outer"]}]})
report["at the top"] = outcome(lambda: answer(delete))
report["a tool in a tool"] = outcome(lambda: answer(around))
report["a tool in a thread of a tool"] = outcome(lambda: answer(threaded))
report["a run in a tool, with the same ids"] = outcome(lambda: answer(inner_run))
report["an agent as a tool"] = outcome(lambda: answer(helper, '{"input": "go"}'))
report["an agent in a hand-written tool"] = outcome(lambda: agent_otel.tool(name="outer")(lambda: answer(delete))())
print(json.dumps({"cases": report}))
