"""The memory of a conversation's last request. With it, only the new messages of the next request are read.

If a request begins with the messages of the request before, these messages have the same parts. Their sizes,
fingerprints and calls are kept, but not their texts. Any other request is read as a whole: a request with an edit, a
window, a summary, a reused call id, or another system prompt.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, takewhile
from typing import TYPE_CHECKING, Any

from agent_otel import semconv
from agent_otel.core import execution_context
from agent_otel.core.execution_context import LONGEST_ID, id_or_none, text_or_none
from agent_otel.core.executions import executions
from agent_otel.core.thread.request_parts import HEADS, MOST_PARTS, OF_THE_MODEL, Sized, depths, joined, prints

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from agent_otel.core.execution_state import Conversation, ExecutionState, SeenCall, SeenParts
    from agent_otel.core.thread.request_parts import Depth
    from agent_otel.core.thread.tool_definitions import ToolSet
    from agent_otel.core.types import ModelRequest, RequestPart
    from agent_otel.telemetry.setup import Telemetry


_MOST_TAIL = 8  # messages that are searched for a result, from the end


@dataclass(slots=True, eq=False)
class Prefix:
    """The messages of a request. The next request of its conversation begins with all of them.

    ``calls`` maps the indexes of results to the calls that they answer. ``ids`` are the results' ids. ``is_adapters``
    is true when adapters have measured all these calls. ``changes`` is the execution's ``call_changes`` at that time.
    ``parts`` are the parts of the conversation.
    """

    prints: tuple[int, ...] = ()
    messages: int = 0
    calls: dict[int, SeenCall] = field(default_factory=dict)
    ids: set[str] = field(default_factory=set)
    message_ids: set[int] = field(default_factory=set)
    changes: int = 0
    is_adapters: bool = True
    parts: SeenParts | None = None


@dataclass(eq=False)
class Read:
    """A model request, with its parts from ``first`` on read.

    ``messages`` is set if the request may be kept. A request that continues another has the conversation and the prefix
    of that request. It also has ``depths``: the values of all its messages, or None if the new messages are not plain
    data. ``calls`` maps the indexes of results to the calls that they answer; ``new`` are calls with results that no
    request held before. ``measured`` are the parts that were read, with their sizes, and ``total`` the bytes of all.
    ``offered`` is the fingerprint of the tools.
    """

    out: Telemetry
    request: ModelRequest
    read: list[RequestPart]
    first: int = 0
    execution_id: str | None = None
    execution: ExecutionState | None = None
    messages: Messages | None = None
    conversation: Conversation | None = None
    prefix: Prefix | None = None
    depths: list[Depth] | None = None
    calls: dict[int, SeenCall] = field(default_factory=dict)
    new: list[SeenCall] = field(default_factory=list)
    measured: list[Sized] = field(default_factory=list)
    total: int = 0
    tools: ToolSet | None = None
    offered: int = 0

    @cached_property
    def parts(self) -> list[RequestPart]:
        """All parts; parts of earlier messages are read on access."""
        return list(self.messages or ()) if self.first else self.read

    @cached_property
    def sized(self) -> list[Sized]:
        """All parts with their sizes; parts of earlier messages were measured before."""
        if self.conversation is None or not self.first:
            return self.measured
        seen = self.conversation.parts
        return [*map(Sized, self.parts[: self.first], seen.sizes, seen.prints), *self.measured]


def find(out: Telemetry, request: ModelRequest, messages: Messages) -> Read | None:
    """Return a request that continues the request before it, without its calls. Return None for any other."""
    count = len(messages.items)
    tail = (messages.between(end - 1, end) for end in range(count, max(count - _MOST_TAIL, 0), -1))
    execution_id = _known_execution(request, newest_ids(part for parts in tail for part in reversed(parts)))
    execution = None if execution_id is None else executions.known(execution_id)
    if execution_id is None or execution is None:
        return None
    for conversation in reversed(list((execution.streams or {}).values())):
        prefix: Prefix | None = conversation.prefix
        if (
            prefix is not None
            and prefix.messages <= count
            and prefix.changes == execution.call_changes
            and prefix.parts is conversation.parts
            and conversation.shares.parts == len(conversation.parts.prints)  # else another thread sends a request
            and (known := depths(messages.plain(0, prefix.messages), prefix.prints)) is not None
        ):
            break
    else:
        return None
    if prefix.messages < count:
        more = depths(messages.plain(prefix.messages, count))
        known = None if more is None else joined(known, more)
    new = messages.between(prefix.messages, count)
    ids = [part.call_id for part in new if part.part == semconv.TOOL_RESULTS and part.call_id is not None]
    if not _follows(prefix, new, ids) or _known_execution(request, ids, prefix.ids) != execution_id:
        return None
    conversation.prefix = None  # another thread may send the same messages
    first = len(conversation.parts.prints)
    it = Read(out, request, new, first, execution_id, execution, messages, conversation, prefix, known)
    it.tools = conversation.tools
    return it


def _known_execution(request: ModelRequest, newest: Iterable[str], earlier: Iterable[str] = ()) -> str | None:
    """Return the execution of a request. If it has none, return the execution of the loop in its context."""
    run = execution_context.loop_here()
    return execution_of(request, newest, earlier) or (None if run is None else run.key)


def _follows(prefix: Prefix, new: Sequence[RequestPart], ids: Sequence[str]) -> bool:
    """Return true when all facts about the earlier parts stay valid with the new parts."""
    if prefix.parts is None or len(prefix.parts.prints) + len(new) > MOST_PARTS:
        return False
    # If no adapter saw a result's call, the result is new in a retry. After a message of the model, it is old.
    if (ids or not prefix.is_adapters) and (not new or new[0].part not in OF_THE_MODEL):
        return False
    keys = message_keys(new)
    if not (_is_new(ids, prefix.ids) and _is_new(keys, prefix.message_ids)):
        return False
    # A result without an id is matched by its tool's name and its order among all results.
    return not any(
        part.part in HEADS or (part.part == semconv.TOOL_RESULTS and part.call_id is None and part.name is not None)
        for part in new
    )


def _is_new(keys: Sequence[Any], known: Collection[Any]) -> bool:
    """Return true when keys are there once."""
    return len(set(keys)) == len(keys) and not any(key in known for key in keys)


def newest_ids(parts: Iterable[RequestPart]) -> list[str]:
    """Return the ids of the results that a request delivers first.

    ``parts`` are its parts in reverse. A message of the user may follow the results, but no message of the model.
    """
    newest = takewhile(lambda part: part.part not in OF_THE_MODEL, parts)
    return [part.call_id for part in newest if part.part == semconv.TOOL_RESULTS and part.call_id]


def execution_of(request: ModelRequest, newest: Iterable[str], earlier: Iterable[str] = ()) -> str | None:
    """Return the execution of a request that contains results with these ids."""
    run = None if request.execution else execution_context.outermost.get() or execution_context.loop_here()
    likely = request.execution if run is None else run.key
    return execution_context.resolve(
        request.execution,
        None,
        lambda: executions.owner(newest, likely),
        lambda: executions.owner(earlier, likely),
    )


def keep(it: Read, execution: ExecutionState) -> None:
    """Keep a request for the next request of its conversation."""
    messages, conversation = it.messages, it.conversation
    # Keep nothing at the first turn: most conversations have a single request.
    if messages is None or conversation is None or conversation.turns == 1:
        return
    prefix, count = it.prefix or Prefix(), len(messages.items)
    found = depths(messages.plain(0, count)) if it.prefix is None else it.depths
    if (
        found is not None
        and it.first + len(it.measured) == len(conversation.parts.prints)
        and _add(prefix, it, execution)
    ):
        prefix.parts, prefix.changes = conversation.parts, execution.call_changes
        prefix.messages, prefix.prints = count, prints(found)
        conversation.prefix = prefix


def _add(prefix: Prefix, it: Read, execution: ExecutionState) -> bool:
    """Add the new parts to a prefix. Return false if the next request has to be read as a whole."""
    keys = message_keys(one.part for one in it.measured)
    if not _is_new(keys, prefix.message_ids):
        return False
    prefix.message_ids.update(keys)
    for at, (part, *_) in enumerate(it.measured, it.first):
        if part.part != semconv.TOOL_RESULTS:
            continue
        if part.call_id is not None:
            call = it.calls.get(at)
            if part.call_id in prefix.ids or call is None or execution.call_ids.get(part.call_id) is not call:
                return False
            prefix.ids.add(part.call_id)
            prefix.calls[at] = call
            prefix.is_adapters = prefix.is_adapters and not call.shown and call.produced >= 0
        elif part.name is not None:
            return False
    return True


# The messages of a request before they are read as parts, and the plain data that identifies them.


def plain_part(part: RequestPart) -> RequestPart:
    """Return a part of a request with each id and the name as a plain text or None."""
    call_id, name, message_id = part.call_id, part.name, part.message_id
    if (
        (call_id is None or (type(call_id) is str and len(call_id) <= LONGEST_ID))
        and (name is None or type(name) is str)
        and (message_id is None or (type(message_id) is str and len(message_id) <= LONGEST_ID))
    ):
        return part
    return part._replace(call_id=id_or_none(call_id), name=text_or_none(name), message_id=id_or_none(message_id))


class Messages:
    """The parts of a request: the parts before its messages, and a function that returns the parts of a message.

    For messages that are objects, ``values`` returns the data that ``read`` reads, as plain data. ``id_of`` returns
    the id of a message.
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
        """Return the data that ``read`` reads of some messages. The values of ``head`` precede the first message."""
        items = self.items[first:end]
        read = list(items) if self.values is None else list(map(self.values, items))
        return read if first or not self.head else [*(part.value for part in self.head), *read]

    def between(self, first: int, end: int) -> list[RequestPart]:
        """Return the parts of some of the messages."""
        return [plain_part(part) for item in self.items[first:end] for part in self.read(item)]


def has_doubled_ids(parts: Iterable[RequestPart]) -> bool:
    """Return true when a request contains a message id twice. The SDK's own request does not have these ids."""
    if type(parts) is Messages and parts.id_of is not None:
        known = [each for each in map(parts.id_of, parts.items) if each is not None]
        if len(known) == len(set(known)):
            return False
    keys = message_keys(parts)
    return len(keys) > len(set(keys))


def message_keys(parts: Iterable[RequestPart]) -> list[int]:
    """Return hashes of the ids of messages, by the kinds of their parts."""
    return [hash((part.message_id, part.part)) for part in parts if part.message_id is not None]
