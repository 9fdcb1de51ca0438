"""Argument compaction: in a view of a history, completed calls no longer carry their large arguments.

They are compacted in the first request that carries them, so that a provider's prompt cache never holds them.
"""

from __future__ import annotations

import ast
import functools
import json
import re
from html import unescape
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_otel._internal.errors import attempt, ours
from agent_otel.core.thread.model_calls import shorten
from agent_otel.measure.size import json_size, text_bytes
from agent_otel.messages.fields import RESULT_ID, fields, is_list
from agent_otel.remedies.history import turns
from agent_otel.remedies.history.trimming import has_failed, is_placeholder
from agent_otel.remedies.history.turns import KEEP_TURNS, STEP_TURNS, Changes, are_equal, replaced, text_of, weight
from agent_otel.semconv import COMPACT, CONTEXT_SUMMARIZE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from agent_otel.messages.fields import Path
    from agent_otel.remedies.history.turns import Call, History


SHORTEST: Final = 64
"""Bytes below which no value gets a mark. A mark is shorter, so that it is never marked again."""

FREE: Final = "input"
"""The name under which OpenAI has the text of a custom tool's call."""

_DEEPEST_MARK: Final = 8


class Marked(NamedTuple):
    """Arguments with marks, the number of UTF-8 bytes removed, and the removed values by their names."""

    arguments: Any
    removed_bytes: int
    values: dict[str, Any]


def marked(arguments: Any, above_bytes: int) -> Marked | None:
    """Return arguments, or their JSON text, with marks for values above the limit; None when nothing changes."""
    if type(arguments) is str:
        return _marked_text(arguments, above_bytes) if text_bytes(arguments) > above_bytes else None
    if not issubclass(type(arguments), dict):
        return None
    made, removed, values = {}, 0, {}
    for key, value in fields(arguments).items():
        made[key], less = _value(value, above_bytes)
        if less:
            removed += less
            values[key] = value
    return Marked(made, removed, values) if removed else None


def parsed(arguments: Any) -> Any:
    """Return the arguments as a mapping; None when they are not one."""
    if type(arguments) is str:
        arguments = attempt(functools.partial(json.loads, strict=False), arguments)
    return arguments if issubclass(type(arguments), dict) else None


def _value(value: Any, above: int) -> tuple[Any, int]:
    """Return a value or its mark, and the number of bytes removed."""
    if type(value) is str:
        size = text_bytes(value) if len(value) > above // 4 else 0
        return (value, 0) if size <= above else _mark(size, exact=True)
    if not (type(value) is dict or is_list(value)):
        return value, 0
    nodes = above // 2 + 1  # a node has at least a byte and a comma: more nodes are above the limit
    size, exact = json_size(value, nodes)
    if size <= above:
        return value, 0
    if exact:
        inner, removed = _inside(value, above, _DEEPEST_MARK)
        if removed and json_size(inner, nodes).bytes <= above:
            return inner, removed
    return _mark(size, exact=exact)


def _mark(size: int, *, exact: bool) -> tuple[str, int]:
    """Return the mark for a value, and the bytes removed; a size that is not exact is a lower bound."""
    put = f"[argument removed: {size}{'' if exact else '+'} bytes]"
    return put, size - len(put)


def _inside(value: Any, above: int, deep: int) -> tuple[Any, int]:
    """Return a list or mapping with marks in the place of its large texts, and the number of bytes removed."""
    if type(value) is str:
        return _value(value, above)
    if not deep or not (type(value) is dict or is_list(value)):
        return value, 0
    pairs = [_inside(one, above, deep - 1) for one in (value.values() if type(value) is dict else value)]
    removed = sum(less for _, less in pairs)
    if not removed:
        return value, 0
    made = [one for one, _ in pairs]
    return (dict(zip(value, made, strict=True)) if type(value) is dict else made), removed


def _marked_text(text: str, above: int) -> Marked | None:
    made = marked(parsed(text), above)
    if made is None:
        return None
    try:
        written = json.dumps(made.arguments, ensure_ascii=False, allow_nan=False)
        written.encode()
    except ours(UnicodeEncodeError):  # only JSON's escapes hold lone surrogates
        written = json.dumps(made.arguments, allow_nan=False)
    except ours(ValueError):  # a number that JSON does not have: the text stays
        return None
    return Marked(written, made.removed_bytes, made.values)


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
    """Hashes of the large arguments of completed calls, and the search for their copies after their names."""

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
                found[start] = (end, _mark(text_bytes(value), exact=True)[0])
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
    shortest, closing, left = min(sizes), 0, _MOST_ATTEMPTS

    def ends_of_tagged(begin: int) -> Iterator[int]:
        """Yield the next end tag, then those behind a text of a known size: a value may hold an end tag as well."""
        nonlocal closing, left
        if 0 <= closing < begin + shortest:
            closing = text.find("</", begin + shortest)
        yield closing
        left -= len(sizes)
        if left > 0:
            yield from (begin + size for size in sizes if text.startswith(_BEHIND, begin + size))

    at = text.find(name)
    while at >= 0:
        after = first = at + len(name)
        quoted = _QUOTED.match(text, after)
        tagged = None if quoted is not None else _TAGGED.match(text, after)
        ends: Iterable[int] = ()
        if quoted is not None:
            after = quoted.end()
            # A literal inside another has one backslash before each quote, one inside that has three. An escaped quote
            # has an odd multiple of so many and one more. Inside a literal with the other quote, backslashes alone are
            # doubled.
            quote, slashes = quoted["quote"], len(quoted["colon"] or quoted["equals"] or "")
            periods = (2 * (slashes // times + 1) * times for times in (1, 2, 4) if slashes % times == 0)
            ends = (_closing(text, after, quote, slashes, period) for period in periods)
        elif tagged is not None:
            after = tagged.end()
            ends = ends_of_tagged(after)
        for end in ends:
            if after + shortest <= end <= len(text):
                first = end if first < after else min(first, end)
                value = decode(name, text[after:end], text[after - 1])
                if value is not None:
                    yield after, end, value
                    first = end
                    break
        at = text.find(name, max(first, at + 1))


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


def _copies(message: Any, above_bytes: int) -> tuple[list[tuple[Path, set[str], Any]], list[tuple[Path, str]]]:
    """Return the values under the name of arguments, with the ids around them, and long texts; nothing signed."""
    whole: list[tuple[Path, set[str], Any]] = []
    texts: list[tuple[Path, str]] = []
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
                whole.append(((*path, step), ids, value))
            elif type(value) is str:
                if above_bytes < 4 * len(value) and step not in SIGNED and text_bytes(value) > above_bytes:
                    texts.append(((*path, step), value))
            elif step not in SIGNED and not _is_leaf(value) and len(path) < 2 * _DEEPEST:
                pending.append(((*path, step), value, ids))
    return whole, texts


def _is_leaf(value: Any) -> bool:
    """Return True for a value without members, and for a call that the provider runs (``mcp_tool_use``)."""
    cls = type(value)
    if value is None or cls is int or cls is float or cls is bool or cls is bytes:
        return True
    if (cls is dict or cls is list) and not value:
        return True
    kind = None if is_list(value) else fields(value).get("type")
    return type(kind) is str and kind.endswith("_tool_use")


ABOVE_BYTES: Final = 2_000
"""UTF-8 bytes of one argument; deepagents cuts at 2,000 characters."""

FAILURE_BYTES: Final = 2_000
"""UTF-8 bytes of an error: half for its beginning, half for its end, where tools name the failure and its place."""


def compact(
    messages: Sequence[Any],
    *,
    keep_turns: int = KEEP_TURNS,
    step_turns: int = STEP_TURNS,
    above_bytes: int = ABOVE_BYTES,
    failure_bytes: int = FAILURE_BYTES,
) -> list[Any]:
    """Return the messages with a mark instead of each argument above ``above_bytes`` UTF-8 bytes of a completed call.

    A call is completed when its result is there; a placeholder of the framework does not count. A mark gives the size
    of the argument. Arguments keep their keys, and JSON text stays JSON text. Copies in a provider's metadata get the
    same marks. Errors above ``failure_bytes`` keep their beginning and their end. A call that was sent with its
    arguments before changes only where the cut of ``trim_history`` moves. Unchanged messages are the same objects.
    Raises TypeError when ``messages`` is not a sequence, ValueError for options that are too small.
    """
    history = turns.read(messages)
    cut, changes = history.cut(keep_turns, step_turns), Changes()
    compacting(history, cut, changes, above_bytes)
    bounding(history, 0, changes, failure_bytes)
    return changes.apply(history.messages)[0]


def compacting(
    history: History, cut: int, changes: Changes, above_bytes: int, known: LargeArguments | None = None
) -> None:
    """Replace large arguments of completed calls by marks, and add them to those that are ``known``."""
    _check("above_bytes", above_bytes, SHORTEST)
    for call in history.calls:
        answer = call.answer
        # A request without the result has carried the arguments of a call that was answered in a later turn.
        if answer is None or (answer.turn != call.turn and answer.turn >= cut):
            continue
        asked = call.asked
        is_free = asked.free and type(asked.arguments) is str
        new = marked({FREE: asked.arguments} if is_free else asked.arguments, above_bytes)
        if new is not None and not is_placeholder(answer.answered.content):
            made = new.arguments[FREE] if is_free else new.arguments
            changes.put(call.at, asked.path, made, COMPACT, new.removed_bytes)
            if known is not None:
                known.add(new.values)
                if call.turn == history.turns - 1:  # this request may be the first that shows it
                    shorten(asked.arguments, made)
            _put_copies(history, call, new, changes, above_bytes)


def _put_copies(history: History, call: Call, new: Marked, changes: Changes, above_bytes: int) -> None:
    """Replace the other places of a call's arguments in its message: whole copies, and those inside texts."""
    whole, texts = _copies(history.messages[call.at], above_bytes)
    asked, together = call.asked, history.seen[call.at].asked
    paths = [one.path for one in together]
    others = {one.id for one in together if one is not asked and one.id is not None}
    for path, ids, value in whole:  # by the call's id, or equal ones without another's id
        is_named = asked.id in ids and asked.id not in others
        if path in paths or (not is_named and ids & (others - {asked.id})):
            continue
        found = marked(value, above_bytes)
        wanted = None if found is None or is_named else parsed(asked.arguments)
        if found is not None and (is_named or (wanted is not None and are_equal(parsed(value), wanted))):
            changes.put(call.at, path, found.arguments)
    if any(other.answer is None for other in history.calls if other.at == call.at):
        return
    known = LargeArguments(above_bytes)
    known.add(new.values)
    for path, text in texts:
        copied = known.replaced(changes.value(call.at, path, text))
        if copied is not None:
            changes.put(call.at, path, copied[0])


def compacting_prompt(history: History, changes: Changes, known: LargeArguments, above_bytes: int) -> None:
    """Replace arguments of completed calls in the texts of a request without calls, such as a summariser's."""
    if not known or history.calls or history.results:
        return
    for at, message in enumerate(history.messages):
        for path, text in _copies(message, above_bytes)[1]:
            found = known.replaced(text)
            if found is not None:
                changes.put(at, path, found[0], COMPACT, found[1])


def _check(name: str, value: int, least: int) -> None:
    if value < least:
        raise ValueError(f"{name} is at least {least}, not {value}")


def bounding(history: History, first: int, changes: Changes, failure_bytes: int) -> None:
    """Replace large errors by their beginning and end, from the turn ``first`` on."""
    _check("failure_bytes", failure_bytes, 2 * SHORTEST)
    for result in history.results:
        content = result.answered.content
        if result.call is None or result.turn < first or result.name == CONTEXT_SUMMARIZE:
            continue
        heavy = weight(content)
        text = text_of(content) if heavy.bytes > failure_bytes else None
        if text is None or not has_failed(content, result.answered.failed):
            continue
        half = (failure_bytes - SHORTEST) // 2
        begin = text[:half].encode("utf-8", "replace")[:half].decode("utf-8", "ignore")
        end = text[-half:].encode("utf-8", "replace")[-half:].decode("utf-8", "ignore")
        removed = text_bytes(text) - text_bytes(begin) - text_bytes(end)
        bounded = f"{begin}\n[error shortened: {removed} bytes removed]\n{end}"
        less = heavy.bytes - text_bytes(bounded)
        changes.put(result.at, result.answered.path, replaced(content, bounded), COMPACT, less)
