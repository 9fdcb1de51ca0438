"""LangChain: tools that tools call, arguments that a schema changes, and a middleware that runs another tool."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,no-any-return,unused-ignore"
# The framework is not installed where types are checked.
# ruff: noqa: ARG001, PLW0108 - attempts, written as a program would
from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage
from langchain_core.tools import StructuredTool, tool
from langgraph.prebuilt import ToolNode
from pydantic import BaseModel, Field, field_validator

import agent_otel
from agent_otel.remedies import ToolDeniedError, use_policy

if TYPE_CHECKING:
    from collections.abc import Callable

ran: list[str] = []
ARGUMENTS = {"path": "/etc/passwd"}


@tool
def delete(path: str) -> str:
    """Delete."""
    ran.append("delete")
    return "deleted"


@tool
async def adelete(path: str) -> str:
    """Delete."""
    ran.append("adelete")
    return "deleted"


@agent_otel.tool(name="delete")
def handwritten(path: str) -> str:
    """Delete."""
    ran.append("handwritten")
    return "deleted"


class Aliased(BaseModel):
    """Arguments by another name."""

    path: str = Field(alias="p")


class Default(BaseModel):
    """Arguments with a forbidden default."""

    path: str = "/etc/passwd"


class Changed(BaseModel):
    """Arguments that a validator changes."""

    path: str

    @field_validator("path")
    @classmethod
    def expand(cls, path: str) -> str:
        """Return the whole path."""
        return f"/etc/{path}"


def read(path: str = "") -> str:
    """Note that the handler ran."""
    ran.append("read")
    return path


def reader(schema: Any) -> StructuredTool:
    return StructuredTool.from_function(read, name="read", description="Read.", args_schema=schema)


calls: dict[str, Callable[[], Any]] = {}


@tool
def outer(name: str) -> str:
    """Make the call of a case."""
    return str(calls[name]())


@tool
async def aouter(name: str) -> str:
    """Make the call of a case."""
    return str(await calls[name]())


def in_node(wanted: Any, arguments: dict[str, Any], name: str = "", wrap: Any = None) -> Any:
    """Call a tool as an agent's graph does, with the id that any run begins with."""
    node = ToolNode([wanted], wrap_tool_call=wrap) if wrap else ToolNode([wanted])
    message = AIMessage("", tool_calls=[{"name": name or wanted.name, "args": arguments, "id": "call_1"}])
    return node.invoke({"messages": [message]}, config={"configurable": {"__pregel_runtime": runtime()}})


def runtime() -> Any:
    from langgraph.runtime import Runtime

    return Runtime()


def other_tool(request: Any, _: Any) -> Any:
    """Run another tool than the model called, as a middleware may."""
    return delete.run(ARGUMENTS, tool_call_id=request.tool_call["id"])


def redirected(request: Any, execute: Any) -> Any:
    """Let the framework run another tool."""
    return execute(request.override(tool=delete, tool_call={**request.tool_call, "name": "delete", "args": ARGUMENTS}))


calls |= {
    "invoke": lambda: delete.invoke(ARGUMENTS),
    "run": lambda: delete.run(ARGUMENTS),
    "invoke with an id": lambda: delete.invoke(
        {"name": "delete", "args": ARGUMENTS, "id": "call_1", "type": "tool_call"}
    ),
    "batch": lambda: delete.batch([ARGUMENTS, ARGUMENTS]),
    "stream": lambda: list(delete.stream(ARGUMENTS)),
    "a node in a tool": lambda: in_node(delete, ARGUMENTS),
    "hand-written in a tool": lambda: handwritten("/etc/passwd"),
    "a tool in a tool in a tool": lambda: outer.invoke({"name": "invoke"}),
}
acalls: dict[str, Callable[[], Any]] = {
    "ainvoke": lambda: adelete.ainvoke(ARGUMENTS),
    "ainvoke of a sync tool": lambda: delete.ainvoke(ARGUMENTS),
    "arun": lambda: adelete.arun(ARGUMENTS),
    "gather": lambda: asyncio.gather(adelete.ainvoke(ARGUMENTS), adelete.ainvoke(ARGUMENTS)),
    "astream": lambda: astream(),
    "to_thread": lambda: asyncio.to_thread(delete.invoke, ARGUMENTS),
}
calls |= acalls


async def astream() -> Any:
    return [each async for each in adelete.astream(ARGUMENTS)]


def outcome(call: Callable[[], Any]) -> Any:
    """Return what ran and what came back of a call."""
    ran.clear()
    try:
        answer = str(call())
    except ToolDeniedError as error:
        answer = str(error)
    return [list(ran), answer]


FORBIDDEN = {"rules": [{"tools": ["read", "outer"], "forbid": {"path": "/etc/*"}}]}
use_policy({"rules": [{"tools": ["outer", "aouter", "around"]}]})
report: dict[str, Any] = {}
for case in calls:
    if case in acalls:
        report[case] = outcome(lambda: asyncio.run(aouter.ainvoke({"name": case})))  # noqa: B023
    else:
        report[case] = outcome(lambda: outer.invoke({"name": case}))  # noqa: B023
        report[f"{case}, of an agent"] = outcome(lambda: in_node(outer, {"name": case}))  # noqa: B023
report["in a hand-written tool"] = outcome(lambda: agent_otel.tool(name="around")(lambda: delete.invoke(ARGUMENTS))())
report["a middleware's own tool"] = outcome(lambda: in_node(outer, {"name": "invoke"}, wrap=other_tool))
report["a tool that a middleware chooses"] = outcome(lambda: in_node(outer, {"name": "run"}, wrap=redirected))
use_policy(FORBIDDEN)
report["an alias"] = outcome(lambda: reader(Aliased).invoke({"p": "/etc/passwd"}))
report["a default"] = outcome(lambda: reader(Default).invoke({}))
report["a validator"] = outcome(lambda: reader(Changed).invoke({"path": "passwd"}))
report["a validator, of an agent"] = outcome(lambda: in_node(reader(Changed), {"path": "passwd"}))
use_policy({"rules": [{"tools": "read", "require": {"path": "/srv/*"}}]})
report["a validator behind a requirement"] = outcome(lambda: reader(Changed).invoke({"path": "/srv/x"}))
report["an object around a value"] = outcome(lambda: reader(None).invoke({"path": {"$ne": "/srv/x"}}))
report["a text that is an object"] = outcome(lambda: reader(None).invoke('{"path": "/srv/x", "a": "; rm"}'))
print(json.dumps({"cases": report}))
