"""Bytes of a request by part and tool: the shares by which its tokens and its price are divided."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_otel import semconv
from agent_otel.core.execution_state import Shares

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from agent_otel.core.execution_state import SeenCall
    from agent_otel.core.request_parts import Sized

_OF_TOOLS = (semconv.TOOL_RESULTS, semconv.TOOL_CALL_ARGUMENTS)


def add(
    before: Shares, sized: Sequence[Sized], calls: Mapping[int, SeenCall], new: Collection[SeenCall]
) -> tuple[Shares, dict[str, int]]:
    """Return the shares of a request, and the bytes by tool of the results in it that a request has held before.

    ``before`` are the shares of the parts that it begins with. ``calls`` are the calls whose results it holds, by the
    results' indexes, ``new`` those that no request held before.
    """
    found = dict(before.bytes)
    again: dict[str, int] = {}
    if before.parts:
        again = {tool: size for (part, tool), size in found.items() if part == semconv.TOOL_RESULTS and tool}
    first = set(map(id, new))
    names: dict[str | None, str] = {}  # of calls that another execution has recorded, by id
    for at in range(before.parts, len(sized)):
        (part, _, call_id, name, _, _, _), size, _ = sized[at]
        tool = ""
        if part in _OF_TOOLS:
            call = calls.get(at)
            tool = (call.tool if call is not None else name) or names.get(call_id, "")
            if call_id is not None:
                names[call_id] = tool
            if part == semconv.TOOL_RESULTS and tool and (call is None or not call.tool or id(call) not in first):
                again[tool] = again.get(tool, 0) + size
        found[part, tool] = found.get((part, tool), 0) + size
    return Shares(len(sized), found), again


def divided(total: int, shares: Mapping[tuple[str, str], int]) -> dict[tuple[str, str], int]:
    """Divide tokens in proportion to bytes; the parts sum up to the total."""
    whole = sum(shares.values())
    found, bytes_so_far, tokens_so_far = {}, 0, 0
    for key, size in shares.items():
        bytes_so_far += size
        until = total * bytes_so_far // whole if whole else 0
        found[key] = until - tokens_so_far
        tokens_so_far = until
    return found
