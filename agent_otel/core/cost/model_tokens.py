"""Tokens of the model requests of an execution: the last request, the sums, and the bytes of one token."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import trace

from agent_otel import semconv, settings
from agent_otel._internal import errors
from agent_otel._internal.fork import recording
from agent_otel.core import execution_context
from agent_otel.core.cost.models import models
from agent_otel.core.execution_state import ContextUse, LastRequest, Tokens
from agent_otel.core.executions import executions
from agent_otel.core.thread import refusals
from agent_otel.core.thread.request_parts import portions
from agent_otel.core.thread.threads import open_calls
from agent_otel.core.tool_visit import running
from agent_otel.measure.forecast import LOOK_BACK
from agent_otel.measure.preview import clean
from agent_otel.telemetry.spans import put_on_any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent_otel.core.cost.models import ModelFacts, Rates
    from agent_otel.core.cost.usage import Usage
    from agent_otel.core.execution_state import Totals
    from agent_otel.core.thread.answers import PendingAnswer
    from agent_otel.core.thread.request_parts import Shares
    from agent_otel.core.thread.request_prefix import Read
    from agent_otel.telemetry.setup import Telemetry

#: Bytes of a token before any response has shown it.
USUAL_BYTES: Final = 4.0
#: The fewest bytes of a token, in requests with addresses of images; a provider that reports more tokens is wrong.
LEAST_BYTES: Final = 0.01


class SentRequest:
    """A request that was sent: its model, its bytes by part and tool, and to whom its tokens belong."""

    #: The model that its response names.
    answered_by: str | None = None
    missed: tuple[str, str, int] | None = None
    #: Its span and its duration, until its response has ended.
    chat: Any = None
    #: The fragments that the answer is built on, if there are some.
    pending: PendingAnswer | None = None
    #: The tokens that backpressure has set aside for the request until its response or its failure, where it is on.
    reservation: Any = None
    #: True when its provider or the way to it failed.
    has_failed = False
    #: The layer that has kept its calls, and how many.
    teller: int | None = None
    told = 0

    def __init__(self, it: Read, shares: Shares, known: dict[str, Any] | None) -> None:
        run, conversation = execution_context.current_run(), it.conversation
        self.is_continued, self.model = it.request.continued, it.request.model
        self.bytes = it.total
        self.shares = shares
        self.execution = it.execution
        self.conversation = conversation
        if conversation is not None:
            self.missed, conversation.missed = conversation.missed, None
        #: The request until its response or its failure.
        self.read: Read | None = it
        #: The tools that it offers.
        self.tools = it.tools
        self.run = None if run is None else run.totals
        self.span = trace.get_current_span()
        #: True for a request of an agent inside a tool.
        self.is_inside = running() is not None
        #: Bytes by remedy that it lacks.
        self.removed = of_request(shares.removed)
        #: The thread, turn and agent for the calls of its response; None without an execution.
        self.known = known
        if not self.span.is_recording():
            return
        found: dict[str, Any] = {} if self.tools is None else self.tools.attributes(it.out)
        if self.shares.duplicate_bytes:
            found[semconv.CONTEXT_DUPLICATE_BYTES] = self.shares.duplicate_bytes
        if found:
            put_on_any(self.span, found)


def responded(out: Telemetry, sent: SentRequest, usage: Usage) -> None:  # noqa: C901 - steps in a row
    """Add the tokens of a response to the conversation, the execution and the run."""
    state, used, sent.read = sent.execution, usage.input, None
    with recording.held:
        totals = state if sent.run is None else sent.run
        if totals is not None:
            totals.tokens = totals.tokens or Tokens()
            totals.tokens.add(usage)
        if sent.conversation is not None and used:
            sent.conversation.input_tokens, sent.conversation.bytes = used, sent.bytes
            # A cache on demand contains the written tokens, an automatic one the whole request.
            sent.conversation.cacheable = usage.cached + usage.written if usage.written else used
        if state is not None and used:
            last = LastRequest(used, sent.bytes, sent.model)
            state.last_requests = {**(state.last_requests or {}), sent.is_inside: last}
    if sent.reservation is not None:
        sent.reservation.used((used or estimated(sent)) + usage.output)
    _note_cache(sent, usage)
    shown: dict[str, Any] = {}
    pay = divide(out, sent, usage, shown)
    sizes = grown(sent, used) if used else []
    of_all = None if totals is None else totals.tokens

    def known(facts: ModelFacts) -> None:
        rates = facts.rates(usage)
        of_input, of_output = (0.0, 0.0) if rates is None else rates.cost(usage)
        if of_all is not None:
            of_all.priced(None if rates is None else of_input + of_output)
        if rates is not None and used:
            pay(rates, of_input)
        if sent.missed is not None:
            shown.update(_missed(out, sent.model, sent.missed, usage, rates))
        if used:
            record(out, sent, used, sizes, shown, facts)

    models.when_answered(sent.model, sent.answered_by, known)
    if shown and sent.span.is_recording():  # the model's facts are being read
        put_on_any(sent.span, shown)


#: Providers cache no shorter request.
_LEAST_CACHED: Final = 1_024
_MOST_MODELS: Final = 256
#: Responses in a row, by model, to requests that might have been read from a cache and were not.
_uncached: dict[str | None, int] = {}


def _note_cache(sent: SentRequest, usage: Usage) -> None:
    if usage.cached or usage.written:
        _uncached.pop(sent.model, None)
    elif usage.input >= _LEAST_CACHED and sent.conversation is not None and sent.conversation.turns > 1:
        if len(_uncached) >= _MOST_MODELS:
            _uncached.clear()
        _uncached[sent.model] = _uncached.get(sent.model, 0) + 1


def may_be_cached(model: str | None) -> bool:
    """Return false when the last two responses of a model have read nothing from a prompt cache."""
    return _uncached.get(model, 0) <= 1


def _missed(
    out: Telemetry, model: str | None, missed: tuple[str, str, int], usage: Usage, rates: Rates | None
) -> dict[str, float]:
    """Count the tokens that a cache would have had; return them, and the US dollars, as attributes of the span.

    If writing to the cache has a price, a program has to ask for it. Without written tokens, nothing was cached.
    """
    part, how, cacheable = missed
    tokens = max(min(cacheable, usage.input) - usage.cached, 0)
    if not tokens or (rates is not None and rates.written > rates.input and not (usage.cached or usage.written)):
        return {}
    found: dict[str, float] = {semconv.CONTEXT_MISSED_TOKENS: tokens}
    out.metrics.record(semconv.MISSED_TOKENS, tokens, model, part, how)
    if rates is not None:
        cost = tokens * max((rates.written if usage.written else rates.input) - rates.cached, 0.0)
        found[semconv.CONTEXT_MISSED_COST] = cost
        out.metrics.record(semconv.MISSED_COST, cost, model, part, how)
    return found


def unreported(out: Telemetry, sent: SentRequest) -> None:
    """Estimate the tokens of a request after its stream has ended without any."""
    sent.read = None
    tokens = estimated(sent)
    totals = sent.execution if sent.run is None else sent.run
    spent_apart(totals, tokens)
    if sent.reservation is not None:
        sent.reservation.used(tokens)
    sizes, shown = grown(sent, tokens), {semconv.CONTEXT_ESTIMATED: True}
    models.when_answered(sent.model, sent.answered_by, lambda facts: record(out, sent, tokens, sizes, shown, facts))
    _offered(out, sent, 0, {})


def totals_of(execution_id: str | None) -> Totals | None:
    """Return the totals that count a request sent by this code: the totals of its run, or of its execution."""
    run = execution_context.current_run()
    if run is not None:
        return run.totals
    return executions.touched(execution_id) if execution_id else None


def spent_apart(totals: Totals | None, tokens: int) -> None:
    """Add the tokens of a request that a remedy has sent itself; they count in the execution's limit only."""
    if totals is not None:
        with recording.held:
            totals.estimated_tokens += tokens


def estimated(sent: SentRequest) -> int:
    """Return the input tokens of a request, estimated from the bytes of a token in its conversation's last request."""
    known = sent.conversation
    ratio = USUAL_BYTES if known is None or not known.input_tokens else known.bytes / known.input_tokens
    return max(1, round(sent.bytes / max(ratio, LEAST_BYTES)))


def failed(out: Telemetry, sent: SentRequest, error: Any) -> None:
    """Count a request that its provider refused by the reason, once; a stream's item may report the error."""
    if sent.has_failed:
        return
    sent.has_failed = True
    read, sent.read = sent.read, None
    _offered(out, sent, 0, {})
    if sent.reservation is not None and isinstance(error, BaseException):
        sent.reservation.failed(error)
    found = refusals.refusal(error)
    if found is None:
        return
    reason, part = refusals.blamed(found, () if read is None else read.parts, is_continued=sent.is_continued)
    out.metrics.record(semconv.REQUESTS_REJECTED, 1, sent.model, reason)
    shown = {semconv.REJECTED_REASON: reason, **_largest(sent.shares)}
    if part is not None and part.call_id:
        shown[semconv.REJECTED_CALL_ID] = clean(part.call_id)
        made = open_calls.of_result(sent.execution, part.call_id) or executions.made(part.call_id)
        part = part if part.name or made is None else part._replace(name=made.tool)
    if part is not None and part.name:
        shown[semconv.REJECTED_TOOL] = clean(part.name)
    if sent.span.is_recording():
        put_on_any(sent.span, shown)
    blame = ", ".join(f"{shown[key]}" for key in (semconv.REJECTED_TOOL, semconv.REJECTED_CALL_ID) if key in shown)
    errors.warn_once(
        f"rejected {sent.model} {reason}",
        f"The provider of {clean(sent.model or 'a model')} refused a request: {reason}{blame and f' ({blame})'}. "
        "Further ones are only counted.",
    )


def last_request(execution_id: str | None) -> LastRequest | None:
    """Return the last request with reported tokens: of the agents inside tools where a tool runs, or of the agent."""
    state = None if execution_id is None else executions.known(execution_id)
    if state is None or not state.last_requests:
        return None
    return state.last_requests.get(running() is not None)


_TOOLS: Final = (semconv.TOOLS, "")

# The cost of the parts of requests: each request's input tokens divided by bytes, and their price by their order. The
# first tokens of a request may come from the provider's cache, and the next ones may be written to it. So a part at
# the beginning is cheaper than one of the same size at the end.


def divide(out: Telemetry, sent: SentRequest, usage: Usage, shown: dict[str, Any]) -> Callable[[Rates, float], None]:
    """Divide the tokens of a request, and return a function that divides the price of its input."""
    shares, metrics, total = sent.shares, out.metrics, usage.input
    keys, text_tokens = list(shares.bytes), max(total - usage.media, 0)
    tokens = portions(text_tokens, list(shares.bytes.values()))
    if sent.tools is not None:
        _offered(out, sent, tokens[keys.index(_TOOLS)] if _TOOLS in keys else 0, shown)
    if usage.media:
        keys.append((semconv.MEDIA, ""))
        tokens.append(total - text_tokens)
    rest = total - sum(tokens)
    if rest:  # the request holds nothing that was read as text
        keys.append((semconv.OTHER, ""))
        tokens.append(rest)
    # The tokens that each remedy would keep out of the request or does, at the request's own bytes of a token.
    remedied = [
        (strategy, is_on, round(less * text_tokens / max(sent.bytes, 1)))
        for is_on, bytes_by_remedy in ((False, shares.savable.by_remedy(settings.current())), (True, sent.removed))
        for strategy, less in bytes_by_remedy.items()
        if less
    ]
    with recording.held:
        if usage.cached:
            metrics.series(semconv.CACHED_TOKENS).add(usage.cached)
        metrics.divide(semconv.CONTEXT_TOKENS_OF, sent.model, keys, tokens)
        for strategy, is_on, count in remedied:
            metric = semconv.CONTEXT_SAVED_TOKENS if is_on else semconv.CONTEXT_SAVABLE_TOKENS
            metrics.series(metric, strategy).add(count)

    def pay(rates: Rates, of_input: float) -> None:
        mean = of_input / total
        if usage.cached or usage.written or usage.audio:
            costs = by_part(shares, tokens, usage, rates, of_input)
        else:
            costs = [mean * count for count in tokens]
        with recording.held:
            metrics.divide(semconv.CONTEXT_COST, sent.model, keys, costs)
            for strategy, is_on, count in remedied:
                metric = semconv.CONTEXT_SAVED_COST if is_on else semconv.CONTEXT_SAVABLE_COST
                metrics.series(metric, strategy).add(count * mean)

    return pay


def _offered(out: Telemetry, sent: SentRequest, tokens: int, shown: dict[str, Any]) -> None:
    tools, sent.tools = sent.tools, None
    if tools is None:
        return
    out.metrics.offered(tools.sizes, portions(tokens, list(tools.sizes.values())))
    if tokens:
        shown[semconv.CONTEXT_TOOLS_TOKENS] = tokens
        if tools.uncalled and tools.bytes:
            shown[semconv.CONTEXT_UNCALLED_TOKENS] = tokens * tools.uncalled_bytes // tools.bytes


def by_part(shares: Shares, tokens: list[int], usage: Usage, rates: Rates, total: float) -> list[float]:
    """Return the price of each part of a request; they sum up to the total.

    ``tokens`` are the tokens of the parts, in the order of the shares. Parts after them are not text, such as images,
    and pay the rest of the total.
    """
    in_all, cached, written = usage.input, usage.cached, usage.written
    sizes = shares.bytes.values()
    others = tokens[len(sizes) :]
    of_others = sum(others)
    whole, of_text = sum(sizes), in_all - of_others
    if not (whole and of_text > 0):
        return [total * count / in_all for count in tokens]
    bytes_of_token = whole / of_text
    rate = rates.cached / bytes_of_token
    costs = [size * rate for size in sizes]
    rate = ((rates.written if written else rates.input) - rates.cached) / bytes_of_token
    shares.add_behind(costs, whole - cached * bytes_of_token, rate)
    if written:
        rate = (rates.input - rates.written) / bytes_of_token
        shares.add_behind(costs, whole - (cached + written) * bytes_of_token, rate)
    if others:
        left = max(total - sum(costs), 0.0)
        costs += [left * count / of_others for count in others]
    return costs


# The context window of a model as the cap of its requests: its use, the turns left, and requests above it.


def grown(sent: SentRequest, tokens: int) -> list[int]:
    """Add the tokens of a request to its conversation; return the tokens of its latest requests."""
    if sent.conversation is None:
        return []
    # A new list, because another thread may read the one before.
    sizes = sent.conversation.token_sizes = [*sent.conversation.token_sizes[1 - LOOK_BACK :], tokens]
    return sizes


def record(  # noqa: PLR0913, PLR0917 - the readings of one request
    out: Telemetry, sent: SentRequest, tokens: int, sizes: list[int], shown: dict[str, Any], facts: ModelFacts
) -> None:
    """Record the tokens of a request against its model's window, and the requests that still fit at its growth."""
    window, execution = facts.window, sent.execution
    if window is not None:
        out.metrics.model(sent.model).used(tokens / window, out.settings.payload_near_ratio)
    use = ContextUse(tokens, window, sizes)
    if execution is not None:
        execution.context = use
        execution.context_bytes = 0 if window is None else sent.bytes
        execution.handed_to_model_bytes = 0
    if not sent.span.is_recording():
        return
    put_on_any(sent.span, {**shown, **use.attributes, **_largest(sent.shares)})
    shown.clear()


def _largest(shares: Shares) -> dict[str, Any]:
    """Return the attributes of a request for its largest part, and for the tool with most bytes in it."""
    part = shares.largest_part
    found: dict[str, Any] = {semconv.CONTEXT_LARGEST_PART: part} if part else {}
    if (tool := shares.largest_tool) is not None:
        found[semconv.CONTEXT_LARGEST_TOOL] = clean(tool)
        found[semconv.CONTEXT_LARGEST_TOOL_BYTES] = shares.bytes[semconv.TOOL_RESULTS, tool]
    return found


_next: ContextVar[Mapping[str, int] | None] = ContextVar("agent_otel_removed_bytes", default=None)

# Bytes that remedies keep out of requests: those missing in their results, and those taken out of their history.


def removed(out: Telemetry, strategy: str, removed_bytes: int, counted_bytes: int = 0) -> None:
    """Count the bytes that a remedy takes out of the next request, without the bytes that the metric has already."""
    out.metrics.record(semconv.CONTEXT_REMOVED, max(removed_bytes - counted_bytes, 0), strategy)
    _next.set({**(_next.get() or {}), strategy: removed_bytes})


def of_request(in_results: Mapping[str, int]) -> Mapping[str, int]:
    """Return the bytes by remedy that a request lacks; ``in_results`` are the bytes that its results lack."""
    own = _next.get()
    if own is None:
        return in_results
    _next.set(None)
    return {name: in_results.get(name, 0) + own.get(name, 0) for name in {*in_results, *own}}
