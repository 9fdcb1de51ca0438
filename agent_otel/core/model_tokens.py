"""Tokens of the model requests of an execution: those of its last request, their sums, and the bytes of one token."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

from agent_otel import semconv
from agent_otel._internal import fork
from agent_otel.core import carrying_cost, context_window, execution_context
from agent_otel.core.execution_state import LastRequest
from agent_otel.core.execution_tokens import Tokens
from agent_otel.core.executions import executions
from agent_otel.core.models import models
from agent_otel.core.tool_visit import running
from agent_otel.telemetry.spans import put_on_any

if TYPE_CHECKING:
    from agent_otel.core.carrying_cost import Divided
    from agent_otel.core.execution_state import Totals
    from agent_otel.core.models import ModelFacts
    from agent_otel.core.sent_request import SentRequest
    from agent_otel.core.usage import Usage
    from agent_otel.telemetry.setup import Telemetry

#: Bytes of a token before any response has shown it.
USUAL_BYTES: Final = 4.0
#: The fewest bytes of a token, in requests with addresses of images; a provider that reports more tokens is wrong.
LEAST_BYTES: Final = 0.01

_lock = threading.Lock()
_new: Final = tuple.__new__  # a third of the cost of LastRequest(...)


def _renew() -> None:
    global _lock  # noqa: PLW0603 - a forked child needs one that no thread of its parent holds
    _lock = threading.Lock()


fork.after_fork(_renew)


def responded(out: Telemetry, sent: SentRequest, usage: Usage) -> None:
    """Add the tokens of a response to the conversation, the execution and the run."""
    state, used = sent.execution, usage.input
    with _lock:
        totals = state if sent.run is None else sent.run
        if totals is not None:
            totals.tokens = totals.tokens or Tokens()
            totals.tokens.add(usage)
        if sent.conversation is not None and used:
            sent.conversation.input_tokens, sent.conversation.bytes = used, sent.bytes
        if state is not None and used:
            last = _new(LastRequest, (used, sent.bytes, sent.model))
            state.last_requests = {**(state.last_requests or {}), sent.is_inside: last}
    if sent.reservation is not None:
        sent.reservation.used((used or estimated(sent)) + usage.output)
    shown: dict[str, Any] = {}
    divided = carrying_cost.divide(out, sent, out.models.series(sent.model), usage, shown)
    sizes = context_window.grown(sent, used) if used else []
    of_all = None if totals is None else totals.tokens
    models.when_answered(sent.model, sent.answered_by, _known, out, sent, divided, of_all, usage, sizes, shown)
    if shown and sent.span.is_recording():  # the model's facts are being read
        put_on_any(sent.span, shown)


def _known(  # noqa: PLR0913, PLR0917 - the readings of one request
    out: Telemetry,
    sent: SentRequest,
    divided: Divided,
    totals: Tokens | None,
    usage: Usage,
    sizes: list[int],
    shown: dict[str, Any],
    facts: ModelFacts,
) -> None:
    carrying_cost.pay(divided, totals, usage, facts)
    if usage.input:
        context_window.record(out, sent, usage.input, sizes, shown, facts)


def unreported(out: Telemetry, sent: SentRequest) -> None:
    """Estimate the tokens of a request whose stream has ended without any."""
    tokens = estimated(sent)
    totals = sent.execution if sent.run is None else sent.run
    if totals is not None:
        with _lock:
            totals.estimated_tokens += tokens
    if sent.reservation is not None:
        sent.reservation.used(tokens)
    sizes, shown = context_window.grown(sent, tokens), {semconv.CONTEXT_ESTIMATED: True}
    models.when_answered(sent.model, sent.answered_by, context_window.record, out, sent, tokens, sizes, shown)
    carrying_cost.unreported(out, sent)


def totals_of(execution_id: str | None) -> Totals | None:
    """Return the totals to which the tokens of a request belong that this code sends: of its run, or execution."""
    run = execution_context.current_run()
    if run is not None:
        return run.totals
    return executions.touched(execution_id) if execution_id else None


def spent_apart(totals: Totals | None, tokens: int) -> None:
    """Add the tokens of a request that a remedy has sent itself; they count in the execution's limit only."""
    if totals is not None:
        with _lock:
            totals.estimated_tokens += tokens


def estimated(sent: SentRequest) -> int:
    """Return the input tokens of a request, estimated from the bytes of a token in its conversation's last request."""
    known = sent.conversation
    ratio = USUAL_BYTES if known is None or not known.input_tokens else known.bytes / known.input_tokens
    return max(1, round(sent.bytes / max(ratio, LEAST_BYTES)))


def failed(out: Telemetry, sent: SentRequest, error: BaseException) -> None:
    """Count a request that its provider refused because of its length; of all layers that see the error, one does."""
    if not sent.has_failed:
        sent.has_failed = True
        carrying_cost.unreported(out, sent)
        if sent.reservation is not None:
            sent.reservation.failed(error)
        if context_window.is_rejection(error):
            context_window.rejected(out, sent)


def last_request(execution_id: str | None) -> LastRequest | None:
    """Return the last request of an execution with reported tokens, None before one.

    Inside a running tool, this is the last request of the agents inside tools, else that of the agent itself.
    """
    state = None if execution_id is None else executions.known(execution_id)
    if state is None or not state.last_requests:
        return None
    return state.last_requests.get(running() is not None)
