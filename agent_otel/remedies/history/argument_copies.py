"""Copies of large arguments in texts: in the prompt of a summariser, and in a provider's own form of a message.

A text is searched for the names of the arguments, and what stands after a name is decoded and compared by its hash.
So a copy is found in JSON, in a Python literal, in either inside XML or another JSON text, and between XML tags.
"""

from __future__ import annotations

import ast
import json
import re
from html import unescape
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_otel.measure.size import text_bytes
from agent_otel.messages.fields import fields, is_list
from agent_otel.remedies.history.argument_marks import mark

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agent_otel.messages.fields import Path

_MOST_VALUES: Final = 1024
_MOST_NAMES: Final = 16
_DEEPEST: Final = 4
_MOST_NODES: Final = 200
_MOST_INSIDE: Final = 500
_LONGEST: Final = 1024 * 1024
"""Characters of an argument that is looked for in texts."""

ARGUMENTS: Final = frozenset(("arguments", "args", "input", "partial_json"))
SIGNED: Final = frozenset(("thinking", "signature", "thought_signature", "thoughtSignature", "encrypted_content"))
"""Fields that a provider has signed or encrypted; it rejects them when they change."""

_IDS: Final = frozenset(("id", "call_id", "tool_call_id", "toolUseId", "tool_use_id"))

_QUOTED: Final = re.compile(r"(\\*)[\"']\s{0,9}:\s{0,9}\1([\"'])")
_TAGGED: Final = re.compile(r"[\"']?>\n?")


class LargeArguments:
    """Hashes of the large arguments of completed calls, by their names. Texts are not kept."""

    def __init__(self, above_bytes: int) -> None:
        self._above = above_bytes
        self._known: dict[tuple[str, int, int], None] = {}

    def add(self, arguments: Any) -> None:
        """Add the texts above the limit among the arguments of one call."""
        for name, text in _large(arguments, self._above):
            key = (name, len(text), hash(text))
            if key not in self._known and len(self._known) >= _MOST_VALUES:
                self._known.clear()
            self._known[key] = None

    def __bool__(self) -> bool:
        """Return True when there are large arguments."""
        return bool(self._known)

    def replaced(self, text: str) -> tuple[str, int] | None:
        """Return a text with marks in the place of the arguments in it, and the bytes removed; None without one."""
        if text_bytes(text) <= self._above:
            return None
        known = list(self._known)
        shortest = min((size for _, size, _ in known), default=0)
        found: dict[int, tuple[int, str]] = {}
        for name in list(dict.fromkeys(name for name, _, _ in reversed(known)))[:_MOST_NAMES]:
            for start, end in _values(text, name, shortest):
                value = self._value(name, text[start:end], text[start - 1])
                if value is not None:
                    found[start] = (end, mark(text_bytes(value)))
        pieces: list[str] = []
        done = removed = 0
        for start, (end, put) in sorted(found.items()):
            if start < done:
                continue
            pieces += (text[done:start], put)
            removed += text_bytes(text[start:end]) - len(put)
            done = end
        return ("".join((*pieces, text[done:])), removed) if pieces else None

    def _value(self, name: str, written: str, quote: str) -> str | None:
        """Return the argument that a piece of text stands for, if it is a large one of a completed call."""
        for text in dict.fromkeys((written, unescape(written) if "&" in written else written)):
            for value in _decoded(text, quote):
                if (name, len(value), hash(value)) in self._known:
                    return value
        return None


def _large(arguments: Any, above: int) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each argument above a limit, also of those inside lists and mappings."""
    pending: list[tuple[str, Any, int]] = [("", arguments, 0)]
    for _ in range(_MOST_NODES):
        if not pending:
            return
        name, value, depth = pending.pop()
        if type(value) is str:
            if above < len(value) * 4 and name and len(value) <= _LONGEST and text_bytes(value) > above:
                yield name, value
        elif depth < _DEEPEST and is_list(value):
            pending += [(name, inner, depth + 1) for inner in value]
        elif depth < _DEEPEST and issubclass(type(value), dict):
            pending += [(key, inner, depth + 1) for key, inner in fields(value).items() if type(key) is str]


def _values(text: str, name: str, shortest: int) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each long text that follows a name as its value."""
    at = text.find(name)
    while at >= 0:
        after = at + len(name)
        quoted = _QUOTED.match(text, after)
        tagged = None if quoted is not None else _TAGGED.match(text, after)
        end = -1
        if quoted is not None:
            after, end = quoted.end(), _closing(text, quoted.end(), quoted[2], len(quoted[1]))
        elif tagged is not None:
            after, end = tagged.end(), text.find("</", tagged.end() + shortest)
        if end - after >= shortest:
            yield after, end
            at = text.find(name, end)
        else:
            at = text.find(name, max(after, at + 1))


def _closing(text: str, at: int, quote: str, slashes: int) -> int:
    """Return the place of the quote, with its backslashes, that closes a literal; -1 without one.

    A literal inside another has one backslash before each quote, one inside that has three. An escaped quote has an odd
    multiple of so many and one more.
    """
    period = 2 * (slashes + 1)
    end = text.find(quote, at)
    while end >= 0:
        first = end
        while first > at and text[first - 1] == "\\":
            first -= 1
        if (end - first) % period == slashes:
            return end - slashes
        end = text.find(quote, end + 1)
    return -1


def _decoded(written: str, quote: str) -> Iterator[str]:
    """Yield the texts that a literal without its quotes may stand for."""
    yield written
    if quote not in "\"'":
        yield written.removesuffix("\n")
        return
    for _ in range(3):
        if "\\" not in written:
            return
        text = _literal(written, quote)
        if text is None:
            return
        yield text
        written, quote = text, '"'


def _literal(written: str, quote: str) -> str | None:
    try:
        if quote == '"':
            return str(json.loads(f'"{written}"', strict=False))
    except ValueError:
        pass
    try:
        return str(ast.literal_eval(f"{quote}{written}{quote}"))
    except (ValueError, SyntaxError, MemoryError):
        return None


class Copies(NamedTuple):
    """The places of a message that may hold arguments."""

    #: Values under the name of arguments, with the ids beside or around them.
    whole: list[tuple[Path, set[str], Any]]
    #: Texts above the limit.
    texts: list[tuple[Path, str]]


def copies(message: Any, above_bytes: int) -> Copies:
    """Return the values of a message that may be arguments, and its long texts, except what a provider has signed."""
    found = Copies([], [])
    pending: list[tuple[Path, Any, set[str]]] = [((), message, set())]
    for _ in range(_MOST_INSIDE):
        if not pending:
            break
        path, node, ids = pending.pop()
        inside: Iterable[tuple[Any, Any]]
        if is_list(node):
            inside = enumerate(node)
        else:
            known = fields(node)
            inside = known.items()
            if path and not _IDS.isdisjoint(known):
                ids = {known[name] for name in _IDS if type(known.get(name)) is str} or ids
        for step, value in inside:
            if step in ARGUMENTS:
                found.whole.append(((*path, step), ids, value))
            elif type(value) is str:
                if above_bytes < 4 * len(value) and step not in SIGNED and text_bytes(value) > above_bytes:
                    found.texts.append(((*path, step), value))
            elif step not in SIGNED and not _is_leaf(value) and len(path) < 2 * _DEEPEST:
                pending.append(((*path, step), value, ids))
    return found


def _is_leaf(value: Any) -> bool:
    """Return True for a value without members, and for a call that the provider runs (``mcp_tool_use``)."""
    cls = type(value)
    if value is None or cls is int or cls is float or cls is bool or cls is bytes:
        return True
    if (cls is dict or cls is list) and not value:
        return True
    kind = None if is_list(value) else fields(value).get("type")
    return type(kind) is str and kind.endswith("_tool_use")
