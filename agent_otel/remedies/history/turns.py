"""The turns of a history, which result answers which call, and how far back a view may rewrite.

Everything follows from the messages alone, so that the same history always has the same view, in every process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from agent_otel.messages import contents, items, messages
from agent_otel.messages.fields import changed, fields
from agent_otel.messages.types import NOTHING, Answered, Asked, Seen

if TYPE_CHECKING:
    from agent_otel.messages.fields import Path

KEEP_TURNS: Final = 2
"""The last turns that are never rewritten."""

STEP_TURNS: Final = 5
"""Turns that are rewritten together.

A provider's prompt cache ends at the first byte that changed. Every step costs once more what the kept turns cost;
between steps up to four more turns are carried, from the cache. With cached input at a tenth of the price and writing
the cache at a quarter above it, as Anthropic has it, the sum is least at 7 turns; with cached input at a quarter of the
price, as OpenAI had it, at 3.
"""


class Call:
    """A call in its history. ``at`` is the place of its message, ``turn`` counts from 0."""

    __slots__ = ("answer", "asked", "at", "turn")

    def __init__(self, at: int, asked: Asked, turn: int) -> None:
        self.at = at
        self.asked = asked
        self.turn = turn
        self.answer: Result | None = None


class Result:
    """A result in its history; an orphan has no call."""

    __slots__ = ("answered", "at", "call", "turn")

    def __init__(self, at: int, answered: Answered, turn: int) -> None:
        self.at = at
        self.answered = answered
        self.turn = turn
        self.call: Call | None = None

    @property
    def name(self) -> str | None:
        """The tool's name, as the call or else the result says it."""
        return (self.call.asked.name if self.call is not None else None) or self.answered.name


class History:
    """Messages with what was read of each; a message of unknown type asks and answers nothing."""

    def __init__(self, messages: Sequence[Any], seen: list[Seen]) -> None:
        self.messages = messages
        self.seen = seen
        self.calls: list[Call] = []
        self.results: list[Result] = []
        self.turns = 0
        self._match()

    def cut(self, keep_turns: int, step_turns: int) -> int:
        """The turns, from the first on, that may be rewritten: a multiple of ``step_turns``.

        ``keep_turns`` is how many of the last are not. Raises ValueError when one of the two is less than 1.
        """
        if keep_turns < 1 or step_turns < 1:
            raise ValueError(f"keep_turns and step_turns are at least 1, not {keep_turns} and {step_turns}")
        return max(self.turns - keep_turns, 0) // step_turns * step_turns

    def without(self, places: set[int]) -> History:
        """The history without some of its messages."""
        left = [place for place in range(len(self.messages)) if place not in places]
        return History([self.messages[place] for place in left], [self.seen[place] for place in left])

    def _match(self) -> None:
        """Each result answers the first open call with its id in the latest turn that has one.

        A turn is what a model asks for until something answers: the items of one response are one turn. An id that
        comes again in a later turn is another call's, which the older one, if it is still open, never gets back.
        """
        answering = True
        waiting: dict[tuple[str, str | None], list[Call]] = {}
        for at, seen in enumerate(self.seen):
            if seen.asked:
                if answering:
                    self.turns += 1
                    answering = False
                for asked in seen.asked:
                    call = Call(at, asked, self.turns - 1)
                    self.calls.append(call)
                    _wait(waiting, call)
            for answered in seen.answered:
                result = Result(at, answered, self.turns - 1)
                result.call = _answered(waiting, answered)
                if result.call is not None:
                    result.call.answer = result
                self.results.append(result)
            answering = answering or bool(seen.answered) or seen.by_user


def _wait(waiting: dict[tuple[str, str | None], list[Call]], call: Call) -> None:
    """Calls wait under their id, if they have one, and under their tool's name: results may lack the id."""
    for key in (("id", call.asked.id), ("name", call.asked.name)):
        if key[1] is not None:
            others = waiting.get(key)
            if others is None or others[-1].turn != call.turn:
                waiting[key] = [call]
            else:
                others.append(call)


def _answered(waiting: dict[tuple[str, str | None], list[Call]], answered: Answered) -> Call | None:
    key = ("id", answered.id) if answered.id is not None else ("name", answered.name)
    return next((call for call in waiting.get(key, ()) if call.answer is None), None)


def read(messages: Sequence[Any]) -> History:
    """Read a history; raise TypeError when it is not a sequence of messages."""
    if isinstance(messages, str | bytes | bytearray) or not isinstance(messages, Sequence):
        raise TypeError(f"messages must be a sequence of messages, not {type(messages).__name__}")
    return History(messages, [_seen(message) for message in messages])


def _seen(message: Any) -> Seen:
    """What a message asks for and answers: nothing, when it cannot be read."""
    try:
        known = fields(message)
        return contents.read(known) or items.read(known) or messages.read(known) or NOTHING
    except Exception:  # a message that raises when it is read stays as it is, and so does its history's meaning
        return NOTHING


class Changes:
    """New values for places in messages, by message; the bytes that each strategy removes."""

    def __init__(self) -> None:
        self._at: dict[int, dict[Path, Any]] = {}
        self._removed: dict[int, list[tuple[str, int]]] = {}

    def put(self, at: int, path: Path, value: Any) -> None:
        """Put a value in the place of another."""
        self._at.setdefault(at, {})[path] = value

    def count(self, at: int, strategy: str, removed_bytes: int) -> None:
        """Remember what is saved in a message."""
        self._removed.setdefault(at, []).append((strategy, removed_bytes))

    def apply(self, messages: Sequence[Any]) -> tuple[list[Any], dict[str, int]]:
        """Return the messages, with copies of those that change, and the bytes removed by strategy."""
        made = list(messages)
        removed: dict[str, int] = {}
        for at, changes in self._at.items():
            try:
                made[at] = changed(made[at], changes)
            except Exception:  # noqa: S112 - a message that cannot be copied stays as it is
                continue
            for strategy, count in self._removed.get(at, ()):
                removed[strategy] = removed.get(strategy, 0) + count
        return made, removed
