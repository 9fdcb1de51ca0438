"""Bytes of Temporal's payloads, and the limit that the server of a worker has for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from agent_otel.core import payload_cap
from agent_otel.core.types import Payload

if TYPE_CHECKING:
    from collections.abc import Iterable

RUNTIME = "temporal"
_BOUNDARIES = ("activity_input", "activity_output", "workflow_input", "workflow_output")
_DEFAULT_LIMIT_BYTES = 2 * 1024 * 1024

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


def refusal_of(payload: Payload | None, limit: int) -> str | None:
    """Return the error message for a payload above the limit."""
    if payload is None or payload.bytes <= limit:
        return None
    return f"{payload.bytes} bytes exceed the limit of {limit}"
