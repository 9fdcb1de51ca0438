"""Ids of agno's tool calls in model requests; the entry is in ``agno.py``.

The framework keeps the id of the item where OpenAI's Responses go by the id of the call, and writes other ids for a
provider that does not take those of the model which asked for the calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_otel.core import handler
from agent_otel.core.plain import fields, listed, text
from agent_otel.integrations.hooks import Hook
from agent_otel.integrations.registry.entries import Candidate, Site, Wrap

if TYPE_CHECKING:
    from agent_otel.core.types import Invocation

IDS = Site(
    Candidate("agno.utils.message", Wrap("reformat_tool_call_ids", "reformatted")),
    adapter="frameworks.agno_ids",
    minimum="2.6",
)


def _reformatted(invocation: Invocation, sent: Any, _: BaseException | None) -> None:
    goes_by_call = text(invocation.arg(1, "provider")) == "openai_responses"
    for kept, written in zip(listed(invocation.arg(0, "messages")), listed(sent), strict=False):
        for call, renamed in zip(_calls(kept), _calls(written), strict=False):
            sent_id = text(renamed.get("call_id")) if goes_by_call else None
            handler.call_renamed(call.get("id"), sent_id or renamed.get("id"))


def _calls(message: Any) -> list[dict[str, Any]]:
    return [fields(call) for call in listed(fields(message).get("tool_calls"))]


reformatted = Hook(after=_reformatted)
