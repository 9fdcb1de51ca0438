"""Serialisation of a whole result, to measure it for a ceiling and to store it; `json_pieces` has the walk."""

from __future__ import annotations

import asyncio
import json
import re
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from agent_otel._internal.daemon_pool import BusyError, Workers, is_in_asyncio
from agent_otel._internal.errors import ours
from agent_otel._internal.object_kinds import is_text, plain_text
from agent_otel.core.captured_content import without
from agent_otel.measure.json_pieces import CALLER_STEPS, WORKER_STEPS, BudgetError, pieces
from agent_otel.measure.size import Size, block_text, text_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agent_otel.core.tool_invocation import ToolInvocation


TEXT = "text/plain; charset=utf-8"
JSON = "application/json"
BINARY = "application/octet-stream"

_PIECE: Final = 1024 * 1024


class Raw(NamedTuple):
    """A result as bytes, and its text for a model, None for binary data; a beginning where it is not whole."""

    data: bytes
    content_type: str
    text: str | None
    is_whole: bool = True


class Content:
    """A result to store, at least so large; ``injected`` values are removed before."""

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
    """Return a size in UTF-8 bytes; above the limit a lower bound, and one not above it where it is not known."""
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


_MOST_BLOCKS: Final = 10_000


def _encoded(texts: list[str] | tuple[str]) -> bytes:
    return b"".join(
        text[start : start + _PIECE].encode("utf-8", "surrogatepass")
        for text in texts
        for start in range(0, len(text), _PIECE)
    )


#: A string, up to the text's end if it is truncated, or a character between values.
_MARK: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[,\[\]{}]', re.DOTALL)
#: The same in Python's writing: strings have quotation marks of either kind.
_PYTHON: Final = re.compile(r"'[^'\\]*(?:\\.[^'\\]*)*(?:'|\\?\Z)|" + _MARK.pattern, re.DOTALL)
_OPENING: Final = re.compile(r"[\[{]\s*['\"\[{0-9]")
#: The beginning of JSON, and not of a log's ``[2026-11-22 10:00] started`` or a page's ``[link](...)``.
_DOCUMENT: Final = re.compile(
    r"""\s*[\[{]\s*(?:['"\[{}]|\]\s*$|-?\d[\d.eE+-]*\s*(?:,|\]\s*$)|(?:true|false|null)\b)""", re.MULTILINE
)
_DELIMITERS: Final = (",", ";", "\t")
#: A quoted field of CSV, with its last quotation mark if the text has it.
_QUOTED: Final = re.compile(r'(?:\A|[,;\t\n])"(?:[^"]+|"")*("?)')
#: The first tag of a document of XML or HTML, after its declarations.
_MARKUP: Final = re.compile(r"\s*<(?:[?!a-zA-Z_])")
#: A comment, raw text, or a tag: whether it closes, its name, and whether it is empty. After the name comes a
#: character that no name has, or a tag without its end would take minutes.
_TAG: Final = re.compile(
    r"<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<(/?)([a-zA-Z_][^\s<>/]*)(?:[\s/][^<>]*?)??(/?)>", re.DOTALL
)
_DEEPEST: Final = 64
#: The beginning of an item of YAML or of a list.
_ITEM: Final = re.compile(r"^( *)- ", re.MULTILINE)
#: Boundaries in the first eighth are ignored: they would lose more than a value that is split.
_LATEST: Final = 8


def head(text: str, limit_bytes: int) -> str:
    """Return the beginning of a text, at most ``limit_bytes`` UTF-8 bytes, up to a boundary in its last seven eighths.

    A row without its last field reads like another row: a document ends after a whole element, also of one inside.
    """
    encoded = text[:limit_bytes].encode("utf-8", "replace")
    if len(encoded) <= limit_bytes and len(text) <= limit_bytes:
        return text
    kept = encoded[:limit_bytes].decode("utf-8", "ignore")
    earliest = max(len(kept) // _LATEST, 1)
    end = _element_end(kept, earliest) if _DOCUMENT.match(kept) else -1
    if end < earliest and _MARKUP.match(kept):
        end = _markup_end(kept, earliest)
    if end < earliest:
        end = _line_end(kept, earliest)
    if end < earliest:  # a document behind a sentence, in one line
        opening = _OPENING.search(kept)
        end = -1 if opening is None else _element_end(kept, earliest, opening.start())
    return kept[:end] if end >= earliest else kept


def json_head(text: str, limit_bytes: int) -> str:
    """Return the beginning of a text that has at most ``limit_bytes`` inside of a JSON string, with its escapes."""
    kept = head(text, max(limit_bytes, 0))
    while kept and (written := text_bytes(json.dumps(kept, ensure_ascii=False)) - 2) > limit_bytes:
        kept = head(kept, len(kept.encode("utf-8", "replace")) * limit_bytes // written)
    return kept


def _line_end(kept: str, earliest: int) -> int:
    """Return the end of the last line; of a table, of the last one that does not end inside of a quoted field."""
    last = kept.rfind("\n") + 1
    first = kept[: kept.find("\n") + 1]
    if '"' not in kept or not any(each in first for each in _DELIMITERS):
        block = _block_end(kept, last)
        return last if block < 0 else block
    begins = next((match.start() for match in _QUOTED.finditer(kept, 0, last) if not match[1]), None)
    end = last if begins is None else kept.rfind("\n", 0, begins + 1) + 1
    return end if end >= earliest else last


def _block_end(kept: str, last: int) -> int:
    """Return the end of the last whole item or paragraph when little follows it; -1 without."""
    latest = last - last // _LATEST
    items = list(_ITEM.finditer(kept, latest, last))
    outermost = min((len(item[1]) for item in items), default=0)
    item = max((item.start() for item in items if len(item[1]) == outermost), default=-1)
    paragraph = kept.rfind("\n\n", latest, last)
    return max(item, paragraph + 2 if paragraph >= 0 else -1)


def _markup_end(kept: str, earliest: int) -> int:
    """Return the end of the last element of the outermost one that has one from ``earliest`` on; -1 without."""
    names: list[str] = []
    ends = [-1] * (_DEEPEST + 1)
    for tag in _TAG.finditer(kept):
        closes, name, is_empty = tag.groups()
        if name is None:
            continue
        if closes and name in names:
            while names.pop() != name:
                pass
        elif not (closes or is_empty):
            if len(names) < _DEEPEST:
                names.append(name)
            continue
        elif closes:
            continue
        ends[len(names)] = tag.end()
    return next((end for end in ends if end >= earliest), -1)


def _element_end(kept: str, earliest: int, start: int = 0) -> int:
    """Return the end of the last element of the outermost container that has one from ``earliest`` on; -1 without."""
    opening = kept[start : start + 3]
    mark = _PYTHON if "'" in opening else _MARK
    depth, ends = 0, [-1]
    for match in mark.finditer(kept, start):
        part = match[0]
        if part in "[{":
            depth += 1
            if depth == len(ends):
                ends.append(-1)
        elif part in "]}":
            depth = max(depth - 1, 0)
            ends[depth] = match.end()
        elif part == ",":
            ends[depth] = match.start()
    return next((end for end in ends if end >= earliest), -1)


_T = TypeVar("_T")

_workers: Final = Workers("sizes", 2)


def read_size(record: ToolInvocation) -> Size | None:
    """Return the size; None when the call has produced nothing yet."""
    return record.produced or record.failed


async def refine(record: ToolInvocation, read: object, most_bytes: int, *, blocks: bool) -> None:
    """Find the size of a result up to a limit; unless it ``blocks``, in another thread."""
    size = read_size(record)
    if size is None or size.exact or size.bytes > most_bytes:
        return
    if blocks:
        correct(record, size_up_to(read, most_bytes))
    else:
        correct(record, await off_the_loop(lambda: size_up_to(read, most_bytes)))


def correct(record: ToolInvocation, size: Size) -> None:
    """Replace a lower bound by the exact size."""
    if record.produced is None:
        record.failed = size
    else:
        record.produced = size


async def off_the_loop(call: Callable[[], _T]) -> _T:
    """Call a function in a thread, from asyncio. If no thread is free, or under another loop, call it here."""
    if not is_in_asyncio():
        return call()
    try:
        calling = _workers.submit(call)
    except BusyError:
        return call()
    return await asyncio.wrap_future(calling)
