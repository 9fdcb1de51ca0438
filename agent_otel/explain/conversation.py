"""Turns of a conversation: their bytes by tool, and the bytes that remedies save when they run on each turn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_otel import settings
from agent_otel.measure.json_pieces import WORKER_STEPS
from agent_otel.measure.size import Size, size, text_bytes
from agent_otel.remedies.claim_check.policy import view_text
from agent_otel.remedies.claim_check.references import DIGEST_DIGITS, SEAL_DIGITS, Reference, key
from agent_otel.remedies.claim_check.serialization import raw_of
from agent_otel.remedies.history import turns
from agent_otel.remedies.history.argument_compaction import ABOVE_BYTES, FAILURE_BYTES, bounding, compacting
from agent_otel.remedies.history.trimmed_line import LineForm
from agent_otel.remedies.history.trimming import trimming
from agent_otel.remedies.history.turns import Changes, History

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_otel.explain.message_stream import Conversation, Message
    from agent_otel.messages.fields import Path

_LONGEST_GROUP: Final = 512  # messages of one turn
_MISSING: Final = object()
_SOMEBODY: Final = "user"


@dataclass(slots=True)
class Turn:
    """A model request with the calls that it led to. Sizes are bytes; ``parts`` are results and arguments by tool."""

    bytes: int = 0
    messages: int = 0
    parts: dict[tuple[str, str], int] = field(default_factory=dict)
    has_calls: bool = False
    #: Bytes that each remedy would save in this turn; trimming only where the turn is an old one.
    claim_check: int = 0
    trimming: int = 0
    compaction: int = 0

    def add(self, kind: str, tool: str, count: int) -> None:
        """Add bytes of a kind of part, and of a tool where it has one."""
        self.parts[kind, tool] = self.parts.get((kind, tool), 0) + count


class Saving(NamedTuple):
    """The bytes that a remedy would save: of the stored payload, or of the next model request alone."""

    remedy: str
    setting: str
    bytes: int
    of_payload: bool


class Turns:
    """Divides the longest conversation of a text into its turns; ``take`` gets the messages in their order."""

    def __init__(self) -> None:
        self._best: list[Turn] = []
        self._now: list[Turn] = []
        self._conversation: Conversation | None = None
        self._group: list[Message] = []
        self._chosen = settings.current()

    def take(self, conversation: Conversation, message: Message) -> None:
        """Take the next message."""
        if conversation is not self._conversation:
            self._end()
            self._conversation = conversation
        if self._begins(message):
            self._flush()
        self._group.append(message)

    def longest(self) -> list[Turn]:
        """Return the turns of the conversation with the most bytes."""
        self._end()
        return self._best

    def savings(self, found: Iterable[Turn]) -> list[Saving]:
        """Return the savings of the remedies in these turns, with the settings of this process."""
        chosen, all_turns = self._chosen, list(found)
        calling = [turn for turn in all_turns if turn.has_calls]
        history = turns.read([])
        history.turns = len(calling)
        old = calling[: history.cut(chosen.keep_turns, chosen.trim_step_turns)]
        return [
            Saving("claim check", "AGENT_OTEL_CLAIM_CHECK", sum(turn.claim_check for turn in all_turns), True),
            Saving("trimming", "AGENT_OTEL_TRIM_RESULTS", sum(turn.trimming for turn in old), False),
            Saving("argument compaction", "AGENT_OTEL_COMPACT_ARGUMENTS", sum(t.compaction for t in all_turns), False),
        ]

    def _begins(self, message: Message) -> bool:
        """Return True when a message begins a turn: the user's, or calls behind a result."""
        group, seen = self._group, message.transcript
        if not group:
            return False
        if len(group) >= _LONGEST_GROUP:
            return True
        if seen.asked:
            return any(one.transcript.answered for one in group)
        return seen.by_user and not seen.answered and not all(_is_prompt(one) for one in group)

    def _end(self) -> None:
        self._flush()
        if sum(turn.bytes for turn in self._now) >= sum(turn.bytes for turn in self._best):
            self._best = self._now
        self._now = []

    def _flush(self) -> None:
        if self._group:
            self._now.append(self._turn(self._group))
            self._group = []

    def _turn(self, group: list[Message]) -> Turn:
        history = History([one.value for one in group], [one.transcript for one in group])
        turn = Turn(sum(one.bytes for one in group), len(group), has_calls=history.turns > 0)
        for at, message in enumerate(group):
            self._divide(turn, message, at, history)
        self._run(turn, history, group)
        return turn

    def _divide(self, turn: Turn, message: Message, at: int, history: History) -> None:
        """Add the bytes of a message to its tools; the rest belongs to its sender."""
        left = message.bytes
        answered = [result for result in history.results if result.at == at]
        for result in answered:
            count = _full(result.answered.content, result.answered.path, message)
            turn.add("result", result.name or "", count)
            left -= count
        for asked in message.transcript.asked:
            count = _full(asked.arguments, asked.path, message)
            turn.add("arguments", asked.name or "", count)
            left -= count
        if answered and not message.transcript.by_user:
            turn.add("result", answered[-1].name or "", max(0, left))
        else:
            turn.add(_sender(message), "", max(0, left))

    def _run(self, turn: Turn, history: History, group: list[Message]) -> None:
        """Run the remedies on a turn."""
        chosen = self._chosen
        trimmed, compacted = Changes(), Changes()
        trimming(history, 1, trimmed, LineForm(chosen.trim_characters, chosen.trim_reference_characters))
        compacting(history, 0, compacted, ABOVE_BYTES)
        bounding(history, 0, compacted, FAILURE_BYTES)
        places = [(result.at, result.answered.path) for result in history.results]
        turn.trimming = _saved(trimmed, history, group, places)
        places += [(call.at, call.asked.path) for call in history.calls]
        turn.compaction = _saved(compacted, history, group, places)
        for result in history.results:
            turn.claim_check += self._claimed(result, group[result.at])

    def _claimed(self, result: turns.Result, message: Message) -> int:
        """Return the bytes that the view of a stored result saves."""
        content, chosen = result.answered.content, self._chosen
        text = raw_of(content, WORKER_STEPS).text
        if text is None:
            return 0
        full = text_bytes(text) + _beyond(result.answered.path, message)
        limit = min(chosen.claim_check_bytes, chosen.result_ceiling_bytes or chosen.claim_check_bytes)
        if full <= limit:
            return 0
        place = key("0" * 32, "agent", result.answered.id or "call")
        reference = Reference(place, full, "0" * DIGEST_DIGITS, "0" * SEAL_DIGITS)
        shown = view_text(result.name or "", text, Size(full, exact=True), str(reference), limit)
        return max(0, full - text_bytes(shown))


def _is_prompt(message: Message) -> bool:
    seen = message.transcript
    return seen.by_user or _sender(message) == "system"


def _sender(message: Message) -> str:
    role = message.value.get("role") or message.value.get("type") or ""
    if role in ("system", "developer"):
        return "system"
    return _SOMEBODY if message.transcript.by_user or role in ("user", "human") else "assistant"


def _full(value: Any, path: Path, message: Message) -> int:
    """Return the bytes of a value of a message, with those of its texts that are not kept."""
    return size(value).bytes + _beyond(path, message)


def _beyond(path: Path, message: Message) -> int:
    """Return the bytes at and below a path that are not kept."""
    return sum(count for at, count in message.rests.items() if at[: len(path)] == path)


def _saved(changes: Changes, history: History, group: list[Message], places: Iterable[tuple[int, Path]]) -> int:
    """Return the bytes that changes remove, with those of changed texts that are not kept."""
    _, removed = changes.apply(history.messages)
    beyond = sum(
        _beyond(path, group[at])
        for at, path in places
        if group[at].rests and changes.value(at, path, _MISSING) is not _MISSING
    )
    return sum(removed.values()) + beyond
