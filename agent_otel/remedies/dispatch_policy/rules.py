"""The rules of a dispatch policy, read from the tables of its file or from a dictionary of the program.

A policy is a list of rules. The first rule whose workflow, agent and tools match a call decides; a call that no rule
matches is denied.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from agent_otel import semconv
from agent_otel.remedies.dispatch_policy.values import Glob, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

#: The places from which an injected value comes.
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
