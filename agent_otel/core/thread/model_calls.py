"""Tool calls that no adapter saw, read from the model request that delivers their results.

A hand-written loop calls its handlers itself. Their results are unknown: the bytes are the bytes that the model gets.
The first request that has a result, and no later message of the model, shows the call (docs/how-it-works.md).

The Responses API lets a loop put each result after its own call. Then the calls of one turn look like several turns,
and only the ends of earlier requests distinguish them. The first request of a durable runtime's step shows no call: an
adapter in another process may have measured it. A loop within a step sends more requests, which show their calls.
"""

from __future__ import annotations

import functools
import json
import time
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from opentelemetry import trace
from opentelemetry.trace import INVALID_SPAN, NonRecordingSpan

from agent_otel import semconv
from agent_otel._internal import errors
from agent_otel.core import execution_context, remedy_hooks, tool_names
from agent_otel.core.captured_content import capture
from agent_otel.core.execution_state import Fragment, Stage
from agent_otel.core.executions import executions, new_call
from agent_otel.core.thread import fragments, request_history
from agent_otel.core.thread.fragments import round_counts
from agent_otel.core.thread.request_parts import (
    OF_CALLS,
    OF_THE_MODEL,
    beginning,
    characters,
    first_text,
    outcome,
    sketch,
    texts,
)
from agent_otel.core.thread.threads import open_calls, opened, parent_of
from agent_otel.core.types import ModelRequest, Replacement, RequestPart
from agent_otel.measure.arguments_hash import Arguments
from agent_otel.measure.arguments_hash import arguments as digest_arguments
from agent_otel.measure.preview import clean
from agent_otel.measure.prints import hashes_in, prints
from agent_otel.measure.size import Size, estimated_tokens, size
from agent_otel.measure.truncation import find_cut
from agent_otel.measure.truncation.paging import further
from agent_otel.telemetry import setup, spans

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opentelemetry.trace import SpanContext

    from agent_otel.core.execution_state import ExecutionState, SeenCall
    from agent_otel.core.thread.request_prefix import Read
    from agent_otel.core.types import Remedied, Serialised
    from agent_otel.telemetry.setup import Telemetry
    from agent_otel.telemetry.sinks import Exemplar

_MOST_ENDS = 1_024
_LANGGRAPH = "langgraph"
#: Fingerprints of the requests seen last.
_ends: dict[int, None] = {}
#: Results that a remedy has replaced in a request that is about to be sent, by the hash of the text in their place.
_replaced: dict[int, Replaced] = {}
#: Arguments that a remedy has shortened in a request, by the digest of the arguments that are left.
_shortened: dict[str, Arguments] = {}


class Replaced(NamedTuple):
    """A result as the program sent it: its size, why it was cut, the reference of its next page; and the remedy."""

    size: Size
    reason: str | None
    invites: tuple[int, ...] | None
    by: Remedied


@dataclass(slots=True)
class ModelCall:
    """A call that a model request shows first: the tool's name, the parts of the call and of its result."""

    name: str
    call: RequestPart
    result: RequestPart
    digest: Arguments
    size: Size
    seen: SeenCall
    reason: str | None = None
    replaced: Replaced | None = None
    repeated: str | None = None
    followup: str | None = None
    invites: tuple[int, ...] | None = None


def replace(value: object, arguments: object, whole: Size, by: Remedied) -> None:
    """Remember a result that a remedy replaces in a request; nothing of its content is kept."""
    cut = find_cut(value, whole.bytes)
    invites = fragments.cursors_of(value) if further(value, arguments) else None
    reason = None if cut is None else cut.reason
    noted = Replaced(whole, reason, invites, by._replace(replacement=Replacement("", {})))
    tool_names.keep(_replaced, hash(by.replacement.text), noted, _MOST_ENDS)


def shorten(arguments: object, left: object) -> None:
    """Remember the arguments of a call that a remedy shortens in a request, by the digest of the arguments left."""
    key = setup.telemetry().args_key
    tool_names.keep(_shortened, digest_arguments(left, key).digest, digest_arguments(arguments, key), _MOST_ENDS)


def find(it: Read) -> list[ModelCall]:  # noqa: C901 - the readings of one request
    """Return the calls that a request shows first; count a result of any other call as unmatched once."""
    found: list[ModelCall] = []
    parts, first, known, execution_id = it.read, it.first, it.calls, it.execution_id
    carrier = execution_context.runtime.get()
    begin = -1
    if carrier is not None and not carrier.has_requested:
        carrier.has_requested = True
        step = execution_context.current_step()
        # LangGraph's steps run in one process, so they do not matter.
        begin = len(parts) if step is not None and step.runtime != _LANGGRAPH else -1
    state = it.execution
    begins = state is None or not state.streams  # another process has begun the conversation
    for at, part in enumerate(parts):
        if part.part != semconv.TOOL_RESULTS or (part.call_id is None and part.name is None):
            continue
        seen = known.get(first + at)
        if seen is not None and not seen.shown and seen.produced >= 0:
            continue  # an adapter's
        begin = _unanswered(parts, first) if begin < 0 else begin
        place = asked_at(parts, at) if at >= begin else None
        name = None if place is None else parts[place].name or part.name
        # An adapter records the call, or the model made it up.
        is_elsewhere = name is not None and (tool_names.is_called(name) or _is_made_up(name, it))
        shown = None
        if place is not None and not is_elsewhere:
            shown = shown_first(it.out, execution_id, part, parts[place], first + at, seen)
        if shown is not None:
            found.append(shown)
            known[first + at] = shown.seen
        elif seen is None and part.call_id is not None and state is not None and name not in semconv.OWN_TOOLS:
            if open_calls.of_result(state, part.call_id) is not None:
                continue  # one of several calls with this id
            known[first + at] = adopted = _adopted(state, part, part.call_id)
            if not begins and adopted.produced < 0:
                it.out.metrics.record(semconv.RESULTS_UNMATCHED, 1)
    if parts:
        tool_names.keep(_ends, hash((first + len(parts), sketch(parts[-1]))), most=_MOST_ENDS)
    return found


def record(
    out: Telemetry,
    request: ModelRequest,
    call: ModelCall,
    execution_id: str | None,
    seen_at: str = semconv.LAYER_MODEL_REQUEST,
) -> None:
    """Record the metrics of a call, and its span; its delivery counts like any other delivery."""
    name, replaced = call.name, call.replaced
    if seen_at == semconv.LAYER_MODEL_REQUEST:
        remedy_hooks.shown(name, -1 if replaced else call.size.bytes)
    layer = semconv.LAYER_BEFORE_REQUEST if seen_at == semconv.LAYER_MODEL_REQUEST else semconv.LAYER_TOOL
    cuts = [] if call.reason is None else [(layer, call.reason)]
    if replaced is not None:
        cuts.append((semconv.LAYER_REMEDY, replaced.by.reason))
        fragments.note(call.seen, cuts, call.size.bytes, call.seen.handed, replaced.by)
        out.metrics.remedied(name, replaced.by.reason, call.size.bytes - replaced.by.bytes)
    exemplar = _show(out, call, request, request_history.last_turn(execution_id), seen_at, cuts)
    series = out.metrics.tool(name)
    series.seen(call.digest.bytes, call.size.bytes, exemplar)
    for layer, reason in cuts:
        out.metrics.truncations(name, layer, reason).record(1, exemplar)
    if call.seen.fragment is not None and call.seen.fragment.is_open:
        out.metrics.record(semconv.ANSWERS_INCOMPLETE, 0, name, call.seen.fragment.reason)
    if call.repeated:
        out.metrics.record(semconv.TOOL_REPEATS, 1, name, call.repeated, exemplar=exemplar)
    if call.followup is not None:
        out.metrics.record(semconv.TOOL_FOLLOWUPS, 1, call.seen.follows or name, call.followup)
    if call.invites is not None and execution_id is not None:
        fragments.invite(executions.touched(execution_id), call.name, call.call.value, call.invites, call.seen.fragment)


def step_ended(  # noqa: PLR0913, PLR0917 - all that is known of a step
    out: Telemetry,
    execution_id: str,
    activity: str,
    given: Serialised | None,
    made: Serialised,
    span: SpanContext | None,
) -> None:
    """Keep the output of a durable runtime's step: a tool call, as soon as a model request asks for or holds it."""
    state = executions.known(execution_id)
    if state is None or not state.turn:  # no model request of this execution was seen here
        return
    name, value, arguments = clean(activity), _value_of(made), None if given is None else _value_of(given)
    found = prints(value)
    results = [call.prints for call in executions.results(state) if call.counted_later is None and call.prints]
    asked = next((one for one in state.call_ids.values() if one.tool == name and one.stage is Stage.ASKED), None)
    if asked is None and (found is None or any(one.is_quoted(set(found.hashes)) for one in results)):
        return
    digest, measured = digest_arguments(arguments, out.args_key), size(value)
    seen = new_call(name, digest=digest.digest) if asked is None else asked
    seen.produced, seen.prints, seen.stage, seen.span = measured.bytes, found, Stage.PRODUCED, span
    cut = find_cut(value, measured.bytes)
    asks, answers = (RequestPart(kind, None, seen.id) for kind in (semconv.TOOL_CALL_ARGUMENTS, semconv.TOOL_RESULTS))
    reason = None if cut is None else cut.reason
    call = ModelCall(name, asks, answers, digest, measured, seen, reason)
    executions.step_ended(state, seen)
    if asked is None:
        seen.counted_later = functools.partial(_count_step, out, execution_id, call)
    else:
        _count_step(out, execution_id, call)


def _value_of(data: Serialised) -> str:
    """Return a serialised text itself, and anything else as it is serialised."""
    text = data if isinstance(data, str) else bytes(data).decode("utf-8", "replace")
    value = errors.attempt(json.loads, text, default=text) if text.startswith('"') else text
    return value if isinstance(value, str) else text


def _count_step(out: Telemetry, execution_id: str, call: ModelCall) -> None:
    """Record a step as a tool call."""
    tool_names.keep(tool_names.called, call.name)
    state, is_repeated = executions.began(execution_id, call.name, call.digest.digest, None)
    state.result_bytes += call.size.bytes
    reason = call.reason
    if reason is not None and reason != semconv.SUSPECTED:
        executions.partly_shown(call.seen, Fragment(reason, call.size.bytes))
    call.repeated = semconv.ARGUMENTS if is_repeated else None
    record(out, ModelRequest(()), call, execution_id, semconv.SEEN_AT_STEP)


def _unanswered(parts: Sequence[RequestPart], first: int) -> int:
    """Return the start of the results that are delivered for the first time, in the parts of a request from a place.

    It follows the last part of the model. A beginning of its answer that the program gives does not count as one. Or it
    follows the end of an earlier request, when nothing but calls and results have followed since.
    """
    end = len(parts)
    while end and parts[end - 1].part == semconv.ASSISTANT:
        end -= 1
    last = next((at for at in range(end - 1, -1, -1) if parts[at].part in OF_THE_MODEL), -1)
    for at in range(last, -1, -1):
        if parts[at].part not in OF_CALLS:
            break
        is_end = hash((first + at, sketch(parts[at - 1]))) in _ends if at else first > 0
        if parts[at].part == semconv.TOOL_CALL_ARGUMENTS and is_end:
            return at
    return last + 1


def shown_first(  # noqa: PLR0913, PLR0917 - a result and its call
    out: Telemetry,
    execution_id: str | None,
    part: RequestPart,
    call: RequestPart,
    at: int,
    seen: SeenCall | None = None,
) -> ModelCall | None:
    """Return the call of a result if the request, or the response with a hosted call, shows it first."""
    name = call.name or part.name
    if name is None or name in semconv.OWN_TOOLS:
        return None
    name = clean(name)
    digest = digest_arguments(call.value, out.args_key)
    digest = _shortened.get(digest.digest, digest)
    print_of_it = hash((name, digest.digest, at)) or 1
    call_id = part.call_id
    if call_id is None and execution_id is None:
        call_id = f"{name} {hash((print_of_it, beginning(part.value)))}"
    seen = open_calls.of_result(None, call_id) if seen is None and call_id is not None else seen
    if seen is not None and seen.shown == print_of_it:
        return None  # the same request again
    if part.call_id is not None and seen is None and open_calls.is_an_adapters(part.call_id):
        return None
    replaced = _replaced.get(hash(first_text(part.value))) if _replaced else None
    measured = size(part.value) if replaced is None else replaced.size
    repeated: str | None = None
    followup, follows = None, None
    if execution_id is not None:
        run = execution_context.current_run()
        totals = None if run is None else run.totals
        asked = seen if seen is not None and seen.asked_in else None
        if asked is not None and asked.stage is Stage.ASKED:
            asked.stage = Stage.GATED
        execution, is_repeated = executions.began(execution_id, name, digest.digest, call_id, totals, asked)
        repeated = semconv.ARGUMENTS
        if not is_repeated:
            outcome_of_it = outcome(part.value, measured, call.value)
            repeated = (totals or execution).again(name, outcome_of_it, execution.turn)
        if execution.followed:
            followup, follows = fragments.follow_up(execution, name, call.value, repeated=is_repeated)
        seen = executions.produced(execution, name, measured.bytes, call_id, totals, call=asked)
    else:  # a call that the provider or another program has run
        seen = new_call(name, id=call_id)
        open_calls.add(seen)
    seen = seen or new_call(name)
    seen.produced, seen.shown, seen.follows = measured.bytes, print_of_it, follows
    shown = ModelCall(name, call, part, digest, measured, seen, None, replaced, repeated, followup)
    if replaced is None:
        _find_cut(shown)
    else:
        seen.handed, shown.reason, shown.invites = replaced.by.bytes, replaced.reason, replaced.invites or ()
    return shown


def _find_cut(shown: ModelCall) -> None:
    """Find out why the result of a call is a part only."""
    value, arguments = shown.result.value, shown.call.value
    cut, left = find_cut(value, shown.size.bytes), further(value, arguments)
    if cut is not None:
        shown.reason = cut.reason
    elif round_counts.note(shown.name, value, arguments, left, shown.digest.digest):
        shown.reason = semconv.SUSPECTED
    kept = shown.reason if shown.reason not in {None, semconv.SUSPECTED} else semconv.PAGE if left else None
    if kept is not None:
        executions.partly_shown(shown.seen, Fragment(kept, shown.size.bytes))
        shown.invites = fragments.cursors_of(value) if left else ()


def _is_made_up(name: str, it: Read) -> bool:
    """Return true where the request offers tools, and not this one: the model made it up, and no handler has run."""
    if name in tool_names.seen:
        return False
    offered = (part.value for part in it.read if part.part == semconv.TOOLS)
    names = {other for value in offered for other, _ in tool_names.definitions_in(value)}
    names.update(() if it.tools is None else dict(it.tools.prints))
    return bool(names) and name not in names


def asked_at(parts: Sequence[RequestPart], at: int) -> int | None:
    """Return the index of the part with the arguments of a result's call: by id, else by name and order."""
    result = parts[at]
    before = (n for n in range(at - 1, -1, -1) if parts[n].part == semconv.TOOL_CALL_ARGUMENTS)
    if result.call_id is not None:
        return next((n for n in before if parts[n].call_id == result.call_id), None)
    same = [n for n in before if parts[n].call_id is None and parts[n].name == result.name][::-1]
    later = sum(
        one.part == semconv.TOOL_RESULTS and one.call_id is None and one.name == result.name for one in parts[at + 1 :]
    )
    return same[-1 - later] if later < len(same) else None


def _adopted(execution: ExecutionState, part: RequestPart, call_id: str) -> SeenCall:
    """Return the call of a result that another execution of this process or a loop made, else an unknown call.

    Ids repeat in each conversation of some models: the result must be the one that was delivered there, or have the
    passages of the one that was not. The execution has the call from now on.
    """
    seen = executions.made(call_id)
    if seen is not None and seen.delivered >= 0:
        seen = copy(seen) if 0 <= seen.length == characters(part.value) else None
    else:
        hashes, waiting = hashes_in(texts(part.value)), (seen, *(execution.unnamed or ()))
        seen = next((one for one in waiting if one and one.prints and one.prints.is_quoted(hashes)), None)
    seen = new_call(part.name or "") if seen is None else seen
    return executions.noted(execution, call_id, seen)


def _show(  # noqa: PLR0913, PLR0917 - the fields of a span
    out: Telemetry,
    call: ModelCall,
    request: ModelRequest,
    turn: int,
    seen_at: str,
    cuts: Sequence[tuple[str, str]],
) -> Exemplar | None:
    """Add a span of no length below the current one, so that a query for tool calls finds the call.

    It has no length, because the time between two requests belongs to the loop, with all it does. Attributes of the
    span around the request would hold one call, and a turn has several; a query for spans of tools would not find them.
    """
    name, replaced = call.name, call.replaced
    if out.tracer is None or out.settings.spans == "enrich":
        return None
    attributes: dict[str, Any] = {
        semconv.OPERATION_NAME: semconv.EXECUTE_TOOL,
        semconv.GEN_AI_TOOL_NAME: name,
        semconv.TOOL_NAME: name,
        semconv.TOOL_TYPE: "extension" if seen_at == semconv.SEEN_AT_MODEL_RESPONSE else "function",
        semconv.ARGS_HASH: call.digest.digest,
        semconv.ARGS_BYTES: call.digest.bytes,
        semconv.RESULT_SEEN_AT: seen_at,
        semconv.RESULT_BYTES: call.size.bytes,
        semconv.RESULT_TRUNCATED: any(reason != semconv.SUSPECTED for _, reason in cuts),
        **out.label_attributes,
    }
    length = characters(call.result.value) if replaced is None else -1
    attributes[semconv.RESULT_ESTIMATED_TOKENS] = estimated_tokens(length if length >= 0 else call.size.bytes)
    if not call.size.exact:
        attributes[semconv.RESULT_ESTIMATED] = True
    if cuts:
        attributes |= fragments.cut_attributes(cuts)
    if replaced is not None:
        attributes[semconv.RESULT_HANDED_BACK_BYTES] = replaced.by.bytes
    named = {
        semconv.TOOL_CALL_ID: call.result.call_id,
        semconv.SUB_AGENT: execution_context.sub_agent(request.agent, out),
        semconv.TOOL_FOLLOWUP: call.followup,
        semconv.RESULT_REF: None if replaced is None else replaced.by.ref,
    }
    attributes.update({key: value for key, value in named.items() if value})
    execution_context.describe(attributes, call.name, request.execution, turn)
    if out.captures and call.result.value is not None:
        attributes = capture(attributes, semconv.TOOL_ARGUMENTS, call.call.value, out.settings, name)
        attributes = capture(attributes, semconv.TOOL_RESULT, call.result.value, out.settings, name)
    now = time.time_ns()
    run, current = execution_context.current_run(), trace.get_current_span()
    if call.seen.span is not None:  # of the step that has run the tool
        current = NonRecordingSpan(call.seen.span)
    parent = parent_of(run, current)
    shown = spans.open_tool_span(out.tracer, "own", name, attributes, now, parent)
    if shown is None:
        return None
    if parent is INVALID_SPAN:
        opened(run, shown.span)
    exemplar = spans.exemplar_of(shown.span)
    if call.seen.fragment is not None and call.seen.fragment.is_open:
        call.seen.fragment.span = shown.span.get_span_context()
    error_type = semconv.TOOL_ERROR if call.result.failed else None
    shown.write({}, error_type if replaced is None else replaced.by.error_type or error_type, None)
    shown.end(now)
    return exemplar
