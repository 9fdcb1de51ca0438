"""Values of arguments: the model's arguments as a dictionary, and their comparison with the values of a rule.

The model chooses the arguments, and a framework may coerce them afterwards: ``"true"`` becomes ``True``. A required
value therefore matches by type and value alone, a forbidden one also in the forms that are coerced to it.
"""

from __future__ import annotations

import json
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from agent_otel._internal.errors import ours
from agent_otel.core.plain import fields, is_dict, is_text, text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: A value in a rule; a text is compiled to a pattern.
Value: TypeAlias = "Glob | bool | int | float"

# The texts and numbers that frameworks coerce to a truth value.
_TRUE: Final = frozenset({"true", "t", "yes", "y", "on", "1"})
_FALSE: Final = frozenset({"false", "f", "no", "n", "off", "0"})
#: Modules of classes that frameworks make of texts.
_WRITTEN: Final = frozenset({"datetime", "ipaddress", "pathlib", "uuid", "pydantic.networks"})
_LISTS: Final = frozenset({list, tuple, set, frozenset})  # what frameworks make of the model's lists
_DEEPEST: Final = 50


#: Nothing, in the place of a member that is not there.
MISSING: Final = ()


class UnreadableError(ValueError):
    """An error of arguments whose values cannot be compared."""


class Glob:
    """A text of a rule, in which ``*`` stands for any characters and all others for themselves.

    The model chooses what it is compared with: a regular expression of some ``*`` takes seconds for a text of 2 kB.
    """

    __slots__ = ("_first", "_last", "_middle")

    def __init__(self, text: str) -> None:
        self._first, *more = text.split("*")
        self._last = more.pop() if more else None
        self._middle = more

    def matches(self, text: str) -> bool:
        """Return true when the whole text matches, in a time linear to its length."""
        if self._last is None:
            return text == self._first
        place, end = len(self._first), len(text) - len(self._last)
        if place > end or not (text.startswith(self._first) and text.endswith(self._last)):
            return False
        for part in self._middle:
            place = text.find(part, place, end)
            if place < 0:
                return False
            place += len(part)
        return True


def read_arguments(arguments: object) -> dict[str, Any]:
    """Return the model's arguments, a dictionary or JSON text, as a dictionary.

    Raises:
        UnreadableError: the arguments are no object, or an object with the same name twice.
    """
    if arguments is None:
        return {}
    if is_dict(arguments):
        return dict(fields(arguments))
    if not is_text(arguments):
        raise UnreadableError("no object")
    plain = text(arguments) or ""
    if not plain.strip():
        return {}
    read = _parsed(plain)
    if type(read) is not dict:
        raise UnreadableError("no object")
    return read


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Reject a name that occurs twice: another parser may read the other value."""
    made = dict(pairs)
    if len(made) != len(pairs):
        raise UnreadableError("a name twice")
    return made


def values_at(value: object, path: tuple[str, ...], depth: int = 0, *, coerces: bool = False) -> Iterator[object]:
    """Yield the values at a path of names in arguments, those in each member of a list on it.

    Where a name is missing, nothing is in its place; that is a value of its own, which is not allowed and not
    forbidden. With ``coerces`` a text on the path is also read as JSON, as frameworks do, and an object that cannot be
    read is a value.
    """
    if depth > _DEEPEST:
        raise UnreadableError("too many levels")
    if not path:
        yield value
    elif type(value) in _LISTS:
        for member in value:  # type: ignore[attr-defined]
            yield from values_at(member, path, depth + 1, coerces=coerces)
    elif coerces and is_text(value):
        inner = _parsed(text(value) or "")
        if type(inner) in (dict, list):
            yield from values_at(inner, path, depth + 1, coerces=True)
    elif path[0] in (known := fields(value)):
        yield from values_at(known[path[0]], path[1:], depth + 1, coerces=coerces)
    elif coerces and not (known or _is_plain(value) or is_dict(value)):
        yield value
    else:
        yield MISSING


def _parsed(written: str) -> object:
    try:
        return json.loads(written, object_pairs_hook=_object)
    except UnreadableError:
        raise
    except ours(ValueError):
        return None
    except ours(RecursionError):
        raise UnreadableError("too many levels") from None


def are_required(value: object, allowed: tuple[Value, ...]) -> bool:
    """Return true when a value, or all members of a list, are allowed; an empty list and an object are not."""
    members = list(_members(value))
    return bool(members) and all(any(_equals(member, wanted) for wanted in allowed) for member in members)


def has_forbidden(value: object, forbidden: tuple[Value, ...]) -> bool:
    """Return true when a value, or a member of a list, is forbidden or cannot be compared, as an object cannot."""
    return any(
        not _is_plain(member) or any(_resembles(each, value) for each in _readings(member) for value in forbidden)
        for member in _members(value)
    )


def _members(value: object, depth: int = 0) -> Iterator[object]:
    """Yield a value, or the values in a list; an object is one value."""
    if depth > _DEEPEST:
        raise UnreadableError("too many levels")
    if type(value) in _LISTS:
        for member in value:  # type: ignore[attr-defined]
            yield from _members(member, depth + 1)
    elif issubclass(type(value), Enum):
        yield value.value  # type: ignore[attr-defined]
    else:
        yield str(value) if type(value).__module__.removesuffix("._local") in _WRITTEN else value


def _readings(member: object) -> Iterator[object]:
    """Yield a value, and the members of the list that frameworks read in a text."""
    yield member
    written = (text(member) or "").strip() if is_text(member) else ""
    if written[:1] == "[" or written[:1] == '"':
        yield from _members(_parsed(written))


def _is_plain(member: object) -> bool:
    return member is None or type(member) in (bool, int, float, Decimal) or is_text(member)


def _equals(member: object, wanted: Value) -> bool:
    if isinstance(wanted, Glob):
        return is_text(member) and wanted.matches(text(member) or "")
    if isinstance(wanted, bool) or type(member) is bool:
        return member is wanted
    return type(member) in (int, float, Decimal) and member == wanted


def _resembles(member: object, forbidden: Value) -> bool:
    """Return true when a member is a forbidden value, or a form that a framework may coerce to it."""
    if _equals(member, forbidden):
        return True
    try:
        written = (text(member) or "").strip() if is_text(member) else str(member)
    except ours(ValueError):  # an integer of more than 4,300 digits
        raise UnreadableError("too many digits") from None
    if isinstance(forbidden, Glob):
        return forbidden.matches(written)
    if isinstance(forbidden, bool) and written.lower() in (_TRUE if forbidden else _FALSE):
        return True
    return _number(int(member) if type(member) is bool else written) == forbidden or (
        isinstance(forbidden, float) and _number(written, float) == forbidden
    )


def _number(written: Any, kind: Callable[[Any], Any] = Decimal) -> Any:
    """Return the number that a text is, exactly; None for none."""
    try:
        number = kind(written)
        return number if number - number == 0 else None  # not an infinite one
    except ours(ArithmeticError, ValueError):
        return None
