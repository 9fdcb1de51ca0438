"""The delivered stage: each model request is measured part by part, and its tool results are compared with the tools'.

A result that an earlier request held costs a look-up and a length. Requests are compared by fingerprints of their parts
(a hash of the kind, the size and the beginning); no text is kept.
"""

from __future__ import annotations

import weakref
from array import array
from typing import TYPE_CHECKING, Any

from opentelemetry import trace

from agent_otel import semconv, settings
from agent_otel.core import execution_context
from agent_otel.core.cost.model_tokens import SentRequest
from agent_otel.core.execution_state import Fragment, Stage
from agent_otel.core.executions import executions
from agent_otel.core.thread import answers, fragments, model_calls, request_history, request_prefix, tool_definitions
from agent_otel.core.thread.request_parts import (
    HEADS,
    NO_SHARES,
    OF_CALLS,
    Shares,
    Sized,
    beginning,
    characters,
    fingerprint,
    first_text,
    plain_print,
    texts,
)
from agent_otel.core.thread.request_prefix import Messages
from agent_otel.core.thread.threads import open_calls, threads
from agent_otel.core.tool_invocation import compare, reason, show_cut
from agent_otel.core.tool_visit import running
from agent_otel.core.types import ModelRequest
from agent_otel.measure.arguments_hash import arguments as digest_arguments
from agent_otel.measure.prints import hashes_in
from agent_otel.measure.size import Size, size
from agent_otel.measure.truncation import find_cut, has_shrunk

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from opentelemetry.trace import SpanContext

    from agent_otel.core.execution_state import ExecutionState, SeenCall
    from agent_otel.core.types import RequestPart
    from agent_otel.measure.prints import Prints
    from agent_otel.telemetry.setup import Telemetry

#: A text that a request has twice is counted from so many bytes on.
_LARGE = 1_024
#: Characters at the beginning, in the middle and at the end of a text that identify it.
_SAMPLE = 128
#: From so many messages on, it is faster to recognise messages of the request before than to read them.
_LONG = 24


def take(out: Telemetry, request: ModelRequest) -> SentRequest:
    """Record a request: the sizes of its parts, truncation of its tool results, and its history; return it."""
    it = _read(out, request)
    execution, shown, sizes = it.execution, model_calls.find(it), dict.fromkeys(semconv.REQUEST_PARTS, 0)
    if execution is not None:
        execution.out = out
    it.new = [call for call in it.calls.values() if call.delivered < 0]
    if it.conversation is not None and it.prefix is not None:
        it.prefix.calls.update(it.calls)
        it.calls = it.prefix.calls
        sizes.update(it.conversation.shares.by_part())
    if executions.has_fragments:
        answers.follow_up(it.calls.values())
    it.measured = [_sized(it, part, it.calls.get(at)) for at, part in enumerate(it.read, it.first)]
    for one in it.measured:
        sizes[one.part.part] += one.bytes
    it.total = sum(sizes.values())
    if sizes[semconv.TOOLS] and it.prefix is None:
        it.tools = tool_definitions.take(out, request, it.measured)
    out.metrics.add(semconv.REQUEST_SIZE, sizes)
    for call in shown:
        model_calls.record(out, request, call, it.execution_id)
    before = NO_SHARES
    undelivered: Sequence[SeenCall] = ()
    quoted: Sequence[SeenCall] = ()
    if execution is not None:
        quoted = _quoted(out, execution, it.measured)
        undelivered, before = request_history.compare(it, execution)
        request_prefix.keep(it, execution)
        fragments.pass_by(out, execution)
    new = it.measured if before.parts == it.first else it.sized[before.parts :]
    shares, again = add_shares(before, new, it.calls, it.new)
    if it.conversation is not None:
        it.conversation.shares = shares
    out.metrics.add(semconv.RESULT_RESENT, again)
    sent = SentRequest(it, shares, _known_of(it))
    out.metrics.model(request.model)
    if executions.has_fragments or undelivered:
        sent.pending = answers.pending(it, [*undelivered, *(quoted if sizes[semconv.TOOLS] else ())])
    return sent


def _known_of(it: request_prefix.Read) -> dict[str, Any] | None:
    """Return the thread, turn and agent for the calls of a response."""
    execution = it.execution
    if execution is None:
        return None
    around, run = running(), execution_context.current_run()
    known: dict[str, Any] = {
        "place": it.execution_id,
        "run": None if run is None or run.key != it.execution_id else run,
        "turn": execution.turn if around is None else around.turn_inside,
        "agent": execution_context.agent_of(it.request.agent),
    }
    if around is not None:
        known["around"] = weakref.ref(around)
    elif not execution.is_forced:
        known["mark"], known["owed_to"] = fragments.last_request.get(), execution.owner
    return known


def add_shares(
    before: Shares, sized: Sequence[Sized], calls: Mapping[int, SeenCall], new: Collection[SeenCall]
) -> tuple[Shares, dict[str, int]]:
    """Return the shares of a request, and the bytes by tool of the results in it that a request has held before.

    ``before`` are the shares of the parts that it begins with, ``sized`` its parts after them. ``calls`` are the calls
    with results in it, by the results' indexes. ``new`` are the calls that no request held before.
    """
    found, removed = dict(before.bytes), dict(before.removed)
    places = {key: place for place, key in enumerate(found)}
    again: dict[str, int] = {}
    if before.parts:
        again = {tool: size for (part, tool), size in found.items() if part == semconv.TOOL_RESULTS and tool}
    digests, duplicate_bytes, first = set[int](), before.duplicate_bytes, set(new)
    names: dict[str | None, str] = {}  # of calls that another execution has recorded, by id
    sizes, keys = [], []
    for at, ((part, value, call_id, name, *_), part_bytes, _) in enumerate(sized, before.parts):
        tool = ""
        if part in OF_CALLS:
            call = calls.get(at)
            tool = (call.tool if call is not None else name) or names.get(call_id, "")
            tool = "" if tool in semconv.OWN_TOOLS else tool
            if call_id is not None:
                names[call_id] = tool
            if part == semconv.TOOL_RESULTS and tool and (call is None or not call.tool or call not in first):
                again[tool] = again.get(tool, 0) + part_bytes
            if call is not None and call.fragment is not None and call.fragment.removed is not None:
                remedy, less = call.fragment.removed
                removed[remedy] = removed.get(remedy, 0) + less
        key = part, tool
        found[key] = found.get(key, 0) + part_bytes
        place = places.setdefault(key, len(places))
        if part not in HEADS:
            sizes.append(part_bytes)
            keys.append(place)
        if part_bytes >= _LARGE and (said := first_text(value)):
            middle = len(said) // 2
            # The call that it belongs to makes no difference.
            digest = hash((part_bytes, said[:_SAMPLE], said[middle : middle + _SAMPLE], said[-_SAMPLE:]))
            if digest in digests or digest in before.texts:
                duplicate_bytes += part_bytes
            digests.add(digest)
    order = before.sizes + array("Q", sizes), before.places + array("H", keys)
    savable = before.savable.then(sized, settings.current())
    return Shares(
        before.parts + len(sized), found, *order, removed, savable, before.texts | digests, duplicate_bytes
    ), again


def _read(out: Telemetry, request: ModelRequest) -> request_prefix.Read:
    """Read a request, from its first new message on where it continues the one before it."""
    messages = request.parts if type(request.parts) is Messages and not request.continued else None
    messages = None if messages is None or len(messages.items) < _LONG else messages
    it = None if messages is None else request_prefix.find(out, request, messages)
    if it is not None and it.execution_id is not None:
        it.execution = executions.touched(it.execution_id)
        threads.take_new(it.execution_id, it.read)
        it.calls = {it.first + at: call for at, call in _known(out, it.execution, it.read).items()}
        return it
    parts = list(request.parts)
    execution_id = execution_of(request, parts)
    thread = threads.take(parts, execution_id)
    execution_id = execution_id if thread is None else thread.id
    state = executions.touched(execution_id) if execution_id is not None else None
    calls = _known(out, state, parts)
    return request_prefix.Read(out, request, parts, 0, execution_id, state, messages, calls=calls)


def run_elsewhere(
    out: Telemetry,
    request: ModelRequest,
    call: RequestPart,
    result: RequestPart,
    seen_at: str = semconv.SEEN_AT_MODEL_RESPONSE,
) -> None:
    """Record a call that no adapter saw, unless it was recorded before; the model has its result."""
    execution_id = execution_of(request, (result,))
    shown = model_calls.shown_first(out, execution_id, result, call, 1)
    if shown is not None:
        model_calls.record(out, request, shown, execution_id, seen_at)
        shown.seen.delivered = shown.seen.most_delivered = shown.size.bytes
        out.metrics.record(semconv.RESULT_DELIVERED, shown.size.bytes, shown.name)


def take_result(out: Telemetry, part: RequestPart, call: RequestPart | None) -> None:
    """Compare one result with its tool's, where the sender, which may have run the tool, reports it by itself."""
    execution_id = execution_of(ModelRequest((part,)), (part,))
    execution = executions.known(execution_id) if execution_id is not None else None
    noted = open_calls.of_result(execution, part.call_id) if part.call_id is not None else None
    length = characters(part.value)
    if noted is None and call is not None:
        run_elsewhere(out, ModelRequest((part,)), call, part, semconv.LAYER_MODEL_REQUEST)
    elif noted is not None and (length < 0 or length != noted.length):
        _compare(out, execution, noted, part, length)


def rename(call_id: str, sent_id: str) -> None:
    """Find a call also under the id that a framework sends with its result."""
    run = execution_context.outermost.get()
    owner = executions.owner((call_id,), None if run is None else run.key)
    execution = None if owner is None else executions.known(owner)
    noted = None if execution is None else execution.call_ids.get(call_id)
    if execution is not None and noted is not None and execution.call_ids.get(sent_id) is not noted:
        executions.noted(execution, sent_id, noted)


def execution_of(request: ModelRequest, parts: Sequence[RequestPart]) -> str | None:
    """Return the execution of a request: the one that its results belong to, or that the context has."""
    answered = [part.call_id for part in parts if part.call_id and part.part == semconv.TOOL_RESULTS]
    return request_prefix.execution_of(request, request_prefix.newest_ids(reversed(parts)), answered)


def _sized(it: request_prefix.Read, part: RequestPart, noted: SeenCall | None) -> Sized:
    value = part.value
    if noted is None:
        part_bytes = len(value) if type(value) is str and value.isascii() else size(value).bytes
        of_tools = plain_print(value) if part.part == semconv.TOOLS else None
        return Sized(part, part_bytes, fingerprint(part, part_bytes) if of_tools is None else of_tools)
    length = len(value) if type(value) is str else characters(value)
    if length < 0 or length != noted.length:
        _compare(it.out, it.execution, noted, part, length)
    return Sized(part, noted.delivered, hash((part.part, part.call_id or part.name, noted.delivered)))


def _known(out: Telemetry, execution: ExecutionState | None, parts: Sequence[RequestPart]) -> dict[int, SeenCall]:
    """Return the calls that the results answer, by index; of results with one id, the last is the latest call's."""
    found = _by_name(out, execution, parts) if execution is not None else {}
    results = {part.call_id: at for at, part in enumerate(parts) if part.part == semconv.TOOL_RESULTS}
    for call_id, at in results.items():
        if call_id is None:
            continue
        noted = open_calls.of_result(execution, call_id)
        if noted is None and execution is not None and (open_calls or execution.unnamed):
            asked_at = model_calls.asked_at(parts, at)
            asked = None if asked_at is None else parts[asked_at]
            if asked is not None and asked.name is not None:
                digest = digest_arguments(asked.value, out.args_key).digest
                noted = open_calls.unasked(execution, asked.name, digest)
        if noted is not None:
            found[at] = noted
            if execution is not None and call_id not in execution.call_ids:
                executions.noted(execution, call_id, noted)
    return found


def _by_name(out: Telemetry, execution: ExecutionState, parts: Sequence[RequestPart]) -> dict[int, SeenCall]:
    """Return the calls that results without a call id answer, by the results' indexes in the request.

    The last result of a tool answers its last call in the request. That is the latest one with these arguments. Without
    the call in the request, the order of the calls decides.
    """
    found: dict[int, SeenCall] = {}
    results = [at for at, part in enumerate(parts) if part.part == semconv.TOOL_RESULTS and part.call_id is None]
    for name in {parts[at].name for at in results} - {None}:
        asked = (
            p for p in reversed(parts) if p.part == semconv.TOOL_CALL_ARGUMENTS and (p.call_id, p.name) == (None, name)
        )
        calls = [call for call in (*execution.call_ids.values(), *(execution.unnamed or ())) if call.tool == name]
        left = [call for call in reversed(calls) if call.produced >= 0]
        for at in [at for at in reversed(results) if parts[at].name == name]:
            call = next(asked, None)
            digest = None if call is None else digest_arguments(call.value, out.args_key).digest
            noted = next((one for one in left if one.digest == digest), left[0] if left else None)
            if noted is not None:
                found[at] = noted
                left.remove(noted)
    return found


def _compare(out: Telemetry, execution: ExecutionState | None, noted: SeenCall, part: RequestPart, length: int) -> None:
    """Compare a result with the part that the framework kept; from the second delivery on, with the one before."""
    value, (delivered, exact) = part.value, size(part.value)
    before, noted.delivered, noted.length = noted.delivered, delivered, length
    noted.most_delivered = max(delivered, noted.most_delivered)
    if before >= 0:
        if execution is not None:
            execution.call_changes += 1
        if exact and has_shrunk(before, delivered) and noted.tool:
            is_ours = beginning(value).startswith(semconv.REPLACED)
            layer = semconv.LAYER_REMEDY if is_ours else semconv.LAYER_MODEL_REQUEST
            out.metrics.truncations(noted.tool, layer, semconv.CLEARED).record(1)
        return
    expected, span = noted.prints, _delivered(noted)
    whole = noted.produced if noted.produced >= 0 else noted.failed
    kept = noted.handed if noted.handed >= 0 else whole
    if kept < 0:
        return
    if noted.produced < 0 and expected is not None and hashes_in(texts(value)).isdisjoint(expected.hashes):
        kept = delivered  # the framework writes its own text for the failure
    if noted.tool in semconv.OWN_TOOLS:
        return
    is_parsed = not first_text(value) and 2 * delivered > kept  # the text of JSON may have spaces, too
    why = None if is_parsed else compare(kept, Size(delivered, exact), value)
    is_cut = why is not None and (part.wrapped is None or has_shrunk(kept, size(part.wrapped).bytes))
    _tell(out, noted, why if is_cut else None, span)


def _delivered(noted: SeenCall) -> SpanContext | None:
    """Record that a request has a result; return the context of the tool's span."""
    if noted.counted_later is not None:
        noted.counted_later()
        noted.counted_later = None
    span, noted.span, noted.prints, noted.stage = noted.span, None, None, Stage.DELIVERED
    open_calls.close(noted)
    return span


def _tell(out: Telemetry, noted: SeenCall, why: str | None, span: SpanContext | None) -> None:
    """Count a delivery, and a truncation on the way to the model; show it at the tool's span, which may have ended."""
    out.metrics.record(semconv.RESULT_DELIVERED, noted.delivered, noted.tool)
    if why is None:
        return
    out.metrics.truncations(noted.tool, semconv.LAYER_MODEL_REQUEST, why).record(1)
    whole_bytes = noted.produced if noted.produced >= 0 else noted.failed
    executions.partly_shown(noted, Fragment(why, noted.delivered, whole_bytes, span))
    if span is not None:
        parent, later = trace.NonRecordingSpan(span), (semconv.RESULT_DELIVERED_BYTES, noted.delivered)
        whole = semconv.FAILURE_BYTES if noted.produced < 0 else semconv.RESULT_BYTES
        show_cut(out, parent, noted.tool, whole_bytes, later, semconv.LAYER_MODEL_REQUEST, why, whole)


def _quoted(out: Telemetry, execution: ExecutionState, sized: Sequence[Sized]) -> Sequence[SeenCall]:
    """Search the new texts of a request for results that it does not have by id; return their calls."""
    waiting = [noted for noted in executions.results(execution) if noted.prints is not None and noted.delivered < 0]
    if not waiting:
        return ()
    seen = {one for stream in (execution.streams or {}).values() for one in stream.parts.prints}
    parts = [one.part for one in sized if one.part.part != semconv.TOOLS and one.print not in seen]
    new = [said for part in parts for said in texts(part.value)]
    in_texts = [(text, hashes_in((text,))) for text in new]
    hashes = set().union(*(in_text for _, in_text in in_texts))
    found = []
    for noted in waiting:
        prints = noted.prints
        if prints is None or hashes.isdisjoint(prints.hashes):
            continue
        noted.is_held = True
        if prints.is_quoted(hashes):
            found.append(noted)
            _take_quote(out, noted, prints, in_texts)
    return found


def _take_quote(out: Telemetry, noted: SeenCall, prints: Prints, in_texts: Sequence[tuple[str, set[int]]]) -> None:
    """Record the delivery of a result in the text that quotes most of it."""
    written, _ = max(
        in_texts, key=lambda it: (len(it[1].intersection(prints.hashes)), -abs(len(it[0]) - prints.length))
    )
    quote = prints.find(written)
    if quote is None:
        return
    kept = noted.handed if noted.handed >= 0 else noted.produced
    left = written[quote.start : quote.stop if quote.has_tail else None]
    left_bytes = size(left).bytes
    # Both ends with too few bytes between them: the middle was removed, or the text repeats itself.
    has_lost = not (quote.has_head and quote.has_tail) or has_shrunk(kept, left_bytes)
    # A truncation notice may be longer than the text that it replaces.
    is_longer = left_bytes > kept and not has_shrunk(left_bytes, kept)
    cut = find_cut(left) if has_lost or is_longer else None
    says_so = cut is not None and cut.reason != semconv.SUSPECTED
    span = _delivered(noted)
    noted.delivered = kept
    if has_lost or says_so:
        noted.delivered = min(left_bytes, kept) if has_lost else left_bytes
    noted.most_delivered = noted.delivered
    _tell(out, noted, reason(cut) if has_lost or says_so else None, span)
