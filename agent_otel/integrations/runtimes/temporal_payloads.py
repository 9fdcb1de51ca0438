"""Bytes of Temporal's payloads, and the limit that the server of a worker has for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from agent_otel.core import payload_cap
from agent_otel.core.types import Payload
from agent_otel.semconv import INPUT, OUTPUT

if TYPE_CHECKING:
    from collections.abc import Iterable

RUNTIME = "temporal"
_BOUNDARIES = ("activity_input", "activity_output", "workflow_input", "workflow_output")
_DEFAULT_LIMIT_BYTES = 2 * 1024 * 1024

#: Commands that end a run.
ENDS = frozenset(f"{end}_workflow_execution" for end in ("cancel", "complete", "continue_as_new", "fail"))
#: The command with a workflow's result, which arrives nowhere else.
RESULT = "complete_workflow_execution"
# The field with the payloads of each command that is counted where it arrives, or at the sender if it is refused.
_SENT_ON = {
    "schedule_activity": "arguments",
    "start_child_workflow_execution": "input",
    "continue_as_new_workflow_execution": "arguments",
    "signal_external_workflow_execution": "args",
}

_limits: WeakKeyDictionary[Any, int] = WeakKeyDictionary()


def limit_of(worker: Any) -> int:
    """Return the limit in bytes that a worker got from its server, or Temporal's default."""
    return _limits.get(worker, _DEFAULT_LIMIT_BYTES)


def keep_limit(worker: Any, limits: Any) -> None:
    """Keep the limit of a namespace for a worker, and as the cap of its payloads."""
    limit = getattr(limits, "blob_size_limit_error", 0)
    if limit > 0:
        _limits[worker] = limit
        for boundary in _BOUNDARIES:
            payload_cap.discover(RUNTIME, boundary, limit)


def field_bytes(size: int) -> int:
    """Return the bytes of a protobuf field with so many bytes in it: tag, length in seven bits a byte, and those."""
    return 1 + max(1, (size.bit_length() + 6) // 7) + size


def payload_of(direction: str, payloads: Iterable[Any], *, again: bool = False) -> Payload | None:
    """Weigh a ``Payloads`` message without building one; the largest JSON text stands for what is inside.

    protobuf's own ByteSize serialises.
    """
    total, text = 0, b""
    for payload in payloads:
        data = payload.data
        size = field_bytes(len(data)) if data else 0
        for key, value in payload.metadata.items():
            size += field_bytes(field_bytes(len(key.encode())) + field_bytes(len(value)))
            if value.startswith(b"json/") and key == "encoding" and len(data) > len(text):
                text = data
        for stored in getattr(payload, "external_payloads", ()):
            size += field_bytes(stored.ByteSize())
        total += field_bytes(size)
    return Payload(direction, total, text or None, again=again) if total else None


def sent_by(variant: str, sent: Any) -> Payload | None:
    """Return the payload of a command that the server may refuse; None for another command."""
    if variant in _SENT_ON:
        return payload_of(INPUT, getattr(sent, _SENT_ON[variant]))
    if variant == RESULT and sent.HasField("result"):
        return payload_of(OUTPUT, (sent.result,))
    if variant == "schedule_nexus_operation":
        return payload_of(INPUT, (sent.input,))
    if variant == "update_response" and sent.HasField("completed"):
        carried = payload_of(OUTPUT, (sent.completed,))
        return carried and carried._replace(kind=variant)
    if variant == "fail_workflow_execution":
        return Payload(OUTPUT, sent.failure.ByteSize(), kind=variant)
    return None


def refusal_of(payload: Payload | None, limit: int) -> str | None:
    """Return the error message for a payload above the limit."""
    if payload is None or payload.bytes <= limit:
        return None
    return f"{payload.bytes} bytes exceed the limit of {limit}"
