"""Shares of a model request: its bytes by part and tool, and their order, by which tokens and prices are divided."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, NamedTuple

from agent_otel import semconv
from agent_otel.core.savable import NO_SAVABLE, Savable

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Parts that providers put before all messages, the first one first.
_HEADS = (semconv.TOOLS, semconv.SYSTEM)
_MOST_BYTES = 2**32 - 1


class Order(NamedTuple):
    """The parts of a request in order: the bytes of each, and the place of its part and tool in `Shares.bytes`."""

    sizes: array[int]
    keys: array[int]

    def then(self, sizes: list[int], keys: list[int]) -> Order:
        """Return the order with further parts at the end."""
        new = array("I", [min(size, _MOST_BYTES) for size in sizes])
        return Order(self.sizes + new, self.keys + array("H", keys))


NO_ORDER = Order(array("I"), array("H"))


class Texts(NamedTuple):
    """Digests of the large texts in a request, and the bytes of those that are there a second time."""

    digests: frozenset[int] = frozenset()
    duplicate_bytes: int = 0


NO_TEXTS = Texts()


class Shares(NamedTuple):
    """Bytes by part and tool, and the number of parts that they sum; the tool is empty where there is none.

    ``removed`` are the bytes by remedy that are missing in the results of the request, ``savable`` those that remedies
    which are off would keep out of it.
    """

    parts: int
    bytes: dict[tuple[str, str], int]
    order: Order = NO_ORDER
    removed: Mapping[str, int] = {}
    texts: Texts = NO_TEXTS
    savable: Savable = NO_SAVABLE

    def largest_part(self) -> str | None:
        """Return the part with most bytes."""
        sums: dict[str, int] = {}
        for (part, _), part_bytes in self.bytes.items():
            sums[part] = sums.get(part, 0) + part_bytes
        return max(sums, key=sums.__getitem__, default=None)

    def largest_tool(self) -> tuple[str, int] | None:
        """Return the tool whose results have most bytes, and these."""
        tools = ((size, tool) for (part, tool), size in self.bytes.items() if part == semconv.TOOL_RESULTS and tool)
        size, tool = max(tools, default=(0, ""))
        return (tool, size) if tool else None

    def behind(self, prefix_bytes: float) -> dict[tuple[str, str], float]:
        """Return the bytes by part and tool that stand behind the first bytes of the request.

        A request begins with the definitions of tools and the system prompt, wherever the SDK has them.
        """
        left = sum(self.bytes.values()) - prefix_bytes
        found: dict[tuple[str, str], float] = {}
        names = list(self.bytes)
        sizes, keys = self.order
        for size, at in zip(reversed(sizes), reversed(keys), strict=True):
            if left <= 0:
                return found
            key = names[at]
            if key[0] not in _HEADS:
                taken = min(left, size)
                found[key] = found.get(key, 0) + taken
                left -= taken
        for head in reversed(_HEADS):
            for key in names:
                if key[0] == head and left > 0:
                    found[key] = min(self.bytes[key], left)
                    left -= found[key]
        return found


NO_SHARES = Shares(0, {})
