"""The parts of a model request: their texts, and the sizes and fingerprints by which they are recognised."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from agent_otel import semconv
from agent_otel.core.plain import fields, is_dict, listed, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_otel.core.types import RequestPart

#: Parts of a request whose fingerprints are kept; a longer request is compared up to here.
MOST_PARTS = 2_048
#: Kinds of parts by number.
KINDS = {part: number for number, part in enumerate(semconv.REQUEST_PARTS)}
_HEAD = 64  # characters of a part in its fingerprint


class Sized(NamedTuple):
    """A part of a request with its size in bytes and its fingerprint."""

    part: RequestPart
    bytes: int
    print: int


def texts(value: object) -> Iterator[str]:
    """Yield the texts of a part."""
    cls = type(value)
    if issubclass(cls, str):
        yield text(value) or ""
    elif issubclass(cls, list):
        for block in listed(value):
            said = text(fields(block).get("text")) if is_dict(block) else text(block)
            if said is not None:
                yield said


def characters(value: object) -> int:
    """Return the number of characters of a result that consists of text only, else -1."""
    cls = type(value)
    if issubclass(cls, str):
        return str.__len__(value)  # type: ignore[arg-type]
    lengths = list(map(len, texts(value)))
    return sum(lengths) if issubclass(cls, list) and len(lengths) == list.__len__(value) else -1  # type: ignore[arg-type]


def fingerprint(part: RequestPart, part_bytes: int) -> int:
    """Return the fingerprint of a part that belongs to no tool call seen."""
    return hash((part.part, part.call_id, part_bytes, beginning(part.value)))


def beginning(value: object) -> str:
    """Return the first characters of a part."""
    return next(texts(value), "")[:_HEAD]
