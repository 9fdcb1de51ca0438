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

from agent_otel._internal.errors import ours
from agent_otel.measure.size import text_bytes
from agent_otel.messages.fields import RESULT_ID, fields, is_list
from agent_otel.remedies.history.argument_marks import mark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

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

_IDS: Final = frozenset(("id", "call_id", "tool_call_id", "toolUseId", RESULT_ID))

_QUOTE: Final = "(?:[\"']|&quot;|&#34;|&#x27;|&#39;)"
_MOST_ATTEMPTS: Final = 100_000
_BEHIND: Final = ("</", "\n</", "]]>")
#: After a name: ``": "``, ``", "value": "`` and ``="``; ``">`` and ``</arg_key><arg_value>``.
_QUOTED: Final = re.compile(
    rf"(?:(?P<colon>\\*){_QUOTE}(?:\s{{0,9}},\s{{0,9}}(?P=colon){_QUOTE}value(?P=colon){_QUOTE})?\s{{0,9}}:\s{{0,9}}(?P=colon)"
    rf"|\s{{0,3}}=\s{{0,3}}(?P<equals>\\*))(?P<quote>{_QUOTE})"
)
_TAGGED: Final = re.compile(r"(?:[\"']?>|</\w{1,20}>\s{0,9}<\w{1,20}>)\n?(?:<!\[CDATA\[)?")


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
        sizes: dict[str, set[int]] = {}
        for name, size, _ in reversed(list(self._known)):
            sizes.setdefault(name, set()).add(size)
        found: dict[int, tuple[int, str]] = {}
        for name in list(sizes)[:_MOST_NAMES]:
            for start, end, value in _values(text, name, sizes[name], self._value):
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


def _values(
    text: str, name: str, sizes: set[int], decode: Callable[[str, str, str], str | None]
) -> Iterator[tuple[int, int, str]]:
    """Yield begin, end and value of each long text that follows a name and that ``decode`` finds to be an argument."""
    shortest, between = min(sizes), _BetweenTags(text, sizes)
    at = text.find(name)
    while at >= 0:
        after = first = at + len(name)
        quoted = _QUOTED.match(text, after)
        tagged = None if quoted is not None else _TAGGED.match(text, after)
        ends: Iterable[int] = ()
        if quoted is not None:
            after = quoted.end()
            ends = _closings(text, after, quoted["quote"], len(quoted["colon"] or quoted["equals"] or ""))
        elif tagged is not None:
            after = tagged.end()
            ends = between.ends(after)
        for end in ends:
            if after + shortest <= end <= len(text):
                first = end if first < after else min(first, end)
                value = decode(name, text[after:end], text[after - 1])
                if value is not None:
                    yield after, end, value
                    first = end
                    break
        at = text.find(name, max(first, at + 1))


class _BetweenTags:
    """The possible ends of values before an end tag, which a value may hold as well."""

    def __init__(self, text: str, sizes: set[int]) -> None:
        self._text = text
        self._sizes = sizes
        self._shortest = min(sizes)
        self._closing = 0
        self._left = _MOST_ATTEMPTS

    def ends(self, at: int) -> Iterator[int]:
        """Yield the place of the next end tag, then those of tags behind a text of a known size."""
        if 0 <= self._closing < at + self._shortest:
            self._closing = self._text.find("</", at + self._shortest)
        yield self._closing
        self._left -= len(self._sizes)
        if self._left > 0:
            yield from (at + size for size in self._sizes if self._text.startswith(_BEHIND, at + size))


def _closings(text: str, at: int, quote: str, slashes: int) -> Iterator[int]:
    """Yield the places of the quotes, with their backslashes, that may close a literal.

    A literal inside another has one backslash before each quote, one inside that has three. An escaped quote has an odd
    multiple of so many and one more. Inside a literal with the other quote, backslashes alone are doubled.
    """
    for times in (1, 2, 4):
        if slashes % times == 0:
            yield _closing(text, at, quote, slashes, 2 * (slashes // times + 1) * times)


def _closing(text: str, at: int, quote: str, slashes: int, period: int) -> int:
    """Return the place of the first quote with so many backslashes, or so many more than multiples of the period."""
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
    """Yield the texts that a literal without its quotes may stand for; ``quote`` is the last letter before it."""
    yield written
    if quote not in "\"';":
        yield written.removesuffix("\n")
        return
    texts = [written]
    for _ in range(_DEEPEST):
        inner: list[str] = []
        for text in texts:
            for around in ("\"'" if quote != "'" else "'\"") if "\\" in text else ():
                made = _literal(text, around)
                if made is not None and made not in inner:
                    inner.append(made)
                    yield made
        texts = inner


def _literal(written: str, quote: str) -> str | None:
    try:
        if quote == '"':
            return str(json.loads(f'"{written}"', strict=False))
    except ours(ValueError):
        pass
    try:
        return str(ast.literal_eval(f"{quote}{written}{quote}"))
    except ours(ValueError, SyntaxError, MemoryError):
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
