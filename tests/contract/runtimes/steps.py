"""What the steps of every runtime's programs do; sizes are known by hand."""

from __future__ import annotations

import asyncio

import agent_otel

LETTERS = "abcdefghijklmnopqrstuvwxyz"


class BrokenError(Exception):
    """What ``broken`` and the first call of ``flaky`` raise."""


_asked: dict[int, int] = {}


def produce(n: int) -> str:
    """Return so many letters, other letters for another ``n``."""
    return LETTERS[n % 26] * n


async def produce_later(n: int) -> str:
    """Return so many letters after a wait."""
    await asyncio.sleep(0.001)
    return produce(n)


def consume(texts: list[str]) -> int:
    """Take texts in; their length."""
    return sum(len(text) for text in texts)


def flaky(n: int) -> str:
    """Fail the first time that is asked for so many letters."""
    _asked[n] = _asked.get(n, 0) + 1
    if _asked[n] == 1:
        raise BrokenError("not yet")
    return produce(n)


def broken(n: int) -> str:
    """Fail."""
    raise BrokenError(f"no {n}")


@agent_otel.tool
def search(n: int) -> str:
    """Find so many letters."""
    return produce(n)


def use_tool(n: int) -> str:
    """Use a tool in a step."""
    return search(n)
