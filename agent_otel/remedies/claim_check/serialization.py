"""Serialisation of a whole result, to measure it for a ceiling and to store it; `json_pieces` has the walk."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_otel._internal.errors import ours
from agent_otel._internal.object_kinds import is_text, plain_text
from agent_otel.core.captured_content import without
from agent_otel.measure.json_pieces import CALLER_STEPS, WORKER_STEPS, BudgetError, pieces
from agent_otel.measure.size import Size, block_text, text_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

TEXT = "text/plain; charset=utf-8"
JSON = "application/json"
BINARY = "application/octet-stream"

#: Characters of a text that are encoded at a time.
_PIECE: Final = 1024 * 1024


class Raw(NamedTuple):
    """A result as bytes. ``text`` is its text for a model; None for binary data.

    If the value needs more steps than the walk has, this is its beginning, and ``is_whole`` is false.
    """

    data: bytes
    content_type: str
    text: str | None
    is_whole: bool = True


class Content:
    """A result to store; the worker thread serialises it.

    ``least_bytes`` is its size, or a lower bound. Values that a policy has ``injected`` are removed before storage.
    """

    __slots__ = ("injected", "least_bytes", "value")

    def __init__(self, value: object, least_bytes: int, injected: dict[str, Any] | None = None) -> None:
        self.value = value
        self.least_bytes = least_bytes
        self.injected = injected

    def raw(self) -> Raw:
        """Return the whole result, in a thread of this package."""
        raw = raw_of(self.value, WORKER_STEPS)
        if not self.injected or raw.text is None:
            return raw
        text = without(raw.text, self.injected)
        return Raw(_encoded((text,)), raw.content_type, text, raw.is_whole)

    def beginning(self, limit_bytes: int) -> str | None:
        """Return a beginning of the text longer than ``limit_bytes`` characters, or the whole; None for binary data."""
        if _is_binary(self.value):
            return None
        texts, length = [], 0
        try:
            for text in _texts(self.value, CALLER_STEPS):
                texts.append(text[: limit_bytes + 1])
                length += len(text)
                if length > limit_bytes:
                    break
        except BudgetError:  # the pieces so far are the beginning
            pass
        return "".join(texts)


def raw_of(value: object, steps: int = CALLER_STEPS) -> Raw:
    """Return the bytes of a result: a text's own, the joined text of text blocks, else compact JSON."""
    if _is_binary(value):
        return Raw(bytes(value), BINARY, None)  # type: ignore[call-overload]
    is_json = not is_text(value) and not _are_text_blocks(value)
    found: list[str] = []
    is_whole = True
    try:
        found.extend(_texts(value, steps))
    except BudgetError:
        is_whole = False
    return Raw(_encoded(found), JSON if is_json else TEXT, "".join(found), is_whole)


def size_up_to(value: object, limit_bytes: int) -> Size:
    """Return the size of a result's text in UTF-8 bytes. Above ``limit_bytes`` reading stops: a lower bound.

    A lower bound that is not above it means that the size is not known: the value needs more steps than the walk has,
    or it has no size, such as a generator.
    """
    total = 0
    try:
        if _is_binary(value):
            total = memoryview(value).nbytes  # type: ignore[arg-type]
        else:
            for text in _texts(value, CALLER_STEPS, is_strict=True):
                total += text_bytes(text)
                if total > limit_bytes:
                    break
    except ours(Exception):  # BudgetError, or another thread has changed the value meanwhile
        return Size(total, exact=False)
    return Size(total, exact=True) if total <= limit_bytes else Size(limit_bytes + 1, exact=False)


def _is_binary(value: object) -> bool:
    return issubclass(type(value), bytes | bytearray | memoryview)


def _texts(value: object, steps: int, *, is_strict: bool = False) -> Iterator[str]:
    """Return the text of `raw_of` in pieces, so that a reader of the beginning does not pay for the rest."""
    text = plain_text(value)
    if text is not None:
        return iter((text,))
    if _are_text_blocks(value):
        return (block if type(block) is str else block_text(block) or "" for block in value)  # type: ignore[attr-defined]
    return pieces(value, steps, is_strict=is_strict)


def _are_text_blocks(value: Any) -> bool:
    """Return True for a list of text blocks, with texts between them."""
    if type(value) is not list:
        return False
    has_blocks = False
    for block in islice(value, _MOST_BLOCKS + 1):
        if type(block) is not str:
            if block_text(block) is None:
                return False
            has_blocks = True
    return has_blocks and len(value) <= _MOST_BLOCKS


#: Most blocks of a result that is stored as the text of its blocks.
_MOST_BLOCKS: Final = 10_000


def _encoded(texts: list[str] | tuple[str]) -> bytes:
    return b"".join(
        text[start : start + _PIECE].encode("utf-8", "surrogatepass")
        for text in texts
        for start in range(0, len(text), _PIECE)
    )
