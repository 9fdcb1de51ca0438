"""JSON text of msgpack, in pieces: a value larger than a window is never in memory as a whole.

What fits into a window is decoded by ``msgpack``. Of a larger value only the header is read here, and its content piece
by piece. https://github.com/msgpack/msgpack/blob/master/spec.md has the headers.
"""

from __future__ import annotations

import codecs
import json
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any, Final

import msgpack  # type: ignore[import-untyped]

from agent_otel.measure.breakdown.json_window import WINDOW

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

#: First byte of a value that may be larger than a window -> (kind, bytes of its length).
_HEADERS: Final = {
    **dict.fromkeys(range(128, 144), ("map", 0)),
    **dict.fromkeys(range(144, 160), ("array", 0)),
    **{0xC4 + power: ("binary", 2**power) for power in range(3)},
    **{0xC7 + power: ("extension", 2**power) for power in range(3)},
    **{0xD9 + power: ("text", 2**power) for power in range(3)},
    0xDC: ("array", 2),
    0xDD: ("array", 4),
    0xDE: ("map", 2),
    0xDF: ("map", 4),
}
_SHORT: Final = 0x0F  # the length of a map or an array that has no bytes of its own for it
#: LangGraph's extension types that build an object from (module, name, argument, …).
_CONSTRUCTORS: Final = range(6)
#: Bytes that are no text, as characters that JSON writes as they are: sizes stay, and so do differences.
_PRINTABLE: Final = bytes(range(48, 92)) + bytes(range(93, 127))
_MASK: Final = bytes(_PRINTABLE[byte % len(_PRINTABLE)] for byte in range(256))


class DamagedError(ValueError):
    """The bytes are not msgpack, or end too early."""


def json_text(read: Callable[[int], bytes], window: int = WINDOW) -> Iterator[str]:
    """Yield the first value of what ``read`` returns as JSON text, decoded ``window`` bytes at a time, 33 at least.

    An object of LangGraph is the argument with which LangGraph would build it: the fields of a message, for a message.
    Other binary data is text of the same size.

    Raises:
        DamagedError: the bytes are not msgpack, or end too early.
    """
    return _Reader(read, window).value()


class _Reader:
    """The bytes that are read and not yet decoded, from ``_at`` on."""

    def __init__(self, read: Callable[[int], bytes], window: int) -> None:
        self._read = read
        self._window = window
        self._data = b""
        self._at = 0
        self._before = 0  # bytes in front of the data

    def value(self) -> Iterator[str]:
        """Yield a value."""
        values = self._small(1)
        if values:
            yield _written(values[0])
        else:
            yield from self._large()

    def _large(self) -> Iterator[str]:
        """Yield a value that does not fit into a window, or is damaged."""
        (first,) = self._take(1)
        if first not in _HEADERS:
            raise DamagedError(f"byte {self._position - 1:,} begins no value")
        kind, width = _HEADERS[first]
        length = int.from_bytes(self._take(width), "big") if width else first & _SHORT
        if kind == "array":
            yield from self._array(length)
        elif kind == "map":
            yield from self._map(length)
        elif kind == "text":
            yield from self._text(length)
        elif kind == "extension":
            yield from self._extension(self._take(1)[0], length)
        else:
            yield from self._masked(length)

    def _array(self, left: int) -> Iterator[str]:
        yield "["
        separator = ""
        while left:
            values = self._small(left)
            if values:
                yield separator + _written(values)[1:-1]
            else:
                yield separator
                yield from self._large()
            left -= len(values) or 1
            separator = ", "
        yield "]"

    def _map(self, length: int) -> Iterator[str]:
        left, separator = 2 * length, ""
        yield "{"
        while left:
            values = self._small(left)
            left -= len(values)
            pairs = zip(values[::2], values[1::2], strict=False)
            members = _written(_named(pairs))[1:-1]
            if members:
                yield separator + members
                separator = ", "
            if left % 2:  # a key stands alone: its value is large
                yield f"{separator}{encode_basestring(_name(values[-1]))}: "
            elif left and not values:  # a large key
                key = "".join(self._large())
                yield separator + (key if key.startswith('"') else encode_basestring(key)) + ": "
                left -= 1
            else:
                continue
            yield from self.value()
            left -= 1
            separator = ", "
        yield "}"

    def _text(self, left: int) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        yield '"'
        for piece in self._pieces(left):
            yield encode_basestring(decoder.decode(piece))[1:-1]
        yield decoder.decode(b"", final=True) + '"'

    def _masked(self, left: int) -> Iterator[str]:
        yield '"'
        for piece in self._pieces(left):
            yield _masked(piece)
        yield '"'

    def _extension(self, code: int, length: int) -> Iterator[str]:
        end = self._position + length
        self._fill(1)
        first = self._data[self._at] if self._at < len(self._data) else 0
        kind, width = _HEADERS.get(first, ("", 0))
        if code not in _CONSTRUCTORS or kind != "array":
            yield from self._masked(length)
            return
        self._take(1)
        count = int.from_bytes(self._take(width), "big") if width else first & _SHORT
        for _ in range(min(2, count)):  # module and name
            for _ in self.value():
                pass
        if count > 2:  # noqa: PLR2004 - see _CONSTRUCTORS
            yield from self.value()
        else:
            yield "null"
        for _ in self._pieces(end - self._position):
            pass

    def _small(self, most: int) -> list[Any]:
        """Return the values ahead, ``most`` at most, that are in the window as a whole."""
        self._fill(self._window)
        unpacker = msgpack.Unpacker(max_buffer_size=self._window, **_OPTIONS)
        unpacker.feed(self._data[self._at : self._at + self._window])
        values: list[Any] = []
        end = 0
        try:
            while len(values) < most:
                values.append(unpacker.unpack())
                end = unpacker.tell()
        except (TypeError, ValueError, msgpack.OutOfData):
            pass  # the next value does not fit, has a map as a key, or is damaged
        self._at += end
        return values

    def _pieces(self, left: int) -> Iterator[bytes]:
        while left > 0:
            piece = self._take(min(left, self._window))
            left -= len(piece)
            yield piece

    @property
    def _position(self) -> int:
        return self._before + self._at

    def _take(self, count: int) -> bytes:
        self._fill(count)
        taken = self._data[self._at : self._at + count]
        if len(taken) < count:
            raise DamagedError(f"it ends after {self._position + len(taken):,} bytes")
        self._at += count
        return taken

    def _fill(self, count: int) -> None:
        """Have so many bytes ahead, if there are."""
        if len(self._data) - self._at >= count:
            return
        self._before += self._at
        self._data, self._at = self._data[self._at :], 0
        while len(self._data) < count and (block := self._read(4 * self._window)):
            self._data += block


def _object(code: int, data: bytes) -> Any:
    """Return the argument of a constructor, for an extension that fits into a window."""
    if code in _CONSTRUCTORS:
        inner = msgpack.unpackb(data, **_OPTIONS)
        if isinstance(inner, tuple):
            return inner[2] if len(inner) > 2 else None  # noqa: PLR2004 - see _CONSTRUCTORS
    return _masked(data)


#: Arrays are tuples, so that one may be a key of a map.
_OPTIONS: Final[dict[str, Any]] = {
    "ext_hook": _object,
    "strict_map_key": False,
    "unicode_errors": "replace",
    "use_list": False,
}


def _masked(data: bytes) -> str:
    return data.translate(_MASK).decode("ascii")


def _written(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=_other)
    except TypeError:  # a key that JSON has not
        return json.dumps(_plain(value), ensure_ascii=False, default=_other)


def _other(value: Any) -> str:
    return _masked(value) if isinstance(value, bytes) else str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {_name(key): _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value


def _named(pairs: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
    return {_name(key): value for key, value in pairs}


def _name(key: Any) -> str:
    if isinstance(key, bytes):
        return _masked(key)
    return key if isinstance(key, str) else _written(key)
