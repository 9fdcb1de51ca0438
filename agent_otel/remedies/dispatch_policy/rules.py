"""The rules of a dispatch policy, read from the tables of its file or from a dictionary of the program.

A policy is a list of rules. The first rule whose workflow, agent and tools match a call decides; a call that no rule
matches is denied.

The model chooses the arguments, and a framework may coerce them afterwards: ``"true"`` becomes ``True``. A required
value therefore matches by type and value alone. A forbidden value also matches in the forms that are coerced to it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from agent_otel import semconv
from agent_otel._internal.errors import ours
from agent_otel._internal.object_kinds import fields, is_dict, is_text, text

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator


#: A value in a rule; a text is compiled to a pattern.
Value: TypeAlias = "Glob | bool | int | float"

# The texts and numbers that frameworks coerce to a truth value.
_TRUE: Final = frozenset({"true", "t", "yes", "y", "on", "1"})
_FALSE: Final = frozenset({"false", "f", "no", "n", "off", "0"})
#: Modules of classes that frameworks make of texts.
_WRITTEN: Final = frozenset({"datetime", "ipaddress", "pathlib", "uuid", "pydantic.networks"})
_LISTS: Final = frozenset({list, tuple, set, frozenset})  # the classes into which frameworks turn the model's lists
_DEEPEST: Final = 50


#: Nothing, in the place of a member that is not there.
MISSING: Final = ()


class UnreadableError(ValueError):
    """An error of arguments with values that cannot be compared."""


class Glob:
    """A text of a rule, in which ``*`` stands for any characters, compared in linear time."""

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
    """Yield the values at a path of names in arguments; ``coerces`` reads texts on it as JSON, as frameworks do."""
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


SOURCES: Final = ("env", "context", "call")
_MOST_FOUND: Final = 1_000
_POLICY_KEYS: Final = ("mode", "rules")
_RULE_KEYS: Final = ("workflow", "agent", "tools", "require", "forbid", "inject", "approve")
_FUNCTION: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


class PolicyError(ValueError):
    """An error in a policy; its message names the place and never a value."""


@dataclass(frozen=True, slots=True)
class Source:
    """The place from which an injected value comes: an environment variable, the context, or a function."""

    kind: str
    of: str | Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: the calls that it allows, and the conditions on their arguments.

    A condition has the name of an argument, and those of the members inside it where its table has further ones.
    """

    workflow: Glob
    agent: Glob
    tools: tuple[Glob, ...]
    require: Mapping[tuple[str, ...], tuple[Value, ...]]
    forbid: Mapping[tuple[str, ...], tuple[Value, ...]]
    inject: Mapping[str, Source]
    approve: str | Callable[..., Any] | None

    def matches(self, workflow: str | None, agent: str | None, tool: str) -> bool:
        """Return true when the rule decides on a call; a missing workflow or agent matches ``*`` only."""
        return (
            any(name.matches(tool) for name in self.tools)
            and self.workflow.matches(workflow or "")
            and self.agent.matches(agent or "")
        )


@dataclass(frozen=True, slots=True)
class ToolPolicy:
    """A dispatch policy: its mode and its rules, in order."""

    mode: str
    rules: tuple[Rule, ...]
    _found: dict[tuple[str | None, ...], Rule | None] = field(default_factory=dict, compare=False)

    def rule_for(self, workflow: str | None, agent: str | None, tool: str) -> Rule | None:
        """Return the first rule that matches a call, or None."""
        asked = (workflow, agent, tool)
        if asked in self._found:
            return self._found[asked]
        rule = next((rule for rule in self.rules if rule.matches(workflow, agent, tool)), None)
        if len(self._found) < _MOST_FOUND:  # a model may call tools by any name
            self._found[asked] = rule
        return rule


def read_policy(tables: object) -> ToolPolicy:
    """Return the policy that a dictionary describes.

    Raises:
        PolicyError: the dictionary has an unknown key or a value of a wrong type.
    """
    table = _table(tables, "policy", _POLICY_KEYS)
    mode = table.get("mode", semconv.ENFORCE)
    if mode not in (semconv.ENFORCE, semconv.MONITOR):
        raise PolicyError(f"mode is not one of {semconv.ENFORCE}, {semconv.MONITOR}")
    rules = table.get("rules", [])
    if not isinstance(rules, list | tuple):
        raise PolicyError("rules is not a list of tables")
    return ToolPolicy(mode, tuple(_rule(rule, f"rules[{number}]") for number, rule in enumerate(rules)))


def _rule(given: object, place: str) -> Rule:
    table = _table(given, place, _RULE_KEYS)
    if "tools" not in table:
        raise PolicyError(f"{place} has no tools")
    return Rule(
        _one_pattern(table.get("workflow", "*"), f"{place}.workflow"),
        _one_pattern(table.get("agent", "*"), f"{place}.agent"),
        tuple(_one_pattern(name, f"{place}.tools") for name in _list(table["tools"])),
        _conditions(table.get("require", {}), f"{place}.require"),
        _conditions(table.get("forbid", {}), f"{place}.forbid"),
        {name: _source(source, where) for name, source, where in _named(table.get("inject", {}), f"{place}.inject")},
        None if "approve" not in table else _function(table["approve"], f"{place}.approve"),
    )


def _table(given: object, place: str, keys: Collection[str]) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise PolicyError(f"{place} is not a table")
    unknown = [str(key) for key in given if key not in keys]
    if unknown:
        raise PolicyError(f"{place} has unknown keys: {', '.join(sorted(unknown))}; possible are {', '.join(keys)}")
    return given


def _named(given: object, place: str) -> list[tuple[str, Any, str]]:
    """Return the names, values and places of a table about arguments."""
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise PolicyError(f"{place} is not a table with names of arguments")
    return [(name, value, f"{place}.{name}") for name, value in given.items()]


def _list(given: object) -> list[Any]:
    return list(given) if isinstance(given, list | tuple) else [given]


def _one_pattern(given: object, place: str) -> Glob:
    if not isinstance(given, str) or not given:
        raise PolicyError(f"{place} is not a text, in which * stands for any characters")
    return Glob(given)


def _conditions(given: object, place: str) -> dict[tuple[str, ...], tuple[Value, ...]]:
    found: dict[tuple[str, ...], tuple[Value, ...]] = {}
    for name, values, where in _named(given, place):
        if isinstance(values, Mapping) and values:
            found |= {(name, *inner): value for inner, value in _conditions(values, where).items()}
        else:
            found[(name,)] = tuple(_value(each, where) for each in _list(values))
    return found


def _value(given: object, place: str) -> Value:
    if isinstance(given, str):
        return Glob(given)
    if isinstance(given, bool | int | float):
        if isinstance(given, float) and not math.isfinite(given):
            raise PolicyError(f"{place} is a number that equals no other")
        return given
    raise PolicyError(f"{place} is not a text, a number or a truth value, a list of them, or a table of such")


def _source(given: object, place: str) -> Source:
    table = _table(given, place, SOURCES)
    if len(table) != 1:
        raise PolicyError(f"{place} does not have exactly one of {', '.join(SOURCES)}")
    [(kind, of)] = table.items()
    if kind == "call":
        return Source(kind, _function(of, f"{place}.call"))
    if not isinstance(of, str) or not of:
        raise PolicyError(f"{place}.{kind} is not a name")
    return Source(kind, of)


def _function(given: object, place: str) -> str | Callable[..., Any]:
    if callable(given):
        function: Callable[..., Any] = given
        return function
    if isinstance(given, str) and _FUNCTION.fullmatch(given):
        return given
    raise PolicyError(f"{place} is not module:function")
