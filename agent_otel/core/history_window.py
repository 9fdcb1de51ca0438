"""Windows over a history: the messages that a request leaves out between those it shares with the request before.

A window keeps the end of a history, and sometimes its beginning. So a request with a window is the request before it,
without one piece in front of its end, and with the model's next message behind it. Anything in the place of the piece
is a summary, an edit or another history, and proves no window. Neither do call ids that are used twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_otel import semconv
from agent_otel._internal.named_tuples import NamedTuple
from agent_otel.core.execution_state import REUSED
from agent_otel.core.request_parts import KINDS, MOST_PARTS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from agent_otel.core.execution_state import Conversation, SeenCall, SeenParts
    from agent_otel.core.request_parts import Sized

_MOST_PLACES = 8
_OFFERED = (KINDS[semconv.SYSTEM], KINDS[semconv.TOOLS])
_USER = KINDS[semconv.USER]
_ASSISTANT = KINDS[semconv.ASSISTANT]
_RESULT = KINDS[semconv.TOOL_RESULTS]
_OF_THE_MODEL = (_ASSISTANT, KINDS[semconv.TOOL_CALL_ARGUMENTS])


class Dropped(NamedTuple):
    """Messages that a window left out: their bytes, the messages of the model among them, and the task."""

    bytes: int
    turns: int
    has_task: bool


class _Message(NamedTuple):
    """A part of the history: its fingerprint, its bytes and its kind."""

    print: int
    bytes: int
    kind: int


class _Overlap(NamedTuple):
    """The pieces that two requests share: ``first`` parts in front, and the end of the earlier one from ``stop`` on.

    In the later request the end of the earlier one is in front of ``after``.
    """

    first: int
    stop: int
    after: int


def begin(conversation: Conversation, parts: SeenParts) -> int:
    """Keep the task of a conversation that begins with this request: the first of the user's latest messages.

    Return the number of the model's messages in it: another process began such a conversation.
    """
    messages = _messages(parts)
    end = next((at for at in range(len(messages), 0, -1) if messages[at - 1].kind == _USER), 0)
    start = end
    while start and messages[start - 1].kind == _USER:
        start -= 1
    conversation.task = messages[start].print if start < end else 0
    return _turns([one.kind in _OF_THE_MODEL for one in messages], follows=False)


def drop(
    conversation: Conversation,
    parts: SeenParts,
    sized: Sequence[Sized],
    calls: Mapping[int, SeenCall],
    new: Collection[SeenCall],
) -> Dropped | None:
    """Return what a request, which does not continue the one before it, leaves out of it; None when that is unknown.

    ``calls`` are the calls whose results the request holds, by the results' indexes, ``new`` those that are delivered
    for the first time.
    """
    before = conversation.parts
    if len(before.prints) >= MOST_PARTS:
        return None
    if any(call.fragment is REUSED for call in calls.values()) or _has_ids_twice(sized):
        return None
    earlier, later = _messages(before), _messages(parts)
    if not earlier or not later:
        return None
    dropped = _left_out(earlier, later, has_tools=KINDS[semconv.TOOLS] in parts.kinds)
    if dropped is None and not _has_common(earlier, later):
        if later[0].kind == _USER:
            conversation.has_restarted = True
            begin(conversation, parts)
        elif not conversation.has_restarted and _are_new(sized, calls, new):
            dropped = earlier
    return _sum(conversation, earlier, later, dropped) if dropped else None


def _messages(parts: SeenParts) -> list[_Message]:
    """Return the parts of the history; empty ones distinguish no message."""
    found = map(_Message, parts.prints, parts.sizes, parts.kinds)
    return [one for one in found if one.bytes and one.kind not in _OFFERED]


def _has_ids_twice(sized: Sequence[Sized]) -> bool:
    ids = [one.part.call_id for one in sized if one.part.part == semconv.TOOL_RESULTS and one.part.call_id is not None]
    return len(ids) > len(set(ids))


def _left_out(earlier: list[_Message], later: list[_Message], *, has_tools: bool) -> list[_Message] | None:
    """Return the piece that the later request leaves out, None without proof of a window."""
    prints = [one.print for one in later]
    places = set(prints)
    end = _end(earlier, places)
    before = [one.print for one in earlier[:end]]
    if before[-1] not in places:
        return None
    overlap = _overlap(before, prints)
    if overlap is None:
        return None
    dropped, then = earlier[overlap.first : overlap.stop], later[overlap.after :]
    # Without tools, a request for a title or a judgement may hold the last message alone.
    if not (any(one.kind in _OF_THE_MODEL for one in then) if then else has_tools):
        return None
    # Providers and frameworks remove the model's reasoning from among the messages.
    if overlap.first and all(one.kind == _ASSISTANT for one in dropped):
        return None
    # The model may write the same text in several turns. Any other message that is still there was moved.
    was_moved = any(one.kind != _ASSISTANT and one.print in places for one in dropped)
    return None if was_moved else dropped


def _end(earlier: list[_Message], places: set[int]) -> int:
    """Return the length of a request without the reminders behind its results, which are in no later request."""
    end = len(earlier)
    while end and earlier[end - 1].kind == _USER and earlier[end - 1].print not in places:
        end -= 1
    return end if end and earlier[end - 1].kind == _RESULT else len(earlier)


def _overlap(before: list[int], prints: list[int]) -> _Overlap | None:
    """Return the pieces that two requests share, None when that is not clear."""
    ends = [at for at, one in enumerate(prints) if one == before[-1]]
    if len(ends) > _MOST_PLACES:
        return None
    found = []
    for last in ends:
        kept = 0
        while kept <= last and kept < len(before) and prints[last - kept] == before[-1 - kept]:
            kept += 1
        first, stop = last - kept + 1, len(before) - kept
        if first < stop and prints[:first] == before[:first]:
            found.append(_Overlap(first, stop, last + 1))
    return found[0] if len(found) == 1 else None


def _has_common(earlier: list[_Message], later: list[_Message]) -> bool:
    """Return true when two requests share a message; the model may write the same text in several turns."""
    return not {one.print for one in earlier if one.kind != _ASSISTANT}.isdisjoint(one.print for one in later)


def _are_new(sized: Sequence[Sized], calls: Mapping[int, SeenCall], new: Collection[SeenCall]) -> bool:
    """Return true when a request holds results, and each is delivered for the first time."""
    results = [at for at, one in enumerate(sized) if one.part.part == semconv.TOOL_RESULTS]
    first = {id(call) for call in new}
    return bool(results) and all(at in calls and id(calls[at]) in first for at in results)


def _sum(
    conversation: Conversation, earlier: list[_Message], later: list[_Message], dropped: list[_Message]
) -> Dropped:
    """Return the totals of the dropped messages, and forget the task when it is among them."""
    kinds = [one.kind in _OF_THE_MODEL for one in dropped]
    start = next((at for at, one in enumerate(earlier) if one is dropped[0]), 0)
    before = bool(start) and earlier[start - 1].kind in _OF_THE_MODEL
    turns = _turns(kinds, follows=before)
    prints = {one.print for one in dropped}
    has_task = conversation.task in prints and all(one.print != conversation.task for one in later)
    if has_task:
        conversation.task = 0
    return Dropped(sum(one.bytes for one in dropped), turns, has_task)


def _turns(kinds: list[bool], *, follows: bool) -> int:
    """Return the number of the model's messages, whose parts are true; ``follows`` is true when another is before."""
    return sum(now and not last for last, now in zip([follows, *kinds], kinds, strict=False))
