"""Measure texts and numbers as they stand in compact JSON, many of them at once."""

from __future__ import annotations

from array import array
from json.encoder import encode_basestring as _quote
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

#: Characters up to which building the quoted string is cheaper than counting.
SHORT: Final = 256

_QUOTED_CHUNK: Final = 32 * 1024  # characters encoded at a time: at most 0.6 MB of transient memory
_BATCHED: Final = 4096  # characters of a string that is quoted together with others
_JOINED: Final = 256 * 1024  # characters of these together

_TWO_BYTE_ESCAPES: Final = b'"\\\b\f\n\r\t'
_ESCAPED: Final = bytes(range(0x20)) + b'"\\'
_ORDINARY: Final = bytes(code for code in range(0x100) if code not in _ESCAPED)


def quoted_bytes(text: str) -> int:
    """Return the length of a text as a JSON string in UTF-8 bytes, with quotes and escapes."""
    length = str.__len__(text)
    if length <= SHORT:
        quoted = _quote(text)
        return len(quoted) if quoted.isascii() else len(quoted.encode("utf-8", "surrogatepass"))
    if length <= _QUOTED_CHUNK:
        return 2 + _escaped_bytes(text)
    starts = range(0, length, _QUOTED_CHUNK)
    return 2 + sum(_escaped_bytes(str.__getitem__(text, slice(start, start + _QUOTED_CHUNK))) for start in starts)


def _escaped_bytes(text: str) -> int:
    data = str.encode(text, "utf-8", "surrogatepass")
    escaped = data.translate(None, _ORDINARY)
    if not escaped:
        return len(data)
    return len(data) + len(escaped) + 4 * len(escaped.translate(None, _TWO_BYTE_ESCAPES))


def texts_bytes(texts: list[Any], length: Callable[[Any], int] = len) -> int:
    """Return the length of texts as JSON strings together.

    ``length`` is that of one; with ``str.__len__`` no code of a class of its own runs. Raises TypeError where one is no
    text.
    """
    if sum(map(length, texts)) <= _JOINED:
        return _joined_bytes(texts)
    longest, total = max(map(length, texts)), 0
    if longest > _BATCHED:
        known: dict[int, int] = {}  # by id: one long string may stand in 2,000 places
        for text in texts:
            if length(text) > _BATCHED:
                total += known.get(id(text)) or known.setdefault(id(text), quoted_bytes(text))
        texts, longest = [text for text in texts if length(text) <= _BATCHED], _BATCHED
    step = _JOINED // longest
    return total + sum(_joined_bytes(texts[start : start + step]) for start in range(0, len(texts), step))


def _joined_bytes(texts: list[str]) -> int:
    """Return the length of texts as JSON strings; in one string they have all but one pair of their quotes less."""
    return quoted_bytes("".join(texts)) + 2 * len(texts) - 2


def ints_bytes(ints: list[int]) -> int:
    """Return the length of integers as JSON, together; raise OverflowError for one of more than 64 bits."""
    array("q", ints)  # the text of a large one takes quadratic time
    return len(repr(ints)) - 2 * len(ints) if ints else 0


def floats_bytes(floats: list[float]) -> int:
    """Return the length of floats as JSON, from the text of their list, where each has two characters more."""
    if not floats:
        return 0
    text = repr(floats)
    return len(text) - 2 * len(floats) + 5 * text.count("inf")  # which json writes as Infinity
