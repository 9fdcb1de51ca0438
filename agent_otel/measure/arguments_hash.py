"""A short digest of a tool call's arguments: the same for the same arguments, on every machine and Python."""

from __future__ import annotations

import json
from functools import lru_cache
from hashlib import blake2b
from itertools import chain, islice
from json import encoder as json_encoder
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_otel._internal import object_kinds
from agent_otel._internal.errors import attempt, ours
from agent_otel._internal.failures import class_name
from agent_otel._internal.object_kinds import shape_of
from agent_otel.measure.plain_size import values_of
from agent_otel.measure.size import few_bytes, json_size, text_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

NODE_BUDGET: Final = 10_000
"""Values of one call's arguments that are read. The digest covers these values, and only the sizes of the rest."""

PARSED_TEXT: Final = 16 * 1024
"""Longest JSON text of arguments that is parsed, in characters; longer text is hashed as it is."""

MOST_HASHED: Final = 4 * 1024 * 1024
"""Characters and bytes of long values that are hashed, at most 10 ms; beyond them, only ends and lengths are."""

LONG_TEXT: Final = 4096
"""Characters above which a string enters the digest as its length and own digest: 1.5 ns a byte, not 4.3."""

_ENDS: Final = 256  # characters of the ends of a text
_DIGIT_BITS: Final = 4
_DEPTH: Final = 64  # levels; the recursion limits of the Python versions differ
_SIMPLE_NODES: Final = 512  # values of arguments that take the short way
_FEW: Final = 8  # arguments that are looked at without a list of containers
_PLAIN_INT: Final = 10**300  # below, an int is written in decimal digits whatever limit is set
_PIECE: Final = 64 * 1024  # characters encoded at a time
_DIGEST_BYTES: Final = 6
_MAX_KEY: Final = blake2b.MAX_KEY_SIZE

# A value that JSON cannot express is an array that starts with one of these; no tool argument starts with NUL.
_LONG: Final = "\0text"
_INT: Final = "\0int"
_BINARY: Final = "\0bytes"
_SET: Final = "\0set"
_OBJECT: Final = "\0object"
_REST: Final = "\0rest"


class Arguments(NamedTuple):
    """12 hexadecimal digits, and the UTF-8 bytes of the arguments as compact JSON."""

    digest: str
    bytes: int


def arguments(value: Any, key: bytes = b"") -> Arguments:
    """Return digest and size of a call's arguments.

    The digest is a BLAKE2b, keyed with ``key``, over canonical JSON: sorted keys, no spaces, UTF-8. Arguments given
    as the text of a JSON object or array (up to 16 Ki characters) have the digest of the parsed value, and the size of
    the text. Other text is a JSON string. The order of a set does not matter. Objects are hashed by class name and
    fields. ``None`` is ``null``. Beyond 10,000 values or 64 levels only sizes are hashed, and ``bytes`` is then a
    lower bound. Never raises and never runs code of the value.
    """
    try:
        cls = type(value)
        if cls is str:
            return _text_arguments(value, key)
        if (cls is dict or cls is list or cls is tuple) and _is_simple(value):
            data = "".join(_encode(value, 0)).encode("utf-8", "surrogatepass")
            state = _keyed(key).copy()
            state.update(data)
            return Arguments(state.hexdigest(), len(data))
        return Arguments(_hash(_json(_Canonical().plain(value)), key), json_size(value, NODE_BUDGET).bytes)
    except ours(Exception):
        return Arguments(_hash(class_name(type(value)).encode("utf-8", "surrogatepass"), key), 0)


def arguments_bytes(value: Any) -> int:
    """Return the size of a call's arguments as ``arguments`` does, for callers that do not need the digest."""
    try:
        cls = type(value)
        if cls is str:
            return text_bytes(value)
        if cls is dict and (of_few := few_bytes(value)):
            return of_few
        if (cls is dict or cls is list or cls is tuple) and _is_simple(value):
            text = "".join(_encode(value, 0))
            return len(text) if text.isascii() else text_bytes(text)
        return json_size(value, NODE_BUDGET).bytes
    except ours(Exception):
        return 0


def _text_arguments(text: str, key: bytes) -> Arguments:
    parsed = (
        attempt(json.loads, text, default=text)
        if len(text) <= PARSED_TEXT and text[:64].lstrip()[:1] in ("{", "[")
        else text
    )
    if parsed is text or not _is_simple(parsed):
        parsed = _Canonical().plain(parsed)
    return Arguments(_hash(_json(parsed), key), text_bytes(text))


def _compact_encoder() -> Callable[[Any, int], Iterable[str]]:
    """Canonical JSON of plain values, with the C encoder made once: JSONEncoder makes one for every value."""
    python = json.JSONEncoder(ensure_ascii=False, check_circular=False, sort_keys=True, separators=(",", ":"))
    make: Any = getattr(json_encoder, "c_make_encoder", None)
    quote = json_encoder.encode_basestring
    try:
        encode: Callable[[Any, int], Iterable[str]] = make(
            None, python.default, quote, None, ":", ",", True, False, True
        )
        encode({}, 0)
    except ours(TypeError):  # no C encoder, or another signature
        return lambda value, _level: python.encode(value)
    return encode


_encode = _compact_encoder()


def _json(plain: Any) -> bytes:
    return _text(plain).encode("utf-8", "surrogatepass")


def _text(plain: Any) -> str:
    return "".join(_encode(plain, 0))


@lru_cache(maxsize=4)
def _keyed(key: bytes) -> blake2b:
    if len(key) > _MAX_KEY:
        key = blake2b(key).digest()
    return blake2b(digest_size=_DIGEST_BYTES, key=key)


def _hash(data: bytes, key: bytes) -> str:
    state = _keyed(key).copy()
    state.update(data)
    return state.hexdigest()


def _is_simple(root: Any) -> bool:
    """Return True if the value is its own canonical form: plain JSON data, neither large, long nor deep."""
    if type(root) is dict and len(root) <= _FEW:
        for key, value in root.items():  # most calls have a few short texts, which need no list of containers
            if type(key) is not str or type(value) is not str or len(value) > LONG_TEXT or len(key) > LONG_TEXT:
                break
        else:
            return True
    found = values_of([root], _SIMPLE_NODES, _DEPTH)
    if isinstance(found, int) or found.labels:
        return False
    ints = found.ints
    if ints and not -_PLAIN_INT < min(ints) <= max(ints) < _PLAIN_INT:
        return False
    texts = chain(found.texts, *(one for one in found.containers if type(one) is dict))
    return max(map(len, texts), default=0) <= LONG_TEXT


class _Canonical:
    """Makes plain JSON data of any value; one object for one call."""

    def __init__(self, budget: int = NODE_BUDGET) -> None:
        self.left = budget
        self.openable = 4 * budget  # elements of all opened containers: a chain of wide ones adds up
        self.hashed = MOST_HASHED
        self.long: dict[int, list[Any]] = {}  # by id: one long string may occur 10,000 times

    def plain(self, value: Any, depth: int = 0) -> Any:
        """Return plain JSON data that depends on the value alone; the same data if it is plain already."""
        self.left -= 1
        cls = type(value)
        if value is None or cls is bool or cls is float:
            return value
        if cls is str:
            return value if len(value) <= LONG_TEXT and self.takes(len(value)) else self.long_text(value)
        if cls is int:
            return _int(value) if self.takes(value.bit_length() // _DIGIT_BITS) else [_INT, value.bit_length()]
        shape = shape_of(cls)
        if depth >= _DEPTH or self.left < 0 or self.openable < 0:
            return [_REST, shape.kind]
        return getattr(self, shape.kind)(shape, value, depth + 1)  # the methods below have the names of the kinds

    def long_text(self, text: str) -> list[Any]:
        """Return the length and a digest of a long string."""
        known = self.long.get(id(text))
        if known is None:
            known = self.long[id(text)] = _digest_of_text(text, None if self.takes(len(text)) else _ENDS)
        return known

    def takes(self, count: int) -> bool:
        """Return whether ``count`` more characters or bytes are hashed; beyond the limit, only a part of a value is."""
        self.hashed -= count
        return self.hashed >= 0

    def text(self, _shape: object_kinds.Shape, value: str, depth: int) -> Any:
        return self.plain(str.__getitem__(value, slice(None)), depth)

    def value(self, shape: object_kinds.Shape, value: Any, depth: int) -> Any:
        return self.plain(shape.read(value), depth)

    number = label = value

    def array(self, shape: object_kinds.Shape, value: Any, depth: int) -> list[Any]:
        count = shape.length(value)
        items = object_kinds.elements(shape, value, self.left)
        self.openable -= len(items)
        found = [self.plain(item, depth) for item in items]
        return found if len(found) == count else [*found, [_REST, shape.kind, count]]

    def set(self, shape: object_kinds.Shape, value: Any, depth: int) -> list[Any]:
        """Give each element a separate budget, because their order differs in every process."""
        count = shape.length(value)
        if count > self.left:
            return [_REST, shape.kind, count]
        texts = []
        for item in object_kinds.elements(shape, value, count):
            one = _Canonical(self.left // count)
            texts.append(_text(one.plain(item, depth)))
        self.left -= count
        self.openable -= count
        return [_SET, sorted(texts)]

    def mapping(self, shape: object_kinds.Shape, value: dict[Any, Any], depth: int) -> Any:
        """Read the keys in sorted order, so that the budget always ends at the same key."""
        count = dict.__len__(value)
        if count > self.left:
            return [_REST, shape.kind, count]
        self.openable -= count
        items = list(dict.items(value))
        # A str before another key that reads the same (1 and "1").
        order = sorted((self.name(key), type(key) is not str, index) for index, (key, _) in enumerate(items))
        found: dict[str, Any] = {}
        for name, _, index in order:
            unique = name
            while unique in found:
                unique += "\0"
            found[unique] = self.plain(items[index][1], depth)
        return found

    def name(self, key: Any) -> str:
        """Return a key as text, as json writes it if it can."""
        if type(key) is str and len(key) <= LONG_TEXT:
            return key
        plain = self.plain(key, _DEPTH - 8)  # tuples and the like are flat: eight levels distinguish them
        return plain if type(plain) is str else _text(plain)

    def record(self, shape: object_kinds.Shape, value: Any, depth: int) -> Any:
        """Read only declared fields, so that a validated model has the digest of the JSON it was made from."""
        fields = self.mapping(shape, shape.read(value), depth)
        return fields if shape.declared else [_OBJECT, _name(value), fields]

    def binary(self, shape: object_kinds.Shape, value: Any, _depth: int) -> list[Any]:
        state = blake2b(digest_size=16)
        for piece in islice(shape.read(value), None if self.takes(shape.length(value)) else 1):
            state.update(piece)
        return [_BINARY, shape.length(value), state.hexdigest()]

    def opaque(self, _shape: object_kinds.Shape, value: Any, _depth: int) -> list[Any]:
        return [_OBJECT, _name(value)]


def _int(value: int) -> Any:
    if -_PLAIN_INT < value < _PLAIN_INT:
        return value
    digits = hex(value)
    return [_INT, digits if len(digits) <= LONG_TEXT else _digest_of_text(digits)]


def _digest_of_text(text: str, hashed: int | None = None) -> list[Any]:
    """Return the length of a long text, and a digest of the text or of ``hashed`` characters at each end."""
    state = blake2b(digest_size=16)
    read = text if hashed is None else text[:hashed] + text[-hashed:]
    for start in range(0, len(read), _PIECE):
        state.update(read[start : start + _PIECE].encode("utf-8", "surrogatepass"))
    return [_LONG, len(text), state.hexdigest()]


def _name(value: Any) -> str:
    """Name of the class, without the module, as an exact str."""
    return str.__getitem__(class_name(type(value)), slice(None))
