"""The memory of a conversation's last request, by which the next one is read from its first new message on.

A request that begins with the messages of the one before has the same parts there. Their sizes, fingerprints and calls
are kept, none of their texts. A request that begins otherwise is read as a whole: one with an edit, a window, a
summary, a call id that is used again, or another system prompt.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from opentelemetry import trace

from agent_otel import semconv
from agent_otel._internal.named_tuples import NamedTuple
from agent_otel.core import execution_context
from agent_otel.core.executions import executions
from agent_otel.core.message_prints import depths, joined, prints, recognised
from agent_otel.core.request_parts import KINDS, MOST_PARTS, Sized

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_otel.core.execution_state import Conversation, ExecutionState, SeenCall, SeenParts
    from agent_otel.core.message_parts import Messages
    from agent_otel.core.message_prints import Depth, Print
    from agent_otel.core.types import ModelRequest, RequestPart

_T = TypeVar("_T")
_new = tuple.__new__
_OF_THE_MODEL = (semconv.ASSISTANT, semconv.TOOL_CALL_ARGUMENTS)
_HEADS = (semconv.SYSTEM, semconv.TOOLS)
_MOST_TAIL = 8  # messages at the end in which a result is looked for


class Prefix:
    """The messages of a request, all of which the next request of its conversation begins with.

    ``calls`` are the calls that its results answer, by their places, ``ids`` the results' ids. ``is_adapters`` is true
    when adapters have measured all of them. ``changes`` are those of the execution's calls by then. ``parts`` are those
    of the conversation.
    """

    __slots__ = (
        *("calls", "changes", "doubled", "ids", "is_adapters", "message_ids", "messages", "offered", "parts", "prints"),
        *("sizes", "user_messages", "users"),
    )

    def __init__(self) -> None:
        self.prints: tuple[Print, ...] = ()
        self.messages = 0
        self.calls: dict[int, SeenCall] = {}
        self.ids: dict[str, None] = {}
        self.message_ids: set[int] = set()
        self.sizes: dict[Any, int] = dict.fromkeys(semconv.REQUEST_PARTS, 0)
        self.users = 0
        self.user_messages: dict[int, int] = {}
        self.offered = 0
        self.changes = 0
        self.doubled = False
        self.is_adapters = True
        self.parts: SeenParts | None = None


class Continued(NamedTuple):
    """A request that continues the one before it: what was kept of that, and the new parts.

    ``depths`` are the values of all of its messages, None where the new ones are no plain data.
    """

    execution_id: str
    execution: ExecutionState
    conversation: Conversation
    prefix: Prefix
    depths: list[Depth] | None
    new: list[RequestPart]


class Read(NamedTuple):
    """A request: its parts from ``first`` on are read, and ``calls`` are those that their results answer.

    ``messages`` are those of a request that may be kept.
    """

    parts: Sequence[RequestPart]
    first: int
    execution_id: str | None
    execution: ExecutionState | None
    calls: dict[int, SeenCall]
    messages: Messages | None
    continued: Continued | None


class Parts(Sequence[_T]):
    """All parts of a request; the first ones are read when they are asked for."""

    __slots__ = ("_early", "_new", "first", "kinds")

    def __init__(self, first: int, early: Callable[[int], _T], new: list[_T], kinds: bytes = b"") -> None:
        self.first = first
        self.kinds = kinds
        self._early = early
        self._new = new

    def __len__(self) -> int:
        return self.first + len(self._new)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            start, stop, step = at.indices(len(self))
            if start >= self.first and step == 1:
                return self._new[start - self.first : max(stop - self.first, 0)]
            return [self[place] for place in range(start, stop, step)]
        at = at + len(self) if at < 0 else at
        return self._new[at - self.first] if at >= self.first else self._early(at)

    def of_kind(self, part: str) -> list[_T]:
        """Return the parts of this kind among the first ones."""
        kind = KINDS[part]
        return [self[at] for at, one in enumerate(self.kinds) if one == kind] if kind in self.kinds else []


def parts_of(messages: Messages, continued: Continued) -> Parts[RequestPart]:
    """Return the parts of a request that continues another; the first ones are read as far as they are asked for."""
    left, found = iter(messages), list[Any]()
    seen, last = continued.conversation.parts, continued.prefix.messages - 1

    def early(at: int) -> RequestPart:
        if at == len(seen.prints) - 1 and (ending := messages.between(last, last + 1)):
            return ending[-1]
        while len(found) <= at:
            found.append(next(left))
        return found[at]  # type: ignore[no-any-return]

    return Parts(len(seen.prints), early, continued.new, seen.kinds)


def sized_parts(parts: Sequence[RequestPart], continued: Continued, new: list[Sized]) -> Parts[Sized]:
    """Return these parts with their sizes; those of the first ones were measured before."""
    seen = continued.conversation.parts

    def early(at: int) -> Sized:
        return Sized(parts[at], seen.sizes[at], seen.prints[at])

    return Parts(len(seen.prints), early, new, seen.kinds)


def find(request: ModelRequest, messages: Messages) -> Continued | None:
    """Return what is known of a request that continues the one before it, and its new parts; None for any other."""
    execution_id = execution_of(request, _last_ids(messages))
    execution = None if execution_id is None else executions.known(execution_id)
    if execution_id is None or execution is None:
        return None
    for conversation in reversed(list((execution.streams or {}).values())):
        prefix: Prefix | None = conversation.prefix
        if (
            prefix is not None
            and prefix.messages <= len(messages.items)
            and prefix.changes == execution.call_changes
            and prefix.parts is conversation.parts
            and (known := recognised(messages.plain(0, prefix.messages), prefix.prints, len(messages.head))) is not None
        ):
            break
    else:
        return None
    count = len(messages.items)
    if prefix.messages < count:
        more = depths(messages.plain(prefix.messages, count))
        known = None if more is None else joined(known, more)
    new = messages.between(prefix.messages, count)
    ids = [part.call_id for part in new if part.part == semconv.TOOL_RESULTS and part.call_id is not None]
    if not _follows(prefix, new, ids) or execution_of(request, chain(prefix.ids, ids)) != execution_id:
        return None
    conversation.prefix = None  # another thread may send the same messages
    return Continued(execution_id, execution, conversation, prefix, known, new)


def _follows(prefix: Prefix, new: Sequence[RequestPart], ids: Sequence[str]) -> bool:
    """Return true when new parts change nothing of what is known of those before them."""
    if prefix.parts is None or len(prefix.parts.prints) + len(new) > MOST_PARTS:
        return False
    # A result whose call no adapter saw is new in a retry. Behind a message of the model it is an old one.
    if not prefix.is_adapters and (not new or new[0].part not in _OF_THE_MODEL):
        return False
    if len(set(ids)) < len(ids) or not prefix.ids.keys().isdisjoint(ids):
        return False
    return not any(part.part in _HEADS or _is_by_name(part) for part in new)


def _is_by_name(part: RequestPart) -> bool:
    """Return true for a result that is matched by its tool's name and the order of all."""
    return part.part == semconv.TOOL_RESULTS and part.call_id is None and part.name is not None


def _last_ids(messages: Messages) -> list[str]:
    """Return the ids of the last results."""
    count = len(messages.items)
    for end in range(count, max(count - _MOST_TAIL, 0), -1):
        parts = messages.between(end - 1, end)
        found = [part.call_id for part in parts if part.call_id and part.part == semconv.TOOL_RESULTS]
        if found:
            return found
    return []


def execution_of(request: ModelRequest, ids: Iterable[str]) -> str | None:
    """Return the execution of a request with results of these ids, the newest last."""

    def owner() -> str | None:
        run = None if request.execution else execution_context.outermost.get()
        return executions.owner(ids, request.execution if run is None else run.key)

    return execution_context.resolve(request.execution, trace.get_current_span(), owner)


def keep(  # noqa: PLR0913, PLR0917 - the readings of one request
    request: Read,
    messages: Messages,
    execution: ExecutionState,
    conversation: Conversation,
    new: Sequence[Sized],
    user_messages: dict[int, int],
    offered: int,
) -> None:
    """Keep a request for the next one of its conversation; ``new`` are its new parts, ``offered`` its tools."""
    continued, count = request.continued, len(messages.items)
    prefix = Prefix() if continued is None else continued.prefix
    found = depths(messages.plain(0, count), len(messages.head)) if continued is None else continued.depths
    if found is None:
        return
    if request.first + len(new) == len(conversation.parts.prints) and _add(prefix, request, execution, new):
        prefix.user_messages, prefix.offered = user_messages, offered
        prefix.parts, prefix.changes = conversation.parts, execution.call_changes
        if prefix.messages < count:
            prefix.messages, prefix.prints = count, prints(found)
        conversation.prefix = prefix


def _add(prefix: Prefix, request: Read, execution: ExecutionState, new: Sequence[Sized]) -> bool:
    """Add parts to what is kept; return false where the next request has to be read as a whole."""
    for at, (part, size, _) in enumerate(new, request.first):
        prefix.sizes[part.part] += size
        if part.part == semconv.USER:
            prefix.users += 1
        if part.message_id is not None:
            key = hash((part.message_id, part.part))
            prefix.doubled = prefix.doubled or key in prefix.message_ids
            prefix.message_ids.add(key)
        if part.part != semconv.TOOL_RESULTS:
            continue
        if part.call_id is not None:
            call = request.calls.get(at)
            if part.call_id in prefix.ids or call is None or execution.call_ids.get(part.call_id) is not call:
                return False
            prefix.ids[part.call_id] = None
            prefix.calls[at] = call
            prefix.is_adapters = prefix.is_adapters and not call.shown and call.produced >= 0
        elif part.name is not None:
            return False
    return True
