"""LiteLLM's harness ``TOOL_LOOP``, which calls functions of the program; the entry is in ``model_sdks/litellm.py``.

It makes a text of what they return or raise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_otel.core.plain import fields
from agent_otel.core.types import PRODUCED, Invocation, ToolCall, ToolReader, ToolResult
from agent_otel.integrations.reader_functions import inject_into, raises_within, replace_by_text
from agent_otel.integrations.registry.entries import Candidate, Site, Wrap

if TYPE_CHECKING:
    from collections.abc import Iterable

LOOP = Site(
    Candidate("litellm.harness.handlers.tool_loop_handler", Wrap("_execute_tool", "function")),
    minimum="1.106",
    adapter="frameworks.litellm_harness",
)


def _call(invocation: Invocation) -> ToolCall:
    return ToolCall(invocation.arg(0, "tool").name, invocation.arg(1, "arguments"))


def _parameters(invocation: Invocation) -> Iterable[str]:
    return tuple(fields(invocation.arg(0, "tool").args_model.model_fields))


function = ToolReader(
    PRODUCED,
    _call,
    ToolResult,
    is_refusal=raises_within("litellm", "ValidationError"),
    replace=replace_by_text,
    parameters=_parameters,
    inject=inject_into(1, "arguments"),
)
