"""A payload as JSON text that is read as often as needed."""

from __future__ import annotations

import codecs
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING

from agent_otel.measure.breakdown.json_window import WINDOW

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class SourceError(Exception):
    """A source that cannot be explained; the message is for the user."""


@dataclass(frozen=True, slots=True)
class Step:
    """A payload of a durable runtime: its name, its boundary, and its bytes without the runtime's encoding."""

    name: str
    boundary: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Source:
    """A payload as JSON text; each call of ``chunks`` reads it from the beginning.

    ``bytes`` is the size of the text, None where only reading finds it. ``steps`` are the payloads of a runtime's
    history, complete when ``chunks`` has been read once.
    """

    kind: str
    chunks: Callable[[], Iterator[str]]
    bytes: int | None
    runtime: str = ""
    variant: str = ""
    steps: list[Step] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def text_of(file: IO[bytes], size: int) -> Iterator[str]:
    """Yield so many bytes of a file as text, without what is not UTF-8; the file may grow meanwhile."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")("ignore")
    file.seek(0)
    while size > 0 and (block := file.read(min(WINDOW, size))):
        size -= len(block)
        yield decoder.decode(block)
    yield decoder.decode(b"", final=True)
