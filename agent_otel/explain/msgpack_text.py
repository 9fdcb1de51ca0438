"""JSON text of msgpack. https://github.com/msgpack/msgpack/blob/master/spec.md has the format."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgpack  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Extensions inside of extensions that are decoded. Each level takes about 50 KB of the C stack.
_LEVELS: Final = 16
#: A header of five bytes reserves memory for this many elements.
_MOST_ELEMENTS: Final = 2**20
#: LangGraph's extension types that build an object from (module, name, argument, …).
_CONSTRUCTORS: Final = range(6)
_ARGUMENT: Final = 2
_LONGEST_KEY: Final = 256  # of one that is no text: the quotes of a key in a key are escaped again at each level
#: Bytes that are no text, as characters that JSON writes as they are: sizes stay, and so do differences.
_PRINTABLE: Final = bytes(range(48, 92)) + bytes(range(93, 127))
_MASK: Final = bytes(_PRINTABLE[byte % len(_PRINTABLE)] for byte in range(256))


def json_text(data: bytes) -> str:
    """Return a msgpack value as JSON text.

    An object of LangGraph is the argument with which LangGraph would build it: the fields of a message, for a message.
    Other binary data, and an extension inside of too many others, is text of the same size.

    Raises:
        ValueError: the bytes are not msgpack, end too early, or need more memory than there is.
    """
    try:
        return _written(_decoded(data, _LEVELS))
    except msgpack.FormatError:
        raise ValueError("a byte begins no value") from None
    except (MemoryError, RecursionError, msgpack.StackError):
        raise ValueError("it is nested too deeply or too large") from None


def _decoded(data: bytes, levels: int) -> Any:
    return msgpack.unpackb(
        data,
        ext_hook=partial(_object, levels),
        object_pairs_hook=_named,
        strict_map_key=False,
        unicode_errors="replace",
        max_array_len=_MOST_ELEMENTS,
    )


def _object(levels: int, code: int, data: bytes) -> Any:
    """Return the argument of a constructor, the text of other extensions."""
    if levels and code in _CONSTRUCTORS:
        inner = _decoded(data, levels - 1)
        if isinstance(inner, list):
            return inner[_ARGUMENT] if len(inner) > _ARGUMENT else None
    return _masked(data)


def _masked(data: bytes) -> str:
    return data.translate(_MASK).decode("ascii")


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=_other)


def _other(value: Any) -> str:
    return _masked(value) if isinstance(value, bytes) else str(value)


def _named(pairs: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
    return {_name(key): value for key, value in pairs}


def _name(key: Any) -> str:
    if isinstance(key, bytes):
        return _masked(key)
    return key if isinstance(key, str) else _written(key)[:_LONGEST_KEY]
