"""Prints of a text's passages. They recognise the text in a quote, with other line ends, or after a cut.

A passage is three words in a row. In a text with fewer words, each word of 16 characters or more is a passage. A print
is the hash of a passage: no text is kept.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_otel._internal.errors import ours

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MOST: Final = 32
"""Prints of a text: 8 of its beginning, 8 of its end, 16 between them."""
_ENDS: Final = 8
_IN_A_ROW: Final = 4  # passages that show the beginning or the end
_MOST_HEADS: Final = 16  # places that may be the beginning
_GROWN: Final = 1.25  # length of a text where it is quoted with escapes, compared with the text
_LONG: Final = 16  # characters of a word that is a passage by itself
_WINDOW: Final = 512  # characters at each end of a long text that are read
_BETWEEN: Final = 96  # characters of each window between them
_SEARCHED: Final = 1 << 18  # characters of a text that are searched for passages
_WORDS: Final = re.compile(r"[^\W_]+")


class Found(NamedTuple):
    """Where a text is quoted: the first and the last character, and whether its beginning and its end are there."""

    start: int
    stop: int
    has_head: bool
    has_tail: bool


class Prints(NamedTuple):
    """The prints of a text in its order, its characters, and those before its first and after its last word.

    ``is_of_words`` is true if the passages are long words, because the text has no three words in a row.
    """

    hashes: array[int]
    is_of_words: bool
    length: int
    before: int
    after: int

    def is_quoted(self, hashes: set[int]) -> bool:
        """Return true when half of the beginning, of the end or of all passages are among the hashes of a text.

        Fewer may be in any text: results have keys and phrases in common.
        """
        return any(
            2 * sum(one in hashes for one in part) >= len(part)
            for part in (self.hashes[:_ENDS], self.hashes[-_ENDS:], self.hashes)
        )

    def find(self, text: str) -> Found | None:
        """Return where a text quotes this one; None where it has no passage of it."""
        words = [(match.group(), match.start(), match.end()) for match in _WORDS.finditer(text)]
        if self.is_of_words:
            words = [word for word in words if len(word[0]) >= _LONG]
            hashes = _of_words([word for word, _, _ in words])
        else:
            hashes = _sequences([word for word, _, _ in words])
        known, span = set(self.hashes), len(words) - len(hashes)
        places = [place for place, one in enumerate(hashes) if one in known]
        if not places:
            return None
        # Results have keys and phrases in common, and may quote one another. Several passages in a row show the
        # beginning and the end. The most passages follow the right beginning.
        first, last = self.hashes[:_IN_A_ROW].tolist(), self.hashes[-_IN_A_ROW:].tolist()
        starts = [words[place][1] for place in places]

        def near(start: int) -> list[int]:
            at = bisect_left(places, start)
            return places[at : bisect_right(starts, words[start][1] + self.length * _GROWN)]

        heads = [*islice(_places(hashes, first), _MOST_HEADS)]
        start = max(heads or places[:1], key=lambda place: len({hashes[each] for each in near(place)}))
        quoted = near(start)
        ends = [place + len(last) - 1 for place in _places(hashes, last, start) if place <= quoted[-1]]
        begin, end = words[start][1], words[(ends[-1] if ends else quoted[-1]) + span][2]
        found = {hashes[place] for place in quoted}
        return Found(
            max(begin - self.before, 0) if heads else begin,
            min(end + self.after, len(text)) if ends else end,
            not found.isdisjoint(first),
            not found.isdisjoint(last),
        )


def prints(text: str) -> Prints | None:
    """Return the prints of a text, None where it has no passage.

    Only the ends of a long text and windows between them are read, so that 1 MB takes less than 60 microseconds.
    """
    size = len(text)
    if size <= 2 * _WINDOW:
        head = tail = text
        first = last = _WORDS.findall(text)
        chosen = _sequences(first)
        if len(chosen) > MOST:
            middle = chosen[_ENDS:-_ENDS]
            chosen = chosen[:_ENDS] + middle[:: len(middle) // (MOST - 2 * _ENDS) + 1] + chosen[-_ENDS:]
    else:
        head, tail = text[:_WINDOW], text[-_WINDOW:]
        first, last = _WORDS.findall(head), _WORDS.findall(tail)
        chosen = _sequences(first[:-1])[:_ENDS]  # the last word of a window may be half a word, and the first one
        begins = bool(chosen)
        step = size // (_ENDS + 1)
        for at in range(step, size - _WINDOW, step):
            chosen += _sequences(_WORDS.findall(text[at : at + _BETWEEN])[1:-1])[:2]
        ending = _sequences(last[1:])[-_ENDS:]
        # Passages at one end only do not show if the text is whole.
        chosen = [*chosen, *ending] if begins and ending else []
    is_of_words = not chosen
    if is_of_words:
        first, last = ([word for word in words if len(word) >= _LONG] for words in (first, last))
        chosen = _of_words(first)[:_ENDS]
    if not chosen:
        return None
    head, tail = head.lstrip(), tail.rstrip()
    before = head.find(first[0]) if first else 0
    after = len(tail) - tail.rfind(last[-1]) - len(last[-1]) if last else 0
    return Prints(array("q", chosen), is_of_words, size, before, after)


class StreamEnds:
    """The beginning and the end of a text that arrives in pieces."""

    __slots__ = ("_head", "_is_text", "_tail")

    def __init__(self) -> None:
        self._head = self._tail = ""
        self._is_text = True

    def add(self, piece: object) -> None:
        """Add the next piece; with one that is no text, the whole is none."""
        if type(piece) is not str:
            self._is_text = False
        else:
            room = _WINDOW - len(self._head)
            self._head += piece[:room]
            self._tail = (self._tail + piece[room:][-_WINDOW:])[-_WINDOW:]

    def prints(self) -> Prints | None:
        """Return the prints of the pieces so far; None if a piece is not a text."""
        return prints(self._head + self._tail) if self._is_text else None


def hashes_in(texts: Iterable[str]) -> set[int]:
    """Return the hashes of all passages of texts."""
    found: set[int] = set()
    for text in texts:
        for piece in (text,) if len(text) <= _SEARCHED else (text[: _SEARCHED // 2], text[-_SEARCHED // 2 :]):
            words = _WORDS.findall(piece)
            found.update(_sequences(words), _of_words(words))
    return found


def _sequences(words: list[str]) -> list[int]:
    """Return the hashes of three words in a row."""
    return [*map(hash, zip(words, words[1:], words[2:], strict=False))]


def _of_words(words: list[str]) -> list[int]:
    """Return the hashes of words that are passages by themselves."""
    return [hash(word[:_LONG]) for word in words if len(word) >= _LONG]


def _places(hashes: list[int], wanted: list[int], first: int = 0) -> Iterator[int]:
    """Yield the places of hashes in a row."""
    try:
        while True:
            first = hashes.index(wanted[0], first)
            if hashes[first : first + len(wanted)] == wanted:
                yield first
            first += 1
    except ours(ValueError):
        return
