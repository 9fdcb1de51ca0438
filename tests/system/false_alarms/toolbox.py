"""The tools of the ten loops: each returns the result with the number that it is asked for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from opentelemetry import trace

if TYPE_CHECKING:
    from collections.abc import Callable

#: Numbers of the calls, by the ids of the spans in which the tool ran.
NUMBERS: dict[int, int] = {}
#: What makes the result with a number, in this run.
make: Callable[[int], Any] = str


def search(number: int) -> str:
    """Search."""
    return str(_produced(number))


def read(number: int) -> str:
    """Read a file."""
    return str(_produced(number))


def run(number: int) -> str:
    """Run a command."""
    return str(_produced(number))


def query(number: int) -> dict[str, Any]:
    """Query a table."""
    result: dict[str, Any] = _produced(number)
    return result


def _produced(number: int) -> Any:
    NUMBERS[trace.get_current_span().get_span_context().span_id] = number
    return make(number)


def query_text(number: int) -> str:
    """Query a table."""
    return json.dumps(_produced(number), ensure_ascii=False, separators=(",", ":"))


query_text.__name__ = "query"
