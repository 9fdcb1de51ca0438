"""Dapr Agents: produced is read at the executor of tools, handed back at the activity that runs one of them.

Tools that are handed the workflow itself pass neither: they run in workflow code, where nothing of ours does. The
executor turns what a tool raises into text, after the tool has wrapped it in an error of the framework's.
"""

from __future__ import annotations

from typing import Any

from agent_otel._internal.object_kinds import fields, is_named, listed, text
from agent_otel.core import handler, step_handler
from agent_otel.core.types import HANDED_BACK, Invocation, Payload, Replacement, ToolCall, ToolReader, ToolResult
from agent_otel.integrations.hooks import Hook, after
from agent_otel.integrations.payloads import bytes_of
from agent_otel.integrations.readers import inject_by_name
from agent_otel.integrations.registry import Candidate, Integration
from agent_otel.integrations.runtimes.taskhub import is_refusal
from agent_otel.semconv import STATE, TOOL_ERROR

ENTRY = Integration(
    "dapr-agents",
    minimum="1.0",
    tested="1.0.9, a simulated daprd",
    uncovered="tools that get the workflow itself: they run in workflow code",
    sites=(
        Candidate("dapr_agents.agents.durable", activity="DurableAgent.run_tool"),
        Candidate(
            "dapr_agents.tool.executor",
            run_tool="AgentToolExecutor.run_tool",
            wrapping_error="AgentTool._log_and_raise_error",
        ),
        Candidate("dapr_agents.storage.daprstores.statestore", saved="DaprStateStore.save_state"),
    ),
)

_ENVELOPES = ("ToolResult", "CallToolResult")


def _activity_call(invocation: Invocation) -> ToolCall:
    agent, payload = invocation.instance, fields(invocation.arg(1, "payload"))
    call = fields(payload["tool_call"])
    function = fields(call["function"])
    return ToolCall(function["name"], function.get("arguments"), call["id"], agent.name, payload.get("instance_id"))


def _produced(value: Any) -> ToolResult:
    """Read a result: bare, or in an envelope of texts with an error flag, recognised by the names of their classes."""
    if not is_named(value, *_ENVELOPES):
        return ToolResult(value)
    known = fields(value)
    texts = [said for block in listed(known["content"]) if (said := text(fields(block).get("text"))) is not None]
    error_type = TOOL_ERROR if known.get("isError") is True else None
    return ToolResult("".join(texts), known.get("structuredContent"), error_type, raised=error_type is not None)


def _replace(value: Any, replacement: Replacement, _: Invocation) -> Any:
    """Return a replacement for what a tool returns; of an envelope of texts with an error flag, the flag stays."""
    if not is_named(value, *_ENVELOPES):
        return replacement.text
    texts = [block for block in listed(value.content) if text(fields(block).get("text")) is not None]
    content = [texts[0].model_copy(update={"text": replacement.text})]
    is_error = replacement.is_error or value.isError
    return value.model_copy(update={"content": content, "structuredContent": None, "isError": is_error})


run_tool = ToolReader(
    lambda invocation: ToolCall(invocation.arg(0, "tool_name"), dict(invocation.kwargs)),
    _produced,
    replace=_replace,
    inject=inject_by_name,
)
activity = ToolReader(
    _activity_call,
    lambda message: ToolResult(fields(message)["content"]),
    run_tool,
    station=HANDED_BACK,
    replace=lambda message, replacement, _: {**fields(message), "content": replacement.text},
)


wrapping_error = Hook(lambda invocation: handler.handler_raised(invocation.arg(0, "error"), run_tool))


# Bytes of the entries that were refused last, by key: the same is sent again up to thirty times.
_refused: dict[str, int] = {}
_MAX_REFUSED = 1_000

# Dapr Agents: an agent's state entry, which its activities rewrite whole, each time with the full conversation. Its
# workflow and activities are Dapr's. The entry goes to a state store under a key that ends with the workflow's id.


@after
def saved(invocation: Invocation, result: Any, error: Any) -> None:
    key, value = invocation.arg(0, "key"), invocation.arg(1, "value")
    step = step_handler.current_step()
    execution = (step.execution or "").lower() if step is not None else ""
    if step is None or not execution or not key.endswith(execution):
        return
    refused = str(error) if is_refusal(error) else None
    if error is not None and refused is None:
        return
    size = bytes_of(value)
    again = _refused.pop(key, None) == size
    if refused is not None and len(_refused) < _MAX_REFUSED:
        _refused[key] = size
    reading = Payload(STATE, size, value, kind=key.removesuffix(execution), again=again)
    step_handler.payload(step, reading, None, refused)
