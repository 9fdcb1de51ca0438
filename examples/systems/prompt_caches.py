"""Prompt caches of model providers, as far as accounting goes: the tokens of a request that a cache already has.

- Bedrock and Anthropic cache up to a block that asks for it (``cachePoint``, ``cache_control``), from 1,024 tokens on.
- OpenAI caches every prefix, from 1,024 tokens on, in steps of 128 tokens.

A token is four characters of text, of a result, or of a call's name and arguments; what is around them counts nothing.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

LEAST_TOKENS = 1024
STEP_TOKENS = 128
LOOKBACK_BLOCKS = 20
_AROUND = ("id", "type", "role", "status", "toolUseId", "tool_use_id", "tool_call_id", "cache_control", "cachePoint")
_PARTS = ("toolConfig", "tools", "system", "messages")


class MarkedCache:
    """Bedrock's and Anthropic's cache: an entry for what precedes each mark, found from 20 blocks after it."""

    def __init__(self) -> None:
        self._entries: set[bytes] = set()

    def tokens(self, request: dict[str, Any]) -> int:
        """Return the request's tokens that the cache has, and keep what precedes its marks."""
        prefixes, marks = _prefixes(request)
        near = {place for mark in marks for place in range(max(mark - LOOKBACK_BLOCKS, 0), mark + 1)}
        cached = max((prefixes[place][1] for place in near if prefixes[place][0] in self._entries), default=0) // 4
        self._entries.update(prefixes[mark][0] for mark in marks)
        return cached if cached >= LEAST_TOKENS else 0


class AutomaticCache:
    """OpenAI's cache: an entry for each request."""

    def __init__(self) -> None:
        self._requests: list[str] = []

    def tokens(self, request: dict[str, Any]) -> int:
        """Return the request's tokens that the cache has, and keep the request."""
        text = "\n".join(map(_text, _blocks(request)))
        cached = max((_same(text, earlier) for earlier in self._requests), default=0) // 4
        self._requests.append(text)
        return cached // STEP_TOKENS * STEP_TOKENS if cached >= LEAST_TOKENS else 0


def tokens(request: dict[str, Any]) -> int:
    """Return the tokens of a request's tools, instructions and messages."""
    return sum(len(_text(block)) for block in _blocks(request)) // 4


def _prefixes(request: dict[str, Any]) -> tuple[list[tuple[bytes, int]], list[int]]:
    """Return digest and length of what precedes each block's end, and the places of those that a mark ends."""
    digest, length = hashlib.sha256(), 0
    prefixes: list[tuple[bytes, int]] = []
    marks: list[int] = []
    for block in _blocks(request):
        if "cachePoint" not in block:
            text = _text(block)
            digest.update(text.encode())
            length += len(text)
            prefixes.append((digest.digest(), length))
        if "cachePoint" in block or "cache_control" in block:
            marks.append(len(prefixes) - 1)
    return prefixes, marks


def _blocks(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a request's blocks in the order in which providers cache them."""
    for part in _PARTS:
        value = request.get(part) or []
        value = value.get("tools", []) if isinstance(value, dict) else value
        for item in [{"text": value}] if isinstance(value, str) else value:
            content = item.get("content") if part == "messages" else None
            if isinstance(content, list):
                yield from content
            else:
                yield item


def _text(value: Any, key: str = "") -> str:
    """Return the texts of a block, one after the other."""
    if key in _AROUND:
        return ""
    if isinstance(value, dict):
        return "".join(_text(inner, name) for name, inner in value.items())
    if isinstance(value, list):
        return "".join(map(_text, value))
    return value if isinstance(value, str) else json.dumps(value)


def _same(one: str, other: str) -> int:
    """Return the length of the beginning that two texts share."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
