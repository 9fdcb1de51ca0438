"""Serialisation of a whole result, to measure it for a ceiling and to store it."""

from __future__ import annotations

import json
from collections import deque
from enum import Enum
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_otel._internal.errors import ours
from agent_otel.measure.object_kinds import shape_of
from agent_otel.measure.size import block_text, text_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

TEXT = "text/plain; charset=utf-8"
JSON = "application/json"
BINARY = "application/octet-stream"

#: Members of a container that one call of the JSON encoder encodes; it blocks other threads.
_BATCH: Final = 256
#: Levels of small containers whose members are encoded one at a time.
_LEVELS: Final = 3


class Raw(NamedTuple):
    """A result as bytes. ``text`` is its text for a model; None for binary data."""

    data: bytes
    content_type: str
    text: str | None

    @property
    def content(self) -> str | bytes:
        """The text, or the bytes of binary data."""
        return self.data if self.text is None else self.text

    def with_text(self, text: str) -> Raw:
        """Return another text of the same content type."""
        return Raw(text.encode("utf-8", "surrogatepass"), self.content_type, text)


class Content:
    """A result to store; the worker thread serialises it.

    ``least_bytes`` is its size, or a lower bound.
    """

    __slots__ = ("least_bytes", "value")

    def __init__(self, value: object, least_bytes: int) -> None:
        self.value = value
        self.least_bytes = least_bytes

    def raw(self) -> Raw:
        """Return the whole result; raises the errors of `raw_of`."""
        return raw_of(self.value)

    def beginning(self, limit_bytes: int) -> str | None:
        """Return a beginning of the text longer than ``limit_bytes`` characters, or the whole; None for binary data."""
        if isinstance(self.value, bytes | bytearray | memoryview):
            return None
        texts, length = [], 0
        try:
            for text in _lazily(self.value):
                texts.append(text[: limit_bytes + 1])
                length += len(text)
                if length > limit_bytes:
                    break
        except ours(TypeError, ValueError, RecursionError):  # the pieces so far are the beginning
            pass
        return "".join(texts)


def raw_of(value: object) -> Raw:
    """Return the bytes of a result: a text's own, the joined text of text blocks, else compact JSON.

    Unlike measuring, a remedy may run the code of a value's own classes where JSON needs it; raises the errors of that
    code. A value without JSON, because of its keys or because it contains itself, is stored as its ``str``.
    """
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return Raw(bytes(value), BINARY, None)
    texts = _block_texts(value)
    if texts is not None:
        return _text("".join(texts))
    try:
        text = "".join(_pieces(value, _LEVELS))
    except ours(RecursionError):
        text = "".join(_nested(value))
    except ours(TypeError, ValueError):
        return _text(str(value))
    return Raw(text.encode("utf-8", "surrogatepass"), JSON, text)


def size_up_to(value: object, limit_bytes: int) -> int | None:
    """Return the size of a result's text in UTF-8 bytes; None above ``limit_bytes``, where reading stops."""
    if isinstance(value, bytes | bytearray | memoryview):
        size = memoryview(value).nbytes
        return size if size <= limit_bytes else None
    texts = [value] if isinstance(value, str) else _block_texts(value)
    try:
        return _sum_up_to(_pieces(value, _LEVELS) if texts is None else texts, limit_bytes)
    except ours(RecursionError):
        return _sum_up_to(_nested(value), limit_bytes)
    except ours(TypeError, ValueError):
        return _sum_up_to((str(value),), limit_bytes)


def _sum_up_to(texts: Iterable[str], limit_bytes: int) -> int | None:
    total = 0
    for text in texts:
        total += text_bytes(text)
        if total > limit_bytes:
            return None
    return total


def _lazily(value: object) -> Iterator[str]:
    """Yield the text of `raw_of` in pieces, so that a reader of the beginning does not pay for the rest."""
    if isinstance(value, str):
        return iter((value,))
    texts = _block_texts(value)
    return _ENCODER.iterencode(value) if texts is None else iter(texts)


def _block_texts(value: object) -> list[str] | None:
    """Return the texts of a list of text blocks, None for anything else."""
    if not isinstance(value, list) or not value or all(isinstance(block, str) for block in value):
        return None
    texts: list[str] = []
    for block in value:
        text = block if isinstance(block, str) else block_text(block)
        if text is None:
            return None
        texts.append(text)
    return texts


def _text(text: str) -> Raw:
    return Raw(text.encode("utf-8", "surrogatepass"), TEXT, text)


def _pieces(value: object, levels: int) -> Iterator[str]:
    """Yield compact JSON in pieces: the encoder blocks other threads, so that each call of it has to be short."""
    if not levels or type(value) not in (dict, list, tuple) or not value:
        yield _ENCODER.encode(value)
        return
    members: Any = value
    is_object, separator = type(value) is dict, ""
    yield "{" if is_object else "["
    if len(members) > _BATCH:
        rest = iter(members.items() if is_object else members)
        while batch := list(islice(rest, _BATCH)):
            yield separator + _ENCODER.encode(dict(batch) if is_object else batch)[1:-1]
            separator = ","
    elif is_object:
        for key, member in members.items():
            yield separator + _key(key)
            yield from _pieces(member, levels - 1)
            separator = ","
    else:
        for member in members:
            yield separator
            yield from _pieces(member, levels - 1)
            separator = ","
    yield "}" if is_object else "]"


def _nested(root: object) -> Iterator[str]:
    """Yield compact JSON of a value nested too deeply for the encoder; ValueError when it contains itself."""
    opened: set[int] = set()
    pending: list[tuple[str, Any]] = [("", root)]
    while pending:
        before, value = pending.pop()
        yield before
        if type(value) is _Closed:
            opened.discard(value.id)
            continue
        if not isinstance(value, dict | list | tuple):
            yield _ENCODER.encode(value)
            continue
        if id(value) in opened:
            raise ValueError("a value holds itself")
        opened.add(id(value))
        is_object = isinstance(value, dict)
        yield "{" if is_object else "["
        pending.append(("}" if is_object else "]", _Closed(id(value))))
        if isinstance(value, dict):
            members = [(_key(key), member) for key, member in value.items()]
        else:
            members = [("", member) for member in value]
        for number in range(len(members) - 1, -1, -1):
            name, member = members[number]
            pending.append(("," + name if number else name, member))


class _Closed(NamedTuple):
    """The end of a container with this id."""

    id: int


def _key(key: object) -> str:
    """Return an object's key in JSON, with the colon."""
    return _ENCODER.encode({key: 0})[1:-2]


def _plain(value: Any) -> Any:
    """Return the JSON form of an object: its fields, its items, the value of an enum, else its text."""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    if isinstance(value, set | frozenset | tuple | deque):
        return list(value)
    if isinstance(value, Enum):
        return value.value
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json")
    shape = shape_of(type(value))
    # A dataclass or a class of attrs may have slots only; other classes with slots, such as paths, have a text.
    fields = shape.read(value) if shape.declared else getattr(value, "__dict__", None)
    return dict(fields) if fields else str(value)


_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_plain)
