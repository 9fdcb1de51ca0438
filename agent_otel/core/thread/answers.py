"""Final answers that are built on a fragment: the model got only a part of a result, and no later call got the rest.

Everything is read from one request and its response. The request holds the results that the answer is built on, so
that branches, sub-agents and requests for a title concern only the results that they hold themselves. A result is
followed up when a later request brings the result of a further call of the same tool, or of another tool that got
the page's cursor.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from opentelemetry import trace

from agent_otel import semconv
from agent_otel.core import execution_context
from agent_otel.core.execution_state import Fragment
from agent_otel.core.executions import executions
from agent_otel.core.thread.fragments import is_ignored
from agent_otel.core.thread.request_history import is_summary
from agent_otel.core.thread.request_parts import OF_THE_MODEL
from agent_otel.core.tool_visit import running
from agent_otel.telemetry import spans
from agent_otel.telemetry.foreign_spans import add_event

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from agent_otel.core.execution_state import SeenCall, Totals
    from agent_otel.core.thread.request_parts import Sized
    from agent_otel.core.thread.request_prefix import Read


_MOST_EVENTS = 16


class PendingAnswer:
    """A request with fragments, until its response shows whether the model asks for more calls."""

    def __init__(self, it: Read, totals: Totals | None, fragments: list[tuple[SeenCall, str | None, Fragment]]) -> None:
        self._out = it.out
        self._execution = it.execution
        self._fragments = fragments
        self._span = trace.get_current_span()
        self._totals = totals
        #: True when even an answer is a tool call; the calls of the execution by then.
        self._must_call = it.request.must_call
        self._calls = -1

    def responded(self, *, asks: bool) -> None:
        """Count a final answer for each fragment that is still open; a response that asks for calls is none."""
        if not asks:
            self._count()
        elif self._must_call and self._totals is not None:
            self._calls = self._totals.tool_calls
            self._totals.unsettled = self.ended

    def _count(self) -> None:
        fragments, self._fragments = self._fragments, []
        shown = 0
        for call, call_id, fragment in fragments:
            if not fragment.is_open:
                continue
            fragment.is_open = False
            self._out.metrics.record(semconv.ANSWERS_INCOMPLETE, 1, call.tool, fragment.reason)
            if self._execution is not None and is_ignored(self._execution, call.tool):
                self._out.metrics.record(semconv.TOOL_FOLLOWUPS, 1, call.tool, semconv.IGNORED)
            if shown < _MOST_EVENTS:
                shown += 1
                self._show(call.tool, call_id, fragment)

    def ended(self, calls: int) -> None:
        """Count the response as the final answer when its execution has ended after so many calls, none of them new."""
        if calls == self._calls:
            self._count()

    def _show(self, tool: str, call_id: str | None, fragment: Fragment) -> None:
        """Add an event to the request's span; where none records, a child span to the tool's span."""
        attributes: dict[str, Any] = {
            semconv.TOOL_NAME: tool,
            semconv.TRUNCATION_REASON: fragment.reason,
            semconv.RESULT_DELIVERED_BYTES: fragment.shown,
            semconv.TOOL_FOLLOWUP: semconv.IGNORED,
        }
        if call_id is not None:
            attributes[semconv.TOOL_CALL_ID] = call_id
        if fragment.whole >= 0:
            attributes[semconv.RESULT_BYTES] = fragment.whole
        # Where the span around the request has ended before a stream has, the one around its end is used.
        candidates = (self._span, trace.get_current_span())
        span = next((each for each in candidates if each.is_recording()), None)
        if span is not None:
            add_event(span, semconv.ANSWER_INCOMPLETE, attributes)
        elif self._out.tracer is not None and fragment.span is not None:
            parent = trace.NonRecordingSpan(fragment.span)
            attributes.update(self._out.label_attributes)
            at = time.time_ns()
            spans.started(self._out.tracer, semconv.ANSWER_INCOMPLETE, tool, attributes, at, parent).end(at)


def follow_up(calls: Collection[SeenCall]) -> None:
    """Close the fragments of an earlier request that the new results among the calls of a request follow up."""
    fresh = [call for call in calls if call.delivered < 0 <= call.produced]
    if not fresh:
        return
    for call in calls:
        fragment = call.fragment
        if fragment is not None and fragment.is_open and call.delivered >= 0:
            by, tool = fragment.followed_by, call.tool
            follows = any(later.follows == tool or later.tool == by for later in fresh)
            fragment.is_open = not follows and fragment.reason != semconv.OFFLOADED


def pending(it: Read, alone: Sequence[SeenCall]) -> PendingAnswer | None:  # noqa: C901 - the readings of one request
    """Return the basis of an answer to a request; ``alone`` are calls with results that are not in it by id."""
    run = execution_context.current_run()
    totals = it.execution if run is None else run.totals
    if totals is not None:
        totals.unsettled = None
    if it.request.continued:  # the provider has the earlier messages
        return None
    is_inside = running() is not None
    found: list[tuple[SeenCall, str | None, Fragment]] = []
    for at, call in it.calls.items():
        fragment = call.fragment
        if fragment is None or not fragment.is_open:
            continue
        if call in it.new:
            fragment.is_inside = is_inside
        call_id = it.sized[at].part.call_id
        alike = [one for one in it.sized if one.part.call_id == call_id and one.part.part == semconv.TOOL_RESULTS]
        if fragment.is_inside == is_inside and (call_id is None or len(alike) == 1):
            found.append((call, call_id, fragment))
    if found and not _is_answerable(it.sized, has_new=bool(it.new)):
        found = []
    for call in alone:
        if call.delivered < 0:  # the first reason stays
            executions.partly_shown(call, Fragment(semconv.UNDELIVERED, 0, call.produced, call.span))
        fragment = call.fragment
        if fragment is not None and fragment.is_open:
            found.append((call, None, fragment))
    return PendingAnswer(it, totals, found) if found else None


def _is_answerable(sized: Sequence[Sized], *, has_new: bool) -> bool:
    """Return true when the model answers to the results of a request, which end it.

    After them an agent may add a reminder to new results. Anything else after them asks for a title, a summary or the
    next task. A request without tools also answers to results, after a limit.
    """
    after = []
    for one in reversed(sized):
        if one.part.part == semconv.TOOL_RESULTS:
            break
        after.append(one)
    if any(one.part.part in OF_THE_MODEL for one in after):
        return False
    has_tools = any(one.part.part == semconv.TOOLS for one in sized)
    if any(one.part.part == semconv.USER for one in after) and not (has_new and has_tools):
        return False
    prompts = after if has_tools else [*after, *(one for one in sized if one.part.part == semconv.SYSTEM)]
    return not any(map(is_summary, prompts))


#: smolagents and others, Pydantic AI, Google's ADK.
_NAMES = frozenset({"final_answer", "final_result", "set_model_response"})
#: Pydantic AI with several types of output.
_PREFIX = "final_result_"

# Tools that give a model's final answer: frameworks offer them, and send no request after a call.


def is_answer(name: str) -> bool:
    """Return true for the name of a tool that takes the final answer."""
    return name in _NAMES or name.startswith(_PREFIX)
