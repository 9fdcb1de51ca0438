"""The kinds of values, determined without running any of their code.

A tool may return anything: lazy query sets, proxies, models whose ``__getattr__`` costs microseconds, objects whose
``__repr__`` raises. So this module reads classes only through the descriptors of ``type`` itself, and instances only
through the C-level descriptors of their storage. It does not use ``isinstance``, which reads ``__class__`` from the
value.
"""

from __future__ import annotations

import sys
import weakref
from collections import deque
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from gc import get_referents
from itertools import islice
from pathlib import PosixPath, PurePath, PurePosixPath, PureWindowsPath, WindowsPath
from types import GetSetDescriptorType, MappingProxyType, MemberDescriptorType, SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

from agent_otel._internal.errors import ours
from agent_otel._internal.failures import class_name, classes_of, member_of, members_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

TEXT: Final = "text"  # str; read with the methods of str
BINARY: Final = "binary"  # bytes, bytearray, memoryview; read() gives an iterator of pieces
NUMBER: Final = "number"  # an int or float subclass; read() gives the plain number
LABEL: Final = "label"  # written as a short JSON string; read() gives it
MAPPING: Final = "mapping"  # dict; read with the methods of dict
ARRAY: Final = "array"  # list, tuple and whatever iterates without side effects; read() gives an iterator
SET: Final = "set"  # as ARRAY, but the order means nothing
VALUE: Final = "value"  # stands for another value (Enum); read() gives it
RECORD: Final = "record"  # fields by name; read() gives a dict
OPAQUE: Final = "opaque"  # generators, iterators, functions, C objects: nothing can be read


class Shape(NamedTuple):
    """The functions that read the instances of a class."""

    kind: str
    read: Callable[[Any], Any]
    length: Callable[[Any], int] = lambda _value: 0
    """Number of elements of an ARRAY or SET, bytes of a BINARY."""
    namespace: Callable[[Any], dict[str, Any]] | None = None
    """The instance dictionary of a RECORD, when it has one."""
    declared: bool = False
    """True if the class declares the fields of a RECORD (dataclass, pydantic, attrs)."""
    dump: Callable[..., Any] | None = None
    """The method with which pydantic serialises a RECORD."""


# The real ones even if a metaclass defines attributes of the same name.
_base: Callable[[type], type] = type.__dict__["__base__"].__get__
_basicsize: Callable[[type], int] = type.__dict__["__basicsize__"].__get__
_short_name: Callable[[type], str] = type.__dict__["__name__"].__get__

_POINTER: Final = tuple.__itemsize__
_RUNNING: Final = ("__next__", "__anext__", "__await__")
_FIELD_TABLES: Final = ("__pydantic_fields__", "model_fields", "__dataclass_fields__", "__fields__")
_SHAPES_KEPT: Final = 512
_PIECE: Final = 64 * 1024
_MOST_FIELDS: Final = 10_000  # of a dictionary that has other keys than texts
_UNSET: Final = object()

_known: dict[int, tuple[weakref.ref[type], Shape]] = {}
#: Names of the fields of classes and schemas that this process has seen; of too many the first is forgotten.
declared: dict[str, None] = {}
_MOST_DECLARED: Final = 8_192


def declare(names: Iterable[str]) -> None:
    """Remember the names of the fields of a class or a schema."""
    for name in names:
        declared.pop(name, None)
        declared[name] = None
        if len(declared) > _MOST_DECLARED:
            declared.pop(next(iter(declared), ""), None)


def shape_of(cls: type) -> Shape:
    """Return the shape of a class's instances; remembered for up to 512 classes without keeping them alive."""
    # The id, because hashing a class would run its metaclass.
    alive, shape = _known.get(id(cls), _UNKNOWN)
    if alive() is cls:
        return shape
    shape = _inspect(cls)
    if len(_known) >= _SHAPES_KEPT:
        _known.clear()
    _known[id(cls)] = (weakref.ref(cls), shape)
    return shape


def _inspect(cls: type) -> Shape:
    for base, shape in _BUILT_IN:
        if issubclass(cls, base):
            return shape
    for exact in _PATHS:
        if cls is exact:
            return Shape(LABEL, exact.__str__)
    is_running = any(name in members_of(owner) for owner in classes_of(cls) for name in _RUNNING)
    return _OPAQUE if is_running or _holds_c_state(cls) else _record(cls)


def _holds_c_state(cls: type) -> bool:
    """Return True if instances keep data that no Python attribute shows: they are larger than their slots."""
    while cls is not object:
        base = _base(cls)
        storage = sum(
            type(member) is MemberDescriptorType or name in ("__dict__", "__weakref__")
            for name, member in members_of(cls).items()
        )
        if _basicsize(cls) - _basicsize(base) > storage * _POINTER:
            return True
        cls = base
    return False


def _record(cls: type) -> Shape:
    namespace = _namespace(cls)
    slots = _slots(cls)
    if namespace is None and not slots:
        return _OPAQUE
    fields = _declared_fields(cls)
    # Where a pydantic model with ``extra="allow"`` keeps undeclared fields.
    extra = _descriptor(cls, "__pydantic_extra__", MemberDescriptorType)
    if fields is None and not slots and namespace is not None:
        return Shape(RECORD, namespace, namespace=namespace)

    def read(value: Any) -> dict[str, Any]:
        own = namespace(value) if namespace is not None else {}
        # A slot may never have been assigned.
        assigned = {name: each for name, get in slots.items() if (each := _slot(get, value)) is not _UNSET}
        found = {**own, **assigned}
        if fields is not None:
            found = {name: found[name] for name in fields if name in found}
        if extra is not None:
            more = _slot(extra, value)
            more = own.get("__pydantic_extra__") if more is _UNSET else more  # of a class that declares it itself
            if type(more) is dict:
                found.update(more)
        return found

    dump: Any = None
    if fields is not None and member_of(cls, "__pydantic_serializer__") is not None:
        dump = member_of(cls, "model_dump")
    is_declared = fields is not None or any("__attrs_attrs__" in members_of(owner) for owner in classes_of(cls))
    return Shape(RECORD, read, namespace=namespace, declared=is_declared, dump=dump)


def library_text(cls: type) -> Callable[[Any], str] | None:
    """Return the ``__str__`` that a class has from one of the standard library; None for any others."""
    owner = next((owner for owner in classes_of(cls) if "__str__" in members_of(owner)), object)
    module = members_of(owner).get("__module__")
    is_known = owner is not object and type(module) is str and module.partition(".")[0] in sys.stdlib_module_names
    return members_of(owner)["__str__"] if is_known else None


def _descriptor(cls: type, name: str, kind: type) -> Callable[[Any], Any] | None:
    """Find the C getter of a field; a property of the same name is stepped over."""
    members: Iterator[Any] = (members_of(owner).get(name) for owner in classes_of(cls))
    return next((member.__get__ for member in members if issubclass(type(member), kind)), None)


def _namespace(cls: type) -> Callable[[Any], dict[str, Any]] | None:
    return _descriptor(cls, "__dict__", GetSetDescriptorType)


def _slots(cls: type) -> dict[str, Callable[[Any], Any]]:
    return {
        name: member.__get__
        for owner in reversed(classes_of(cls))
        for name, member in members_of(owner).items()
        if type(member) is MemberDescriptorType and not name.startswith("__")
    }


def _slot(get: Callable[[Any], Any], value: Any) -> Any:
    try:
        return get(value)
    except ours(AttributeError):  # never assigned
        return _UNSET


def _declared_fields(cls: type) -> tuple[str, ...] | None:
    """Names of the declared fields; attributes beside them (caches) are no part of the value."""
    for owner in classes_of(cls):
        members = members_of(owner)
        for table in _FIELD_TABLES:
            fields = members.get(table)
            if type(fields) is dict:
                # Pydantic never writes an excluded field.
                names = tuple(
                    name
                    for name, field in fields.items()
                    if type(name) is str and not (type(field).__name__ == "FieldInfo" and field.exclude is True)
                )
                declare(names)
                return names
    return None


def _iso(value: datetime | time) -> str:
    """ISO 8601, without the offset if that would ask a time zone class we do not know."""
    cls: Any = datetime if issubclass(type(value), datetime) else time
    zone = cls.tzinfo.__get__(value)
    named = getattr(sys.modules.get("zoneinfo"), "ZoneInfo", None)  # to load it would cost 1.5 ms
    if zone is None or type(zone) in (timezone, named):
        return str(cls.isoformat(value))
    names = ("year", "month", "day", "hour", "minute", "second", "microsecond")
    parts = [getattr(cls, name).__get__(value) for name in (names if cls is datetime else names[3:])]
    local: str = cls(*parts).isoformat()
    return f"{local} {class_name(type(zone))}"


def _enum_value(value: Enum) -> Any:
    namespace = _namespace(type(value))
    return namespace(value).get("_value_") if namespace is not None else None


def _exception_value(value: BaseException) -> Any:
    found: tuple[Any, ...] = BaseException.args.__get__(value)  # type: ignore[attr-defined]
    return found[0] if len(found) == 1 else found


def _pieces(kind: Any) -> Callable[[Any], Iterator[bytes]]:
    take, length = kind.__getitem__, kind.__len__
    return lambda value: (bytes(take(value, slice(start, start + _PIECE))) for start in range(0, length(value), _PIECE))


def _itself(value: Any) -> Any:
    return value


_simple_namespace: Callable[[SimpleNamespace], dict[str, Any]] = vars(SimpleNamespace)["__dict__"].__get__
_PATHS: Final = (PurePath, PurePosixPath, PureWindowsPath, PosixPath, WindowsPath)
_OPAQUE: Final = Shape(OPAQUE, _itself)
_UNKNOWN: Final[tuple[Callable[[], object], Shape]] = (lambda: None, _OPAQUE)

# In this order: an IntEnum is a number and a string Enum is text, as for json.
_BUILT_IN: Final[tuple[tuple[Any, Shape], ...]] = (
    (str, Shape(TEXT, _itself)),
    (int, Shape(NUMBER, int.__int__)),
    (float, Shape(NUMBER, float.__float__)),
    (dict, Shape(MAPPING, _itself, dict.__len__)),
    *((kind, Shape(ARRAY, kind.__iter__, kind.__len__)) for kind in (list, tuple, deque, range)),
    *((kind, Shape(SET, kind.__iter__, kind.__len__)) for kind in (set, frozenset)),
    *((kind, Shape(ARRAY, iter, len)) for kind in map(type, ({}.keys(), {}.values(), {}.items()))),
    *((kind, Shape(BINARY, _pieces(kind), kind.__len__)) for kind in (bytes, bytearray)),
    (memoryview, Shape(BINARY, lambda value: iter((value.tobytes(),)), memoryview.nbytes.__get__)),
    (Enum, Shape(VALUE, _enum_value)),
    (datetime, Shape(LABEL, _iso)),
    (date, Shape(LABEL, date.isoformat)),
    (time, Shape(LABEL, _iso)),
    *((kind, Shape(LABEL, kind.__str__)) for kind in (timedelta, Decimal)),
    (UUID, Shape(LABEL, lambda value: str(UUID(int=UUID.__dict__["int"].__get__(value))))),
    (MappingProxyType, Shape(VALUE, lambda value: get_referents(value)[0])),
    (BaseException, Shape(VALUE, _exception_value)),
    (SimpleNamespace, Shape(RECORD, _simple_namespace, namespace=_simple_namespace)),
)


def elements(shape: Shape, value: Any, most: int) -> list[Any]:
    """At most that many elements of an ARRAY or SET."""
    return list(islice(shape.read(value), most))


def fields(value: Any) -> dict[str, Any]:
    """Return the fields of a dictionary or of an object; none of anything else.

    A key with a class of its own may compare itself by code, so that its text stands in its place.
    """
    cls = type(value)
    if issubclass(cls, dict):
        found = value
    else:
        alive, shape = _known.get(id(cls), _UNKNOWN)
        if alive() is not cls:
            shape = shape_of(cls)
        if shape.kind is not RECORD:
            return {}
        # An object with slots has its fields in no dictionary.
        found = (shape.namespace and shape.namespace(value)) or shape.read(value)
    # A dictionary whose keys are all texts refers to its values only.
    if type(found) is dict and len(get_referents(found)) == len(found):
        return found
    items = islice(dict.items(found), _MOST_FIELDS)
    return {key: each for name, each in items if (key := plain_text(name)) is not None}


def attributes(value: Any) -> dict[str, Any]:
    """Return the fields of an object as `fields` does, in less time; they are not the caller's to keep."""
    cls = type(value)
    alive, shape = _known.get(id(cls), _UNKNOWN)
    namespace = shape.namespace
    if namespace is not None and alive() is cls:
        found = namespace(value)
        # A dictionary whose keys are all texts refers to its values only.
        if type(found) is dict and len(get_referents(found)) == len(found):
            return found
    return fields(value)


def field_at(value: Any, *names: str) -> Any:
    """Return the field at a path of names, one object inside the other; None where there is none."""
    for name in names:
        value = fields(value).get(name)
    return value


def plain_text(value: object) -> str | None:
    """Return a plain text; None for anything that is no text by its class."""
    if type(value) is str:
        return value
    return str.__getitem__(value, slice(None)) if issubclass(type(value), str) else None  # type: ignore[index]


def is_named(value: object, *names: str) -> bool:
    """Return whether the class of a value, or a base of it, has one of these names."""
    for cls in classes_of(type(value)):  # noqa: SIM110 - as above
        if _short_name(cls) in names:
            return True
    return False


def is_text(value: object) -> bool:
    """Return whether a value is a text."""
    return issubclass(type(value), str)


def is_dict(value: object) -> bool:
    """Return whether a value is a dictionary."""
    return issubclass(type(value), dict)


def listed(value: Any) -> list[Any]:
    """Return a list or a tuple as a list; nothing of anything else, such as the sentinels of omitted keys."""
    cls = type(value)
    if issubclass(cls, list):
        return list.__getitem__(value, slice(None))
    return list(tuple.__iter__(value)) if issubclass(cls, tuple) else []


def dictionaries(value: Any) -> list[dict[str, Any]]:
    """Return the fields of the dictionaries in a list; a provider rejects other items."""
    return [fields(item) for item in listed(value) if is_dict(item)]


def number(value: object) -> int | None:
    """Return a plain whole number, or nothing."""
    return value if type(value) is int else None


def is_empty(value: Any) -> bool:
    """Return whether a value is None or a plain one that is false; no other is asked for its truth."""
    kind = type(value)
    if kind is str or kind is int or kind is bool or kind is float or kind is dict or kind is list or kind is tuple:
        return not value
    return value is None


def given(*values: Any) -> Any:
    """Return the first of these values that is not empty, else an empty text."""
    for value in values:
        if not is_empty(value):
            return value
    return ""


def sole(key: str, value: Any) -> Any:
    """Return what a dictionary holds under its only key, if that is this one; any other value as it is."""
    known = fields(value) if is_dict(value) else {}
    return known[key] if known.keys() == {key} else value


def identity(value: object) -> str | None:
    """Return an id as text: of a text, a whole number or a UUID; None for anything else, which has code of its own."""
    kind = type(value)
    if kind is str or value is None:
        return value  # type: ignore[return-value]
    return str(value) if kind is int or kind is UUID else plain_text(value)


def modules_of(value: object) -> Iterator[str]:
    """Return the modules of a value's class and of its bases, one after the other."""
    found = (members_of(cls).get("__module__") for cls in classes_of(type(value)))
    return (name for name in found if type(name) is str)


def class_of(value: object) -> str:
    """Return the qualified name of a value's class; a metaclass may have code of its own for it."""
    return class_name(type(value))


text = plain_text  # for readers of requests and results


def properties(schema: Any) -> tuple[str, ...]:
    """Return the names of the parameters in the JSON schema of a tool; empty for anything else."""
    return tuple(fields(fields(schema).get("properties")))


def reworded(value: Any, reword: Callable[[str], str]) -> Any:
    """Return a value of a request with other texts; what does not change, and the SDK's objects, are the same."""
    if type(value) is str:
        return reword(value)
    if type(value) is list:
        made: Any = [reworded(each, reword) for each in value]
        return value if all(new is old for new, old in zip(made, value, strict=True)) else made
    if type(value) is dict:
        made = {name: reworded(each, reword) for name, each in value.items()}
        return value if all(made[name] is value[name] for name in value) else made
    return value
