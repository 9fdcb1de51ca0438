"""An end of its own for each value, for stores that do not let values end, or cannot be relied on to."""

from __future__ import annotations

import struct
import time

from agent_otel.remedies.claim_check.stores.base import NotFoundError, StoreError

_FRAME = struct.Struct(">4sd")  # a mark, and seconds since 1970
_MARK = b"aot1"
#: Bytes before a value.
FRAME_BYTES = _FRAME.size


def frame(ttl: float) -> bytes:
    """Return what stands before a value that ends ``ttl`` seconds from now."""
    return _FRAME.pack(_MARK, time.time() + ttl)


def end(framed: bytes) -> float:
    """Return when a framed value ends; NotFoundError when that is over, StoreError when this is no such value."""
    if framed[:4] != _MARK or len(framed) < FRAME_BYTES:
        raise StoreError("what is stored under this key was written by somebody else")
    expires_at: float = _FRAME.unpack_from(framed)[1]
    if not time.time() < expires_at:
        raise NotFoundError("expired")
    return expires_at


def unframe(framed: bytes) -> bytes:
    """Return a framed value, as ``end`` does its end."""
    end(framed)
    return framed[FRAME_BYTES:]
