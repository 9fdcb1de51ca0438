"""A short digest of a tool call's arguments: the same for the same arguments, on every machine and Python."""

from __future__ import annotations

import json
from functools import lru_cache
from hashlib import blake2b
from itertools import chain, repeat
from json import encoder as json_encoder
from operator import is_
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_otel._internal.errors import attempt, ours
from agent_otel._internal.failures import class_name
from agent_otel.measure.json_pieces import pieces
from agent_otel.measure.plain_size import values_of
from agent_otel.measure.size import Size, json_size, text_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

NODE_BUDGET: Final = 10_000
"""Values of one call's arguments that are measured."""

PARSED_TEXT: Final = 16 * 1024
"""Longest JSON text of arguments that is parsed, in characters; longer text is hashed as it is."""

_STEPS: Final = 20_000  # of the walk over arguments that are not plain: 5 MB of texts, and at most 50 ms
_LEVELS: Final = 64
_SIMPLE_NODES: Final = 512  # values of arguments that take the short way
_SIMPLE_CHARACTERS: Final = 1024 * 1024
_FEW: Final = 8  # arguments that are looked at without a list of containers
_PLAIN_INT: Final = 10**300  # below, an int is written in decimal digits whatever limit is set
_DIGEST_BYTES: Final = 6
_MAX_KEY: Final = blake2b.MAX_KEY_SIZE


class Arguments(NamedTuple):
    """12 hexadecimal digits, and the UTF-8 bytes of the arguments as compact JSON."""

    digest: str
    bytes: int


def arguments(value: Any, key: bytes = b"") -> Arguments:
    """Return digest and size of a call's arguments.

    The digest is a BLAKE2b, keyed with ``key``, over canonical JSON: sorted keys, no spaces, UTF-8. Arguments given
    as the text of a JSON object or array (up to 16 Ki characters) have the digest of the parsed value, and the size of
    the text. Other text is a JSON string. The order of a set does not matter. Of an object the fields count, and the
    name of its class where it has none. Of very large arguments only the beginning and the size are hashed, and
    ``bytes`` is a lower bound. Never raises and never runs code of the value.
    """
    try:
        cls = type(value)
        if cls is str:
            return _text_arguments(value, key)
        if (cls is dict or cls is list or cls is tuple) and _is_simple(value):
            data = _json(value)
            return Arguments(_hash(data, key), len(data))
        return Arguments(_hash(_canonical(value, found := json_size(value, NODE_BUDGET)), key), found.bytes)
    except ours(Exception):
        return Arguments(_hash(class_name(type(value)).encode("utf-8", "surrogatepass"), key), 0)


def _text_arguments(text: str, key: bytes) -> Arguments:
    parsed = (
        attempt(json.loads, text, default=text)
        if len(text) <= PARSED_TEXT and text[:64].lstrip()[:1] in ("{", "[")
        else text
    )
    is_simple = len(text) <= _SIMPLE_CHARACTERS if parsed is text else _is_simple(parsed)
    return Arguments(_hash(_json(parsed) if is_simple else _canonical(parsed), key), text_bytes(text))


def _canonical(value: Any, measured: Size | None = None) -> bytes:
    """Return the canonical JSON of any value; the beginning and the size of a large one."""
    found: list[str] = []
    try:
        for piece in pieces(value, _STEPS, is_read=True):
            found.append(piece)  # noqa: PERF402 - what came before an error counts
    except ours(RuntimeError, ValueError):  # too large, or changed by another thread meanwhile
        found.append(repr(measured or json_size(value, NODE_BUDGET)))
    text = "".join(found)
    return _json(attempt(json.loads, text, default=text))


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
    return "".join(_encode(plain, 0)).encode("utf-8", "surrogatepass")


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
    if type(root) is dict and len(root) <= _FEW and all(map(is_, map(type, chain(root, root.values())), repeat(str))):
        return sum(map(len, chain(root, root.values()))) <= _SIMPLE_CHARACTERS
    found = values_of([root], _SIMPLE_NODES, _LEVELS)
    if isinstance(found, int) or found.labels:
        return False
    ints = found.ints
    if ints and not -_PLAIN_INT < min(ints) <= max(ints) < _PLAIN_INT:
        return False
    texts = chain(found.texts, *(one for one in found.containers if type(one) is dict))
    return sum(map(len, texts)) <= _SIMPLE_CHARACTERS
