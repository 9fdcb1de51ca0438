"""Views of a history for a request: old results as one line each, and no duplicate messages."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_otel._internal.errors import ours
from agent_otel.measure.size import text_bytes
from agent_otel.messages.fields import fields
from agent_otel.remedies.history import turns
from agent_otel.remedies.history.trimmed_line import HEAD_CHARACTERS, LineForm, is_line, line, replaced, text_of, weight
from agent_otel.remedies.history.turns import KEEP_TURNS, STEP_TURNS, Changes
from agent_otel.semconv import CONTEXT_SUMMARIZE, TRIM

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from agent_otel.remedies.history.turns import History, Result


DEDUPLICATE: Final = "deduplicate"
_UNIQUE: Final = 16


class View(NamedTuple):
    """Messages for a request, the UTF-8 bytes that each strategy removed, and the turns of the history."""

    messages: list[Any]
    removed_bytes: Mapping[str, int]
    turns: int = 0


def trim(
    messages: Sequence[Any],
    *,
    keep_turns: int = KEEP_TURNS,
    step_turns: int = STEP_TURNS,
    head_characters: int = HEAD_CHARACTERS,
    pattern: re.Pattern[str] | None = None,
) -> list[Any]:
    """Return the messages with old results as one line each.

    The line gives the removed bytes, the tool's name, success or error if the result shows it, the first
    ``head_characters`` of the content, and the references to data stored elsewhere: claim checks, ids, URLs, paths, and
    matches of ``pattern``. The last ``keep_turns`` turns stay unchanged, and up to ``step_turns - 1`` turns before
    them: the cut moves ``step_turns`` turns at a time, so that a prompt cache keeps hitting between two moves. A turn
    is a model's calls and their results.

    These stay unchanged: results not longer than their line, images and other blocks without text, results without a
    call, and messages of unknown type. Unchanged messages are the same objects, changed ones are copies. Raises
    TypeError when ``messages`` is not a sequence, ValueError for options that are too small.
    """
    history = turns.read(messages)
    changes = Changes()
    form = LineForm(head_characters, pattern=pattern)
    trimming(history, history.cut(keep_turns, step_turns), changes, form)
    return changes.apply(history.messages)[0]


def trimming(history: History, cut: int, changes: Changes, form: LineForm) -> None:
    """Replace the results of the turns before the cut by lines."""
    if form.characters < 1:
        raise ValueError(f"head_characters is at least 1, not {form.characters}")
    for result in history.results:
        is_summary = result.name == CONTEXT_SUMMARIZE  # which stands for the old turns
        if result.call is not None and result.turn < cut and not is_summary:
            line = trimmed(result, form)
            if line is not None:
                changes.put(result.at, result.answered.path, replaced(result.answered.content, line.line))
                changes.count(result.at, TRIM, line.removed_bytes)


def deduplicate(messages: Sequence[Any]) -> list[Any]:
    """Return the messages without the ones that a restored checkpoint has duplicated; the first of each stays.

    A message is a duplicate when an earlier one has its id and is equal to it. A result is also a duplicate when an
    earlier one answers the same call with the same content. Without ids of messages, the ids of calls decide. In a
    history of texts alone, a copy of its beginning is removed when it has two different answers of 40 characters or
    more. A call stays with its result. Raises TypeError when ``messages`` is not a sequence.
    """
    history = turns.read(messages)
    places = doubled(history)
    return [message for place, message in enumerate(messages) if place not in places]


def doubled(history: History) -> set[int]:
    """Return the places of duplicates whose removal separates no call from its result."""
    found = _doubled(history)
    if not found:
        return found
    partners: dict[int, set[int]] = defaultdict(set)
    for call in history.calls:
        if call.answer is not None:
            partners[call.at].add(call.answer.at)
            partners[call.answer.at].add(call.at)
    pending = [place for place in found if not partners[place] <= found]
    while pending:
        place = pending.pop()
        found.discard(place)
        pending.extend(partners[place] & found)
    return found


def _doubled(history: History) -> set[int]:
    found: set[int] = set()
    known: dict[object, tuple[int, ...]] = {}  # the first and the last message with a key
    for place, seen in enumerate(history.seen):
        keys: list[object] = [("id", seen.id)] if seen.id is not None else []
        calls = tuple([answered.id for answered in seen.answered]) if seen.answered else (None,)
        if None not in calls:
            keys.append(("calls", calls))
        before: set[int] = set()
        for key in keys:
            earlier = known.get(key, ())
            before.update(earlier)
            known[key] = (*earlier[:1], place)
        if before and any(_same(history.messages[other], history.messages[place]) for other in before):
            found.add(place)
    return found | _repeated(history) | _copied(history)


def _repeated(history: History) -> set[int]:
    """Return the places of messages that repeat earlier ones around calls with the same ids and equal results."""
    found: set[int] = set()
    first: dict[tuple[str | None, ...], int] = {}
    messages, end, said, renumbered = history.messages, _end(history), dict[str | None, Any](), set[str | None]()
    for call in history.calls:
        if call.answer is not None:
            now = call.asked.name, call.asked.arguments, call.answer.answered.content
            if not are_equal(said.setdefault(call.asked.id, now), now):
                renumbered.add(call.asked.id)
    for place, seen in enumerate(history.seen):
        ids = tuple([asked.id for asked in seen.asked])
        if not ids or None in ids or not renumbered.isdisjoint(ids):
            continue
        earlier = first.setdefault(ids, place)
        if earlier == place or place in found or not _same(messages[earlier], messages[place]):
            continue
        apart = place - earlier
        begin = place
        while begin > apart and _same(messages[begin - 1 - apart], messages[begin - 1]):
            begin -= 1
        stop = place + 1
        while stop < end and stop - apart < begin and _same(messages[stop - apart], messages[stop]):
            stop += 1
        begin = max(begin, earlier + 1)
        calls = {tuple([asked.id for asked in one.asked]) for one in history.seen[begin:stop] if one.asked}
        is_last = stop == len(messages) and not _same(messages[begin - 1], messages[-1])
        if all(len(each or "") >= _UNIQUE for each in ids) or (len(calls) > 1 and not is_last):
            found.update(range(begin, stop))
    return found


def _end(history: History) -> int:
    """Return the number of messages before the user's last ones: the user may send the same again."""
    end = len(history.seen)
    while end and history.seen[end - 1].by_user and not history.seen[end - 1].answered:
        end -= 1
    return end


def _same(one: Any, other: Any) -> bool:
    """Return True when two messages are equal except for their ids, which a restored result may have renewed."""
    if type(one) is not type(other):
        return False
    left, right = ({key: value for key, value in fields(each).items() if key != "id"} for each in (one, other))
    return are_equal(left, right)


def are_equal(one: Any, other: Any) -> bool:
    """Return True for equal values. Values without a comparison count as different."""
    try:
        return bool(one == other)
    except ours(Exception):
        return False


#: Different answers of a model in a copy, each of so many characters.
_LEAST_ANSWERS: Final = 2
_LEAST_CHARACTERS: Final = 40
_MODEL: Final = ("assistant", "ai", "model")


def _copied(history: History) -> set[int]:
    """Return the places of texts without ids that repeat the beginning of the conversation."""
    end, found = _end(history), set[int]()
    begin = next((place for place in range(end) if history.seen[place].by_user), end)
    place = begin + 1
    while place < end:
        length = 0
        while begin + length < place and place + length < end and _is_text_of(history, begin + length, place + length):
            length += 1
        if length and _is_distinct(history.messages[begin : begin + length]):
            before = 0  # messages before the copy, such as a system message, that were copied with it
            while before < begin and _same(*(history.messages[at - 1 - before] for at in (begin, place))):
                before += 1
            found.update(range(place - before, place + length))
        place += length or 1
    return found


def _is_text_of(history: History, one: int, other: int) -> bool:
    """Return True for two equal texts without ids and calls."""
    both = history.seen[one], history.seen[other]
    has_more = any(seen.id is not None or seen.asked or seen.answered for seen in both)
    return not has_more and _same(history.messages[one], history.messages[other])


def _is_distinct(messages: Sequence[Any]) -> bool:
    """Return True when messages hold enough different answers of a model."""
    answers = set()
    for message in messages:
        known = fields(message)
        text = text_of(known.get("content") or known.get("parts"))
        if (known.get("role") or known.get("type")) in _MODEL and text and len(text) >= _LEAST_CHARACTERS:
            answers.add(text)
    return len(answers) >= _LEAST_ANSWERS


_MOST_LINES: Final = 4096

_lines: dict[Hashable, Trimmed | None] = {}


class Trimmed(NamedTuple):
    """The line in the place of a result, and the UTF-8 bytes that it removes."""

    line: str
    removed_bytes: int


_NOT_MADE: Final = Trimmed("", 0)


def trimmed(result: Result, form: LineForm) -> Trimmed | None:
    """Return the line of a result, remembered for a text; None for one that stays unchanged."""
    content = result.answered.content
    if type(content) is not str:
        return _trimmed(content, result, form)
    key = hash(content), len(content), result.name, result.answered.failed, form
    made = _lines.get(key, _NOT_MADE)
    if made is _NOT_MADE:
        made = _trimmed(content, result, form)
        if len(_lines) >= _MOST_LINES:
            _lines.clear()
        _lines[key] = made
    return made


def _trimmed(content: Any, result: Result, form: LineForm) -> Trimmed | None:
    heavy = weight(content)
    if heavy.characters <= form.characters or is_line(content) or is_placeholder(content):
        return None
    made = line(content, heavy, result.name, said=result.answered.failed, form=form)
    removed_bytes = heavy.bytes - text_bytes(made)
    return Trimmed(made, removed_bytes) if removed_bytes > 0 else None


_TEXTS: Final = (
    r"\[Tool call (?:was interrupted and did not return a result|could not be executed because its )",  # DeerFlow
    r"\[write_file failed before execution: ",  # DeerFlow
    r"Tool call .{0,200}? with id .{0,100}? (?:did not complete|was cancelled|could not be executed)",  # deepagents
    r"The tool call was interrupted before a result was produced",  # pydantic-ai
    r"(?:Output t|T)ool not (?:executed|used) - a final result",  # pydantic-ai
    r"Tool execution was interrupted by an error|The tool call was denied\.",  # pydantic-ai
    r"Tool execution (?:for .{0,100}? was manually rejected by user|cancelled\.?\s*$)",  # openai-agents
    r"Tool execution was not approved\.",  # openai-agents
    r"User rejected the tool call for |Tool call limit exceeded\. Do not ",  # langchain
    r"Tool was interrupted|This tool call was not executed|Tool cancelled by hook|Tool call cancelled\. ",  # strands
    r"Tool execution cancelled locally; ",  # strands
    r"Tool call limit reached\. Tool call .{0,200}? not executed",  # agno
    r"Tool call was rejected\s*$|Function call was rejected by the user",  # agno
    r"Error: Missing tool result |This tool call is rejected\.",  # google-adk
    r"Tool '.{1,200}?' has reached its (?:maximum )?usage limit ",  # crewai
    r"Tool execution for '.{1,200}?' was rejected by the user\.",  # haystack
    r"Error: Tool call (?:invocation was rejected by user|was cancelled)\.",  # agent-framework
    r"User denied the tool call request|The turn was cancelled before this tool finished\.",  # ag2
    r"This tool call was not completed: ",  # ag2
    r"\{\"error\": \"(?:limit_reached|repeated_call|tool_denied)\", ",  # a limit and the policy of this package
    r"\[System: Tool execution skipped/interrupted by user",  # litellm
)
_PLACEHOLDER: Final = re.compile("|".join(_TEXTS), re.DOTALL)
_LONGEST: Final = 1024


def is_placeholder(content: Any) -> bool:
    """Return True for a framework's placeholder: its call is not completed, and its arguments may still be needed."""
    text = text_of(content)
    return text is not None and len(text) <= _LONGEST and _PLACEHOLDER.match(text) is not None
