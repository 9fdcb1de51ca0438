"""OpenAI's APIs over WebSockets, Realtime and Responses: the results that a program sends.

Read at ``send`` of each connection. Realtime keeps the conversation: no request repeats it. The entry is in
``openai.py``.
"""

from __future__ import annotations

from typing import Any

from agent_otel.core import handler
from agent_otel.core.plain import fields, is_text, listed, text
from agent_otel.core.types import Invocation, RequestPart
from agent_otel.integrations.hooks import Hook
from agent_otel.integrations.registry.entries import Candidate, Site, Wrap
from agent_otel.semconv import TOOL_RESULTS

REALTIME = Site(
    Candidate(
        "openai.resources.realtime.realtime",
        Wrap("AsyncRealtimeConnection.send", "sent"),
        Wrap("RealtimeConnection.send", "sent"),
    ),
    adapter="model_sdks.openai_realtime",
    minimum="3.0",
)
RESPONSES = Site(
    Candidate(
        "openai.resources.responses.responses",
        Wrap("AsyncResponsesConnection.send", "created"),
        Wrap("ResponsesConnection.send", "created"),
    ),
    adapter="model_sdks.openai_realtime",
    minimum="3.45",
)


def _sent(invocation: Invocation, _: Any, error: BaseException | None) -> None:
    event = fields(invocation.arg(0, "event"))
    item = fields(event.get("item"))
    kinds = (text(event.get("type")), text(item.get("type")))
    if error is None and kinds == ("conversation.item.create", "function_call_output"):
        _deliver(item)


def _created(invocation: Invocation, _: Any, error: BaseException | None) -> None:
    event = fields(invocation.arg(0, "event"))
    is_request = error is None and text(event.get("type")) == "response.create"
    for item in map(fields, listed(event.get("input")) if is_request else ()):
        if (text(item.get("type")) or "").endswith("_call_output"):
            _deliver(item)


def _deliver(item: dict[str, Any]) -> None:
    if is_text(item.get("output")):
        handler.result_delivered(RequestPart(TOOL_RESULTS, item["output"], text(item.get("call_id"))), __name__)


sent = Hook(after=_sent)
created = Hook(after=_created)
