"""The shares of the parts of a request, added up from one request of a conversation to the next."""

from __future__ import annotations

from itertools import accumulate
from operator import sub
from typing import TYPE_CHECKING

from agent_otel import semconv, settings
from agent_otel.core.request_parts import first_text
from agent_otel.core.shares import HEADS, Shares, Texts

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from agent_otel.core.execution_state import SeenCall
    from agent_otel.core.request_parts import Sized

_OF_TOOLS = (semconv.TOOL_RESULTS, semconv.TOOL_CALL_ARGUMENTS)
#: Bytes from which a text that stands in a request twice is counted.
_LARGE = 1_024
#: Characters at the beginning, in the middle and at the end of a text by which it is recognised.
_SAMPLE = 128


def add(
    before: Shares, sized: Sequence[Sized], calls: Mapping[int, SeenCall], new: Collection[SeenCall]
) -> tuple[Shares, dict[str, int]]:
    """Return the shares of a request, and the bytes by tool of the results in it that a request has held before.

    ``before`` are the shares of the parts that it begins with. ``calls`` are the calls whose results it holds, by the
    results' indexes, ``new`` those that no request held before.
    """
    found, by_part = dict(before.bytes), dict(before.by_part)
    largest_part, largest_tool = before.largest_part, before.largest_tool
    places = {key: place for place, key in enumerate(found)}
    again: dict[str, int] = {}
    if before.parts:
        again = {tool: size for (part, tool), size in found.items() if part == semconv.TOOL_RESULTS and tool}
    first = set(map(id, new))
    names: dict[str | None, str] = {}  # of calls that another execution has recorded, by id
    sizes, keys, removed = [], [], dict(before.removed)
    for at in range(before.parts, len(sized)):
        (part, _, call_id, name, *_), size, _ = sized[at]
        tool = ""
        if part in _OF_TOOLS:
            call = calls.get(at)
            tool = (call.tool if call is not None else name) or names.get(call_id, "")
            if call_id is not None:
                names[call_id] = tool
            if part == semconv.TOOL_RESULTS and tool and (call is None or not call.tool or id(call) not in first):
                again[tool] = again.get(tool, 0) + size
            if call is not None and call.fragment is not None and call.fragment.removed is not None:
                remedy, less = call.fragment.removed
                removed[remedy] = removed.get(remedy, 0) + less
        key = part, tool
        found[key] = found.get(key, 0) + size
        by_part[part] = by_part.get(part, 0) + size
        if part != largest_part and (largest_part is None or by_part[part] > by_part[largest_part]):
            largest_part = part
        if part == semconv.TOOL_RESULTS and tool and size and tool != largest_tool:
            largest_tool = tool if largest_tool is None or found[key] > found[part, largest_tool] else largest_tool
        place = places.setdefault(key, len(places))
        if part not in HEADS:
            sizes.append(size)
            keys.append(place)
    order = before.order.then(sizes, keys) if sizes else before.order
    new_parts = sized[before.parts :]
    savable = before.savable.then(new_parts, settings.current())
    texts_in = _repeated(before.texts, new_parts)
    largest = by_part, largest_part, largest_tool
    return Shares(len(sized), found, order, removed, texts_in, savable, *largest), again


def _repeated(before: Texts, new: Sequence[Sized]) -> Texts:
    """Return the large texts of a request, with those that it holds twice."""
    large = [(one.bytes, value) for one in new if one.bytes >= _LARGE and (value := first_text(one.part.value))]
    if not large:
        return before
    digests, duplicate_bytes = set(before.digests), before.duplicate_bytes
    for part_bytes, value in large:
        middle = len(value) // 2
        # The call that it belongs to makes no difference.
        digest = hash((part_bytes, value[:_SAMPLE], value[middle : middle + _SAMPLE], value[-_SAMPLE:]))
        if digest in digests:
            duplicate_bytes += part_bytes
        digests.add(digest)
    return Texts(frozenset(digests), duplicate_bytes)


def divided(total: int, shares: Mapping[tuple[str, str], int]) -> dict[tuple[str, str], int]:
    """Divide tokens in proportion to bytes, by key; the parts sum up to the total."""
    return dict(zip(shares, portions(total, list(shares.values())), strict=True))


def portions(total: int, sizes: Sequence[int]) -> list[int]:
    """Divide a total in proportion to sizes, in their order; the portions sum up to it, unless all sizes are 0."""
    whole = sum(sizes) or 1
    ends = [total * end // whole for end in accumulate(sizes)]
    return list(map(sub, ends, [0, *ends]))
