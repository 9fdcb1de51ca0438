"""The one walk over a whole value: its compact JSON in short pieces, within a budget.

The ceiling, the claim check, captured content and summaries read values here. A batch of values is counted before it is
encoded. Shared parts count each time they occur. One short call of the C encoder writes a batch of plain values with at
most 8 levels, 8,192 values and 256 Ki characters. Any other value is opened, and its members are read in turn. So no
call keeps other threads waiting, depth needs no recursion, and the walk ends when its steps are used up. No code of a
value runs, except the serializer of a pydantic model with few values.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from datetime import datetime
from gc import is_tracked
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

from agent_otel._internal import object_kinds
from agent_otel._internal.errors import ours, suppressed
from agent_otel._internal.object_kinds import elements, shape_of
from agent_otel.measure.plain_size import values_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from agent_otel._internal.object_kinds import Shape

    _Reader = Callable[[Shape, Any, "_Frame"], "_Frame | Iterable[str]"]

CALLER_STEPS: Final = 100_000
"""Steps of a walk in the thread of a tool call: at most 30 ms."""

WORKER_STEPS: Final = 4_000_000
"""Steps of a walk in a thread of this package: 32 MB of rows with a value for each 8 bytes."""

_BATCH: Final = 256  # members of a container that are counted and encoded together
_BATCH_VALUES: Final = 8192
_BATCH_CHARACTERS: Final = 256 * 1024
_LEVELS: Final = 8
_STEP_BITS: Final = 32  # bits of an integer for one step
_DUMPED_VALUES: Final = 10_000  # largest pydantic model that its serializer writes, in values
_OPEN_STEPS: Final = 24  # steps for a container that is opened
_ODD_STEPS: Final = 14  # steps for a batch that is not plain data
_KEY_STEPS: Final = 48  # steps for a key that is not text
_LABEL_STEPS: Final = 6  # steps for a date
_STEP_CHARACTERS: Final = 64  # characters for one step
_FIELD_STEPS: Final = 8  # steps for a value of a pydantic model
_FAILED_STEPS: Final = 4000  # steps for a serializer that raises, for example beyond 255 levels
_SHORT_INT: Final = 10**300
_LONG_INT: Final = 10**4299  # Python writes larger ones in hexadecimal digits alone
_ARRAY_BYTES: Final = 1024 * 1024  # largest C array with numbers that are read, in bytes
_NUMBER_BYTES: Final = 4
_HEAP_TYPE: Final = 1 << 9

_PLAIN, _MANY, _ODD = range(3)


class BudgetError(ValueError):
    """The steps are used up before the end of the value, or a value such as a generator has no size."""


class _Frame:
    """An open container: its remaining members, and the text that closes it."""

    def __init__(self, members: Iterable[Any], brackets: str, opened: int, *, is_record: bool) -> None:
        self.members: Iterator[Any] = iter(members)
        self.is_object = brackets == "{}"
        self.closing = brackets[1:]
        self.id = opened
        #: True inside an object with fields. A lock or a function is not data there.
        self.is_record = is_record
        self.separator = ""
        self.width = _BATCH if brackets else 1
        #: Members to read one by one, because their batch was not plain.
        self.singles = 0


def pieces(
    root: Any, steps: int = CALLER_STEPS, *, is_strict: bool = False, names_objects: bool = False, is_read: bool = False
) -> Iterator[str]:
    """Yield a value's compact JSON. A value without JSON becomes its type's name, such as ``<generator>``.

    So does a container inside itself and, with ``names_objects``, every object that is not plain data.
    With ``is_read`` the pieces are only read: no serializer runs, texts cost a quarter of the steps, sets are sorted.
    Raises BudgetError when ``steps`` are used up, and, if it is strict, when a value of the data has no size.
    """
    walk = _Walk(steps, is_strict=is_strict, names_objects=names_objects, is_read=is_read)
    frames = [_Frame((root,), "", 0, is_record=False)]
    opened: set[int] = set()
    while frames:
        frame = frames[-1]
        batch = list(islice(frame.members, 1 if frame.singles else frame.width))
        if not batch:
            frames.pop()
            opened.discard(frame.id)
            yield frame.closing
            continue
        verdict = walk.verdict(batch, is_object=frame.is_object)
        if verdict == _PLAIN:
            yield frame.separator + _encode(dict(batch) if frame.is_object else batch)[1:-1]
            frame.separator = ","
            frame.singles -= frame.singles > 0
            continue
        if len(batch) > 1:
            frame.members = chain(batch, frame.members)
            if verdict == _MANY:
                frame.width //= 4
            else:
                frame.singles = len(batch)
            continue
        frame.singles -= frame.singles > 0
        before, frame.separator = frame.separator, ","
        value, read = batch[0], walk.opened
        if frame.is_object:
            walk.spend(0 if type(value[0]) is str else _KEY_STEPS)
            before += _key(value[0]) + ":"
            value, read = value[1], walk.inner
        if before:
            yield before
        inner = _named(value) if id(value) in opened else read(value, frame)
        if isinstance(inner, _Frame):
            opened.add(inner.id)
            yield "{" if inner.is_object else "["
            frames.append(inner)
        else:
            yield from inner


class _Walk:
    """The remaining steps, and the readers of all values that are not plain."""

    def __init__(self, steps: int, *, is_strict: bool, names_objects: bool, is_read: bool) -> None:
        self._steps = steps
        self._is_strict = is_strict
        self._names_objects = names_objects
        self._is_read = is_read
        self._step_characters = (4 if is_read else 1) * _STEP_CHARACTERS

    def spend(self, steps: int) -> None:
        self._steps -= steps
        if self._steps < 0:
            raise BudgetError

    def verdict(self, batch: list[Any], *, is_object: bool) -> int:
        """Return whether a batch is plain, too large, or has a value that must be opened or has no JSON."""
        values, characters = batch, 0
        if is_object:
            values = [value for _, value in batch]
            self.spend(2 * len(batch))
            for key, _ in batch:
                if type(key) is str:
                    characters += len(key)
                elif type(key) is int and -_SHORT_INT < key < _SHORT_INT:
                    characters += 2 + key.bit_length() // 3
                elif key is not None and type(key) is not bool and type(key) is not float:
                    self.spend(_ODD_STEPS)
                    return _ODD
        verdict, count, characters = _count(values, characters)
        self.spend(count + characters // self._step_characters)
        return verdict

    def opened(self, value: Any, around: _Frame) -> _Frame | Iterable[str]:
        """Return a container to be read member by member, or the pieces of any other value."""
        self.spend(_OPEN_STEPS)
        shape = shape_of(type(value))
        if self._names_objects and shape.kind not in _DATA and not issubclass(type(value), list | tuple):
            return _named(value)
        read: _Reader = getattr(self, shape.kind)  # the methods below have the names of the kinds
        return read(shape, value, around)

    def inner(self, value: Any, around: _Frame) -> _Frame | Iterable[str]:
        """Do the same for a value that may be plain."""
        verdict = self.verdict([value], is_object=False)
        return (_encode(value),) if verdict == _PLAIN else self.opened(value, around)

    def mapping(self, _shape: Shape, value: Any, around: _Frame) -> _Frame:
        items = OrderedDict.items if type(value) is OrderedDict else dict.items
        return _Frame(items(value), "{}", id(value), is_record=around.is_record)

    def array(self, shape: Shape, value: Any, around: _Frame) -> _Frame:
        return _Frame(shape.read(value), "[]", id(value), is_record=around.is_record)

    def set(self, shape: Shape, value: Any, around: _Frame) -> _Frame:
        """Return the elements; sorted where they are read only, because their order differs in every process."""
        frame = self.array(shape, value, around)
        if self._is_read:
            self.spend(_KEY_STEPS * shape.length(value))
            frame.members = iter(sorted(frame.members, key=_key))
        return frame

    def value(self, shape: Shape, value: Any, around: _Frame) -> _Frame | Iterable[str]:
        return self.inner(shape.read(value), around)

    def label(self, _shape: Shape, value: Any, _around: _Frame) -> Iterator[str]:
        return self._pieces_of(_label(value))

    def text(self, _shape: Shape, value: Any, _around: _Frame) -> Iterator[str]:
        return self._pieces_of(str.__getitem__(value, slice(None)))

    def _pieces_of(self, text: str) -> Iterator[str]:
        yield '"'
        for start in range(0, len(text), _BATCH_CHARACTERS):
            piece = text[start : start + _BATCH_CHARACTERS]
            self.spend(len(piece) // self._step_characters)
            yield _encode(piece)[1:-1]
        yield '"'

    def number(self, shape: Shape, value: Any, _around: _Frame) -> Iterable[str]:
        number = shape.read(value)
        if type(number) is int and not -_LONG_INT < number < _LONG_INT:
            return self._pieces_of(hex(number))
        self.spend(number.bit_length() // _STEP_BITS if type(number) is int else 0)
        return (_encode(number),)

    def binary(self, shape: Shape, value: Any, _around: _Frame) -> Iterator[str]:
        self.spend(shape.length(value) // _STEP_CHARACTERS)
        yield '"'
        for piece in shape.read(value):
            yield piece.hex()
        yield '"'

    def record(self, shape: Shape, value: Any, around: _Frame) -> _Frame | Iterable[str]:
        """Return an object's fields. Without fields, return the standard library's text for it, or its type's name."""
        if shape.dump is not None and not self._is_read:
            left = _left_of(value, _DUMPED_VALUES)
            self.spend(_FIELD_STEPS * (_DUMPED_VALUES - max(left, 0)))
            if left >= 0:
                try:
                    return self.inner(shape.dump(value, mode="json"), around)
                except BudgetError:
                    raise
                except ours(Exception):  # of the serializer; the fields can still be read
                    self.spend(_FAILED_STEPS)
        found = shape.read(value) if shape.declared or shape.namespace is None else shape.namespace(value)
        if not shape.declared and (shape.namespace is None or not dict.__len__(found)):
            read, text = object_kinds.library_text(type(value)), None
            with suppressed(Exception):  # a fraction with too many digits
                text = None if read is None else str(read(value))  # such as an address
            if text is not None or not found:
                return _named(value) if text is None else self._pieces_of(text)
        return _Frame(dict.items(found), "{}", id(value), is_record=True)

    def opaque(self, _shape: Shape, value: Any, around: _Frame) -> _Frame | Iterable[str]:
        """Return the numbers of a C array, the text of a C scalar, or the type's name."""
        try:
            view = memoryview(value)
            self.spend(WORKER_STEPS if view.nbytes > _ARRAY_BYTES else view.nbytes // _NUMBER_BYTES)
            return self.inner(view.tolist(), around)
        except BudgetError:
            raise
        except ours(Exception):  # numpy's dates raise their own exception
            if not is_tracked(value) and not type(value).__flags__ & _HEAP_TYPE:
                return self._pieces_of(str(value))
        if self._is_strict and not around.is_record:
            raise BudgetError
        return _named(value)


_DATA: Final = frozenset((object_kinds.TEXT, object_kinds.NUMBER, object_kinds.MAPPING))


def _count(values: list[Any], characters: int) -> tuple[int, int, int]:
    """Return whether these values are plain, and how many values and characters were seen."""
    found = values_of(values, _BATCH_VALUES, _LEVELS)
    if isinstance(found, int):
        return _MANY if found > 0 else _ODD, _ODD_STEPS + abs(found), 0
    containers, texts, ints, _, _, labels = found
    count = sum(map(len, found)) + _LABEL_STEPS * len(labels)
    if ints and not -_SHORT_INT < min(ints) <= max(ints) < _SHORT_INT:
        return _ODD, count, 0
    keys = chain.from_iterable(one for one in containers if type(one) is dict)
    characters += sum(map(len, texts)) + sum(map(len, keys))
    return (_MANY, count, 0) if characters > _BATCH_CHARACTERS else (_PLAIN, count, characters)


def _left_of(root: Any, left: int) -> int:
    """Count all fields of an object. Return how many of ``left`` values remain, or -1 if there are more."""
    pending = [root]
    while pending and left >= 0:
        value = pending.pop()
        left -= 1
        shape = shape_of(type(value))
        kind = shape.kind
        if kind is object_kinds.TEXT:
            left -= str.__len__(value) // _STEP_CHARACTERS
        elif kind is object_kinds.BINARY:
            left -= shape.length(value) // _STEP_CHARACTERS
        elif kind is object_kinds.MAPPING:
            pending += islice(dict.values(value), left + 1)
        elif kind is object_kinds.RECORD:
            pending += shape.read(value).values()
        elif kind is object_kinds.ARRAY or kind is object_kinds.SET:
            pending += elements(shape, value, left + 1)
        if len(pending) > left:
            return -1
    return left


def _key(key: Any) -> str:
    """Return a key of an object as json writes it. If json refuses the key, its JSON or type's name is the text."""
    if key is None or type(key) is bool or type(key) is int or type(key) is float:
        return _encode({key: 0})[1:-3] if type(key) is not int or -_SHORT_INT < key < _SHORT_INT else _encode(hex(key))
    shape = shape_of(type(key))
    if shape.kind is object_kinds.TEXT:
        return _encode(str.__getitem__(key, slice(None)))
    if shape.kind is object_kinds.LABEL:
        return _encode(_label(key))
    if shape.kind is object_kinds.NUMBER:
        return _key(shape.read(key))
    if type(key) is tuple and _count([key], 0)[0] == _PLAIN:
        return _encode(_encode(key))
    return next(iter(_named(key)))


def _named(value: Any) -> Iterable[str]:
    """Return the name of a value's type as JSON."""
    return (_encode(f"<{object_kinds.class_of(value)}>"),)


def _label(value: Any) -> str:
    """Return the ``str`` text of a date, a number or a path, without calling methods of a subclass."""
    text: str = shape_of(type(value)).read(value)
    return f"{text[:10]} {text[11:]}" if issubclass(type(value), datetime) else text


_encode: Final = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, separators=(",", ":"), default=_label
).encode
