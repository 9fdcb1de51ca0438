"""The turns of a history, the matching and the contents of results, and the cut up to which a view may rewrite.

All of it depends on the messages only, so that the same history has the same view in every process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_otel._internal.errors import ours
from agent_otel.measure.size import block_text, json_size, text_bytes
from agent_otel.messages.fields import changed, fields, is_list
from agent_otel.messages.formats import transcript

if TYPE_CHECKING:
    from agent_otel.messages import AnsweredCall, RequestedCall, Transcript
    from agent_otel.messages.fields import Path

MOST_NODES: Final = 200
"""Nodes of a structured result that are measured: 0.1 ms."""

KEEP_TURNS: Final = 2
"""Number of last turns that are never rewritten."""

STEP_TURNS: Final = 5
"""Turns that are rewritten together.

A provider's prompt cache ends at the first changed byte. Every step pays for the kept turns once more; between two
steps, up to four more turns are sent from the cache. With cached input at a tenth of the price and cache writes a
quarter above it, as at Anthropic, the sum is least at 7 turns; with cached input at a quarter of the price, as formerly
at OpenAI, at 3.
"""


@dataclass(eq=False, slots=True)
class Call:
    """A call in its history. ``at`` is the place of its message; ``turn`` counts from 0."""

    at: int
    asked: RequestedCall
    turn: int
    answer: Result | None = None


@dataclass(eq=False, slots=True)
class Result:
    """A result in its history; an orphaned one has no call."""

    at: int
    answered: AnsweredCall
    turn: int
    call: Call | None = None

    @property
    def name(self) -> str | None:
        """The tool's name from the call, else from the result."""
        return (self.call.asked.name if self.call is not None else None) or self.answered.name


class History:
    """Messages with their parsed calls and results; a message of unknown type has neither."""

    def __init__(self, messages: Sequence[Any], seen: list[Transcript]) -> None:
        self.messages = messages
        self.seen = seen
        self.calls: list[Call] = []
        self.results: list[Result] = []
        self.turns = 0
        self._match()

    def cut(self, keep_turns: int, step_turns: int) -> int:
        """Return the number of first turns that may be rewritten; ValueError when an option is less than 1."""
        if keep_turns < 1 or step_turns < 1:
            raise ValueError(f"keep_turns and step_turns are at least 1, not {keep_turns} and {step_turns}")
        return max(self.turns - keep_turns, 0) // step_turns * step_turns

    def without(self, places: set[int]) -> History:
        """Return the history without some of its messages."""
        left = [place for place in range(len(self.messages)) if place not in places]
        return History([self.messages[place] for place in left], [self.seen[place] for place in left])

    def _match(self) -> None:
        """Match each result to the first open call with its id in the latest turn that has one."""
        answering = True
        waiting: dict[tuple[str, str | None], list[Call]] = {}
        nameless: dict[int, list[Result]] = {}
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
                key = ("id", answered.id) if answered.id is not None else ("name", answered.name)
                result.call = next((call for call in waiting.get(key, ()) if call.answer is None), None)
                if result.call is not None:
                    result.call.answer = result
                elif answered.id is None and answered.name is None:
                    nameless.setdefault(result.turn, []).append(result)
                self.results.append(result)
            answering = answering or bool(seen.answered) or seen.by_user
        if nameless:
            self._match_in_order(nameless)

    def _match_in_order(self, nameless: dict[int, list[Result]]) -> None:
        """Match results without id and name to the calls of their turn, where these are as many."""
        for turn, results in nameless.items():
            calls = [call for call in self.calls if call.turn == turn and call.answer is None]
            if len(calls) == len(results):
                for call, result in zip(calls, results, strict=True):
                    call.answer, result.call = result, call


def _wait(waiting: dict[tuple[str, str | None], list[Call]], call: Call) -> None:
    """Register a call under its id, if it has one, and under its tool's name: results may lack the id."""
    for key in (("id", call.asked.id), ("name", call.asked.name)):
        if key[1] is not None:
            others = waiting.setdefault(key, [])
            if others and others[-1].turn != call.turn:
                others.clear()
            others.append(call)


def read(messages: Sequence[Any], ids: Sequence[str | None] = ()) -> History:
    """Return the parsed history, with ``ids`` where the format has none; TypeError for no sequence."""
    if isinstance(messages, str | bytes | bytearray) or not isinstance(messages, Sequence):
        raise TypeError(f"messages must be a sequence of messages, not {type(messages).__name__}")
    seen = [transcript(message) for message in messages]
    if len(ids) == len(seen):
        seen = [one if one.id is not None else one._replace(id=own) for one, own in zip(seen, ids, strict=True)]
    return History(messages, seen)


class Changes:
    """New values for places in messages, and the bytes that each strategy removes."""

    def __init__(self) -> None:
        self._at: dict[int, dict[Path, Any]] = {}
        self._removed: dict[int, list[tuple[str, int]]] = {}

    def put(self, at: int, path: Path, value: Any, strategy: str = "", removed_bytes: int = 0) -> None:
        """Record a new value for a place in a message, and the bytes that a strategy removes with it."""
        self._at.setdefault(at, {})[path] = value
        if strategy:
            self._removed.setdefault(at, []).append((strategy, removed_bytes))

    def value(self, at: int, path: Path, otherwise: Any) -> Any:
        """Return the new value for a place, or another one if there is none."""
        return self._at.get(at, {}).get(path, otherwise)

    def apply(self, messages: Sequence[Any]) -> tuple[list[Any], dict[str, int]]:
        """Return the messages, with copies of those that change, and the bytes removed by each strategy."""
        made = list(messages)
        removed: dict[str, int] = {}
        for at, changes in self._at.items():
            try:
                made[at] = changed(made[at], changes)
            except ours(Exception):
                continue
            for strategy, count in self._removed.get(at, ()):
                removed[strategy] = removed.get(strategy, 0) + count
        return made, removed


class Weight(NamedTuple):
    """Characters and UTF-8 bytes of a result's text for the model. If not exact, they are a lower bound."""

    characters: int
    bytes: int
    exact: bool = True


def weight(content: Any) -> Weight:
    """Measure a result's content: a text, the text and JSON blocks of a list, or a structured value as JSON."""
    if is_list(content):
        weights = [_weight(value) for value in map(value_of, content) if value is not None]
        exact = all(found.exact for found in weights)
        return Weight(sum(found.characters for found in weights), sum(found.bytes for found in weights), exact)
    if type(content) is not str and not issubclass(type(content), dict):
        return Weight(0, 0)
    only = _only(content)
    return _weight(content if only is None else only)


def _weight(value: Any) -> Weight:
    if type(value) is str:
        return Weight(len(value), text_bytes(value))
    size = json_size(value, MOST_NODES)
    return Weight(size.bytes, size.bytes, size.exact)


def _only(content: Any) -> str | None:
    """Return the text of an object with one key. Return None for any other object."""
    if not issubclass(type(content), dict) or len(known := fields(content)) != 1:
        return None
    [inner] = known.values()
    return inner if type(inner) is str else None


def value_of(block: Any) -> Any:
    """Return a block's text, or the value of Bedrock's JSON or Cohere's document; None for one without, as an image."""
    text = block if type(block) is str else block_text(block)
    if text is not None:
        return text
    known = fields(block)
    if known.keys() == {"json"}:
        return known["json"]
    return fields(known.get("document")).get("data") if known.get("type") == "document" else None


def text_of(content: Any) -> str | None:
    """Return the first text of a content."""
    if is_list(content):
        return next((text for text in map(text_of, content) if text is not None), None)
    only = _only(content)
    value = value_of(content) if only is None else only
    return value if type(value) is str else None


def replaced(content: Any, line: str) -> Any:
    """Return the content with one text instead of all its texts. Keep other blocks."""
    if type(content) is str:
        return line
    if not is_list(content):
        known = fields(content)
        return {next(iter(known)) if len(known) == 1 else "result": line}
    texts = [place for place, block in enumerate(content) if len(content) == 1 or value_of(block) is not None]
    # A block's ``cache_control`` sets the end of a provider's cache. So a block with it has to remain.
    kept = next((place for place in texts if "cache_control" in fields(content[place])), texts[0])
    blocks = [
        _with_text(block, line) if place == kept else block
        for place, block in enumerate(content)
        if place == kept or place not in texts
    ]
    return blocks if type(content) is list else tuple(blocks)


def _with_text(block: Any, line: str) -> Any:
    if type(block) is str:
        return line
    if block_text(block) is not None:
        return changed(block, {("text",): line})
    return {"type": "text", "text": line} if "type" in fields(block) else {"text": line}


def are_equal(one: Any, other: Any) -> bool:
    """Return True for equal values. Values without a comparison count as different."""
    try:
        return bool(one == other)
    except ours(Exception):
        return False
