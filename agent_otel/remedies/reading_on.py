"""The tool by which a model reads on in a stored result, a page at a time."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from agent_otel import record
from agent_otel.remedies import claim_check
from agent_otel.remedies.claims import current_owner
from agent_otel.remedies.cutting import head
from agent_otel.remedies.pagination import BadCursorError, cursor_of, offset_of
from agent_otel.remedies.references import BadReferenceError
from agent_otel.remedies.stores import NotFoundError, StoreError

if TYPE_CHECKING:
    from agent_otel.remedies.resolving import ClaimReader, Resolved

PAGE_BYTES: Final = 16 * 1024
"""As much as one answer holds: half of what a stored result's own view does."""

_LINES: Final = re.compile(r"\s*(\d{1,9})\s*(?:-\s*(\d{1,9})\s*)?")
_STEP: Final = re.compile(r"\.?([^.\[\]]+)|\[(\d{1,9})\]")


def get_tool_result(
    ref: str,
    cursor: str | None = None,
    lines: str | None = None,
    json_path: str | None = None,
    grep: str | None = None,
) -> dict[str, Any]:
    """Read a stored tool result, one page at a time.

    Args:
        ref: The reference that stands in the shortened result, unchanged: `claim:v2:...`.
        cursor: `next_cursor` of the page before, with the same other arguments.
        lines: Only these lines, such as `120-180`; the first is 1.
        json_path: Only this part of a JSON result, such as `items[3].body`.
        grep: Only lines that contain this text, with their numbers; upper and lower case are the same.

    """
    reader = _reader()
    if reader is None:
        return _error("Results are not stored here.")
    try:
        _check(ref, cursor, lines, json_path, grep)
        return _answer(reader.resolve(ref, caller=_caller()), ref, cursor, lines, json_path, grep)
    except (BadReferenceError, NotFoundError, BadCursorError, StoreError, ValueError) as error:
        return _error(str(error))


async def aget_tool_result(
    ref: str,
    cursor: str | None = None,
    lines: str | None = None,
    json_path: str | None = None,
    grep: str | None = None,
) -> dict[str, Any]:
    """Read a stored tool result, one page at a time, while the event loop goes on; as `get_tool_result`."""
    reader = _reader()
    if reader is None:
        return _error("Results are not stored here.")
    try:
        _check(ref, cursor, lines, json_path, grep)
        return _answer(await reader.aresolve(ref, caller=_caller()), ref, cursor, lines, json_path, grep)
    except (BadReferenceError, NotFoundError, BadCursorError, StoreError, ValueError) as error:
        return _error(str(error))


aget_tool_result.__name__ = claim_check.GET_TOOL_RESULT
aget_tool_result.__doc__ = get_tool_result.__doc__


def _check(ref: object, *others: object) -> None:
    """Refuse what a model may give instead of a text."""
    if not isinstance(ref, str) or not all(isinstance(each, str) for each in others if each is not None):
        raise ValueError("Every argument is a text.")


def _reader() -> ClaimReader | None:
    check = claim_check.current()
    return None if check is None else check.reader


def _caller() -> str | None:
    """Who asks: the execution in which the model calls this tool, as the server knows it."""
    running = record.current.get()
    return current_owner() or (running.call.execution if running is not None else None)


def _answer(  # noqa: PLR0913, PLR0917 - what the model may ask
    found: Resolved, ref: str, cursor: str | None, lines: str | None, json_path: str | None, grep: str | None
) -> dict[str, Any]:
    text = found.text
    if text is None:
        raise ValueError(f"The result is {found.content_type} and has no text.")
    if json_path:
        text = _at_path(text, json_path)
    if lines:
        text = _between(text, lines)
    if grep:
        text = _matching(text, grep)
    scope = (ref, lines, json_path, grep)
    start = offset_of(cursor, scope) if cursor else 0
    page = head(text[start:], PAGE_BYTES)
    end = start + len(page)
    answer: dict[str, Any] = {"content": page, "characters": len(text), "start": start, "end": end}
    if end < len(text):
        answer["next_cursor"] = cursor_of(end, scope)
    return answer


def _at_path(text: str, path: str) -> str:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("The result is no JSON; use lines or grep.") from None
    position = 1 if path.startswith("$") else 0
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None:
            raise ValueError(f"{path!r} is no path such as items[3].body.")
        position = step.end()
        try:
            value = value[step[1]] if step[1] is not None else value[int(step[2])]
        except (KeyError, IndexError, TypeError):
            raise ValueError(f"There is nothing at {path[:position]}; {_what_there_is(value)}.") from None
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _what_there_is(value: Any) -> str:
    if isinstance(value, dict):
        return f"there are the keys {', '.join(list(map(str, value))[:20])}"
    return f"there is a list of {len(value)}" if isinstance(value, list) else f"there is a {type(value).__name__}"


def _between(text: str, lines: str) -> str:
    match = _LINES.fullmatch(lines)
    if match is None:
        raise ValueError(f"{lines!r} is no range of lines such as 120-180.")
    first = max(int(match[1]), 1)
    last = int(match[2]) if match[2] else first
    return "\n".join(text.splitlines()[first - 1 : last])


def _matching(text: str, wanted: str) -> str:
    wanted = wanted.casefold()
    found = (f"{number}: {line}" for number, line in enumerate(text.splitlines(), 1) if wanted in line.casefold())
    return "\n".join(found)


def _error(message: str) -> dict[str, Any]:
    return {"error": "tool_result_unavailable", "hint": message}
