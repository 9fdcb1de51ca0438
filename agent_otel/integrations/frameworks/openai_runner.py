"""The tool runner of OpenAI's SDK, which calls registered functions in a loop over the Responses API.

Produced is read at ``_execute_function``, which returns the item that the model is sent. An exception of a function
ends the run. The entry is in ``model_sdks/openai.py``.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from agent_otel.core.plain import fields, is_dict, properties
from agent_otel.core.types import PRODUCED, AgentRun, RunReader, ToolCall, ToolReader, ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_otel.core.types import Invocation, Replacement


def _call(invocation: Invocation) -> ToolCall:
    item = invocation.arg(1, "item")
    return ToolCall(item.name, item.arguments, item.call_id)


def _result(item: Any) -> ToolResult:
    return ToolResult(fields(item).get("output", ""))


def _replace(_: Any, replacement: Replacement, invocation: Invocation) -> dict[str, Any]:
    """Return the item of a replacement; the runner has made the one that it stands for."""
    call_id = invocation.arg(1, "item").call_id
    return {"type": "function_call_output", "call_id": call_id, "output": replacement.text}


def _inject(invocation: Invocation, values: dict[str, Any]) -> bool:
    """Put arguments into a copy of the run's state, from which the function gets them."""
    run, call_id = invocation.arg(0, "run"), invocation.arg(1, "item").call_id
    given = run.arguments[call_id]
    renewed = copy.copy(run)
    known = {**given, **values} if is_dict(given) else given.model_copy(update=values)
    renewed.arguments = {**run.arguments, call_id: known}
    invocation.put(0, "run", renewed)
    return True


def _parameters(invocation: Invocation) -> Iterable[str]:
    tool = invocation.instance._functions[invocation.arg(1, "item").name].tool
    return properties(fields(tool).get("parameters"))


def _run(_: Invocation) -> AgentRun:
    """Read a run; a runner has no name."""
    return AgentRun()


execute = ToolReader(PRODUCED, _call, _result, replace=_replace, parameters=_parameters, inject=_inject)
runner_run = RunReader(_run)
