"""The values of a payload that are tools' results, their calls, and results that occur in two forms."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from agent_otel.measure.breakdown.json_reader import unescaped
from agent_otel.measure.breakdown.paths import SHORTEST, largest
from agent_otel.measure.key_structure import OTHER
from agent_otel.measure.preview import clean
from agent_otel.messages.fields import CALL_IDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from agent_otel.measure.breakdown.paths import Scope

_CALLS: Final = frozenset((*CALL_IDS, "id"))
RESULTS: Final = frozenset(
    ("content", "result", "output", "toolResult", "response", "artifact", "structuredContent", "structured_content")
)
ARGUMENTS: Final = frozenset(("args", "arguments", "input", "parameters", "function"))
_TOLD: Final = RESULTS | ARGUMENTS
_OUTCOME: Final = ARGUMENTS | {"result", "output", "toolResult"}
_NAMES: Final = ("name", "toolName", "tool_name", "tool")
_KINDS: Final = ("role", "type")
KEPT: Final = frozenset((*_CALLS, *_NAMES, *_KINDS))
TELLING: Final = KEPT | _TOLD
_NO_TOOLS: Final = frozenset(("user", "assistant", "system", "developer", "model", "human", "ai"))
"""Whose messages have ids and content, and are no results."""

_LONGEST_NAME: Final = 128
_MOST_RESULTS: Final = 1024
_MOST_NAMES: Final = 2048
_MOST_TOOLS: Final = 128
_MOST_CALLS: Final = 256
_ALIKE: Final = 15  # difference in length of two forms of one result, in percent
_LEAST_HEAD: Final = 16
_NUMBER: Final = re.compile(r"-?[0-9][0-9.eE+-]*")


class Results:
    """The results in one payload, and the known facts about their calls."""

    def __init__(self, tool_of: Callable[[str], str | None], is_tool: Callable[[str], bool]) -> None:
        self.complete = True
        self._tool_of = tool_of
        self._is_tool = is_tool
        self._names: dict[str, str] = {}
        self.scopes: list[Scope] = []
        self._early: dict[str, int] = defaultdict(int)  # bytes by tool, of those beyond the results that are remembered

    def note(self, call: str, name: str | None) -> None:
        """Keep the tool of a call, if it has a name."""
        if name is not None and len(self._names) < _MOST_NAMES:
            self._names.setdefault(call, name)

    def add(self, scope: Scope) -> None:
        """Take one more result."""
        if len(self.scopes) < _MOST_RESULTS:
            self.scopes.append(scope)
            return
        self.complete = False
        tool = self._tool(scope)
        if tool is not None and scope.owner() is scope:
            self._early[tool] += scope.bytes

    def _tool(self, scope: Scope) -> str | None:
        """Return the tool of a result: from the ledger, from the name beside the result, or from its call elsewhere.

        A name that is no tool's may be a value: an object with the id of a call is then another tool's result, and one
        with any id is no result.
        """
        call = scope.call
        if call is None:
            return None
        name = self._tool_of(call)
        if not name:
            name = scope.name or self._names.get(call)
            if name and not self._is_tool(name):
                name = OTHER if scope.certain else None
        return clean(name, _LONGEST_NAME) if name else None

    def tools(self, groups: Iterable[list[tuple[Scope | None, int]]]) -> dict[str, int]:
        """Bytes by tool: of their results, and of texts elsewhere that are a copy of one."""
        found = defaultdict(int, self._early)
        for scope in self.scopes:
            tool = self._tool(scope) if scope.owner() is scope else None
            if tool is not None:
                found[tool] += scope.bytes
        for group in groups:
            owners = [(self._owner(scope), size) for scope, size in group]
            tool = next((owner for owner, _ in owners if owner is not None), None)
            if tool is not None:
                found[tool] += sum(size for owner, size in owners if owner is None)
        return largest(found, _MOST_TOOLS)

    def calls(self) -> dict[str, int]:
        """Bytes by call id, of the largest copy of its result."""
        found: dict[str, int] = {}
        for scope in self.scopes:
            if scope.call is not None and scope.owner() is scope and (scope.certain or self._tool(scope) is not None):
                found[scope.call] = max(scope.bytes, found.get(scope.call, 0))
        return dict(sorted(found.items(), key=lambda item: -item[1])[:_MOST_CALLS])

    def pairs(self) -> Iterator[tuple[Scope, Scope, int]]:
        """Results that occur in two forms, and the bytes of the smaller form."""
        by_call = defaultdict(list)
        for scope in self.scopes:
            if scope.bytes >= SHORTEST and scope.owner() is scope:
                by_call[scope.call].append(scope)
        for scopes in by_call.values():
            yield from _two_forms(scopes)

    def _owner(self, scope: Scope | None) -> str | None:
        owner = scope.owner() if scope is not None else None
        return self._tool(owner) if owner is not None else None


def may_be_call(keys: Iterable[str]) -> bool:
    """Return True if an object with these keys may be a call or its result."""
    return not _CALLS.isdisjoint(keys) and not _TOLD.isdisjoint(keys)


def call_of(fields: Mapping[str, Any]) -> tuple[str | None, bool]:
    """Return the id of the call that an object belongs to, and whether it can be nothing else."""
    for key in CALL_IDS:
        if key in fields and _is_name(fields[key]):
            return fields[key], True
    call = fields.get("id")
    if not _is_name(call):
        return None, False
    for key in _KINDS:
        kind = fields.get(key)
        if type(kind) is str and kind in _NO_TOOLS:
            return None, False
    return call, False


def says_outcome(keys: Iterable[str]) -> bool:
    """Return True if an object with these keys is almost certainly a call; others have an id, a name and content."""
    return not _OUTCOME.isdisjoint(keys)


def name_of(fields: Any, *, plainly: bool = True) -> str | None:
    """Return the name of a tool from the fields of its call or its result; ``name`` counts only if that is plain."""
    if type(fields) is dict:
        for key in _NAMES:
            if key in fields and _is_name(fields[key]) and (plainly or key != "name"):
                return str(fields[key])
    return None


def _is_name(value: Any) -> bool:
    return type(value) is str and 0 < len(value) <= _LONGEST_NAME


def _two_forms(scopes: list[Scope]) -> Iterator[tuple[Scope, Scope, int]]:
    """Yield pairs of values for one call that are one result in two forms; fingerprints compare two texts."""
    texts: list[Scope] = []
    objects: list[Scope] = []
    for scope in scopes:
        (texts if scope.text_bytes * 5 >= scope.bytes * 4 else objects).append(scope)
    if not objects:
        return
    whole = max(objects, key=_bytes)
    for other in objects:
        if other.place is not whole.place and _alike(other.bytes, whole.bytes):
            size = min(other.bytes, whole.bytes) - max(other.matched, whole.matched)
            if size > 0:
                yield (*_in_order(scopes, other, whole), size)
    text = max(texts, key=_bytes, default=whole)
    if text.place is not whole.place and _say_the_same(text, whole):
        yield (*_in_order(scopes, text, whole), min(text.text_bytes, whole.bytes))


def _in_order(scopes: list[Scope], one: Scope, other: Scope) -> tuple[Scope, Scope]:
    return (one, other) if scopes.index(one) < scopes.index(other) else (other, one)


def _alike(one: int, other: int) -> bool:
    return abs(one - other) * 100 <= max(one, other) * _ALIKE


def _say_the_same(text: Scope, whole: Scope) -> bool:
    """Return True if a text and an object of one call are one result: they begin alike, or are about as long."""
    beginning = unescaped(text.head)
    if _alike(text.text_bytes * len(beginning) // max(1, len(text.head)), whole.bytes):
        return True
    one, other = _comparable(beginning), _comparable(whole.head)
    shared = min(len(one), len(other))
    return shared >= _LEAST_HEAD and one[:shared] == other[:shared]


def _comparable(beginning: str) -> str:
    """Without blanks, which serialisers put in different places, and numbers, of which only the length is known."""
    return _NUMBER.sub("0", "".join(beginning.split()))


def _bytes(scope: Scope) -> int:
    return scope.bytes
