"""A window on JSON text: what is read of it at a time, and how its parts are written in the whole payload."""

from __future__ import annotations

import codecs
import json
from json import decoder as json_decoder
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_otel._internal.errors import attempt, ours
from agent_otel._internal.lazy import pattern
from agent_otel.measure.size import text_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Quote = Callable[[str], str]

CUT: Final = "cut"  # the text ends before its last value does
MALFORMED: Final = "malformed"
TOO_MUCH: Final = "too much"  # too deep, or too many values that had to be read one by one

WINDOW: Final = 32 * 1024  # bytes or characters decoded at a time

_LONGEST_ESCAPES: Final = 12  # a surrogate pair
_PLAIN_NUMBER: Final = 64
_SCALAR: Final = pattern(r"[-+.0-9A-Za-z]*")
_DIGITS: Final = pattern(r"[0-9.eE+-]*")
_CONSTANTS: Final = ("true", "false", "null", "NaN", "Infinity", "-Infinity")
_LONGEST_KEY: Final = 256
_TRIES: Final = 8  # quotes looked at one by one, before a string is scanned
_BACKSLASHES: Final = 64  # looked at before a quote
_BLANK: Final = pattern(r"[ \t\n\r]*")
_HIGH_SURROGATE: Final = pattern(r"\\u[dD][89abAB][0-9a-fA-F]{2}")

decode = json.JSONDecoder(parse_int=len, parse_float=len, parse_constant=len).raw_decode
"""Decode one value at the beginning of a text, numbers to the length of their digits; also return where it ends."""

_scan_string: Callable[[str, int, bool], tuple[str, int]] = vars(json_decoder)["scanstring"]


class Form(NamedTuple):
    """The functions that write a text in a payload: its own, and those that quote it again as JSON within a string."""

    quote: Quote
    around: tuple[Quote, ...] = ()

    def written(self, raw: str) -> int:
        """Bytes in the payload of what stands so at this level."""
        for quote in self.around:
            raw = quote(raw)[1:-1]
        return text_bytes(raw)

    def texts(self, texts: Iterable[str]) -> int:
        """Bytes in the payload of so many strings; together, because a call for each costs more than the work."""
        joined = list(texts)
        return self.written(self.quote("".join(joined))) + (len(joined) - 1) * (2 << len(self.around))


PLAIN: Final = Form(encode_basestring)


class StopError(Exception):
    """The text cannot be read any further."""

    def __init__(self, reason: str) -> None:
        self.reason = reason


def chunks_of(data: bytes | bytearray | memoryview | str) -> Iterator[str]:
    """Give a payload as text, 32 KiB at a time, without what is not UTF-8."""
    if isinstance(data, str):
        for start in range(0, len(data), WINDOW):
            yield str.__getitem__(data, slice(start, start + WINDOW))
        return
    decoder = codecs.getincrementaldecoder("utf-8-sig")("ignore")
    for start in range(0, len(data), WINDOW):
        yield decoder.decode(bytes(data[start : start + WINDOW]), start + WINDOW >= len(data))


class Window:
    """The part of a text that is being read, and how many bytes of the payload lie before it.

    There is always a quote behind its ``end``, so that the scanner of strings, which returns nothing of a string that
    does not end, can be let loose on any part of one.
    """

    __slots__ = ("_carried", "_chunks", "_counted", "_read", "around", "at", "cut", "end", "ended", "form", "text")

    def __init__(self, chunks: Iterator[str], around: tuple[Quote, ...] = ()) -> None:
        self._chunks = chunks
        self._carried = ""
        self._counted = 0
        self._read = 0
        self.around = around
        self.form = Form(_quote_ascii, around)
        """The way to write strings here: characters beyond ASCII count as escaped until an unescaped one is read."""
        self.text = '"'
        self.at = 0
        self.end = 0
        self.ended = False
        self.cut = False  # whether the text ended within a string

    def quote(self, text: str) -> str:
        """Write a string as those around it are written, as far as that is known by now."""
        return self.form.quote(text)

    def reach(self, characters: int) -> None:
        """Have so many characters ahead, if there are."""
        while self.end - self.at < characters and not self.ended:
            self._more()

    def _more(self) -> None:
        chunk = next(self._chunks, None)
        if chunk is None:
            self.ended = True
            chunk = ""
        self.read()
        if not chunk.isascii():
            self.form = Form(encode_basestring, self.around)
        chunk = self._carried + chunk
        whole = len(chunk) if self.ended else _between_escapes(chunk)
        self._carried = chunk[whole:]
        self.text = "".join((self.text[self.at : self.end], chunk[:whole], '"'))
        self.end = len(self.text) - 1
        self.at = self._counted = 0

    def read(self) -> int:
        """Return how many bytes of the payload have been read."""
        if not self.around and self.text.isascii():
            self._read += self.at - self._counted
        elif self.at > self._counted:
            self._read += Form(encode_basestring, self.around).written(self.text[self._counted : self.at])
        self._counted = self.at
        return self._read

    def peek(self) -> str:
        """Skip blanks and return the next character; empty at the end."""
        while True:
            blank = _BLANK.match(self.text, self.at)
            self.at = blank.end() if blank else self.at
            if self.at < self.end:
                return self.text[self.at]
            if self.ended:
                return ""
            self._more()

    def scalar(self) -> Any:
        """Decode a number or a constant; a number may be longer than any window."""
        text, start, length, beginning, digits = self.text, self.at, 0, "", True
        while True:
            match = _SCALAR.match(self.text, self.at)
            part = match.group() if match else ""
            length += len(part)
            beginning = (beginning + part)[:_PLAIN_NUMBER]
            digits = digits and _DIGITS.fullmatch(part) is not None
            self.at += len(part)
            if self.at < self.end or self.ended:
                break
            self.reach(1)
        if length > _PLAIN_NUMBER and digits:
            return length
        value, used = attempt(decode, beginning, default=(None, -1))
        if used == length:
            return value
        cut = self.at == self.end and (digits or any(constant.startswith(beginning) for constant in _CONSTANTS))
        if self.text is text:
            self.at = start
        raise StopError(CUT if cut else MALFORMED)

    def raw(self) -> tuple[str, bool]:
        """Read on in a string as it is written, as far as the window reaches, and return whether it ended.

        Looking for its quote costs next to nothing if there are few others in it.
        """
        text, start = self.text, self.at
        end = self._quote()
        if end is None:
            end = self._scan()[1] - 1
        self.at = min(end + 1, self.end)
        return text[start:end], end < self.end or self._end()

    def _quote(self) -> int | None:
        """Find the quote at the end of a string or of the window, or None if that takes too long."""
        after = self.at
        for _ in range(_TRIES):
            end = self.text.find('"', after)
            before = self.text[max(self.at, end - _BACKSLASHES) : end]
            backslashes = len(before) - len(before.rstrip("\\"))
            if end == self.end or (backslashes % 2 == 0 and backslashes < _BACKSLASHES):
                return end
            if backslashes == _BACKSLASHES:
                return None
            after = end + 1
        return None

    def string(self) -> tuple[str, bool]:
        """Read on in a string as far as the window reaches, and return whether it ended."""
        piece, at = self._scan()
        self.at = min(at, self.end)
        return piece, at <= self.end or self._end()

    def _scan(self) -> tuple[str, int]:
        try:
            return _scan_string(self.text, self.at, False)
        except ours(ValueError):
            raise StopError(CUT if self.ended else MALFORMED) from None

    def _end(self) -> bool:
        """Go on behind the window, and return whether there is nothing more."""
        self.reach(1)
        self.cut = self.at == self.end
        return self.cut


def _quote_ascii(text: str) -> str:
    """Escape what is beyond ASCII, but not DEL, because only some serialisers do so."""
    return encode_basestring(text) if text.isascii() else encode_basestring_ascii(text)


def _between_escapes(text: str) -> int:
    """Where to cut a text so that it is not within an escape, if it is a part of a string."""
    at = text.rfind("\\", max(0, len(text) - _LONGEST_ESCAPES))
    if not _begins_escape(text, at):
        return len(text)
    pair = at - _LONGEST_ESCAPES // 2
    return pair if pair >= 0 and _HIGH_SURROGATE.match(text, pair) and _begins_escape(text, pair) else at


def _begins_escape(text: str, at: int) -> bool:
    """Return True if the backslash at this place is not itself escaped."""
    before = text[: at + 1]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1


def unescaped(raw: str, *, is_whole: bool = False) -> str:
    """Return the beginning of a string that is given as it is written; all of it if no escape is cut (``is_whole``)."""
    try:
        return _scan_string((raw if is_whole else raw[: _between_escapes(raw)]) + '"', 0, False)[0]
    except ours(ValueError):
        return raw


def between(text: str, before: int, at: int) -> tuple[str, int]:
    """Return the text between two elements, with the end of the first and the beginning of the second.

    Also return how much of it belongs to the first of them. Rows of one kind begin with the same key, which objects
    within them seldom do.
    """
    end = text[before - 1] if before and text[before - 1] in '}]"' else ""
    beginning = text[at] if text[at] in '{["' else ""
    if beginning == "{":
        beginning = text[at : text.find(":", at, at + _LONGEST_KEY) + 1] or beginning
    return f"{end}{text[before:at]}{beginning}", len(end)
