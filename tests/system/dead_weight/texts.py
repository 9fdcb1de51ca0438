"""Texts of known length for agents' states, no line of which stands in another."""

from __future__ import annotations

import random
from typing import Any


def _lines(count: int, seed: str) -> str:
    """So many lines of 64 characters, with the ends of lines."""
    numbers = random.Random(seed)  # noqa: S311 - the same text each time
    return "".join(f"{numbers.randbytes(16).hex()} is what {seed:>8} has in {number:06}\n" for number in range(count))


NOTES = _lines(1000, "notes")


def page(number: int) -> str:
    """Return a page of 1,280,000 characters."""
    return _lines(20_000, f"page {number}")


def rows(number: int) -> list[dict[str, Any]]:
    """Return the rows of a table."""
    bodies = _lines(8000, f"table {number}").splitlines()
    return [{"id": 10_000 + n, "body": " ".join(bodies[8 * n : 8 * n + 8]), "open": True} for n in range(1000)]
