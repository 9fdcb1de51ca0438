"""Calls that no adapter records, counted by the limits when a model request delivers their results.

A framework answers the call of a tool that it does not have, and a loop of the program's own calls its handlers
itself. The requests hold these calls all the same. Behind one that is above a limit, the request is the run's last.

In the run of a framework a call counts when no request of the process has offered its tool: what the framework handles
itself, such as a handoff, is offered. The calls of the program's own loop all count, unless an adapter has recorded
them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opentelemetry import trace

from agent_otel import semconv
from agent_otel._internal.named_tuples import NamedTuple
from agent_otel.core import execution_context, model_request, tool_names
from agent_otel.core.executions import executions
from agent_otel.core.message_parts import Messages
from agent_otel.measure.size import size
from agent_otel.remedies import limits
from agent_otel.remedies.claim_check.policy import GET_TOOL_RESULT
from agent_otel.remedies.history.trimmed_line import text_of
from agent_otel.remedies.history.turns import History, transcript

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agent_otel.core.execution_state import ExecutionState, Totals
    from agent_otel.core.types import LimitReached, ModelRequest
    from agent_otel.messages.types import AnsweredCall, Transcript
    from agent_otel.remedies.history.turns import Result
    from agent_otel.remedies.limits import Limits
    from agent_otel.telemetry.setup import Telemetry

_OWN = (GET_TOOL_RESULT, semconv.CONTEXT_SUMMARIZE)


class _Place(NamedTuple):
    """The execution and the conversation of a request, as the calls that follow from it have them."""

    execution: str | None
    conversation: str
    state: ExecutionState | None
    totals: Totals | None


def count(out: Telemetry, counting: Limits, request: ModelRequest, messages: Sequence[Any]) -> bool:
    """Count the calls of the last turn that only the messages show, each once.

    Return True when one since the user's last message was above a limit.
    """
    offered, since = _offered(request), _since_user(messages)
    if since is None or not (offered or request.continued):
        return False
    place = _place(request)
    shown = {} if place.execution is None else counting.shown(place.execution)
    reached, new = None, {}
    for key, result in _keys(since):
        if key in shown:
            reached = reached or shown[key]
        elif result.turn == since.turns - 1:  # this request delivers it
            new[key] = result
    for key, result in new.items():
        if not _counts(counting, place, result, offered):
            continue
        if place.execution is None:
            limits.without_execution()
            return False
        reached = _enter(out, counting, place, key, result) or reached
    return reached is not None


def _since_user(messages: Sequence[Any]) -> History | None:
    """Return the history behind the user's last message; None where it holds no result."""
    seen: list[Transcript] = []
    for message in reversed(messages):
        one = transcript(message)
        if one.by_user and not one.answered:
            break
        seen.append(one)
    if not any(one.answered for one in seen):
        return None
    return History(messages[len(messages) - len(seen) :], seen[::-1])


def _keys(history: History) -> Iterable[tuple[int, Result]]:
    """Yield the results with a fingerprint of each: id, name, and which of those with the same id and name it is."""
    times: dict[tuple[str | None, str | None], int] = {}
    for result in history.results:
        same = result.answered.id, result.name
        times[same] = times.get(same, 0) + 1
        yield hash((*same, times[same])), result


def _place(request: ModelRequest) -> _Place:
    framework = request.execution or model_request.around().execution
    key = execution_context.resolve(framework, trace.get_current_span())
    run = execution_context.current_run()
    state = None if key is None else executions.known(key)
    if run is None:
        return _Place(key, framework or key or "", state, state)
    return _Place(run.id, framework or run.conversation or key or "", state, run.totals)


def _offered(request: ModelRequest) -> set[str]:
    """Return the names of the tools in a request; all requests of the process are remembered."""
    parts = request.parts.head if type(request.parts) is Messages else request.parts
    tools = (part.value for part in parts if part.part == semconv.TOOLS)
    names = {name for value in tools for name, _ in tool_names.definitions_in(value)}
    for name in names:
        tool_names.note_offered(name)
    return names


def _counts(counting: Limits, place: _Place, result: Result, offered: set[str]) -> bool:
    """Return True for a call that the framework has answered itself, or that is of the program's own loop."""
    call_id, name = result.answered.id, result.name
    if name in _OWN:
        return False
    is_own_loop = execution_context.outermost.get() is None
    by_name = is_own_loop or call_id is None
    if place.execution is not None and counting.is_recorded(place.execution, call_id, name, by_name=by_name):
        return False
    if is_own_loop:
        return name is None or not tool_names.is_called(name) or name not in offered
    if name is None:  # the provider has the call
        return call_id is not None and result.answered.failed is True
    return name not in offered and not tool_names.is_offered(name)


def _enter(out: Telemetry, counting: Limits, place: _Place, key: int, result: Result) -> LimitReached | None:
    execution = place.execution or ""
    used_tokens = 0 if place.totals is None else place.totals.used_tokens
    reached = counting.enter(execution, place.conversation, used_tokens)
    counting.show(execution, key, reached)
    if reached is not None:
        out.metrics.limit_hit(reached.limit)
        return reached
    _spend(counting, execution, result.answered)
    return None


def _spend(counting: Limits, execution: str, answered: AnsweredCall) -> None:
    result_bytes = size(answered.content).bytes
    text = text_of(answered.content)
    counting.spend(execution, result_bytes, limits.tokens(text) if text is not None else (result_bytes + 3) // 4)
