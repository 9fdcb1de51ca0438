"""The tool that a model calls to read a stored result, page by page."""

from __future__ import annotations

import asyncio
import codecs
import json
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote

from agent_otel import semconv
from agent_otel._internal.daemon_pool import BusyError, Workers, is_in_asyncio, run_now
from agent_otel._internal.errors import ours, suppressed
from agent_otel.core.thread import fragments
from agent_otel.core.tool_visit import running as running_call
from agent_otel.remedies import artifacts
from agent_otel.remedies.claim_check import policy
from agent_otel.remedies.claim_check.envelope import PREFIX, BadReferenceError, current_owner
from agent_otel.remedies.claim_check.reader import Place
from agent_otel.remedies.claim_check.serialization import json_head
from agent_otel.remedies.claim_check.stores import NotFoundError, StoreError
from agent_otel.remedies.claim_check.stores.base import MemoryStore
from agent_otel.remedies.pagination import BadCursorError, Cursor, offset_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_otel.remedies.claim_check.envelope import Header
    from agent_otel.remedies.claim_check.reader import Resolved


PAGE_BYTES: Final = 16 * 1024
"""Bytes of one page in the JSON of its answer: half of the view of a stored result."""

#: A page plus the longest UTF-8 character, to detect whether the text continues after the page.
_READ_BYTES: Final = PAGE_BYTES + 4
_LINES: Final = re.compile(r"\s*(\d{1,9})\s*(?:-\s*(\d{1,9})\s*)?")
_SUMMARIZED: Final = "SUMMARIZED"
#: Characters that are split into lines in one step; other threads run between the steps.
_SPLIT: Final = 64 * 1024
#: The last line of such a step is first searched for in this many characters at its end.
_TAIL: Final = 256
#: Most lines that are compared with a text one by one.
_MOST_LINES: Final = 500_000

_workers = Workers("reading-on", 2)


MOST_BYTES: Final = 32 * 1024 * 1024
KEEP_SECONDS: Final = 120.0


#: Selected bytes that a model pages through, by the digest of the result, its place with the owner, and the arguments:
#: the first page has shown the right to it.
_selections: Final = MemoryStore(MOST_BYTES)


class _Asked(NamedTuple):
    """The arguments of one request: the scope of its cursors."""

    ref: str
    lines: str | None
    json_path: str | None
    grep: str | None


def get_tool_result(
    ref: str, cursor: str | None = None, lines: str | None = None, json_path: str | None = None, grep: str | None = None
) -> dict[str, Any]:
    """Read a stored tool result, one page at a time.

    Args:
        ref: The reference that stands in the shortened result, unchanged: `claim:v2:...`; or an `executionId`.
        cursor: `next_cursor` of the page before, with the same other arguments.
        lines: Only these lines, such as `120-180`; the first is 1.
        json_path: Only this part of a JSON result, such as `items[3].body`.
        grep: Only lines that contain this text, with their numbers; upper and lower case are the same.

    """
    return run_now(_read(_Asked(ref, lines, json_path, grep), cursor, blocks=True))


async def aget_tool_result(
    ref: str, cursor: str | None = None, lines: str | None = None, json_path: str | None = None, grep: str | None = None
) -> dict[str, Any]:
    """Read a stored tool result, one page at a time, without blocking the event loop; as `get_tool_result`."""
    return await _read(_Asked(ref, lines, json_path, grep), cursor, blocks=False)


aget_tool_result.__name__ = policy.GET_TOOL_RESULT
aget_tool_result.__doc__ = get_tool_result.__doc__


async def _read(asked: _Asked, cursor: str | None, *, blocks: bool) -> dict[str, Any]:
    check = policy.archive()
    if check is None:
        return _error("Results are not stored here.")
    reader = check.reader
    try:
        # A model may pass anything.
        ref, *selected = asked
        if not (isinstance(ref, str) and all(isinstance(each, str | None) for each in (cursor, *selected))):
            raise ValueError("Every argument is a text.")
        running = running_call()
        # The execution that calls this tool, from the server's own data.
        caller = current_owner() or (running.call.execution if running is not None else None)
        place = ref if ref.startswith(PREFIX) else Place(caller or "", semconv.CONTEXT_SUMMARIZE, _bare_id(ref))
        start = offset_of(Cursor(asked), cursor) if cursor else 0
        if not any(selected):  # pages are parts of the stored result itself
            part = await reader.aresolve(place, caller=caller, start=start, end=start + _READ_BYTES, blocks=blocks)
            if part.header.encoding is None:
                raise ValueError(f"The result is {part.content_type} and has no text.")
            return _answer(part.data, asked, start, part.header, part.header.bytes)
        header = await reader.ahead(place, caller=caller, blocks=blocks)
        key, selection = repr((header.digest, place, asked)), b""
        with suppressed(NotFoundError):
            selection = _selections.get(key) if cursor else b""
        if not selection:
            found = await reader.aresolve(place, caller=caller, blocks=blocks)
            if blocks or not is_in_asyncio():
                selection = _selection(found, asked)
            else:
                selection = await asyncio.wrap_future(_workers.submit(lambda: _selection(found, asked)))
        if len(selection) > PAGE_BYTES:  # keep it for the next page
            _selections.put(key, selection, KEEP_SECONDS)
        return _answer(selection[start : start + _READ_BYTES], asked, start, header, len(selection))
    except BusyError:
        return _error("Too many results are being read; ask again.")
    except ours(BadReferenceError, NotFoundError, BadCursorError, StoreError, ValueError) as error:
        return _error(str(error))


def _bare_id(text: str) -> str:
    """Return an execution's id without what models leave around it, in linear time."""
    text = text.strip()
    if text.startswith(_SUMMARIZED) and text[len(_SUMMARIZED) :][:1].isspace():
        text = text[len(_SUMMARIZED) :].lstrip()
    return text.removeprefix("executionId:").lstrip().removeprefix("'").removesuffix("'")


def _selection(found: Resolved, asked: _Asked) -> bytes:
    """Return the selected part of a result."""
    text = found.text
    if text is None:
        raise ValueError(f"The result is {found.content_type} and has no text.")
    if asked.json_path:
        text = at_path(text, asked.json_path)
    if asked.lines:
        text = _between(text, asked.lines)
    if asked.grep:
        text = _matching(text, asked.grep)
    data = text.encode("utf-8", "surrogatepass")
    if len(data) > MOST_BYTES:
        raise ValueError(f"{len(data)} bytes are selected, too many to page through; select less.")
    return data


def _answer(data: bytes, asked: _Asked, start: int, header: Header, size_bytes: int) -> dict[str, Any]:
    """Return the page at the beginning of ``data``, which starts at byte ``start`` of a text of ``size_bytes``."""
    running = running_call()
    if running is not None:
        running.reads_on = True
        if running.state is not None:
            fragments.read_on(running.out, running.state, unquote(header.tool))
    text, _ = codecs.utf_8_decode(data, "surrogatepass", False)
    page = json_head(text.encode("utf-8", "replace").decode(), PAGE_BYTES)
    # Count the bytes of the text: half a character has one byte in the page, but three in the store.
    end = start + len(text[: len(page)].encode("utf-8", "surrogatepass"))
    answer: dict[str, Any] = {"content": page, "size_bytes": size_bytes, "start": start, "end": end}
    if end < size_bytes:
        answer["next_cursor"] = Cursor(asked).encode(end)
    following = artifacts.following(asked.ref)
    if following is not None:
        answer.update(following)
        if end < size_bytes:
            selected = {name: value for name, value in asked._asdict().items() if value and name != "ref"}
            answer["next_action"] = artifacts.next_action(asked.ref, cursor=answer["next_cursor"], **selected)
    return answer


def _between(text: str, lines: str) -> str:
    match = _LINES.fullmatch(lines)
    if match is None:
        raise ValueError(f"{lines!r} is no range of lines such as 120-180.")
    first = max(int(match[1]), 1)
    last = int(match[2]) if match[2] else first
    found: list[str] = []
    number = 1
    for batch in _line_batches(text):
        found += batch[max(first - number, 0) : max(last + 1 - number, 0)]
        number += len(batch)
        if number > last:
            break
    return "\n".join(found)


def _matching(text: str, wanted: str) -> str:
    wanted = wanted.casefold()
    found: list[str] = []
    number, left = 1, _MOST_LINES
    for batch in _line_batches(text):
        if wanted in "\n".join(batch).casefold():
            left -= len(batch)
            if left < 0:
                raise ValueError("The result has too many lines to search; ask for some of its lines with this text.")
            found += [f"{at}: {line}" for at, line in enumerate(batch, number) if wanted in line.casefold()]
        number += len(batch)
    return "\n".join(found)


def _line_batches(text: str) -> Iterator[list[str]]:
    """Yield the lines of a text, some at a time, with the line ends of ``str.splitlines``."""
    rest: list[str] = []  # joined once: a line may be the whole text
    for start in range(0, len(text), _SPLIT):
        piece = text[start : start + _SPLIT]
        last = piece[-_TAIL:].splitlines(keepends=True)[-1]
        if len(last) == _TAIL:
            last = piece.splitlines(keepends=True)[-1]
        if len(last) < len(piece):
            yield "".join((*rest, piece[: len(piece) - len(last)])).splitlines()
            rest = []
        rest.append(last)
    yield "".join(rest).splitlines()


def _error(message: str) -> dict[str, Any]:
    return {"error": "tool_result_unavailable", "hint": message}


# Look-up of one value in a JSON text by its path. `json.loads` of the whole would block every other thread for 0.2 s
# and take 74 MB for 19 MB of text. Libraries such as jmespath need it, and their expressions have no limit of cost.
# This reader parses the members in order, keeps none, and returns the value's text unchanged.

_STEP: Final = re.compile(r"\.?([^.\[\]]+)|\[(\d{1,9})\]")
_BLANKS: Final = re.compile(r"[ \t\n\r]*")
_SHOWN_KEYS: Final = 20
_MOST_MEMBERS: Final = 1_000_000
_decode: Final = json.JSONDecoder(strict=False).raw_decode


class _NotJsonError(ValueError):
    def __init__(self) -> None:
        super().__init__("The result is no JSON; use lines or grep.")


def at_path(text: str, path: str) -> str:
    """Return the value at a path such as ``items[3].body``: a text without its quotes, anything else as JSON.

    Raises ValueError, with a sentence for the model, when the path leads to no value, or there are too many members.
    """
    start, position = _after_blanks(text, 0), 1 if path.startswith("$") else 0
    try:
        while position < len(path):
            step = _STEP.match(path, position)
            if step is None:
                raise ValueError(f"{path!r} is no path such as items[3].body.")
            position = step.end()
            inner = _inner(text, start, step[1] if step[1] is not None else int(step[2]))
            if isinstance(inner, str):
                raise ValueError(f"There is nothing at {path[:position]}; {inner}.")  # noqa: TRY004
            start = inner
        value, end = _decode(text, start)
    except ours(json.JSONDecodeError, IndexError, StopIteration, RecursionError):
        raise _NotJsonError from None
    return value if type(value) is str else text[start:end]


def _inner(text: str, start: int, wanted: str | int) -> int | str:
    """Return the position of a key's value, or of a list's element; without it, what there is."""
    by_key = type(wanted) is str
    if text[start] != ("{" if by_key else "["):
        value = _decode(text, start)[0]
        if type(value) is dict:
            return f"there are the keys {', '.join(list(value)[:_SHOWN_KEYS])}"
        return "there is a list" if type(value) is list else f"there is a {type(value).__name__}"
    keys = []
    for index, (key, at) in enumerate(_members(text, start, "}" if by_key else "]")):
        if wanted == (key if by_key else index):
            return at
        keys.append(key)
    return f"there are the keys {', '.join(keys[:_SHOWN_KEYS])}" if by_key else f"there is a list of {len(keys)}"


def _members(text: str, start: int, closing: str) -> Iterator[tuple[str, int]]:
    """Yield the key of each member of an object, empty in a list, and the position of its value."""
    at, left = _after_blanks(text, start + 1), _MOST_MEMBERS
    while text[at] != closing:
        key = ""
        if closing == "}":
            key, at = _decode(text, at)
            if type(key) is not str:
                raise _NotJsonError
            at = _after_blanks(text, _expect(text, _after_blanks(text, at), ":"))
        yield key, at
        at = _after_blanks(text, _decode(text, at)[1])
        if text[at] != closing:
            at = _after_blanks(text, _expect(text, at, ","))
        left -= 1
        if not left:
            raise ValueError("The result is too large to search by path; use lines or grep, or read it by its cursor.")


def _expect(text: str, at: int, sign: str) -> int:
    if text[at] != sign:
        raise _NotJsonError
    return at + 1


def _after_blanks(text: str, at: int) -> int:
    """Return the position of the next sign."""
    blanks = _BLANKS.match(text, at)
    return at if blanks is None else blanks.end()
