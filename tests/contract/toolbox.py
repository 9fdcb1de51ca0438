"""The tools that every framework's agent is given, as plain functions; sizes are known by hand."""

from __future__ import annotations

import asyncio
from typing import Any

LOOKUP = "größe: " + "ß" * 1000
"""What ``lookup("größe")`` returns: 7 + 2 + 2,000 = 2,009 bytes of UTF-8."""
LOOKUP_BYTES = 2009
GEMINI = "gemini-scripted"
"""The model of Google's SDKs; children do not import it from the package, which the switch leaves unloaded."""


class BrokenError(Exception):
    """What ``broken`` raises."""


BROKEN = BrokenError("no record größe")
"""The very object that ``broken`` raises."""

lingering = asyncio.Event()


def lookup(key: str) -> str:
    """Look a record up."""
    return f"{key}: " + "ß" * 1000


async def lookup_later(key: str) -> str:
    """Look a record up and wait for it."""
    from opentelemetry import trace

    with trace.get_tracer("toolbox").start_as_current_span("looking up"):
        await asyncio.sleep(0.001)
    return lookup(key)


def big(n: int) -> str:
    """Return so many letters."""
    return "x" * n


def broken(key: str) -> str:
    """Look a record up that is not there."""
    del key
    raise BROKEN


async def broken_later(key: str) -> str:
    """Look a record up that is not there, and wait for it."""
    await asyncio.sleep(0.001)
    return broken(key)


async def linger(key: str) -> str:
    """Wait for somebody to cancel, and then take a moment to tidy up."""
    lingering.set()
    try:
        await asyncio.sleep(20)
    finally:
        await asyncio.sleep(0.01)
    return key


def table(rows: int) -> dict[str, Any]:
    """Return a table: ``table(2)`` is ``{"rows":[{"id":0},{"id":1}]}`` as compact JSON, 28 bytes."""
    return {"rows": [{"id": row} for row in range(rows)]}
