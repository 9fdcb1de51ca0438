"""Ids of a framework's messages for the messages of a provider's format, which has none.

OpenAI's chat has one message for each. Anthropic, Gemini and Bedrock have the system prompt apart and the results of
one turn in one message, and Anthropic and Bedrock have the user's text in the same message.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from agent_otel.semconv import SYSTEM, TOOL_RESULTS, USER

if TYPE_CHECKING:
    from collections.abc import Sequence

    Announced = Sequence[tuple[str, str | None]]


def aligned(announced: Announced, count: int) -> Sequence[str | None]:
    """Return the ids of so many messages of a provider's format; none when no known format has so many."""
    if len(announced) == count:
        return [own for _, own in announced]
    said = [one for one in announced if one[0] != SYSTEM]
    for joined in ((), (TOOL_RESULTS,), (TOOL_RESULTS, USER)):
        ids = _joined(said, joined)
        if len(ids) == count:
            return ids
    return ()


def _joined(announced: Announced, parts: tuple[str, ...]) -> list[str | None]:
    """Return one id for each message, and for each sequence of messages of these parts."""
    ids: list[str | None] = []
    for is_joined, messages in groupby(announced, lambda one: one[0] in parts):
        own: list[Any] = [each for _, each in messages]
        ids += own if not is_joined else [None if None in own else "\n".join(own)]
    return ids
