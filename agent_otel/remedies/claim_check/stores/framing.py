"""TTL header for stores without reliable expiry."""

from __future__ import annotations

import struct
import time

from agent_otel.remedies.claim_check.stores.base import NotFoundError, StoreError

_FRAME = struct.Struct(">4sd")  # mark; expiry in seconds since 1970
_MARK = b"aot1"
#: Bytes of the header.
FRAME_BYTES = _FRAME.size


def frame(ttl: float) -> bytes:
    """Return the header of a value that expires ``ttl`` seconds from now."""
    return _FRAME.pack(_MARK, time.time() + ttl)


def end(framed: bytes) -> float:
    """Return the expiry of a framed value; NotFoundError when it has expired, StoreError for any other value."""
    if framed[:4] != _MARK or len(framed) < FRAME_BYTES:
        raise StoreError("what is stored under this key was written by somebody else")
    expires_at: float = _FRAME.unpack_from(framed)[1]
    if not time.time() < expires_at:
        raise NotFoundError("expired")
    return expires_at


def unframe(framed: bytes) -> bytes:
    """Return the value without its header; raises as ``end``."""
    end(framed)
    return framed[FRAME_BYTES:]
