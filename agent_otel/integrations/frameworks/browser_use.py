"""Browser Use, whose tools are the actions in a browser, its own and the program's.

Produced is read at ``Registry.execute_action``, handed back at ``Tools.act``, whose result has the texts that the model
gets in its next state. The model's requests have no ids of calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_otel._internal.failures import cause_of, text_of
from agent_otel._internal.object_kinds import fields, is_empty, is_named, text
from agent_otel.core.types import HANDED_BACK, LEFT_ALONE, AgentRun, RunReader, ToolCall, ToolReader, ToolResult
from agent_otel.integrations.readers import inject_into
from agent_otel.integrations.registry import Candidate, Integration
from agent_otel.semconv import TOOL_ERROR

if TYPE_CHECKING:
    from agent_otel.core.types import Invocation, Replacement

ENTRY = Integration(
    "browser-use",
    minimum="0.13.14",
    tested="0.13.14, with Chromium",
    uncovered="the state of the page; images of results; agents in its cloud and of `browser_use.beta`",
    sites=(
        Candidate("browser_use.tools.registry.service", action="Registry.execute_action"),
        Candidate("browser_use.tools.service", act="Tools.act"),
        Candidate("browser_use.agent.service", agent_run="Agent.run"),
    ),
)

# Begin the texts of the framework's own exception.
_FAILED = "Error executing action "
_REFUSED = "Invalid parameters "
# The action by which an agent gives its final answer.
_FINAL = "done"


def _action_call(invocation: Invocation) -> ToolCall | None:
    name = invocation.arg(0, "action_name")
    return None if text(name) == _FINAL else ToolCall(name, invocation.arg(1, "params"))


def _act_call(invocation: Invocation) -> ToolCall | None:
    """Read the only action that a model of pydantic has, in a union or by itself."""
    known = fields(invocation.arg(0, "action"))
    known = fields(known["root"]) if "root" in known else known
    name = next((name for name, parameters in known.items() if parameters is not None), _FINAL)
    if name == _FINAL:
        return None
    given = fields(known[name])
    chosen = getattr(known[name], "model_fields_set", given)
    return ToolCall(name, {key: value for key, value in given.items() if key in chosen})


def _produced(value: Any) -> ToolResult:
    """Read a text, or the whole text that an action has found."""
    if not is_named(value, "ActionResult"):
        return ToolResult("" if value is None else value)
    error = text(value.error)
    said = text(value.extracted_content)
    found = said if said is not None else text(value.long_term_memory) or error or ""
    return ToolResult(found, error_type=None if error is None else TOOL_ERROR)


def _handed_back(result: Any) -> ToolResult:
    """Read the texts of a result that the agent puts into the model's next state."""
    memory, found, error = map(text, (result.long_term_memory, result.extracted_content, result.error))
    is_once = result.include_extracted_content_only_once is True
    parts = [found if is_once or memory is None else None, memory, error]
    return ToolResult("\n".join(part for part in parts if part), error_type=None if error is None else TOOL_ERROR)


def _cause(error: BaseException) -> BaseException:
    is_own = is_named(error, "RuntimeError") and text_of(error, 30).startswith(_FAILED)
    cause = cause_of(error) if is_own else None
    return error if cause is None else cause


def _failure_text(error: BaseException) -> Any:
    """Return the text that the model gets of the framework's own exception."""
    said = next(map(text, error.args), None) if is_named(error, "RuntimeError") else None
    return said if said is not None and said.startswith(_FAILED) else None


def _is_refusal(error: BaseException) -> bool:
    cause = _cause(error)
    return is_named(cause, "ValueError") and text_of(cause, 30).startswith(_REFUSED)


def _replace(value: Any, replacement: Replacement, _: Invocation) -> Any:
    """Return a replacement for the text that an action has found; a result with images or files stays."""
    if is_named(value, "RuntimeError"):
        value.args = (replacement.text,)
        return value
    if not is_named(value, "ActionResult"):
        return replacement.text
    if not is_empty(value.images) or not is_empty(value.attachments) or text(value.extracted_content) is None:
        return LEFT_ALONE
    return value.model_copy(update={"extracted_content": replacement.text})


def _parameters(invocation: Invocation) -> Any:
    actions = fields(invocation.instance.registry.actions)
    model = actions[invocation.arg(0, "action_name")].param_model
    return tuple(fields(model.model_fields))


action = ToolReader(
    _action_call,
    _produced,
    is_refusal=_is_refusal,
    cause=_cause,
    failure_text=_failure_text,
    replace=_replace,
    parameters=_parameters,
    inject=inject_into(1, "params"),  # before they are validated
)
act = ToolReader(_act_call, _handed_back, action, station=HANDED_BACK, is_awaited=True)


agent_run = RunReader(lambda invocation: AgentRun(conversation=text(getattr(invocation.instance, "session_id", None))))
