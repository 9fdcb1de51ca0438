"""The tools that remedies act on; sizes are known by hand, and what has run is remembered."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.contract import toolbox

ran: list[str] = []
"""The tools that have run."""

big, table = toolbox.big, toolbox.table

SEARCHED = "x" * 70_000
"""What every search finds."""


def fetch(key: str) -> str:
    """Look a record up."""
    ran.append("fetch")
    return toolbox.lookup(key)


async def fetch_later(key: str) -> str:
    """Look a record up and wait for it."""
    ran.append("fetch_later")
    await asyncio.sleep(0.05)
    return toolbox.lookup(key)


def wide(n: int) -> str:
    """Return so many letters of two bytes each."""
    return "ß" * n


def search(query: str, cursor: str = "", limit: int = 20) -> str:
    """Find something."""
    del query, cursor, limit
    return SEARCHED


CANARY = "canary-7f3a9c"
"""A secret, which a policy injects and which nothing may show."""

approvals: list[tuple[str, dict[str, Any]]] = []
"""The tools and the arguments that `approve` got."""


def fetch_as(key: str, token: str = "") -> str:
    """Look a record up with a token."""
    ran.append("fetch_as")
    return f"{key}: {'let in' if token == CANARY else 'turned away'}"


async def approve(call: Any) -> bool:
    """Approve all records but the third."""
    await asyncio.sleep(0)
    approvals.append((call.tool, call.arguments))
    return bool(call.arguments["key"] != "three")


def echo_as(key: str, token: str = "") -> str:
    """Repeat a token, in the result or in an exception."""
    ran.append("echo_as")
    if key == "raise":
        raise ValueError(f"bad token {token!r} or {token}")
    return f"{key}: {token} {[token]!r}"


FUNCTIONS: list[Any] = [big, table, fetch, fetch_as, fetch_later, wide, search, echo_as]
