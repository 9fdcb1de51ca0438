"""The loop of Mistral's client over a conversation, ``run_async``, whose context calls registered functions.

Produced is read at ``create_function_result``, which returns the entry that the model is sent. With
``continue_on_fn_error`` it makes a text of what a function raises. The entry is in ``model_sdks/mistral.py``.
"""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING, Any

from agent_otel.core import handler
from agent_otel.core.captured_content import hiding
from agent_otel.core.plain import context_of, fields, properties, text
from agent_otel.core.types import PRODUCED, AgentRun, RunReader, ToolCall, ToolReader, ToolResult
from agent_otel.integrations.reader_functions import cause_behind
from agent_otel.integrations.registry.entries import Candidate, Site, Wrap

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_otel.core.types import Invocation, Replacement

_ADAPTER = "frameworks.mistral_runs"
_RUN = Wrap("Conversations.run_async", "conversation_run")
LOOP = (
    Site(
        Candidate("mistralai.extra.run.context", Wrap("create_function_result", "called")),
        minimum="1.12",
        adapter=_ADAPTER,
    ),
    Site(
        Candidate("mistralai.client.conversations", _RUN),  # 2.0 and later
        Candidate("mistralai.conversations", _RUN),
        minimum="1.12",
        adapter=_ADAPTER,
    ),
)

#: The field that holds the function, by kind of tool; a tool of an MCP server has none.
_FUNCTIONS = ("callable", "awaitable")
_FAILED = "Error while executing "


def _call(invocation: Invocation) -> ToolCall:
    asked = invocation.arg(0, "function_call")
    return ToolCall(asked.name, asked.arguments, asked.tool_call_id)


def _result(entry: Any) -> ToolResult:
    result = fields(entry).get("result", "")
    if (text(result) or "").startswith(_FAILED):
        return ToolResult(result, error_type="tool_error", raised=True)
    return ToolResult(result)


def _replace(_: Any, replacement: Replacement, invocation: Invocation) -> Any:
    asked = invocation.arg(0, "function_call")
    models = sys.modules[type(asked).__module__.rpartition(".")[0]]
    return models.FunctionResultEntry(tool_call_id=asked.tool_call_id, result=replacement.text)


def _inject(invocation: Invocation, values: dict[str, Any]) -> bool:
    """Put arguments behind those of the model, which the client shows on a span of its own."""
    tool = invocation.arg(1, "run_tool")
    name = next((each for each in _FUNCTIONS if each in fields(tool)), None)
    if name is None:
        return False
    function = hiding(fields(tool)[name], values, handler.injected() or {})
    invocation.put(1, "run_tool", dataclasses.replace(tool, **{name: function}))
    return True


def _parameters(invocation: Invocation) -> Iterable[str]:
    definition = fields(fields(fields(invocation.arg(1, "run_tool")).get("tool")).get("function"))
    return properties(definition.get("parameters"))


called = ToolReader(
    PRODUCED,
    _call,
    _result,
    cause=cause_behind("RunException", of=context_of),  # the context raises its own within the function's exception
    replace=_replace,
    parameters=_parameters,
    inject=_inject,
)
conversation_run = RunReader(lambda _: AgentRun())  # it has no name
