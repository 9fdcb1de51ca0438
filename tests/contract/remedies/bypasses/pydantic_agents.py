"""Pydantic AI: agents in tools, tools in tools, and arguments that validators change."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,no-any-return,unused-ignore"
# The framework is not installed where types are checked.
# ruff: noqa: ARG001, PLW0108 - attempts, written as a program would
from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BaseModel, Field
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

import agent_otel
from agent_otel.remedies import use_policy

if TYPE_CHECKING:
    from collections.abc import Callable

ran: list[str] = []


def delete(path: str = "/") -> str:
    """Delete."""
    ran.append("delete")
    return "deleted"


@agent_otel.tool(name="delete")
def handwritten(path: str = "/") -> str:
    """Delete."""
    ran.append("handwritten")
    return "deleted"


def read(path: Annotated[str, AfterValidator(lambda path: f"/etc/{path}")]) -> str:
    """Read."""
    ran.append("read")
    return path


def write(path: str = "/etc/passwd") -> str:
    """Write."""
    ran.append("write")
    return path


def find(path: Annotated[str, Field(alias="p")] = "") -> str:
    """Find."""
    ran.append("find")
    return path


class Move(BaseModel):
    """All arguments of a tool."""

    path: str


def move(given: Move) -> str:
    """Move."""
    ran.append("move")
    return given.path


def answered(tool: Callable[..., Any], arguments: dict[str, Any]) -> str:
    """Run an agent whose model calls a tool once; return what the model got."""

    def model(messages: list[Any], _: Any) -> ModelResponse:
        parts = [part for message in messages for part in message.parts]
        if any(isinstance(part, ToolReturnPart) or part.part_kind == "retry-prompt" for part in parts):
            return ModelResponse([TextPart("done")])
        return ModelResponse([ToolCallPart(tool.__name__, arguments, "call_1")])

    run = Agent(FunctionModel(model), tools=[tool], name="helper").run_sync("go")
    return str([getattr(part, "content", "") for message in run.all_messages() for part in message.parts])


def outer() -> str:
    """Run another agent, whose calls have the same ids."""
    return answered(delete, {})


def around() -> str:
    """Call a hand-written tool."""
    return handwritten()


def outcome(call: Callable[[], Any]) -> Any:
    """Return what ran and what came back of a call."""
    ran.clear()
    return [list(ran), str(call()), list(ran)][:0:-1]


report = {}
use_policy({"rules": [{"tools": ["outer", "around"]}]})
report["at the top"] = outcome(lambda: answered(delete, {}))
report["a tool in a tool"] = outcome(lambda: answered(around, {}))
report["an agent in a hand-written tool"] = outcome(lambda: agent_otel.tool(name="outer")(outer)())
use_policy({"rules": [{"tools": ["read", "write", "find"], "forbid": {"path": "/etc/*"}}]})
report["a validator"] = outcome(lambda: answered(read, {"path": "passwd"}))
report["a default"] = outcome(lambda: answered(write, {}))
use_policy({"rules": [{"tools": ["read"], "require": {"path": "/srv/*"}}]})
report["a validator behind a requirement"] = outcome(lambda: answered(read, {"path": "/srv/x"}))
report["an object around a value"] = outcome(lambda: answered(read, {"path": {"$ne": "/srv/x"}}))
use_policy({"rules": [{"tools": ["move"], "require": {"path": "/srv/*"}}]})
report["an object of all arguments"] = outcome(lambda: answered(move, {"path": "/etc/x"}))
moved = outcome(lambda: answered(move, {"path": "/srv/x"}))
print(json.dumps({"cases": report, "allowed": moved[0]}))
