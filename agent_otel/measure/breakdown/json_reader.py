"""JSON text of any size, read in pieces: one C call decodes at most 32 KiB.

``json.loads`` of 2 MiB keeps every other thread waiting for 60 ms and takes up to six times the memory of the text.
Here containers longer than a piece are opened one after another, and what is shorter is decoded, handed over and
dropped. Numbers are decoded to the length of their digits, because nothing else is asked of them.

``msgspec.Raw`` would save 500 lines here, with the same results for whole JSON. ``scripts/benchmark json_readers``
compares a prototype on it; here / prototype, on two cores, with 15 ms as the budget of another thread's wait:

| payload | CPU, ms | memory, MB | longest C call, ms | wait of another thread, ms |
| agent state of 2 MiB | 6.3 / 9.2 | 0.3 / 0.2 | 0.1 / 1.0 | 5 / 8 |
| the same, JSON in a string | 27 / 52 | 0.4 / 8.9 | 0.2 / 4.0 | 5 / 9 |
| rows, 20 MB | 479 / 827 | 0.3 / 12.8 | 0.6 / 27 | 14 / 30 |
| cut off, NaN, several texts | as whole ones | | | no result |
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, Protocol

from agent_otel._internal.errors import attempt, ours
from agent_otel.measure.breakdown.json_window import (
    CUT,
    MALFORMED,
    TOO_MUCH,
    StopError,
    Window,
    between,
    decode,
    unescaped,
)
from agent_otel.measure.breakdown.paths import HEAD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from agent_otel.measure.breakdown.json_window import Form

PIECE: Final = 8 * 1024  # characters up to which a container is decoded as a whole
BATCH: Final = 32 * 1024  # characters of small elements that are decoded together
STEPS: Final = 200_000  # values read one by one, at 5 µs each

_FIRST: Final = 512  # characters in which the short members before a long one are looked for
_SMALL: Final = 256
_WIDE: Final = 16  # members after which those of an object are decoded together
_DEPTH: Final = 64
_ENCODED: Final = 2  # levels of JSON in a string of JSON
_NEAR: Final = 4096  # characters in which more than one small element ends
_OFTEN: Final = 2
_FAILURES: Final = 16  # guesses in one container that lead to nothing
_GUESSES: Final = 128  # that may be wrong in one text
_KEYS: Final = 1024

_KEY: Final = re.compile(r'"([^"\\\x00-\x1f]{0,256})"[ \t\n\r]*:[ \t\n\r]*')
_ESCAPED: Final = re.compile(r"[\\\x00-\x1f]")
_NESTED: Final = re.compile(r'\s*"?(?:\{\s*\\*["}]|\[\s*\\*["{\[\]])')
_LONG_STRING: Final = "Unterminated string"
_CLOSER: Final = {"{": "}", "[": "]"}
_MISSING: Final = object()


class Visitor(Protocol):
    """Callbacks for parsed values. A spot and fields are opaque handles that the visitor makes: a place, an object."""

    form: Form
    """The way in which the next values are written."""

    def fields(self, spot: Any) -> Any:
        """Begin a container."""

    def member(self, spot: Any, fields: Any, key: str, beginning: str) -> Any:
        """Return the spot of a member, whose text begins so."""

    def element(self, spot: Any) -> Any:
        """Return the spot of an array's elements."""

    def values(self, spot: Any, values: list[Any]) -> None:
        """Take decoded values, all of one spot."""

    def members(self, spot: Any, fields: Any, members: dict[str, Any]) -> None:
        """Take some decoded members of an object."""

    def text(self, spot: Any, pieces: Iterable[str], written: Callable[[], int]) -> None:
        """Take a string as it is written, in pieces; its bytes in the payload are known after the last one."""

    def after(self, spot: Any, fields: Any, key: str, value: Any, written: int) -> None:
        """End a member; with its value if that was decoded, or its fields, and its bytes in the payload."""

    def close(self, fields: Any) -> None:
        """End an object."""

    def partly(self) -> None:
        """Note that something was not read."""


class _Frame:
    """An open container."""

    __slots__ = (
        *("closer", "count", "failures", "fields", "held", "inner", "key"),
        *("needle", "small", "spot", "start", "together", "values"),
    )

    def __init__(self, closer: str, spot: Any, fields: Any, key: str, start: int) -> None:
        self.closer = closer
        self.spot = spot
        self.inner: Any = None  # the spot of an array's elements
        self.fields = fields
        self.key = key  # under which it stands in the container around it
        self.start = start
        self.count = 0
        self.together = True  # whether it is worth while to decode some members together
        self.small = 0  # how many values in a row were
        self.needle: tuple[str, int] | None = None
        self.failures = 0
        self.values: list[Any] = []
        self.held = 0


class Reader:
    """Reads one text, and JSON in its strings where a runtime encodes twice."""

    def __init__(self, window: Window, visitor: Visitor, encoded: int = _ENCODED, steps: int = STEPS) -> None:
        self._window = window
        self._visitor = visitor
        self._encoded = encoded
        self._frames: list[_Frame] = []
        self._steps = steps
        self._guesses = _GUESSES
        self._usual: dict[tuple[int, str], int] = {}  # bytes of the last long container at a depth and under a key

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
            return stop.reason
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
        elif not (frame.together and self._members(frame)):
            self._member(frame)
            frame.together = frame.small == 0

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

    def _members(self, frame: _Frame) -> bool:
        """Decode the members up to the next long string together, or up to the end if there is none."""
        window, visitor = self._window, self._visitor
        piece = "{" + window.text[window.at : min(window.at + _FIRST, window.end)]
        key = None
        try:
            members, used = decode(piece)
            used -= 1
        except ours(json.JSONDecodeError) as error:
            used = error.pos
            found = self._before(piece[:used]) if error.msg.startswith(_LONG_STRING) else None
            if found is None:
                frame.together = False
                return False
            members, key = found
        except ours(RecursionError):
            return False
        window.at += used - 1
        if members:
            visitor.form = window.form
            visitor.members(frame.spot, frame.fields, members)
        if key is not None:
            self._value(frame, key, visitor.member(frame.spot, frame.fields, key, ""))
        if window.text[window.at] == "}" and window.at < window.end:
            window.at += 1
            self._leave()
        return True

    def _before(self, piece: str) -> tuple[dict[str, Any], str] | None:
        """Decode the beginning of an object up to a value, and return its members and the key of that value."""
        whole = piece + "null}"
        members, used = attempt(decode, whole, default=({}, 0))
        if used < len(whole) or not members:
            return None
        key, value = members.popitem()
        return (members, key) if value is None else None

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
        key, closed = self._window.string()
        while not closed:
            _, closed = self._window.string()
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
        if opener in _CLOSER:
            # The arguments in a list are looked at one by one, because each may be encoded again.
            value = self._container(opener, key) if self._frames or opener == "{" else _MISSING
            if value is _MISSING:
                self._flush(frame)
                self._enter(_Frame(_CLOSER[opener], spot, self._visitor.fields(spot), key, start))
                return
        else:
            value = window.scalar()
        self._take(frame, key, spot, value, start)

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
        """Decode as many of the next small elements as fit, cut where the text looks as between the last two.

        A guess, but a safe one: only a row of whole elements is valid with a bracket before and behind it.
        """
        if frame.needle is None or not self._guesses:
            return False
        window = self._window
        window.reach(BATCH)
        needle, keep = frame.needle
        end = window.text.rfind(needle, window.at, min(window.at + BATCH, window.end))
        if end + keep <= window.at or window.text.count(needle, window.at, window.at + _NEAR) < _OFTEN:
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

    def _enter(self, frame: _Frame) -> None:
        if len(self._frames) >= _DEPTH:
            raise StopError(TOO_MUCH)
        if frame.closer == "]":
            frame.inner = self._visitor.element(frame.spot)
        self._window.at += 1
        self._frames.append(frame)

    def _leave(self) -> None:
        frame = self._frames.pop()
        self._flush(frame)
        if frame.closer == "}":
            self._visitor.close(frame.fields)
        length = self._window.read() - frame.start
        if len(self._usual) < _KEYS:
            self._usual[len(self._frames), frame.key] = length
        around = self._frames[-1] if self._frames else None
        if around is not None:
            around.small = 0
            around.together = True
            if around.closer == "}":
                self._visitor.after(frame.spot, around.fields, frame.key, frame.fields, length)

    def _container(self, opener: str, key: str) -> Any:
        """Decode a container if it is short; where its like was long, no more than a little is risked."""
        window, like = self._window, (len(self._frames), key)
        usual = self._usual.get(like, 0)
        if usual > PIECE and opener == "{":
            return _MISSING  # to be tried again without its long members
        piece = window.text[window.at : window.at + (PIECE if usual <= PIECE else _FIRST)]
        value, used = attempt(decode, piece, default=(_MISSING, 0))
        if value is _MISSING:
            return value
        if usual > PIECE:
            self._usual[like] = usual // 2
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
            self._visitor.text(spot, self._pieces(window.raw), lambda: window.read() - start)
        length = window.read() - start
        frame.small = frame.small + 1 if length < _SMALL else 0
        if frame.closer == "}":
            self._visitor.after(spot, frame.fields, key, None, length)

    def _pieces(self, read: Callable[[], tuple[str, bool]]) -> Iterator[str]:
        closed = False
        while not closed:
            piece, closed = read()
            yield piece

    def _is_argument(self) -> bool:
        """Return True if the current value is the payload, or an element of a list of arguments that is the payload."""
        return not self._frames or (len(self._frames) == 1 and self._frames[0].closer == "]")

    def _nested(self, spot: Any) -> bool:
        """Read a string that looks as if it held JSON, and return whether it did."""
        outer = self._window
        if not _NESTED.match(unescaped(outer.text[outer.at : min(outer.at + HEAD, outer.end)])):
            return False
        chunks = self._pieces(outer.string)
        window = Window(chunks, (outer.quote, *outer.around))
        reader = Reader(window, self._visitor, self._encoded - 1, self._steps)
        if reader.read(spot) is not None:
            self._visitor.partly()
        for _ in chunks:
            pass
        return True
