"""Summaries of a process, found by the messages that they replace; the least recently used are dropped."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_otel._internal import fork

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_otel.remedies.history.summary_plan import Weight

MOST_CHARACTERS: Final = 32 * 1024 * 1024
MOST_SUMMARIES: Final = 4096


class Kept(NamedTuple):
    """The messages that stand for the ``replaced`` messages behind those of the system, opening messages apart."""

    replaced: int
    opening: int
    messages: list[Any]
    characters: int


class KeptSummaries:
    """A bounded cache of summaries."""

    def __init__(self, most_characters: int = MOST_CHARACTERS, most: int = MOST_SUMMARIES) -> None:
        self._most_characters = most_characters
        self._most = most
        self._kept: OrderedDict[int, Kept] = OrderedDict()
        self._characters = 0
        self._reset()
        fork.after_fork(self._reset)

    def _reset(self) -> None:
        self._lock = threading.Lock()

    @property
    def is_empty(self) -> bool:
        """True before the first summary."""
        return not self._kept

    def find(self, group: tuple[str, str], weights: Sequence[Weight]) -> Kept | None:
        """Return the summary of the most messages; ``weights`` are those of the messages behind the system's.

        ``group`` is a format and an owner, whose summaries no other gets.
        """
        found: Kept | None = None
        with self._lock:
            for key in _prefixes(group, weights):
                kept = self._kept.get(key)
                if kept is not None:
                    self._kept.move_to_end(key)
                    found = kept
        return found

    def keep(self, group: tuple[str, str], weights: Sequence[Weight], kept: Kept) -> None:
        """Keep the summary of the first messages."""
        *_, key = _prefixes(group, weights[: kept.replaced])
        with self._lock:
            before = self._kept.pop(key, None)
            self._characters += kept.characters - (before.characters if before is not None else 0)
            self._kept[key] = kept
            while self._characters > self._most_characters or len(self._kept) > self._most:
                self._characters -= self._kept.popitem(last=False)[1].characters


def _prefixes(group: tuple[str, str], weights: Sequence[Weight]) -> list[int]:
    """Return the keys of the first message, of the first two, and so on."""
    keys, last = [], hash(group)
    for weight in weights:
        last = hash((last, weight.hash))
        keys.append(last)
    return keys
