"""Passages: the lines and the quoted strings of a text. Their hashes show where the text occurs again.

A passage is recognised anywhere: in a part of the text, between other texts, after a line number, or in a
list of lines. A long passage is divided into blocks from its beginning on. Short ones are in any text, and prove
nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SHORTEST: Final = 16
"""Characters from which a passage is hashed."""
LONGEST: Final = 256
"""Characters of a block."""
MASK: Final = 0xFFFF_FFFF
"""The bits of a hash that are kept."""


def passages(text: str) -> list[str]:
    r"""Divide a text at quotes, tabs and the ends of lines, also where they are escaped, as in JSON within the text.

    The last element is empty when the text ends with one of these.
    """
    if "\\" in text:
        text = text.replace("\\n", "\n").replace('\\"', "\n").replace("\\t", "\n")
    return text.replace('"', "\n").replace("\t", "\n").split("\n")


def blocks(passage: str) -> list[str]:
    """Divide a passage into blocks; the last one is the rest, which may be short."""
    if len(passage) <= LONGEST:
        return [passage]
    return [passage[start : start + LONGEST] for start in range(0, len(passage), LONGEST)]


def prints(texts: Iterable[str]) -> set[int]:
    """Return the hashes of the passages of texts."""
    found: set[int] = set()
    for text in texts:
        if len(text) >= SHORTEST:
            found |= hashes(passages(text))
    return found


def hashes(pieces: Sequence[str]) -> set[int]:
    """Return the hashes of passages, and of the blocks of long ones."""
    # JSON repeats its keys and its punctuation: a set drops most pieces before the interpreter looks at them.
    distinct = [piece for piece in set(pieces) if len(piece) >= SHORTEST]
    found = {hash(piece) & MASK for piece in distinct if len(piece) <= LONGEST}
    for piece in distinct:
        if len(piece) > LONGEST:
            found.update([hash(block) & MASK for block in blocks(piece) if len(block) >= SHORTEST])
    return found
