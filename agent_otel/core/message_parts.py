"""The messages of a request before they are read as parts, with plain data by which they are recognised."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from agent_otel.core.execution_context import LONGEST_ID, id_or_none, text_or_none

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from agent_otel.core.types import RequestPart


def plain_part(part: RequestPart) -> RequestPart:
    """Return a part of a request whose ids are text."""
    call_id, name, message_id = part.call_id, part.name, part.message_id
    if (
        (call_id is None or (type(call_id) is str and len(call_id) <= LONGEST_ID))
        and (name is None or type(name) is str)
        and (message_id is None or (type(message_id) is str and len(message_id) <= LONGEST_ID))
    ):
        return part
    return part._replace(call_id=id_or_none(call_id), name=text_or_none(name), message_id=id_or_none(message_id))


class Messages:
    """The parts of a request: those in front of its messages, and a function that returns the parts of a message.

    Of messages that are objects, ``values`` returns what ``read`` reads, as plain data, and ``id_of`` the id.
    """

    __slots__ = ("head", "id_of", "items", "read", "values")

    def __init__(
        self,
        head: Sequence[RequestPart],
        items: Sequence[Any],
        read: Callable[[Any], Iterable[RequestPart]],
        values: Callable[[Any], Any] | None = None,
        id_of: Callable[[Any], object] | None = None,
    ) -> None:
        self.head = head
        self.items = items
        self.read = read
        self.values = values
        self.id_of = id_of

    def __bool__(self) -> bool:
        return bool(self.items or self.head)

    def __iter__(self) -> Iterator[RequestPart]:
        return map(plain_part, chain(self.head, chain.from_iterable(map(self.read, self.items))))

    def plain(self, first: int, end: int) -> list[Any]:
        """Return some of the messages as they are read; before the first one the parts in front of all."""
        items = self.items[first:end]
        read = list(items) if self.values is None else list(map(self.values, items))
        return read if first or not self.head else [*(part.value for part in self.head), *read]

    def between(self, first: int, end: int) -> list[RequestPart]:
        """Return the parts of some of the messages."""
        return [plain_part(part) for item in self.items[first:end] for part in self.read(item)]


def has_doubled_ids(parts: Iterable[RequestPart]) -> bool:
    """Return true when a request holds a message id twice; the SDK's own request does not have these ids."""
    if type(parts) is Messages and parts.id_of is not None:
        known = [each for each in map(parts.id_of, parts.items) if each is not None]
        if len(known) == len(set(known)):
            return False
    ids = [(part.message_id, part.part) for part in parts if part.message_id is not None]
    return len(ids) > len(set(ids))
