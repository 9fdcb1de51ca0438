"""The memory of a conversation's last request. With it, only the new messages of the next request are read.

If a request begins with the messages of the request before, these messages have the same parts. Their sizes,
fingerprints and calls are kept, but not their texts. Any other request is read as a whole: a request with an edit, a
window, a summary, a reused call id, or another system prompt.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from gc import get_referents
from itertools import chain, compress
from operator import add, itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from agent_otel import semconv
from agent_otel._internal.errors import ours
from agent_otel._internal.object_kinds import fields
from agent_otel.core import execution_context
from agent_otel.core.execution_context import LONGEST_ID, id_or_none, text_or_none
from agent_otel.core.executions import executions
from agent_otel.core.request_parts import HEADS, KINDS, MOST_PARTS, OF_THE_MODEL, Sized

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agent_otel.core.execution_state import Conversation, ExecutionState, SeenCall, SeenParts
    from agent_otel.core.types import ModelRequest, RequestPart


_T = TypeVar("_T")
_MOST_TAIL = 8  # messages that are searched for a result, from the end


class Prefix:
    """The messages of a request. The next request of its conversation begins with all of them.

    ``calls`` maps the indexes of results to the calls that they answer. ``ids`` are the results' ids. ``is_adapters``
    is true when adapters have measured all these calls. ``changes`` is the execution's ``call_changes`` at that time.
    ``parts`` are the parts of the conversation.
    """

    __slots__ = (*("calls", "changes", "doubled", "ids", "is_adapters", "message_ids", "messages", "parts", "prints"),)

    def __init__(self) -> None:
        self.prints: tuple[Print, ...] = ()
        self.messages = 0
        self.calls: dict[int, SeenCall] = {}
        self.ids: dict[str, None] = {}
        self.message_ids: set[int] = set()
        self.changes = 0
        self.doubled = False
        self.is_adapters = True
        self.parts: SeenParts | None = None


class Read(NamedTuple):
    """A request with the parts from ``first`` on read.

    ``calls`` maps the indexes of results among these parts to the calls that they answer. ``messages`` is set if the
    request may be kept. A request that continues another has the conversation and the prefix of that request. It also
    has ``depths``: the values of all its messages, or None if the new messages are not plain data.
    """

    parts: Sequence[RequestPart]
    first: int
    execution_id: str | None
    execution: ExecutionState | None
    calls: dict[int, SeenCall]
    messages: Messages | None = None
    conversation: Conversation | None = None
    prefix: Prefix | None = None
    depths: list[Depth] | None = None


class Parts(Sequence[_T]):
    """All parts of a request. The first parts are read on access."""

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
        """Return the parts of this kind among the first parts."""
        kind = KINDS[part]
        return [self[at] for at, one in enumerate(self.kinds) if one == kind] if kind in self.kinds else []


def _parts_of(messages: Messages, count: int, seen: SeenParts, new: list[RequestPart]) -> Parts[RequestPart]:
    """Return the parts of a request. The parts of its first ``count`` messages are read on access."""
    left, found = iter(messages), list[Any]()

    def early(at: int) -> RequestPart:
        if at == len(seen.prints) - 1 and (ending := messages.between(count - 1, count)):
            return ending[-1]
        while len(found) <= at:
            found.append(next(left))
        return found[at]  # type: ignore[no-any-return]

    return Parts(len(seen.prints), early, new, seen.kinds)


def sized_parts(parts: Sequence[RequestPart], seen: SeenParts, new: list[Sized]) -> Parts[Sized]:
    """Return these parts with their sizes. The sizes of the first parts were measured before."""
    return Parts(len(seen.prints), lambda at: Sized(parts[at], seen.sizes[at], seen.prints[at]), new, seen.kinds)


def find(request: ModelRequest, messages: Messages) -> Read | None:
    """Return a request that continues the request before it, without its calls. Return None for any other."""
    count, newest = len(messages.items), None
    for end in range(count, max(count - _MOST_TAIL, 0), -1):
        newest = newest_ids(reversed(messages.between(end - 1, end)))
        if newest is not None:
            break
    execution_id = _known_execution(request, newest or ())
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
            and (known := recognised(messages.plain(0, prefix.messages), prefix.prints, len(messages.head))) is not None
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
    seen = conversation.parts
    parts = _parts_of(messages, prefix.messages, seen, new)
    return Read(parts, len(seen.prints), execution_id, execution, {}, messages, conversation, prefix, known)


def _known_execution(request: ModelRequest, newest: Iterable[str], earlier: Iterable[str] = ()) -> str | None:
    """Return the execution of a request. If it has none, return the execution of the loop in its context."""
    run = execution_context.loop_here()
    return execution_of(request, newest, earlier) or (None if run is None else run.key)


def _follows(prefix: Prefix, new: Sequence[RequestPart], ids: Sequence[str]) -> bool:
    """Return true when all facts about the earlier parts stay valid with the new parts."""
    if prefix.parts is None or len(prefix.parts.prints) + len(new) > MOST_PARTS:
        return False
    # If no adapter saw a result's call, the result is new in a retry. After a message of the model, it is old.
    if not prefix.is_adapters and (not new or new[0].part not in OF_THE_MODEL):
        return False
    if len(set(ids)) < len(ids) or not prefix.ids.keys().isdisjoint(ids):
        return False
    # A result without an id is matched by its tool's name and its order among all results.
    return not any(
        part.part in HEADS or (part.part == semconv.TOOL_RESULTS and part.call_id is None and part.name is not None)
        for part in new
    )


def newest_ids(parts: Iterable[RequestPart]) -> list[str] | None:
    """Return the ids of the results that a request delivers first, or None while they are unknown.

    ``parts`` are its parts in reverse. A message of the user may follow the results, but no message of the model.
    """
    found: list[str] = []
    for part in parts:
        if part.part == semconv.TOOL_RESULTS:
            found += (part.call_id,) if part.call_id else ()
        elif part.part in OF_THE_MODEL:
            return found
    return found or None


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


def keep(request: Read, execution: ExecutionState, conversation: Conversation, new: Sequence[Sized]) -> None:
    """Keep a request for the next request of its conversation. ``new`` are its new parts."""
    messages = request.messages
    # Keep nothing at the first turn: most conversations have a single request.
    if messages is None or conversation.turns == 1:
        return
    prefix, found, count = request.prefix or Prefix(), request.depths, len(messages.items)
    if request.prefix is None:
        found = depths(messages.plain(0, count), len(messages.head))
    if found is None:
        return
    if request.first + len(new) == len(conversation.parts.prints) and _add(prefix, request, execution, new):
        prefix.parts, prefix.changes = conversation.parts, execution.call_changes
        if prefix.messages < count:
            prefix.messages, prefix.prints = count, prints(found)
        conversation.prefix = prefix


def _add(prefix: Prefix, request: Read, execution: ExecutionState, new: Sequence[Sized]) -> bool:
    """Add parts to a prefix. Return false if the next request has to be read as a whole."""
    for at, (part, *_) in enumerate(new, request.first):
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


_LONG: Final = 1_024  # characters; a text up to this length is hashed as a whole
_ENDS: Final = itemgetter(slice(64), slice(-64, None))
_TEXTS: Final = frozenset((str,))
_NUMBERS: Final = frozenset((int, bool, float, str))
_DEEPEST: Final = 16
_MOST_VALUES: Final = 100_000

# Sorts of values, and tables that translate a row of sorts into a selection. Empty texts are sorted as numbers, because
# "" and 0 have the same hash. Numbers are compared as text: -1 has the hash of -2, and 0 has the hash of 2 ** 61 - 1.
_TEXT, _LONG_TEXT, _NUMBER, _STRUCTURE, _OBJECT = range(5)
_IS_TEXT, _IS_LONG_TEXT, _IS_NUMBER, _IS_OPENED = (
    bytes(each).ljust(256, b"\0") for each in ((1,), (0, 1), (0, 0, 1), (0, 0, 0, 1, 1))
)

# Prints of messages show that a request begins with the messages of an earlier request. Messages are read by depth:
# their fields, the blocks in these fields, the fields of the blocks. The print of a depth is a hash of its values. A
# long text adds only its length and its two ends to the hash. The print records which values are structures and which
# are long texts. So the next request's values are sorted and compared without a loop.


#: Short texts and None; long texts; numbers; structures and objects.
Values = tuple[tuple[Any, ...], list[Any], tuple[Any, ...], list[Any]]


class Depth(NamedTuple):
    """The values at one depth as they are compared: their sorts, short texts and numbers, and the ends of long texts.

    ``lengths`` are the lengths of the structures that contain the values. ``keys`` are the keys of the dictionaries
    among these structures, but only in the first ``named`` values of `depths`. ``types`` are the types of the
    structures. If objects are among the values, ``types`` has ids of types: hashing a class may run the class's code.
    """

    sorts: bytes
    lengths: tuple[int, ...]
    keys: tuple[str, ...]
    types: tuple[type | int, ...]
    texts: tuple[Any, ...]
    long_lengths: tuple[int, ...]
    ends: tuple[tuple[str, str], ...]
    numbers: str


_NO_VALUES: Final = Depth(b"", (), (), (), (), (), (), "")


class Print(NamedTuple):
    """The part of a depth that is kept: the sorts of its values, and a hash of everything that is compared."""

    sorts: bytes
    hash: int


def depths(values: list[Any], named: int = 0) -> list[Depth] | None:
    """Return the values of messages by depth, or None for too many values or data that is not plain.

    In the first ``named`` values, keys of dictionaries are compared as well. Properties of tools may differ only in
    their keys.
    """
    found: list[Depth] = []
    lengths: tuple[int, ...] = ()
    keys: tuple[str, ...] = ()
    left = _MOST_VALUES
    while values:
        left -= len(values)
        if left < 0 or len(found) > _DEEPEST:
            return None
        sorts = bytes(map(_sort, values))
        by_sort = _by_sort(values, sorts)
        inner = _inner(by_sort[-1], sorts)
        if inner is None:
            return None
        try:
            found.append(_depth(sorts, lengths, keys, by_sort))
        except ours(ValueError):  # a number has more digits than Python writes
            return None
        lengths, values = tuple(map(len, inner)), get_referents(*inner)
        # If all keys of a dictionary are texts, it refers to its values only.
        if len(values) != sum(lengths):
            return None
        keys, named = _keys(inner, sorts, lengths, named) if named else ((), 0)
    return found


def recognised(values: list[Any], prints: Sequence[Print], named: int = 0) -> list[Depth] | None:
    """Return the values of messages by depth if they have these prints, else None. See `depths` for ``named``."""
    taken = []
    for one in prints:
        if len(values) != len(one.sorts):
            return None
        texts, long_texts, numbers, opened = by_sort = _by_sort(values, one.sorts)
        # An instance of a class that is written in Python refers to the class, and the class refers to itself. So its
        # values have no end, and the prints do not match. Without such an instance, hashing runs no code of a value's
        # class. A weak proxy has the length and slices of its object but does not refer to it: types are checked too.
        inner = None if get_referents(*texts, *long_texts, *numbers) else _inner(opened, one.sorts)
        if inner is None or not (_TEXTS.issuperset(map(type, long_texts)) and _NUMBERS.issuperset(map(type, numbers))):
            return None
        taken.append((one, by_sort, inner))
        values = get_referents(*inner)
    if values:
        return None
    found: list[Depth] = []
    lengths: tuple[int, ...] = ()
    keys: tuple[str, ...] = ()
    counts = [*(len(one.sorts) for one in prints[1:]), 0]
    try:
        for (one, by_sort, inner), count in zip(taken, counts, strict=True):
            depth = _depth(one.sorts, lengths, keys, by_sort)
            # If the counts differ, the additional values are keys that are not texts.
            if hash(depth) != one.hash or count != sum(lengths := tuple(map(len, inner))):
                return None
            found.append(depth)
            keys, named = _keys(inner, one.sorts, lengths, named) if named else ((), 0)
    except ours(TypeError, LookupError, ValueError):  # another type instead of a text; else as in `depths`
        return None
    return found


def prints(found: Sequence[Depth]) -> tuple[Print, ...]:
    """Return the prints of messages."""
    return tuple(Print(one.sorts, hash(one)) for one in found)


def plain_print(value: Any) -> int | None:
    """Return the print of plain data, else None. It changes with any value, key or position."""
    return None if (found := depths([value], 1)) is None else hash(prints(found))


def joined(first: Sequence[Depth], more: Sequence[Depth]) -> list[Depth]:
    """Return the values of messages, followed at each depth by the values of later messages."""
    count = max(len(first), len(more))
    padded = ([*each, *[_NO_VALUES] * (count - len(each))] for each in (first, more))
    return [_joined(one, other) for one, other in zip(*padded, strict=True)]


def _joined(one: Depth, other: Depth) -> Depth:
    """Return the values of two depths as one. If either contains objects, return the ids of all types."""
    if (_OBJECT in one.sorts) != (_OBJECT in other.sorts):
        one, other = (
            each if _OBJECT in each.sorts else each._replace(types=tuple(map(id, each.types))) for each in (one, other)
        )
    return Depth(*map(add, one, other))


def _sort(value: Any) -> int:
    cls = type(value)
    if cls is str:
        return _LONG_TEXT if len(value) > _LONG else _TEXT if value else _NUMBER
    if cls is dict or cls is list or cls is tuple:
        return _STRUCTURE
    if value is None:
        return _TEXT
    return _NUMBER if cls is int or cls is bool or cls is float else _OBJECT


def _by_sort(values: list[Any], sorts: bytes) -> Values:
    has_texts, has_others = _TEXT in sorts, _STRUCTURE in sorts or _OBJECT in sorts
    has_long_texts, has_numbers = _LONG_TEXT in sorts, _NUMBER in sorts
    if has_others and not (has_texts or has_long_texts or has_numbers):
        return (), [], (), values
    if has_texts and not (has_others or has_long_texts or has_numbers):
        return tuple(values), [], (), []
    return (
        tuple(compress(values, sorts.translate(_IS_TEXT))),
        list(compress(values, sorts.translate(_IS_LONG_TEXT))) if has_long_texts else [],
        tuple(compress(values, sorts.translate(_IS_NUMBER))) if has_numbers else (),
        list(compress(values, sorts.translate(_IS_OPENED))) if has_others else [],
    )


def _inner(opened: list[Any], sorts: bytes) -> list[Any] | None:
    """Return structures, and the fields of objects. Return None if an object has no fields."""
    if _OBJECT not in sorts:
        return opened
    inner = [one if _sort(one) == _STRUCTURE else fields(one) for one in opened]
    return inner if all(has or has is one for has, one in zip(inner, opened, strict=True)) else None


def _keys(inner: Sequence[Any], sorts: bytes, lengths: tuple[int, ...], named: int) -> tuple[tuple[str, ...], int]:
    """Return the keys of dictionaries in the first ``named`` values of a depth, and the number of inner values."""
    count = sum(map(sorts[:named].count, (_STRUCTURE, _OBJECT)))
    keys = chain.from_iterable([one for one in inner[:count] if type(one) is dict])
    return tuple(keys), sum(lengths[:count])


def _depth(sorts: bytes, lengths: tuple[int, ...], keys: tuple[str, ...], values: Values) -> Depth:
    texts, long_texts, numbers, opened = values
    types: Any = map(type, opened)
    types = tuple(map(id, types) if _OBJECT in sorts else types)
    sizes, ends = tuple(map(len, long_texts)), tuple(map(_ENDS, long_texts))
    written = f"{repr([*numbers])[1:-1]}, " if numbers else ""
    return Depth(sorts, lengths, keys, types, texts, sizes, ends, written)


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
    ids = [(part.message_id, part.part) for part in parts if part.message_id is not None]
    return len(ids) > len(set(ids))
