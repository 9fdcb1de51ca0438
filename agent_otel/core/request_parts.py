"""The parts of a model request: their texts, and the sizes and fingerprints by which they are recognised."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from agent_otel import semconv
from agent_otel._internal.lazy import pattern
from agent_otel._internal.object_kinds import fields, is_dict, listed, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_otel.core.types import RequestPart

#: Parts that providers put before all messages, the first one last.
HEADS = (semconv.SYSTEM, semconv.TOOLS)
OF_THE_MODEL = (semconv.ASSISTANT, semconv.TOOL_CALL_ARGUMENTS)
OF_CALLS = (semconv.TOOL_CALL_ARGUMENTS, semconv.TOOL_RESULTS)
#: Parts of a request whose fingerprints are kept; a longer request is compared up to here.
MOST_PARTS = 2_048
#: Kinds of parts by number.
KINDS = {part: number for number, part in enumerate(semconv.REQUEST_PARTS)}
_HEAD = 64  # characters of a part in its fingerprint
_READ = 1_024  # characters of a system prompt in which dates and times are looked for
# A digit in front lets the search skip everything else.
_CLOCK = pattern(
    r"\d(?:\d{3}-\d\d-\d\d[T ]?|\d?:\d\d(?::\d\d(?:\.\d+)?)?(?: ?[AaPp]\.?[Mm]\b)?"
    r"|\d?([./])\d\d?\1\d{2,4}|(?<=\b1)\d{9}(?:\.\d+|\d{3})?\b)"
)


class Sized(NamedTuple):
    """A part of a request with its size in bytes and its fingerprint."""

    part: RequestPart
    bytes: int
    print: int


def of_kind(parts: Any, kind: str) -> list[Any]:
    """Return the parts of a kind; of a request that continues another, without reading the others."""
    early = () if type(parts) is list else parts.of_kind(kind)
    new = parts if type(parts) is list else parts[parts.first :]
    return [*early, *(one for one in new if (one.part if type(one.part) is str else one.part.part) == kind)]


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


def first_text(value: object) -> str:
    """Return the first text of a part, an empty one where it has none."""
    return value if type(value) is str else next(texts(value), "")


def characters(value: object) -> int:
    """Return the number of characters of a result that consists of text only, else -1."""
    cls = type(value)
    if issubclass(cls, str):
        return str.__len__(value)  # type: ignore[arg-type]
    lengths = list(map(len, texts(value)))
    return sum(lengths) if issubclass(cls, list) and len(lengths) == list.__len__(value) else -1  # type: ignore[arg-type]


def fingerprint(part: RequestPart, part_bytes: int) -> int:
    """Return the fingerprint of a part that belongs to no tool call seen."""
    value = part.value
    begins = value[:_HEAD] if type(value) is str else beginning(value)
    return hash((part.part, part.call_id, part_bytes, begins))


def sketch(part: RequestPart) -> int:
    """Return a fingerprint of a part without its size."""
    return hash((part.part, part.call_id, characters(part.value), beginning(part.value)))


def timeless(value: object) -> str:
    """Return the beginning of a part without dates and times, which differ in each request of the same agent."""
    return _CLOCK.sub("", first_text(value)[:_READ])


def timeless_print(one: Sized) -> int:
    """Return a fingerprint of a part that does not depend on its dates and times."""
    text = timeless(one.part.value)
    # Without a clock, the fingerprint distinguishes texts by their size as well.
    return hash((one.part.part, text)) if text != first_text(one.part.value)[:_READ] else one.print


def beginning(value: object) -> str:
    """Return the first characters of a part."""
    return first_text(value)[:_HEAD]
