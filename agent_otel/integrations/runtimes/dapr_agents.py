"""Dapr Agents: an agent's state entry, which its activities rewrite whole, each time with the full conversation.

Its workflow and activities are Dapr's. The entry goes to a state store under a key that ends with the workflow's id.

The entry is in ``frameworks/dapr_agents.py``.
"""

from __future__ import annotations

from typing import Any

from agent_otel.core import handler, step_handler
from agent_otel.core.plain import is_text
from agent_otel.core.types import Invocation, Payload
from agent_otel.integrations.hooks import Hook
from agent_otel.integrations.runtimes.taskhub import is_refusal
from agent_otel.semconv import STATE

# Bytes of the entries that were refused last, by key: the same is sent again up to thirty times.
_refused: dict[str, int] = {}
_MAX_REFUSED = 1_000


def _saved(invocation: Invocation, result: Any, error: Any) -> None:
    key, value = invocation.arg(0, "key"), invocation.arg(1, "value")
    step = step_handler.current_step()
    execution = (step.execution or "").lower() if step is not None else ""
    if step is None or not execution or not key.endswith(execution):
        return
    refused = str(error) if is_refusal(error) else None
    if error is not None and refused is None:
        return
    size = handler.text_bytes(value) if is_text(value) else len(value)
    again = _refused.pop(key, None) == size
    if refused is not None and len(_refused) < _MAX_REFUSED:
        _refused[key] = size
    reading = Payload(STATE, size, value, kind=key.removesuffix(execution), again=again)
    step_handler.payload(step, reading, None, refused)


saved = Hook(after=_saved)
