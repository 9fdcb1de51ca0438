"""CrewAI, on both its ways.

Where the model can call tools, produced is read at the tool's ``run`` and handed back where the executor has formatted
the result and hooks have seen it; what it then puts into a file instead of the request shows at the model. Where an
agent reads its actions in the model's text, produced is read at the structured tool's ``invoke``, handed back at
``ToolUsage.use``, which tries a failed call again. What a tool raises becomes text for the model on both.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from agent_otel.core.plain import fields, identity, is_empty, is_named
from agent_otel.core.types import HANDED_BACK, PRODUCED, ToolCall, ToolReader, ToolResult
from agent_otel.semconv import TOOL_ERROR

if TYPE_CHECKING:
    from collections.abc import Mapping


def _run_call(tool: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> ToolCall:
    return ToolCall(tool.name, dict(kwargs) or list(args))


def _invoke_call(tool: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> ToolCall:
    return ToolCall(tool.name, kwargs["input"] if "input" in kwargs else args[0])


def _native_call(executor: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> ToolCall | None:
    return _asked(_asked_for(args, kwargs), executor.agent, executor.crew, executor.task)


def _step_call(_: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> ToolCall | None:
    return _asked(_asked_for(args, kwargs), kwargs.get("agent"), kwargs.get("crew"), kwargs.get("task"))


def _asked_for(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    return kwargs["tool_call"] if "tool_call" in kwargs else args[0]


def _asked(asked_for: Any, agent: Any, crew: Any, task: Any) -> ToolCall | None:
    """Read a call as the model's provider has it, the way the framework does."""
    info = sys.modules["crewai.utilities.agent_utils"].extract_tool_call_info(asked_for)
    if info is None:
        return None
    call_id, name, arguments = info
    execution = identity(getattr(crew, "id", None)) or identity(getattr(task, "id", None))
    return ToolCall(name, arguments, call_id, getattr(agent, "role", None), execution)


def _text_call(usage: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> ToolCall | None:
    calling = kwargs["calling"] if "calling" in kwargs else args[0]
    name = getattr(calling, "tool_name", None)  # an error has none
    # No id of the crew: the request that contains this result as text does not contain that id.
    if name is None:
        return None
    arguments = calling.arguments
    return ToolCall(name, {} if is_empty(arguments) else arguments, agent=getattr(usage.agent, "role", None))


def _result(value: Any) -> ToolResult:
    if is_named(value, "ToolFailure"):
        return ToolResult(fields(value)["message"], error_type=TOOL_ERROR)
    return ToolResult(value)


def _native_result(answer: Any) -> ToolResult:
    """Read what the executor keeps of a call: a dictionary, or an object with the same in it."""
    known = fields(answer)
    failed = known.get("tool_failure") is not None
    return ToolResult(known["result"], error_type=TOOL_ERROR if failed else None, raised=failed)


run = ToolReader(PRODUCED, _run_call, _result)
native = ToolReader(HANDED_BACK, _native_call, _native_result, run)
step = ToolReader(HANDED_BACK, _step_call, _native_result, run)
invoke = ToolReader(PRODUCED, _invoke_call, _result)
use = ToolReader(HANDED_BACK, _text_call, _result, invoke)
