"""Shares of a model request: its bytes by part and tool, and their order, by which tokens and prices are divided."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from agent_otel import semconv
from agent_otel._internal.named_tuples import NamedTuple
from agent_otel.core.savable import NO_SAVABLE, Savable

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Parts that providers put before all messages, the first one last.
HEADS = (semconv.SYSTEM, semconv.TOOLS)
_MOST_BYTES = 2**32 - 1


class Order(NamedTuple):
    """The parts of a request's messages in order: bytes, and the place of the part and tool in `Shares.bytes`."""

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
    #: Bytes by part.
    by_part: Mapping[str, int] = {}
    #: The part with most bytes, and the tool whose results have most.
    largest_part: str | None = None
    largest_tool: str | None = None

    def add_behind(self, amounts: list[float], left: float, rate: float) -> None:
        """Add the last bytes of the request, so many as are ``left``, at a rate to the amounts of its parts and tools.

        A request begins with the definitions of tools and the system prompt, wherever the SDK has them. The amounts are
        in the places of parts and tools in `bytes`.
        """
        if left <= 0:
            return
        sizes, places = self.order
        for size, at in zip(reversed(sizes), reversed(places), strict=True):
            if size >= left:
                amounts[at] += left * rate
                return
            amounts[at] += size * rate
            left -= size
        for head in HEADS:
            for at, (key, size) in enumerate(self.bytes.items()):
                if key[0] == head:
                    amounts[at] += min(size, left) * rate
                    left -= min(size, left)


NO_SHARES = Shares(0, {})
