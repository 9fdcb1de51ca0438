"""The parts of a model request: texts, sizes, their fingerprints, and their shares.

Tokens and prices are divided by the shares: bytes by part and tool, and their order.
"""

from __future__ import annotations

from array import array
from gc import get_referents
from itertools import accumulate, chain, compress, repeat, zip_longest
from operator import add, sub
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_otel import semconv
from agent_otel._internal.errors import ours
from agent_otel._internal.lazy import pattern
from agent_otel._internal.object_kinds import fields, is_dict, listed, text
from agent_otel.measure.preview import preview

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from agent_otel.core.types import RequestPart
    from agent_otel.measure.size import Size
    from agent_otel.settings import Settings

#: Parts that providers put before all messages, the first one last.
HEADS = (semconv.SYSTEM, semconv.TOOLS)
OF_THE_MODEL = (semconv.ASSISTANT, semconv.TOOL_CALL_ARGUMENTS)
OF_CALLS = (semconv.TOOL_CALL_ARGUMENTS, semconv.TOOL_RESULTS)
#: Parts of a request that keep their fingerprints; a longer request is compared up to here.
MOST_PARTS = 2_048
#: Kinds of parts by number.
KINDS = {part: number for number, part in enumerate(semconv.REQUEST_PARTS)}
_HEAD = 64  # characters of a part in its fingerprint
_READ = 1_024  # characters of a system prompt that are searched for dates and times, and of values that are compared
_LARGEST = 64 * 1024  # bytes of a result that is compared as a whole
_FEW_BYTES = 16
_NUMBERS = pattern(r"\d+")
# A digit in front lets the search skip everything else.
_CLOCK = pattern(
    r"\d(?:\d{3}-\d\d-\d\d[T ]?|\d?:\d\d(?::\d\d(?:\.\d+)?)?(?: ?[AaPp]\.?[Mm]\b)?"
    r"|\d?([./])\d\d?\1\d{2,4}|(?<=\b1)\d{9}(?:\.\d+|\d{3})?\b)"
)


class Sized(NamedTuple):
    """A part of a request with its size in bytes and its fingerprint."""

    part: RequestPart
    bytes: int
    print: int


def texts(value: object) -> Iterator[str]:
    """Yield the texts of a part."""
    cls = type(value)
    if issubclass(cls, str):
        yield text(value) or ""
    elif issubclass(cls, list):
        for block in listed(value):
            said = text(fields(block).get("text")) if is_dict(block) else text(block)
            if said is not None:
                yield said


def first_text(value: object) -> str:
    """Return the first text of a part, an empty one where it has none."""
    return value if type(value) is str else next(texts(value), "")


def characters(value: object) -> int:
    """Return the number of characters of a result that consists of text only, else -1."""
    cls = type(value)
    if issubclass(cls, str):
        return str.__len__(value)  # type: ignore[arg-type]
    lengths = list(map(len, texts(value)))
    return sum(lengths) if issubclass(cls, list) and len(lengths) == list.__len__(value) else -1  # type: ignore[arg-type]


def fingerprint(part: RequestPart, part_bytes: int) -> int:
    """Return the fingerprint of a part that belongs to no tool call seen."""
    value = part.value
    begins = value[:_HEAD] if type(value) is str else beginning(value)
    return hash((part.part, part.call_id, part_bytes, begins))


def sketch(part: RequestPart) -> int:
    """Return a fingerprint of a part without its size."""
    return hash((part.part, part.call_id, characters(part.value), beginning(part.value)))


def timeless(value: object) -> str:
    """Return the beginning of a part without dates and times, which differ in each request of the same agent."""
    return _CLOCK.sub("", first_text(value)[:_READ])


def timeless_print(one: Sized) -> int:
    """Return a fingerprint without dates and times. Texts without a clock are distinguished by their size as well."""
    text = timeless(one.part.value)
    return hash((one.part.part, text)) if text != first_text(one.part.value)[:_READ] else one.print


def outcome(value: object, measured: Size, arguments: object) -> int:
    """Return a fingerprint that equal results of a tool share.

    A short result, such as ``ok``, does not show a loop alone: it counts with the arguments, without their numbers.
    """
    cls, (result_bytes, is_exact) = type(value), measured
    if cls is str and _FEW_BYTES <= result_bytes <= _LARGEST:
        return hash(value)
    text: Any = value
    if cls is str:
        text = f"{value[:_READ]}{value[-_READ:]}" if result_bytes > _LARGEST else value  # type: ignore[index]
    elif not is_exact or result_bytes > _LARGEST or (text := plain_print(value)) is None:
        text = preview(value, _READ, 16 * _READ)
    if result_bytes < _FEW_BYTES:
        return hash((text, _NUMBERS.sub("", preview(arguments, _READ, 16 * _READ))))
    return hash((text, result_bytes))


def beginning(value: object) -> str:
    """Return the first characters of a part."""
    return first_text(value)[:_HEAD]


_DEEPEST: Final = 16
_MOST_VALUES: Final = 100_000
#: Sorts of plain data by the id of the type, because hashing a class may run its code. Any other value is an object.
_SORTS: Final = {id(cls): sort for sort, cls in enumerate((str, int, bool, float, type(None), dict, list, tuple))}
_OBJECT: Final = len(_SORTS)
#: Tables that translate a row of sorts into a selection.
_IS_TEXT, _IS_NUMBER, _IS_OPENED = (
    bytes(sort in each for sort in range(256)) for each in ({0}, {1, 2, 3}, {5, 6, 7, _OBJECT})
)

# Prints of messages show that a request begins with the messages of an earlier request. Messages are read by depth:
# their fields, the blocks in these fields, the fields of the blocks. The print of a depth is a hash of its values.


class Depth(NamedTuple):
    """The values at one depth as they are compared: their sorts, the texts, and the numbers as they are written.

    Numbers are written because -1 has the hash of -2. ``lengths`` are the lengths of the structures that contain the
    values, ``keys`` the keys of the dictionaries among these. ``types`` are the ids of the types of objects.
    """

    sorts: bytes = b""
    lengths: tuple[int, ...] = ()
    keys: tuple[str, ...] = ()
    types: tuple[int, ...] = ()
    texts: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()


def depths(values: list[Any], expected: Sequence[int] | None = None) -> list[Depth] | None:
    """Return the values by depth; None for too many, data that is not plain, and other prints than ``expected``."""
    found: list[Depth] = []
    lengths: tuple[int, ...] = ()
    keys: tuple[str, ...] = ()
    left = _MOST_VALUES
    while values:
        left -= len(values)
        if left < 0 or len(found) > _DEEPEST:
            return None
        sorts = bytes(map(_SORTS.get, map(id, map(type, values)), repeat(_OBJECT)))
        opened = inner = list(compress(values, sorts.translate(_IS_OPENED)))
        types: tuple[int, ...] = ()
        if _OBJECT in sorts:
            types = tuple(cls for cls in map(id, map(type, opened)) if cls not in _SORTS)
            inner = [one if id(type(one)) in _SORTS else fields(one) for one in opened]
            if not all(has or has is one for has, one in zip(inner, opened, strict=True)):
                return None  # an object without fields
        texts = tuple(compress(values, sorts.translate(_IS_TEXT)))
        try:
            numbers = tuple(map(repr, compress(values, sorts.translate(_IS_NUMBER))))
        except ours(ValueError):  # a number has more digits than Python writes
            return None
        found.append(Depth(sorts, lengths, keys, types, texts, numbers))
        if expected is not None and (len(found) > len(expected) or hash(found[-1]) != expected[len(found) - 1]):
            return None
        lengths, values = tuple(map(len, inner)), get_referents(*inner)
        # If all keys of a dictionary are texts, it refers to its values only.
        if len(values) != sum(lengths):
            return None
        keys = tuple(chain.from_iterable([one for one in inner if type(one) is dict]))
    return found if expected is None or len(found) == len(expected) else None


def prints(found: Sequence[Depth]) -> tuple[int, ...]:
    """Return the prints of messages."""
    return tuple(map(hash, found))


def plain_print(value: Any) -> int | None:
    """Return the print of plain data, else None. It changes with any value, key or position."""
    return None if (found := depths([value])) is None else hash(prints(found))


def joined(first: Sequence[Depth], more: Sequence[Depth]) -> list[Depth]:
    """Return the values of messages, followed at each depth by the values of later messages."""
    return [Depth(*map(add, *pair)) for pair in zip_longest(first, more, fillvalue=Depth())]


# The shares of the parts in a request.

# Bytes that remedies would keep out of a request if they were on, estimated from the bytes of its parts. A claim
# check would leave the part of each larger result that its setting lets through. Trimming would leave a line of each
# result of an old turn, and the compaction of arguments a mark. No text is read.


class Savable(NamedTuple):
    """Bytes above the limits of remedies in the parts of a request, in the order of its parts.

    ``results`` are those above the claim check's limit. ``lines`` are those above the line of a trimmed result, for
    each turn with the turns before it. ``waiting`` are bytes of calls without a result, ``arguments`` of answered ones.
    """

    results: int = 0
    arguments: int = 0
    waiting: int = 0
    lines: array[int] = array("q")
    #: True when the next call begins a turn.
    is_answered: bool = True

    def then(self, new: Sequence[Sized], chosen: Settings) -> Savable:
        """Return the sum with the new parts added."""
        results, arguments, waiting, lines, is_answered = self
        lines = lines[:]  # the request before has its own
        most_bytes, line_bytes = chosen.claim_check_bytes, chosen.trim_characters + _LINE_BYTES
        for (part, *_), size, _ in new:
            if part == semconv.TOOL_RESULTS:
                results += max(size - most_bytes, 0)
                arguments, waiting, is_answered = arguments + waiting, 0, True
                if lines:
                    lines[-1] += max(size - line_bytes, 0)
            elif part == semconv.TOOL_CALL_ARGUMENTS:
                if is_answered:
                    lines.append(lines[-1] if lines else 0)
                    is_answered = False
                if size > LARGE_ARGUMENTS:
                    waiting += size - _MARK_BYTES
            elif part == semconv.USER:
                is_answered = True
        return Savable(results, arguments, waiting, lines, is_answered)

    def by_remedy(self, chosen: Settings) -> dict[str, int]:
        """Return the bytes that each remedy would save that is off, alone and with its settings; none of 0."""
        lines, found = self.lines, {}
        if self.results and not chosen.claim_check:
            found[semconv.CLAIM_CHECK] = self.results
        if self.arguments and not chosen.compact_arguments:
            found[semconv.COMPACT] = self.arguments
        step, old_turns = chosen.trim_step_turns, len(lines) - chosen.keep_turns
        if old_turns >= step and not chosen.trim_results and (saved := lines[old_turns // step * step - 1]):
            found[semconv.TRIM] = saved
        return found


NO_SAVABLE: Final = Savable()


class Shares(NamedTuple):
    """Bytes by part and tool, and the number of parts that they sum; the tool is empty where there is none.

    ``sizes`` are the bytes of the messages' parts in order, ``places`` the places of their part and tool in ``bytes``.
    ``removed`` are the bytes by remedy that are missing in the results of the request. ``savable`` are the bytes that
    remedies which are off would keep out of it. ``texts`` are digests of the large texts in it, and ``duplicate_bytes``
    are the bytes of repeated ones.
    """

    parts: int
    bytes: dict[tuple[str, str], int]
    sizes: array[int] = array("Q")
    places: array[int] = array("H")
    removed: Mapping[str, int] = {}
    savable: Savable = NO_SAVABLE
    texts: frozenset[int] = frozenset()
    duplicate_bytes: int = 0

    def by_part(self) -> dict[str, int]:
        """Return the bytes by part."""
        found: dict[str, int] = {}
        for (part, _), size in self.bytes.items():
            found[part] = found.get(part, 0) + size
        return found

    @property
    def largest_part(self) -> str | None:
        """The part with most bytes."""
        sizes = self.by_part()
        return max(sizes, key=sizes.__getitem__, default=None)

    @property
    def largest_tool(self) -> str | None:
        """The tool with the most bytes of results."""
        sizes = {tool: size for (part, tool), size in self.bytes.items() if part == semconv.TOOL_RESULTS if tool}
        return max(filter(sizes.__getitem__, sizes), key=sizes.__getitem__, default=None)

    def add_behind(self, amounts: list[float], left: float, rate: float) -> None:
        """Add the last bytes of the request, so many as are ``left``, at a rate to the amounts of its parts and tools.

        A request begins with the definitions of tools and the system prompt, wherever the SDK has them. The amounts are
        in the places of parts and tools in `bytes`.
        """
        if left <= 0:
            return
        for size, at in zip(reversed(self.sizes), reversed(self.places), strict=True):
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

#: UTF-8 bytes of arguments above which they are compacted, and the bytes that are left of them.
LARGE_ARGUMENTS: Final = 2_000
_MARK_BYTES: Final = 96
#: Bytes of a trimmed result's line around its beginning: its size, tool, status and a reference.
_LINE_BYTES: Final = 64


def portions(total: int, sizes: Sequence[int]) -> list[int]:
    """Divide a total in proportion to sizes, in their order; the portions sum up to it, unless all sizes are 0."""
    whole = sum(sizes) or 1
    ends = [total * end // whole for end in accumulate(sizes)]
    return list(map(sub, ends, [0, *ends]))
