"""Google's Agent Development Kit: the code in a model's answer, which a code executor of the agent runs.

The model calls no tool for it; each run is a call of ``execute_code``. The executors are classes that a program may
write itself. What Gemini runs (``BuiltInCodeExecutor``) passes none of them.

The entry is in ``google_adk.py``.
"""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING, Any

from agent_otel.core.plain import fields, text
from agent_otel.core.types import PRODUCED, Invocation, Replacement, ToolCall, ToolReader, ToolResult
from agent_otel.integrations.hooks import Family
from agent_otel.semconv import TOOL_ERROR

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAME = "execute_code"


def _call(invocation: Invocation) -> ToolCall:
    context, given = invocation.arg(0, "invocation_context"), invocation.arg(1, "code_execution_input")
    return ToolCall(_NAME, {"code": given.code}, agent=context.agent.name, execution=context.session.id)


def _result(value: Any) -> ToolResult:
    """Read what the code has written; the model gets its errors alone where there are any."""
    known = fields(value)
    if text(known.get("stderr")):
        return ToolResult(known["stderr"], error_type=TOOL_ERROR)
    return ToolResult(known.get("stdout"))


def _replace(value: Any, replacement: Replacement, _: Invocation) -> Any:
    """Put a replacement into a result; a skipped run has none."""
    if value is None:
        made = sys.modules["google.adk.code_executors.code_execution_utils"].CodeExecutionResult
        return made(stderr=replacement.text)
    return dataclasses.replace(value, **{"stderr" if text(fields(value).get("stderr")) else "stdout": replacement.text})


def _methods(executor: Any) -> Iterator[tuple[type, str, ToolReader]]:
    yield type(executor), "execute_code", run


run = ToolReader(PRODUCED, _call, _result, replace=_replace)
executors = Family(_methods)
