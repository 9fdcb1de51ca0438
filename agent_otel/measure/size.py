"""Measure the size of a tool result as text, in UTF-8 bytes."""

from __future__ import annotations

import json
import math
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from agent_otel._internal import object_kinds
from agent_otel._internal.errors import ours
from agent_otel._internal.object_kinds import fields, shape_of
from agent_otel.measure.plain_size import floats_bytes, plain_size, quoted_bytes, texts_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NODE_BUDGET: Final = 2000
"""Values visited in one structured result: at most 0.8 ms at 0.4 µs each (``benchmarks/budgets.py`` measures it).

Of rows, 64 times as many are measured.
"""

MOST_CHARACTERS: Final = 32 * 1024 * 1024
"""Characters of texts that are counted, if not all of them are ASCII or quoted; of more, only their number is."""

_CHUNK: Final = 64 * 1024  # characters encoded at a time: at most 0.6 MB of transient memory
_MODERATE: Final = 4096  # characters of a string among a few values
_FEW: Final = 8  # values that are encoded at once
_PLAIN_INT: Final = 10**18
_CHEAP_POWER: Final = 5000
_TEXT_TYPES: Final = frozenset({"text", "input_text", "output_text"})
_BLOCK_KEYS: Final = frozenset({"text", "json", "image", "document", "video"})  # Bedrock's blocks have no type


_encode: Final = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":")).encode


class Size(NamedTuple):
    """UTF-8 bytes of a value's text; if not exact, it is at least so much."""

    bytes: int
    exact: bool


def estimated_tokens(characters: int) -> int:
    """Return the tokens that a text of so many characters has about."""
    return (characters + 3) // 4


def text_bytes(text: str) -> int:
    """Return the length of a text in UTF-8 bytes; O(1) for ASCII, else about 1 ns a byte in pieces of 64 Ki characters.

    A lone surrogate counts three bytes and does not raise.
    """
    length = str.__len__(text)
    if str.isascii(text):
        return length
    if length <= _CHUNK:
        return len(str.encode(text, "utf-8", "surrogatepass"))
    return sum(
        len(str.__getitem__(text, slice(start, start + _CHUNK)).encode("utf-8", "surrogatepass"))
        for start in range(0, length, _CHUNK)
    )


def size(value: Any, node_budget: int = NODE_BUDGET) -> Size:  # noqa: PLR0911 - the hot path
    """Return what a tool result costs as text, in UTF-8 bytes.

    - A ``str`` is its own text, and binary data has its length.
    - An object whose instance dictionary has a ``content`` that is a ``str`` or a ``list`` (a message) costs its
      content.
    - A list of content blocks costs the text of its text blocks, and its other blocks as JSON.
    - Everything else is compact UTF-8 JSON; ``None`` is ``null``, 4 bytes. Dates, UUIDs, decimals and paths are
      strings, sets are arrays, enums their value, objects their fields. Nested binary data counts its length and two
      quotes, which is a lower bound.

    Generators, functions and objects of C extensions count 0, not exact. Beyond ``node_budget`` visited values the
    result is a lower bound. Never raises and never runs code of the value.
    """
    try:
        cls = type(value)
        if cls is str:
            if value.isascii():
                return Size(len(value), True)
            if len(value) > MOST_CHARACTERS:
                return Size(len(value), False)
            return Size(text_bytes(value), True)
        if cls is dict:
            return _structure(value, node_budget)
        if cls is list:
            return _content(value, node_budget, message=False)
        return _object(value, cls, node_budget)
    except ours(Exception):
        return Size(0, exact=False)


def json_size(value: Any, node_budget: int = NODE_BUDGET) -> Size:
    """Return a value's length as compact JSON in UTF-8 bytes, also where `size` would count text without quotes."""
    try:
        return _structure(value, node_budget)
    except ours(Exception):
        return Size(0, exact=False)


def _object(value: Any, cls: type, budget: int) -> Size:
    shape = shape_of(cls)
    namespace = shape.namespace
    if namespace is not None:
        content = fields(value).get("content")
        if type(content) is str:
            return Size(len(content) if content.isascii() else text_bytes(content), True)
        if type(content) is list:
            return _content(content, budget, message=True)
    elif shape.kind is object_kinds.TEXT:
        return Size(text_bytes(value), exact=True)
    elif shape.kind is object_kinds.BINARY:
        return Size(shape.length(value), exact=True)
    return _structure(value, budget)


def _content(blocks: list[Any], budget: int, *, message: bool) -> Size:
    """Size of a list that may hold content blocks; a bare string is one only inside a message."""
    texts, others, has_text = [], [], message
    for block in islice(blocks, budget):
        text = block if type(block) is str else block_text(block)
        if text is not None:
            has_text = has_text or text is not block
            texts.append(text)
        elif message or _is_block(block):
            others.append(block)
        else:
            return _structure(blocks, budget)
    if not has_text:
        return _structure(blocks, budget)
    total, exact = sum(map(text_bytes, texts)), len(blocks) <= budget
    left = budget - min(len(blocks), budget)
    for block in others:
        more = _structure(block, left)
        total += more.bytes
        exact = exact and more.exact
    return Size(total, exact)


def block_text(block: Any) -> str | None:
    """Return the text of a text block (a dictionary, or an object such as mcp's ``TextContent``), else None."""
    known = _fields(block)
    text = known.get("text")
    is_alone = len(block) == 1 if type(block) is dict else "type" not in known
    kind = known.get("type")
    is_text = type(text) is str and (is_alone or (type(kind) is str and kind in _TEXT_TYPES))
    return text if is_text else None


def _fields(block: Any) -> dict[str, Any]:
    """Return the fields of a block; none of a dictionary with a class of its own."""
    return fields(block) if type(block) is dict or not issubclass(type(block), dict) else {}


def _is_block(block: Any) -> bool:
    """Return True if this may stand beside text blocks: it has a type, or is one of Bedrock's one-key blocks."""
    known = _fields(block)
    if type(known.get("type")) is str:
        return True
    is_alone = len(known) == 1 and (type(block) is not dict or len(block) == 1)
    only = next(iter(known)) if is_alone else None
    return type(only) is str and only in _BLOCK_KEYS


def _structure(value: Any, budget: int) -> Size:
    """Length as compact JSON, by a fast encoder where there is one and the value is plain."""
    if type(value) is dict and len(value) <= min(_FEW, budget - 1) and all(map(_is_short, value, value.values())):
        return Size(text_bytes(_encode(value)), True)
    if type(value) is dict or type(value) is list or type(value) is tuple:
        plain = plain_size(value, budget)
        if plain >= 0:
            return Size(plain, True)
    return _walk(value, budget)


def _is_short(key: Any, value: Any) -> bool:
    """Return True for a pair such as most of small results are: a text, an integer or a constant, and not long."""
    if type(key) is not str or len(key) > _MODERATE:
        return False
    cls = type(value)
    if cls is str:
        return len(value) <= _MODERATE
    return value is None or cls is bool or (cls is int and -_PLAIN_INT < value < _PLAIN_INT)


def _walk(root: Any, budget: int) -> Size:  # noqa: C901, PLR0912, PLR0915 - one loop: a call a node would double its cost
    """Length as compact JSON, depth first: where the budget ends, what was seen is the beginning of the value."""
    total, exact, left = 0, True, max(budget, 1)
    keys_left = 2 * left  # keys are taken when a dictionary is opened, and dictionaries nest
    texts: list[Any] = []  # also keys: quoted together at the end, a third of the cost of singly
    floats: list[float] = []
    pending: list[Iterator[Any]] = [iter((root,))]
    try:
        while pending:
            for value in pending[-1]:
                left -= 1
                if left < 0:
                    exact = False
                    pending.clear()
                    break
                cls = type(value)
                if cls is str:
                    texts.append(value)
                    continue
                if cls is int and -_PLAIN_INT < value < _PLAIN_INT:
                    total += len(repr(value))
                    continue
                if cls is float:
                    floats.append(value)
                    continue
                if value is None or cls is bool:
                    total += 5 if value is False else 4
                    continue
                node = value
                if cls is not dict and cls is not list and cls is not tuple:
                    more, certain, node = _other(value, left)
                    total += more
                    exact = exact and certain
                    if node is None:
                        continue
                if issubclass(type(node), dict):
                    keys = dict.__len__(node)
                    is_read = type(node) is dict and keys <= keys_left
                    texts.extend(node if is_read else islice(dict.__iter__(node), keys_left))
                    pending.append(iter(dict.values(node)))
                    total += 2 * keys + 1 if keys else 2
                    keys_left -= keys
                    if keys_left < 0:
                        exact, keys_left = False, 0
                else:
                    pending.append(iter(node))
                    total += max(len(node) + 1, 2)
                break
            else:
                pending.pop()
    except ours(Exception):  # changed by another thread meanwhile
        exact = False
    total += floats_bytes(floats) if floats else 0
    more, certain = _texts(texts) if texts else (0, True)
    return Size(max(total + more, 0), exact and certain)


def _texts(texts: list[Any]) -> tuple[int, bool]:
    """Size of texts and of keys, which need not be texts."""
    try:
        characters = sum(map(str.__len__, texts))
        if characters > MOST_CHARACTERS:
            return characters + 2 * len(texts), False
        return texts_bytes(texts, str.__len__), True
    except ours(TypeError):  # a key that is no string
        pass
    known: dict[int, tuple[int, bool]] = {}
    total, exact = 0, True
    for text in texts:
        more, certain = known.get(id(text)) or known.setdefault(id(text), _key(text))
        total += more
        exact = exact and certain
    return total, exact


def _int(value: int) -> tuple[int, bool]:
    """Decimal digits and sign, without str(): that is refused above 4,300 digits and takes quadratic time."""
    sign = value < 0
    value = abs(value)
    if value == 0:
        return 1, True
    power = math.log10(value)
    nearest = round(power)
    if abs(power - nearest) > 1e-12 * (1 + power):
        return math.floor(power) + 1 + sign, True
    if nearest > _CHEAP_POWER:
        return nearest + sign, False
    return nearest + (value >= _power(nearest)) + sign, True


@lru_cache(maxsize=16)
def _power(exponent: int) -> int:
    """Return a power of ten, which costs 20 µs where it is large."""
    return cast("int", 10**exponent)


def _key(key: Any) -> tuple[int, bool]:
    """Return the size of a key; json writes numbers and constants as strings."""
    if key is None or key is True or key is False:
        return 7 if key is False else 6, True
    shape = shape_of(type(key))
    leaf = _LEAVES.get(shape.kind)
    if leaf is None:
        return 2, False
    more, certain = leaf(shape, key)
    return more + 2 * (shape.kind is object_kinds.NUMBER), certain


def _other(value: Any, left: int) -> tuple[int, bool, Any]:
    """Bytes, whether they are exact, and the container to open besides, of a value of an uncommon class."""
    shape = shape_of(type(value))
    kind = shape.kind
    leaf = _LEAVES.get(kind)
    if leaf is not None:
        return (*leaf(shape, value), None)
    if kind is object_kinds.MAPPING or kind is object_kinds.RECORD:
        return 0, True, shape.read(value)
    if kind is object_kinds.ARRAY or kind is object_kinds.SET:
        inner = object_kinds.elements(shape, value, left + 1)
        return 0, len(inner) == shape.length(value), inner
    if kind is object_kinds.VALUE:
        return -2, True, [shape.read(value)]  # without the brackets of the list around it
    return 0, False, None


_LEAVES: Final[dict[str, Callable[[object_kinds.Shape, Any], tuple[int, bool]]]] = {
    object_kinds.TEXT: lambda _shape, value: (quoted_bytes(value), True),
    object_kinds.LABEL: lambda shape, value: (quoted_bytes(shape.read(value)), True),
    object_kinds.BINARY: lambda shape, value: (shape.length(value) + 2, False),
    object_kinds.NUMBER: lambda shape, value: (
        _int(number) if type(number := shape.read(value)) is int else (floats_bytes([number]), True)
    ),
}
