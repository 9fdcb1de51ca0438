"""Argument compaction: in a view of a history, completed calls no longer carry their large arguments.

A model writes the arguments of a call. They are input for the first time in the request that carries the call's result.
So they are compacted in that request already, and a provider's prompt cache never holds them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agent_otel._internal.errors import ours
from agent_otel.measure.size import text_bytes
from agent_otel.remedies.history import turns
from agent_otel.remedies.history.argument_copies import LargeArguments, copies
from agent_otel.remedies.history.argument_marks import SHORTEST, Marked, marked, marked_copy, marked_free, parsed
from agent_otel.remedies.history.trimmed_line import has_failed, replaced, text_of, weight
from agent_otel.remedies.history.trimming import is_placeholder
from agent_otel.remedies.history.turns import KEEP_TURNS, STEP_TURNS, Changes
from agent_otel.semconv import COMPACT, CONTEXT_SUMMARIZE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agent_otel.messages.fields import Path
    from agent_otel.remedies.history.turns import Call, History

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
    """Return the messages with marks in the place of completed calls' arguments above ``above_bytes`` UTF-8 bytes.

    A call is completed as soon as its result is there. Calls in flight and calls with a framework's placeholder result
    stay unchanged. A mark gives the size of the argument. Arguments keep their keys, and JSON text stays JSON text.
    Copies of the arguments in a provider's metadata get the same marks. Errors above ``failure_bytes`` keep their
    beginning and their end. A call whose result came in a later turn was in a request with its arguments; it changes
    only where the cut of `history.trim` moves, which ``keep_turns`` and ``step_turns`` define. Unchanged messages are
    the same objects. Raises TypeError when ``messages`` is not a sequence, ValueError for options that are too small.
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
        new = (marked_free if call.asked.free else marked)(call.asked.arguments, above_bytes)
        if new is not None and not is_placeholder(answer.answered.content):
            changes.put(call.at, call.asked.path, new.arguments)
            changes.count(call.at, COMPACT, new.removed_bytes)
            if known is not None:
                known.add(new.values)
            _put_copies(history, call, new, changes, above_bytes)


def _put_copies(history: History, call: Call, new: Marked, changes: Changes, above_bytes: int) -> None:
    """Replace the other places of a call's arguments in its message: whole copies, and those inside texts."""
    whole, long_texts = copies(history.messages[call.at], above_bytes)
    for path, copied in _marked_copies(history, call, whole, above_bytes):
        changes.put(call.at, path, copied)
    if not long_texts or any(other.answer is None for other in history.calls if other.at == call.at):
        return
    known = LargeArguments(above_bytes)
    known.add(new.values)
    for path, text in long_texts:
        found = known.replaced(changes.value(call.at, path, text))
        if found is not None:
            changes.put(call.at, path, found[0])


def compacting_prompt(history: History, changes: Changes, known: LargeArguments, above_bytes: int) -> None:
    """Replace arguments of completed calls in the texts of a request without calls, such as a summariser's."""
    if not known or history.calls or history.results:
        return
    for at, message in enumerate(history.messages):
        for path, text in copies(message, above_bytes).texts:
            found = known.replaced(text)
            if found is not None:
                changes.put(at, path, found[0])
                changes.count(at, COMPACT, found[1])


def _check(name: str, value: int, least: int) -> None:
    if value < least:
        raise ValueError(f"{name} is at least {least}, not {value}")


def _marked_copies(
    history: History, call: Call, whole: list[tuple[Path, set[str], Any]], above_bytes: int
) -> Iterator[tuple[Path, Any]]:
    """Yield the places of copies of a call's arguments, with the same marks.

    A copy names the call's id, or has equal arguments and no id of another call: providers add ids of their own.
    """
    asked, together = call.asked, history.seen[call.at].asked
    paths = [one.path for one in together]
    others = {one.id for one in together if one is not asked and one.id is not None}
    for path, ids, value in whole:
        if path in paths:
            continue
        named = asked.id in ids and asked.id not in others
        if not named and ids & (others - {asked.id}):
            continue
        new = marked_copy(value, above_bytes)
        if new is not None and (named or _equal(asked.arguments, value)):
            yield path, new


def _equal(one: Any, other: Any) -> bool:
    """Return True when two forms of arguments have the same values."""
    wanted = parsed(one)
    try:
        return wanted is not None and bool(parsed(other) == wanted)
    except ours(Exception):  # values that cannot be compared count as different
        return False


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
        bounded = _ends(text, failure_bytes)
        changes.put(result.at, result.answered.path, replaced(content, bounded))
        changes.count(result.at, COMPACT, heavy.bytes - text_bytes(bounded))


def _ends(text: str, limit_bytes: int) -> str:
    """Return the beginning and the end of a text, with a line between them, in at most ``limit_bytes``."""
    half = (limit_bytes - SHORTEST) // 2
    begin = text[:half].encode("utf-8", "replace")[:half].decode("utf-8", "ignore")
    end = text[-half:].encode("utf-8", "replace")[-half:].decode("utf-8", "ignore")
    removed = text_bytes(text) - text_bytes(begin) - text_bytes(end)
    return f"{begin}\n[error shortened: {removed} bytes removed]\n{end}"
