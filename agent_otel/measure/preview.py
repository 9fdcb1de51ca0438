"""The first bytes of a value as text, for the opt-in content attributes. Never raises."""

from __future__ import annotations

from typing import Final

from agent_otel._internal.errors import ours
from agent_otel._internal.object_kinds import plain_text
from agent_otel.measure.json_pieces import pieces

#: Characters of a name on an attribute.
LONGEST_NAME: Final = 256


def preview(value: object, limit_bytes: int) -> str:
    """Return at most ``limit_bytes`` UTF-8 bytes: text as it is, else compact JSON, type names for what has none."""
    text = plain_text(value)
    if text is not None:
        return _cut(text[:limit_bytes], limit_bytes)
    found: list[str] = []
    length = 0
    try:
        for piece in pieces(value, names_objects=True):
            found.append(piece[:limit_bytes])
            length += len(piece)
            if length >= limit_bytes:
                break
    except ours(Exception):  # what was read so far is the preview
        pass
    return _cut("".join(found), limit_bytes)


def ends(value: object, count: int) -> tuple[str, str] | None:
    """Return the first and last ``count`` characters of a text; None for other values and texts under 2 * ``count``.

    Blanks around the text are left out, because a message that quotes the text may omit them.
    """
    if type(value) is not str or not count or len(value) < 2 * count:
        return None
    head, tail = value[: 2 * count].lstrip()[:count], value[-2 * count :].rstrip()[-count:]
    return (head, tail) if head and tail else None


class StreamEnds:
    """The first and last characters of a text that arrives in pieces, as `ends` returns them of a whole one."""

    __slots__ = ("_count", "_head", "_length", "_tail")

    def __init__(self, count: int) -> None:
        self._count = count
        self._head = self._tail = ""
        self._length = 0

    def add(self, piece: object) -> None:
        """Add the next piece; with one that is no text, the whole is none."""
        if type(piece) is not str:
            self._count = 0
        elif self._count:
            most = 2 * self._count
            self._head += piece[: most - len(self._head)]
            self._tail = (self._tail + piece[-most:])[-most:]
            self._length += len(piece)

    def found(self) -> tuple[str, str] | None:
        """Return the ends of the pieces so far; None where they are no text or too short."""
        if not self._count or self._length < 2 * self._count:
            return None
        head, tail = self._head.lstrip()[: self._count], self._tail.rstrip()[-self._count :]
        return (head, tail) if head and tail else None


def clean(name: str, limit: int = LONGEST_NAME) -> str:
    """Return a name fit for an attribute: no lone surrogates, which would lose a whole OTLP batch, and not endless."""
    if len(name) <= limit and name.isascii():
        return name
    return name[:limit].encode("utf-8", "replace").decode()


def _cut(text: str, limit_bytes: int) -> str:
    return text.encode("utf-8", "replace")[:limit_bytes].decode("utf-8", "ignore")
