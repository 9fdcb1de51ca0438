"""Copies of a conversation of texts without ids, which a restored checkpoint has put behind the conversation.

Only a copy of its beginning counts, and only with answers that a model would not give twice in the same words. A user
who repeats a question, or a whole exchange of short words, is no restored checkpoint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agent_otel.messages.fields import fields
from agent_otel.remedies.history.trimmed_line import text_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.remedies.history.turns import History

#: Different answers of a model in a copy, each of so many characters.
_LEAST_ANSWERS: Final = 2
_LEAST_CHARACTERS: Final = 40
_MODEL: Final = ("assistant", "ai", "model")


def copies(history: History, are_same: Callable[[Any, Any], bool]) -> set[int]:
    """Return the places of messages that repeat the beginning of the conversation, from the user's first message on.

    The user's last messages are never among them.
    """
    end = len(history.seen)
    while end and history.seen[end - 1].by_user and not history.seen[end - 1].answered:
        end -= 1  # the user may send the same again
    begin = next((place for place in range(end) if history.seen[place].by_user), end)
    found: set[int] = set()
    place = begin + 1
    while place < end:
        length = _length(history, begin, place, end, are_same)
        if length and _is_distinct(history, begin, length):
            before = _before(history, begin, place, are_same)
            found.update(range(place - before, place + length))
        place += length or 1
    return found


def _length(history: History, begin: int, place: int, end: int, are_same: Callable[[Any, Any], bool]) -> int:
    """Return the number of texts from a place on that equal those at the beginning."""
    length = 0
    while begin + length < place and place + length < end:
        one, other = begin + length, place + length
        if not (_is_text(history, one) and _is_text(history, other)):
            break
        if not are_same(history.messages[one], history.messages[other]):
            break
        length += 1
    return length


def _before(history: History, begin: int, place: int, are_same: Callable[[Any, Any], bool]) -> int:
    """Return the number of messages before a copy, such as a system message, that were copied with it."""
    before = 0
    while before < begin and are_same(history.messages[begin - 1 - before], history.messages[place - 1 - before]):
        before += 1
    return before


def _is_text(history: History, place: int) -> bool:
    seen = history.seen[place]
    return seen.id is None and not seen.asked and not seen.answered


def _is_distinct(history: History, begin: int, length: int) -> bool:
    """Return True when these messages hold enough different answers of a model."""
    answers = set()
    for message in history.messages[begin : begin + length]:
        known = fields(message)
        text = text_of(known.get("content") or known.get("parts"))
        if (known.get("role") or known.get("type")) in _MODEL and text and len(text) >= _LEAST_CHARACTERS:
            answers.add(text)
    return len(answers) >= _LEAST_ANSWERS
