"""Sessions of Anthropic's managed agents: the runner of their tools, and the results that a program sends to them.

The provider has the model and the conversation; the program runs the tools. The runner makes an event of each result,
and turns exceptions into text in it. A loop of the program's own sends the same events. The entry is in
``model_sdks/anthropic.py``.
"""

from __future__ import annotations

import sys
from typing import Any

from agent_otel.core import handler
from agent_otel.core.plain import fields, listed, text
from agent_otel.core.types import PRODUCED, Invocation, Replacement, RequestPart, ToolCall, ToolReader, ToolResult
from agent_otel.integrations.frameworks.anthropic import result_of
from agent_otel.integrations.hooks import Hook
from agent_otel.integrations.reader_functions import inject_into
from agent_otel.integrations.registry.entries import Candidate, Site, Wrap
from agent_otel.semconv import TOOL_RESULTS

_RUNNER = "anthropic.lib.tools._beta_session_runner"
_ADAPTER = "frameworks.anthropic_sessions"
SESSIONS = (
    Site(
        Candidate(_RUNNER, Wrap("SessionToolRunner._call_tool", "session_tool"), Wrap("tool_error_content", "failing")),
        minimum="2.11",
        adapter=_ADAPTER,
    ),
    Site(
        Candidate(
            "anthropic.resources.beta.sessions.events", Wrap("Events.send", "sent"), Wrap("AsyncEvents.send", "sent")
        ),
        minimum="2.11",
        adapter=_ADAPTER,
    ),
)


def _call(invocation: Invocation) -> ToolCall:
    event = invocation.arg(1, "ev")
    return ToolCall(event.name, invocation.arg(2, "input_"), event.id, execution=invocation.instance.session_id)


def _result(answer: Any) -> ToolResult:
    """Read the event of a result, which stands beside what the SDK's span has of it."""
    return result_of(answer[0])


def _replace(_: Any, replacement: Replacement, invocation: Invocation) -> Any:
    """Return an event with a replacement; a skipped call has none yet."""
    content = [{"type": "text", "text": replacement.text}]
    made = sys.modules[_RUNNER]._build_result_event(invocation.arg(1, "ev"), content, replacement.is_error)
    return made, content


def _sent(invocation: Invocation, _: Any, error: BaseException | None) -> None:
    """Report the results among the events of a request that the provider has taken."""
    for event in map(fields, [] if error is not None else listed(invocation.kwargs.get("events"))):
        call_id = text(event.get("custom_tool_use_id")) or text(event.get("tool_use_id"))
        if (text(event.get("type")) or "").endswith("tool_result") and call_id is not None:
            handler.result_delivered(RequestPart(TOOL_RESULTS, event.get("content"), call_id), __name__)


session_tool = ToolReader(PRODUCED, _call, _result, replace=_replace, inject=inject_into(2, "input_"))
failing = Hook(lambda invocation: handler.handler_raised(invocation.arg(0, "exc"), session_tool))
sent = Hook(after=_sent)
