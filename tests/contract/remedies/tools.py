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


FUNCTIONS: list[Any] = [big, table, fetch, fetch_later, wide, search]
