"""OpenAI's Agents SDK: shells, patches, computers and custom tools, which it runs in functions of their own.

The whole action is read where it returns its item: the approval of a human is part of it, and an item that waits for
one is no result. Of a shell that is what is left after the cut that the model asks for. The SDK hands the item on
before it returns it, so that no result is replaced; a call that a policy denies, or that is above a limit, gets an item
of its own in place of it, as a call gets that a human rejects. The entry is in ``openai_agents.py``.
"""

from __future__ import annotations

import sys
from typing import Any

from agent_otel.core import handler
from agent_otel.core.plain import fields, is_named
from agent_otel.core.types import LEFT_ALONE, PRODUCED, Invocation, Replacement, ToolCall, ToolReader, ToolResult
from agent_otel.integrations.hooks import Hook
from agent_otel.integrations.registry.entries import Candidate, Site, Wrap

_MODULE = "agents.run_internal.tool_actions"
_SHARED = tuple(Wrap(f"{kind}Action.execute", "action") for kind in ("Shell", "LocalShell", "ApplyPatch", "Computer"))
_FAILING = Wrap("format_shell_error", "failing")

ACTIONS = Site(
    Candidate(_MODULE, Wrap("CustomToolAction.execute", "action"), *_SHARED, _FAILING),  # the newer one
    Candidate(_MODULE, *_SHARED, _FAILING),
    adapter="frameworks.openai_agents_actions",
    minimum="0.8",
)

#: The names of the tool in the SDK's records of a call, and of the arguments in the model's items.
_TOOLS = ("shell_tool", "local_shell_tool", "apply_patch_tool", "custom_tool", "computer_tool")
_FAILED = {"type": "exit", "exit_code": 1}
_ARGUMENTS = ("input", "action", "actions", "operation", "operations")


def _call(invocation: Invocation) -> ToolCall:
    named = invocation.kwargs
    call = fields(named.get("call") or named["action"])
    tool = next(call[name] for name in _TOOLS if name in call)
    item = fields(call["tool_call"])
    return ToolCall(
        tool.name,
        next((item[name] for name in _ARGUMENTS if item.get(name) is not None), None),
        item.get("call_id"),
        getattr(named["agent"], "name", None),
        getattr(named["config"], "group_id", None),
    )


def _result(item: Any) -> ToolResult | None:
    if not is_named(item, "ToolCallOutputItem"):
        handler.handler_deferred()
        return None
    return ToolResult(fields(item.raw_item).get("output", item.output))


def _replace(item: Any, replacement: Replacement, invocation: Invocation) -> Any:
    """Return the item of a call that was skipped; a computer's is a picture, which no text can replace."""
    if item is not None:
        return LEFT_ALONE
    call = fields(invocation.kwargs.get("call") or invocation.kwargs["action"])
    kind = next(name for name in _TOOLS if name in call).removesuffix("_tool")
    if kind == "computer":
        return LEFT_ALONE
    called, output = call["tool_call"], [{"stdout": "", "stderr": replacement.text, "outcome": _FAILED}]
    raw = {
        "type": "custom_tool_call_output" if kind == "custom" else f"{kind}_call_output",
        "call_id": fields(called).get("call_id"),
        "output": output if kind == "shell" else replacement.text,
        **({"status": "failed"} if kind == "apply_patch" else {}),
    }
    made = sys.modules["agents.items"].ToolCallOutputItem
    return made(agent=invocation.kwargs["agent"], output=replacement.text, raw_item=raw)


action = ToolReader(PRODUCED, _call, _result, replace=_replace)
failing = Hook(lambda invocation: handler.handler_raised(invocation.arg(0, "error"), action))
