"""The history in a model request: lost, dropped by a window, doubled or stable, against the execution's earlier ones.

A history is lost when the request has nothing of the earlier turns although there were some. Two facts prove that: the
results of tools that ran before the request have not been delivered and are not in it either, or it holds a single new
user message where the request before it held others.
"""

from __future__ import annotations

from array import array
from itertools import zip_longest
from json import loads
from typing import TYPE_CHECKING, Any, NamedTuple

from opentelemetry import trace

from agent_otel import semconv
from agent_otel._internal.errors import attempt
from agent_otel._internal.object_kinds import is_text, text
from agent_otel.core import execution_context
from agent_otel.core.execution_state import NO_PARTS, REUSED, ReadTexts, SeenParts
from agent_otel.core.executions import executions
from agent_otel.core.thread import fragments, threads
from agent_otel.core.thread.request_parts import (
    HEADS,
    KINDS,
    MOST_PARTS,
    NO_SHARES,
    OF_THE_MODEL,
    Shares,
    beginning,
    depths,
    first_text,
    texts,
    timeless_print,
)
from agent_otel.core.thread.request_prefix import has_doubled_ids
from agent_otel.core.tool_visit import running
from agent_otel.measure.passages import prints as prints_of
from agent_otel.measure.preview import clean
from agent_otel.measure.prints import hashes_in, prints
from agent_otel.telemetry.foreign_spans import add_event
from agent_otel.telemetry.spans import put_on_any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from agent_otel.core.execution_state import Conversation, ExecutionState, SeenCall
    from agent_otel.core.thread.request_parts import Sized
    from agent_otel.core.thread.request_prefix import Read
    from agent_otel.core.types import RequestPart


_MOST_NAMES = 16
_SHORTEST = 256  # bytes; shorter arguments are not read as JSON
_NO_TOOLS = hash(())
_HEADS = tuple(KINDS[part] for part in HEADS)
_ANSWERED_KINDS = frozenset(KINDS[part] for part in (*OF_THE_MODEL, semconv.TOOL_RESULTS))


def compare(  # noqa: C901, PLR0912 - the readings of one request
    it: Read, execution: ExecutionState
) -> tuple[Sequence[SeenCall], Shares]:
    """Compare a request with the earlier ones of its execution, and count lost, dropped and doubled messages.

    Return the calls with results that it should hold, and no request held; and the shares of the parts that it repeats
    from the request before. The request has its conversation then, None where it begins none.
    """
    request, sized, conversation, key = it.request, it.measured, it.conversation, 0
    if conversation is not None and it.prefix is not None:
        before, it.offered, continues, measured = conversation.parts, conversation.offered, True, it.measured
        is_doubled = False
    else:
        it.offered = hash(tuple(one.print for one in sized if one.part.part == semconv.TOOLS))
        key = hash((it.offered, *(timeless_print(one) for one in sized if one.part.part == semconv.SYSTEM)))
        # A sub-agent has other tools or another system prompt, and so a separate conversation.
        conversation, is_doubled = (execution.streams or {}).get(key), _is_doubled(sized)
        before = NO_PARTS if conversation is None else conversation.parts
        continues = before.prints == array("q", [one.print for one in sized[: len(before.prints)]])
        measured = sized[len(before.prints) if continues else 0 : MOST_PARTS]
    parts = (before if continues else NO_PARTS).then(measured)
    if request.doubled or is_doubled:
        it.out.metrics.record(semconv.HISTORY_DOUBLED, 1)
    if execution.tracks:
        _read(it, execution, conversation, continues=continues)
    shares = NO_SHARES if conversation is None else conversation.shares
    if request.continued:
        shares = shares._replace(parts=0)
    # Not the shares of another request, which a second thread sends in the same conversation.
    elif not continues or shares.parts != len(before.prints):
        shares = NO_SHARES
    undelivered: Sequence[SeenCall] = ()
    if request.continued:  # the provider has the earlier messages
        lost, execution.is_continued = False, True
    else:
        undelivered = _lost(it, execution, parts)
        lost = bool(undelivered) or _is_forgetful(it, execution, conversation)
        if not lost and conversation is not None:
            _compare_before(it, execution, conversation, parts, continues=continues)
    if conversation is None:
        if lost:
            return undelivered, NO_SHARES
        earlier = _earlier(it, execution)
        conversation = executions.conversation(execution, key)
        if earlier is not None:
            _tell_head(it, conversation, earlier)
        conversation.turns = _begin(conversation, parts)
        conversation.tools = it.tools
    if not lost:
        conversation.offered = it.offered
    _count_turn(execution, conversation, parts, keeps=request.continued)
    conversation.read_parts = len(parts.prints) if execution.tracks else 0
    executions.requested(execution, conversation, parts)
    if sized or not it.first:
        is_chat = not execution.results and bool(sized) and sized[-1].part.part == semconv.USER
        conversation.said = prints(first_text(sized[-1].part.value)) if is_chat else None
    it.conversation = conversation
    return undelivered, shares


def _compare_before(
    it: Read, execution: ExecutionState, conversation: Conversation, parts: SeenParts, *, continues: bool
) -> None:
    """Compare a request with the one before it: find stable, changed, summarized and dropped parts."""
    before, total = conversation.parts, it.total
    same = min(len(before.prints), len(parts.prints))  # parts that begin both
    if not continues:
        pairs = enumerate(zip(before.prints, parts.prints, strict=False))
        same = next((at for at, (was, now) in pairs if was != now), same)
    # Without an earlier turn, a request is a prompt alone.
    if total and (execution.results or not _ANSWERED_KINDS.isdisjoint(parts.kinds)):
        longer = it.measured[len(parts.sizes) - it.first :]  # than the parts with kept fingerprints
        changed = sum(parts.sizes[same:]) + sum(one.bytes for one in longer)
        it.out.metrics.record(semconv.REQUEST_STABLE, (total - changed) / total)
    if not continues:
        conversation.missed = None
        # Nothing continues, unless some parts after the changed one are still there.
        if not set(before.prints[same + 1 :]).isdisjoint(parts.prints[same:]):
            _tell(it, conversation, conversation, _PARTS[before.kinds[same]], same)
        _tell_summarized(before, it.sized)
        _drop(it, conversation, parts)


def _count_turn(execution: ExecutionState, conversation: Conversation, parts: SeenParts, *, keeps: bool) -> None:
    """Count a request as the next turn of its conversation, unless it repeats the one before, as a retry does."""
    if parts.prints != conversation.parts.prints:
        conversation.turns += 1
    elif not keeps:
        run = execution_context.current_run()
        totals = execution if run is None else run.totals
        totals.model_retries += 1
    inside = running()
    if inside is None:
        execution.turn = conversation.turns
    else:
        inside.turn_inside = conversation.turns


def last_turn(execution_id: str | None) -> int:
    """Return the number of the last request of an execution, or inside the running tool; 0 without one."""
    inside = running()
    if inside is not None:
        return inside.turn_inside
    execution = None if execution_id is None else executions.known(execution_id)
    return 0 if execution is None else execution.turn


def _read(it: Read, execution: ExecutionState, conversation: Conversation | None, *, continues: bool) -> None:
    """Keep hashes of the texts that the request before did not hold."""
    before = conversation.read_parts if conversation is not None else 0
    if continues:
        new = it.measured if before == it.first else it.sized[before:MOST_PARTS]
    else:
        seen = set(conversation.parts.prints[:before]) if conversation is not None else ()
        new = [one for one in it.sized[:MOST_PARTS] if one.print not in seen]
    if new or execution.read is None:
        found = prints_of(said for one in new for said in _texts_in(one.part))
        executions.read(execution, ReadTexts() if execution.read is None else execution.read, found)


def _texts_in(part: RequestPart) -> Iterator[str]:
    """Yield the texts of a part; of arguments and definitions those within."""
    value, said = part.value, ""
    if is_text(value):
        said = text(value) or ""
        yield said
        is_long = part.part == semconv.TOOL_CALL_ARGUMENTS and len(said) >= _SHORTEST
        value = attempt(loads, said) if is_long else None
    for depth in depths([value]) or ():
        yield from depth.texts


def is_summary(one: Sized) -> bool:
    """Return true when a part begins as a summary of earlier turns, or as the request for one, or is a compaction."""
    return one.part.name == semconv.COMPACTION or "summar" in beginning(one.part.value).lower()


def _lost(it: Read, execution: ExecutionState, parts: SeenParts) -> Sequence[SeenCall]:
    """Count the requests that have lost their history; return the results that this one should hold."""
    if running() is not None:
        return ()
    owner = hash((it.offered, execution_context.agent_of(it.request.agent)))
    undelivered: Sequence[SeenCall] = ()
    if execution.results:
        has_call = not _ANSWERED_KINDS.isdisjoint(parts.kinds) or threads.is_astray()
        undelivered, requests = fragments.lacking(execution, owner, has_call=has_call)
    if it.offered != _NO_TOOLS or not execution.owner:  # else it may be one for a title
        # Where a request offers one tool only, its answer is the call of that tool.
        execution.is_forced = it.request.must_call and (it.tools is None or it.tools.count <= 1)
        execution.owner = owner
        fragments.last_request.set(object())
    if not undelivered or any(is_summary(one) for one in it.sized if one.part.part != semconv.TOOLS):
        return ()
    ids = {call: call_id for call_id, call in execution.call_ids.items()}
    names = [ids.get(call, call.tool) for call in undelivered[:_MOST_NAMES]]
    _tell_lost(it, requests, {semconv.HISTORY_UNDELIVERED_CALLS: names})
    return undelivered


def _tell_lost(it: Read, requests: int, attributes: Mapping[str, list[str]]) -> None:
    """Count requests without their history, and show the last one on the current span."""
    it.out.metrics.record(semconv.HISTORY_LOST, requests)
    _show({semconv.HISTORY_IS_LOST: True, **attributes})


def _is_forgetful(it: Read, execution: ExecutionState, conversation: Conversation | None) -> bool:
    """Count a request of a chat without tools that has a new message of the user alone, and nothing of the last one."""
    if execution.results or conversation is None or conversation.said is None or running() is not None:
        return False
    messages = [one for one in it.measured if one.part.part not in HEADS]
    if it.first or len(messages) != 1 or messages[0].part.part != semconv.USER or is_summary(messages[0]):
        return False
    is_known = messages[0].print in conversation.parts.prints
    if is_known or not hashes_in(texts(messages[0].part.value)).isdisjoint(conversation.said.hashes):
        return False
    _tell_lost(it, 1, {})
    return True


def _tell_summarized(before: SeenParts, sized: Sequence[Sized]) -> None:
    """Show on the current span that a new summary replaces earlier messages."""
    seen = set(before.prints)
    new = [one for one in sized if one.print not in seen and one.part.part not in HEADS]
    if not seen.issubset(one.print for one in sized) and any(map(is_summary, new)):
        _show({semconv.HISTORY_IS_SUMMARIZED: True})


def _is_doubled(sized: Sequence[Sized]) -> bool:
    """Return true when a request holds a message id twice, or the same result of the same call twice."""
    if has_doubled_ids(one.part for one in sized):
        return True
    results = [one for one in sized if one.part.part == semconv.TOOL_RESULTS and one.part.call_id is not None]
    if len(results) == len({one.part.call_id for one in results}):
        return False
    # Some models reuse call ids in each turn: an id counts as doubled only with an equal result.
    same = {(one.part.call_id, one.bytes, beginning(one.part.value)) for one in results}
    return len(results) > len(same)


_PARTS = tuple(KINDS)

# Changes in the part of a request that the request before had: a prompt cache cannot serve the parts after them.
# Providers cache a request's beginning: tools, system prompt, messages in their order. Only a request that continues
# an earlier one counts: some parts after the changed one are still there.


def _earlier(it: Read, execution: ExecutionState) -> Conversation | None:
    """Return the conversation that a request continues with other tools or another system prompt.

    Such a request begins a separate conversation, as one of a sub-agent does. Without tools, a request may be one
    for a title or a summary, and changes nothing.
    """
    if it.request.continued or it.tools is None:
        return None
    prints = {one.print for one in it.measured}
    for earlier in reversed(list((execution.streams or {}).values())):
        known, _, kinds = earlier.parts
        messages = [one for one, kind in zip(known, kinds, strict=True) if kind not in _HEADS]
        is_answered = KINDS[semconv.TOOLS] in kinds and not _ANSWERED_KINDS.isdisjoint(kinds)
        if is_answered and prints.issuperset(messages):
            return earlier
    return None


def _tell_head(it: Read, conversation: Conversation, earlier: Conversation) -> None:
    """Tell of the change of the tools or the system prompt since an earlier conversation."""
    part = semconv.SYSTEM if earlier.offered == it.offered else semconv.TOOLS
    at = max(earlier.parts.kinds.find(KINDS[part]), 0)
    if part == semconv.SYSTEM or earlier.tools is None or it.tools is None:
        _tell(it, conversation, earlier, part, at)
        return
    old, new = earlier.tools.prints, it.tools.prints
    # The first definition that has moved, changed, come or gone.
    tool = next(((now or was)[0] for was, now in zip_longest(old, new) if was != now), None)
    _tell(it, conversation, earlier, part, at, tool, _how(dict(old), dict(new)))


def _how(old: Mapping[str, int | None], new: Mapping[str, int | None]) -> str:
    """Return how definitions of tools changed, by their prints."""
    if old and old == new:
        return semconv.ORDER
    if any(new[name] != each for name, each in old.items() if name in new) or old.keys() == new.keys():
        return semconv.CONTENT
    return semconv.ADDED if new.keys() - old.keys() else semconv.REMOVED


def _tell(  # noqa: PLR0913, PLR0917 - the fields of a change
    it: Read,
    conversation: Conversation,
    earlier: Conversation,
    part: str,
    at: int,
    tool: str | None = None,
    how: str = semconv.CONTENT,
) -> None:
    """Count a change of the part that was at a place of the request ``earlier``, and show it on the current span."""
    conversation.missed = part, how, earlier.cacheable
    it.out.metrics.record(semconv.PREFIX_CHANGES, 1, part, how)
    attributes: dict[str, Any] = {
        semconv.CONTEXT_CHANGED_PART: part,
        semconv.CONTEXT_CHANGE: how,
        semconv.CONTEXT_CHANGED_BYTES: sum(earlier.parts.sizes[at:]),
    }
    if part not in HEADS:
        kinds = earlier.parts.kinds[: at + 1]
        attributes[semconv.CONTEXT_CHANGED_MESSAGE] = sum(kind not in _HEADS for kind in kinds)
        now, call = it.sized[at].part if at < len(it.sized) else None, it.calls.get(at)
        if now is not None and now.part == part:
            tool = now.name if call is None else call.tool
    if tool:
        attributes[semconv.CONTEXT_CHANGED_TOOL] = clean(tool)
    _show(attributes)


def _show(attributes: Mapping[str, Any]) -> None:
    """Show attributes on the current span."""
    span = trace.get_current_span()
    if span.is_recording():
        put_on_any(span, attributes)


_MOST_PLACES = 8
_USER = KINDS[semconv.USER]
_ASSISTANT = KINDS[semconv.ASSISTANT]
_RESULT = KINDS[semconv.TOOL_RESULTS]
_OF_THE_MODEL = tuple(KINDS[part] for part in OF_THE_MODEL)

# Windows over a history: the messages that a request leaves out between those it shares with the request before. A
# window keeps the end of a history, and sometimes its beginning. So a request with a window is the request before it,
# without one piece in front of its end, and with the model's next message after it. Anything that replaces the
# piece is a summary, an edit or another history, and proves no window. Neither do call ids that are used twice.


class _Message(NamedTuple):
    """A part of the history: its fingerprint, its bytes and its kind."""

    print: int
    bytes: int
    kind: int


def _begin(conversation: Conversation, parts: SeenParts) -> int:
    """Keep the task of a conversation that begins with this request: the first of the user's latest messages.

    Return the number of the model's messages after it: another process has begun the run.
    """
    messages = _messages(parts)
    end = next((at for at in range(len(messages), 0, -1) if messages[at - 1].kind == _USER), 0)
    start = end
    while start and messages[start - 1].kind == _USER:
        start -= 1
    conversation.task = messages[start].print if start < end else 0
    return _turns(messages, end, len(messages))


def _drop(it: Read, conversation: Conversation, parts: SeenParts) -> None:
    """Report the messages that a request leaves out, when it does not continue the one before it."""
    places = [at for at, one in enumerate(it.sized) if one.part.part == semconv.TOOL_RESULTS]
    ids = [call_id for at in places if (call_id := it.sized[at].part.call_id) is not None]
    if any(call.fragment is REUSED for call in it.calls.values()) or len(ids) > len(set(ids)):
        return
    earlier, later = _messages(conversation.parts), _messages(parts)
    if not earlier or not later or len(conversation.parts.prints) >= MOST_PARTS:
        return
    dropped = _left_out(earlier, later, has_tools=KINDS[semconv.TOOLS] in parts.kinds)
    # The model may write the same text in several turns.
    own = {one.print for one in earlier if one.kind != _ASSISTANT}
    if dropped is None and own.isdisjoint(one.print for one in later):
        if later[0].kind == _USER:
            conversation.has_restarted = True
            _begin(conversation, parts)
        elif not conversation.has_restarted and places and all(it.calls.get(place) in it.new for place in places):
            dropped = 0, len(earlier)
    if dropped is not None:
        _tell_dropped(it, conversation, earlier, later, *dropped)


def _messages(parts: SeenParts) -> list[_Message]:
    """Return the parts of the history; empty ones distinguish no message."""
    found = map(_Message, parts.prints, parts.sizes, parts.kinds)
    return [one for one in found if one.bytes and one.kind not in _HEADS]


def _left_out(earlier: list[_Message], later: list[_Message], *, has_tools: bool) -> tuple[int, int] | None:
    """Return where the piece begins and ends that the later request leaves out, None without proof of a window."""
    prints = [one.print for one in later]
    places, end = set(prints), len(earlier)
    # Reminders after the results are in no later request.
    while end and earlier[end - 1].kind == _USER and earlier[end - 1].print not in places:
        end -= 1
    if not end or earlier[end - 1].kind != _RESULT:
        end = len(earlier)
    overlaps = _overlaps([one.print for one in earlier[:end]], prints)
    if len(overlaps) != 1:
        return None
    first, stop, after = overlaps[0]
    dropped, then = earlier[first:stop], later[after:]
    # Without tools, a request for a title or a judgement may hold the last message alone.
    if not (any(one.kind in _OF_THE_MODEL for one in then) if then else has_tools):
        return None
    # Providers and frameworks remove the model's reasoning from among the messages.
    if first and all(one.kind == _ASSISTANT for one in dropped):
        return None
    # The model may write the same text in several turns. Any other message that is still there was moved.
    was_moved = any(one.kind != _ASSISTANT and one.print in places for one in dropped)
    return None if was_moved else (first, stop)


def _overlaps(before: list[int], prints: list[int]) -> list[tuple[int, int, int]]:
    """Return how many parts two requests may share in front, where the shared end begins, and where it ends."""
    ends = [at for at, one in enumerate(prints) if one == before[-1]]
    found = []
    for last in ends if len(ends) <= _MOST_PLACES else ():
        kept = 0
        while kept <= last and kept < len(before) and prints[last - kept] == before[-1 - kept]:
            kept += 1
        first, stop = last - kept + 1, len(before) - kept
        if first < stop and prints[:first] == before[:first]:
            found.append((first, stop, last + 1))
    return found


def _tell_dropped(  # noqa: PLR0913, PLR0917 - both requests, and the piece
    it: Read, conversation: Conversation, earlier: list[_Message], later: list[_Message], first: int, stop: int
) -> None:
    """Count the messages that a window left out, and show them on the current span; forget the task if it is one."""
    dropped, turns = earlier[first:stop], _turns(earlier, first, stop)
    has_task = any(one.print == conversation.task for one in dropped)
    has_task = has_task and all(one.print != conversation.task for one in later)
    if has_task:
        conversation.task = 0
    total, span = sum(one.bytes for one in dropped), trace.get_current_span()
    it.out.metrics.dropped(total, turns, int(has_task))
    if span.is_recording():
        task: dict[str, bool] = {semconv.TASK_IS_DROPPED: True} if has_task else {}
        put_on_any(span, task)
        attributes = {semconv.HISTORY_DROPPED_BYTES: total, semconv.HISTORY_DROPPED_TURNS: turns, **task}
        add_event(span, semconv.HISTORY_DROPPED_EVENT, attributes)


def _turns(messages: list[_Message], first: int, stop: int) -> int:
    """Return how many messages of the model begin in a piece of the history; one may have several parts."""
    is_models = [one.kind in _OF_THE_MODEL for one in messages]
    return sum(is_models[at] and not (at and is_models[at - 1]) for at in range(first, stop))
