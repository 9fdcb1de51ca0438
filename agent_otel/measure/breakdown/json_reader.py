"""JSON text of any size, read in pieces: one C call decodes at most 32 KiB.

``json.loads`` of 2 MiB keeps every other thread waiting for 60 ms and takes up to six times the memory of the text.
Here containers longer than a piece are opened one after another, and what is shorter is decoded, handed over and
dropped. Numbers are decoded to the length of their digits, because nothing else is asked of them.

``msgspec.Raw`` would save 500 lines here, with the same results for whole JSON. It takes up to twice the time, and one
of its C calls 27 ms (``scripts/benchmark json_readers``): the budget of another thread's wait is 15 ms.
"""

from __future__ import annotations

import codecs
import json
import re
from dataclasses import dataclass, field
from json import decoder as json_decoder
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_otel._internal.errors import attempt, ours
from agent_otel._internal.lazy import pattern
from agent_otel.measure.breakdown.paths import HEAD
from agent_otel.measure.size import text_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    Quote = Callable[[str], str]


# A window on JSON text: the part that is read at a time, and how its parts are written in the whole payload.

CUT: Final = "cut"  # the text ends before its last value does
MALFORMED: Final = "malformed"
TOO_MUCH: Final = "too much"  # too deep, or too many values that had to be read one by one

WINDOW: Final = 32 * 1024  # bytes or characters decoded at a time

_LONGEST_ESCAPES: Final = 12  # a surrogate pair
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

    def texts(self, texts: Collection[str]) -> int:
        """Bytes in the payload of so many strings; together, because a call for each costs more than the work."""
        return self.written(self.quote("".join(texts))) + (len(texts) - 1) * (2 << len(self.around))


PLAIN: Final = Form(encode_basestring)


class StopError(Exception):
    """The text cannot be read any further, for the reason in its argument."""


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

    _carried = ""
    _counted = _read = at = end = 0
    text = '"'
    ended = False
    cut = False  # whether the text ended within a string

    def __init__(self, chunks: Iterator[str], around: tuple[Quote, ...] = ()) -> None:
        self._chunks = chunks
        self.around = around
        self.form = Form(_quote_ascii, around)
        """The way to write strings here: characters beyond ASCII count as escaped until an unescaped one is read."""

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
        """Decode a number or a constant; of a longer number than the window the rest is malformed."""
        self.reach(WINDOW)
        match = _SCALAR.match(self.text, self.at)
        text = match.group() if match else ""
        value, used = attempt(decode, text, default=(None, -1))
        if used != len(text):
            is_begun = _DIGITS.fullmatch(text) or any(constant.startswith(text) for constant in _CONSTANTS)
            raise StopError(CUT if is_begun and self.at + len(text) == self.end else MALFORMED)
        self.at += used
        return value

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


PIECE: Final = 8 * 1024  # characters up to which a container is decoded as a whole
BATCH: Final = 32 * 1024  # characters of small elements that are decoded together
STEPS: Final = 200_000  # values read one by one, at 5 µs each

_FIRST: Final = 512  # characters that are decoded of a container if the last one like it was long
_SMALL: Final = 256
_WIDE: Final = 16  # members after which those of an object are decoded together
_DEPTH: Final = 64
_ENCODED: Final = 2  # levels of JSON in a string of JSON
_FAILURES: Final = 16  # guesses in one container that lead to nothing
_GUESSES: Final = 128  # that may be wrong in one text
_KEYS: Final = 1024

_KEY: Final = re.compile(r'"([^"\\\x00-\x1f]{0,256})"[ \t\n\r]*:[ \t\n\r]*')
_ESCAPED: Final = re.compile(r"[\\\x00-\x1f]")
_NESTED: Final = re.compile(r'\s*"?(?:\{\s*\\*["}]|\[\s*\\*["{\[\]])')
_CLOSER: Final = {"{": "}", "[": "]"}
_MISSING: Final = object()


@dataclass
class _Frame:
    """An open container."""

    closer: str
    spot: Any
    fields: Any
    key: str  # under which it stands in the container around it
    start: int
    inner: Any = None  # the spot of an array's elements
    count: int = 0
    small: int = 0  # how many values in a row were
    needle: tuple[str, int] | None = None
    failures: int = 0
    values: list[Any] = field(default_factory=list)
    held: int = 0


def _until_closed(read: Callable[[], tuple[str, bool]]) -> Iterator[str]:
    closed = False
    while not closed:
        piece, closed = read()
        yield piece


class Reader:
    """Reads one text, and JSON in its strings where a runtime encodes twice.

    The visitor is a `Tally`. It makes the spots and the fields: handles of a place and of an object.
    """

    def __init__(self, window: Window, visitor: Any, encoded: int = _ENCODED, steps: int = STEPS) -> None:
        self._window = window
        self._visitor = visitor
        self._encoded = encoded
        self._frames: list[_Frame] = []
        self._steps = steps
        self._guesses = _GUESSES
        self._long: set[tuple[int, str]] = set()  # depths and keys of containers that were long the last time

    def read(self, spot: Any) -> str | None:
        """Read value after value, and return why that ended before the text did."""
        try:
            while self._window.peek():
                self._window.reach(PIECE)
                self._count()
                self._value(_Frame("", spot, None, "", 0), "", spot)
                while self._frames:
                    self._step(self._frames[-1])
        except StopError as stop:
            while self._frames:
                self._leave()
            return str(stop)
        return CUT if self._window.cut else None

    def _step(self, frame: _Frame) -> None:
        """Read what comes next in a container, or its end."""
        window = self._window
        window.reach(PIECE)
        before, text = window.at, window.text
        found = window.peek()
        if found == frame.closer:
            window.at += 1
            self._leave()
            return
        if not found:
            raise StopError(CUT)
        if frame.count:
            self._expect(found, ",")
            if frame.small > 1 and window.text is text:
                frame.needle = between(text, before, window.at)
        self._count()
        frame.count += 1
        if frame.small > (_WIDE if frame.closer == "}" else 1) and frame.failures < _FAILURES and self._batch(frame):
            return
        if frame.closer == "]":
            self._value(frame, "", frame.inner)
        else:
            self._member(frame)

    def _count(self) -> None:
        self._steps -= 1
        if self._steps < 0:
            raise StopError(TOO_MUCH)

    def _expect(self, found: str, wanted: str) -> None:
        """Go over this character to the next one."""
        if found != wanted:
            raise StopError(MALFORMED if found else CUT)
        self._window.at += 1
        if not self._window.peek():
            raise StopError(CUT)

    def _member(self, frame: _Frame) -> None:
        window = self._window
        match = _KEY.match(window.text, window.at)
        if match is not None and match.end() < window.end:
            key = match.group(1)
            window.at = match.end()
        else:
            key = self._long_key()
        window.reach(PIECE)
        beginning = window.text[window.at : window.at + HEAD]
        self._value(frame, key, self._visitor.member(frame.spot, frame.fields, key, beginning))

    def _long_key(self) -> str:
        if self._window.peek() != '"':
            raise StopError(MALFORMED)
        self._window.at += 1
        pieces = _until_closed(self._window.string)
        key = next(pieces)
        for _ in pieces:
            pass
        self._expect(self._window.peek(), ":")
        return key

    def _value(self, frame: _Frame, key: str, spot: Any) -> None:
        """Read one value at its first character: decode it, or open it, or take it in pieces if it is a text."""
        window = self._window
        start = window.read()
        opener = window.text[window.at]
        if opener == '"':
            self._text(frame, key, spot, start)
            return
        # The arguments in a list are looked at one by one, because each may be encoded again.
        is_whole = self._frames or opener == "{"
        value = window.scalar() if opener not in _CLOSER else self._container(key) if is_whole else _MISSING
        if value is not _MISSING:
            self._take(frame, key, spot, value, start)
            return
        self._flush(frame)
        if len(self._frames) >= _DEPTH:
            raise StopError(TOO_MUCH)
        inner = _Frame(_CLOSER[opener], spot, self._visitor.fields(spot), key, start)
        if inner.closer == "]":
            inner.inner = self._visitor.element(spot)
        window.at += 1
        self._frames.append(inner)

    def _take(self, frame: _Frame, key: str, spot: Any, value: Any, start: int) -> None:
        """Hand over a decoded value, of an array together with its neighbours."""
        length = self._window.read() - start
        frame.small = frame.small + 1 if length < _SMALL else 0
        if frame.closer == "]":
            frame.values.append(value)
            frame.held += length
            if frame.held > BATCH // 2:
                self._flush(frame)
            return
        self._visitor.form = self._window.form
        self._visitor.values(spot, [value])
        if frame.closer:
            self._visitor.after(spot, frame.fields, key, value, length)

    def _flush(self, frame: _Frame) -> None:
        if frame.values:
            self._visitor.form = self._window.form
            self._visitor.values(frame.inner, frame.values)
            frame.values, frame.held = [], 0

    def _batch(self, frame: _Frame) -> bool:
        """Decode the next small elements up to a guessed end: only a row of whole ones is valid within brackets."""
        if frame.needle is None or not self._guesses:
            return False
        window = self._window
        window.reach(BATCH)
        needle, keep = frame.needle
        end = window.text.rfind(needle, window.at, min(window.at + BATCH, window.end))
        if end + keep <= window.at:
            frame.failures += 1
            return False
        opener = "{" if frame.closer == "}" else "["
        row = f"{opener}{window.text[window.at : end + keep]}{frame.closer}"
        try:
            values, used = decode(row)
        except ours(ValueError, RecursionError):
            frame.failures += 4
            self._guesses -= 1
            return False
        if self._is_argument() and any(type(value) is str and _NESTED.match(value) for value in values):
            frame.failures = _FAILURES
            return False
        window.at += used - 2  # less than the row, where the container ended within it
        self._flush(frame)
        self._visitor.form = window.form
        if frame.closer == "}":
            self._visitor.members(frame.spot, frame.fields, values)
        else:
            self._visitor.values(frame.inner, values)
        return True

    def _leave(self) -> None:
        frame = self._frames.pop()
        self._flush(frame)
        if frame.closer == "}":
            self._visitor.close(frame.fields)
        length = self._window.read() - frame.start
        like = len(self._frames), frame.key
        if length <= PIECE:
            self._long.discard(like)
        elif len(self._long) < _KEYS:
            self._long.add(like)
        around = self._frames[-1] if self._frames else None
        if around is not None:
            around.small = 0
            if around.closer == "}":
                self._visitor.after(frame.spot, around.fields, frame.key, frame.fields, length)

    def _container(self, key: str) -> Any:
        """Decode a container if it is short. Where the last one like it was long, risk no more than a little."""
        window, like = self._window, (len(self._frames), key)
        is_long = like in self._long
        piece = window.text[window.at : window.at + (_FIRST if is_long else PIECE)]
        if _CLOSER[piece[0]] not in piece:
            return _MISSING  # an exception costs more
        value, used = attempt(decode, piece, default=(_MISSING, 0))
        if is_long and used:
            self._long.discard(like)
        window.at += used
        return value

    def _text(self, frame: _Frame, key: str, spot: Any, start: int) -> None:
        window = self._window
        window.at += 1
        end = window.text.find('"', window.at, min(window.at + _SMALL, window.end))
        if end >= 0 and not _ESCAPED.search(text := window.text[window.at : end]):
            window.at = end + 1
            self._take(frame, key, spot, text, start)
            return
        self._flush(frame)
        if not (self._encoded and self._is_argument() and self._nested(spot)):
            self._visitor.text(spot, _until_closed(window.raw), lambda: window.read() - start)
        length = window.read() - start
        frame.small = frame.small + 1 if length < _SMALL else 0
        if frame.closer == "}":
            self._visitor.after(spot, frame.fields, key, None, length)

    def _is_argument(self) -> bool:
        """Return True if the current value is the payload, or an element of a list of arguments that is the payload."""
        return not self._frames or (len(self._frames) == 1 and self._frames[0].closer == "]")

    def _nested(self, spot: Any) -> bool:
        """Read a string that looks as if it held JSON, and return whether it did."""
        outer = self._window
        if not _NESTED.match(unescaped(outer.text[outer.at : min(outer.at + HEAD, outer.end)])):
            return False
        chunks = _until_closed(outer.string)
        window = Window(chunks, (outer.quote, *outer.around))
        reader = Reader(window, self._visitor, self._encoded - 1, self._steps)
        if reader.read(spot) is not None:
            self._visitor.partly()
        for _ in chunks:
            pass
        return True
