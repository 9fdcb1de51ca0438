"""Results that repeat an injected value reach neither the model nor a store with it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agent_otel._internal import errors
from agent_otel.core.captured_content import without
from agent_otel.core.types import LEFT_ALONE, NOT_HERE, Replacement
from agent_otel.remedies.claim_check.serialization import JSON, raw_of

if TYPE_CHECKING:
    from agent_otel.core.tool_invocation import ToolInvocation
    from agent_otel.core.types import Invocation, ToolReader
    from agent_otel.remedies.claim_check.serialization import Raw


def hide(
    record: ToolInvocation, reader: ToolReader, read: object, value: Any, invocation: Invocation
) -> tuple[object, Any]:
    """Return what was read and the value to hand on, both without injected values."""
    raw = raw_of(read)
    if not record.injected or reader.replace is None or raw.text is None:
        return read, value
    text = without(raw.text, record.injected)
    if text == raw.text:
        return read, value
    replacement = Replacement(text, _data(text, raw), record.error_type is not None)
    put = reader.replace(value, replacement, invocation)
    if put is LEFT_ALONE or put is NOT_HERE:
        errors.warn_once(
            f"policy repeats {record.name}",
            f"AGENT_OTEL_TOOL_POLICY: a result of {record.name} repeats an injected value and goes on whole.",
        )
        return read, value
    return text, put


def _data(text: str, raw: Raw) -> dict[str, Any]:
    """Return the object that a text is; a value in it that was a number has left no JSON."""
    try:
        data = json.loads(text) if raw.content_type == JSON else None
    except ValueError:
        data = None
    return data if type(data) is dict else {"content": text}
