"""The ceiling: a result above it becomes an error that the model can act on. It is returned, never raised.

A durable runtime would retry a raised error and get the same result.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from agent_otel import semconv

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_otel.measure.size import Size

_CURSORS: Final = ("cursor", "page_token", "next_token", "page", "offset", "start", "after")
_SIZES: Final = ("limit", "page_size", "per_page", "max_results", "first", "count", "top_k", "n")
_SHOWN_FILTERS: Final = 5
_NO_SIZE: Final = (
    "Nothing was cut: the whole result was withheld, because its size cannot be found. Ask for something smaller, or "
    "use another tool."
)

_hints: dict[str, str] = {}


def result_hint(tool: str, hint: str) -> None:
    """Set the hint for the model when a result of this tool is above the ceiling; it replaces the default hint."""
    _hints[tool] = hint


def too_large(tool: str, size: Size, limit_bytes: int, parameters: Iterable[str] = ()) -> dict[str, Any]:
    """Return the error in place of a result; sizes are UTF-8 bytes. ``parameters`` are those of the tool's schema.

    Of a structured result that is much larger than the limit, only a lower bound of the size is known; of a generator
    or a value that is too nested to read, not even that it is above the limit.
    """
    is_known = size.exact or size.bytes > limit_bytes
    return {
        "error": semconv.RESULT_TOO_LARGE,
        "tool": tool,
        "size_bytes" if size.exact else "at_least_bytes": size.bytes,
        "limit_bytes": limit_bytes,
        "hint": _hints.get(tool) or (_default_hint(list(parameters)) if is_known else _NO_SIZE),
    }


def _default_hint(parameters: list[str]) -> str:
    cursor = next((name for name in _CURSORS if name in parameters), None)
    size = next((name for name in _SIZES if name in parameters), None)
    if cursor is not None:
        smaller = f" and a smaller `{size}`" if size else ""
        return f"Nothing was cut: the whole result was withheld. Ask page by page with `{cursor}`{smaller}."
    if size is not None:
        return f"Nothing was cut: the whole result was withheld. Ask for less with a smaller `{size}`."
    if parameters:
        names = ", ".join(f"`{name}`" for name in parameters[:_SHOWN_FILTERS])
        return f"Nothing was cut: the whole result was withheld. Narrow it with {names}."
    return "Nothing was cut: the whole result was withheld. Ask for something smaller, or use another tool."


def as_text(error: dict[str, Any]) -> str:
    """Return the error as the text that a model reads."""
    return json.dumps(error, ensure_ascii=False)
