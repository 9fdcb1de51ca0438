"""The cost of the parts of requests: each request's input tokens divided by bytes, and their price by their order.

The tokens that a provider has read from its cache are those at the beginning of the request, and those that it has
written to it follow them. So a part at the beginning is cheaper than one of the same size at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent_otel import semconv
from agent_otel.core.models import models
from agent_otel.core.offered_tools import tool_sets
from agent_otel.core.request_shares import portions
from agent_otel.telemetry.spans import put_on_any

if TYPE_CHECKING:
    from agent_otel.core.execution_tokens import Tokens
    from agent_otel.core.models import ModelFacts, Rates
    from agent_otel.core.sent_request import SentRequest
    from agent_otel.core.shares import Shares
    from agent_otel.core.usage import Usage
    from agent_otel.telemetry.model_metrics import ModelSeries, RemedySeries
    from agent_otel.telemetry.setup import Telemetry

    Key = tuple[str, str]
    #: Tokens by remedy.
    Remedied = list[tuple[RemedySeries, int]]

_TOOLS: Final = (semconv.TOOLS, "")


def responded(out: Telemetry, sent: SentRequest, totals: Tokens | None, usage: Usage) -> None:
    """Divide the tokens of a request, and their price as soon as it is known; the parts sum up to the total."""
    sizes = sent.shares.bytes
    keys, text_tokens = list(sizes), max(usage.input - usage.media, 0)
    tokens = portions(text_tokens, list(sizes.values()))
    if sent.tools is not None:
        _offered(out, sent, tokens[keys.index(_TOOLS)] if _TOOLS in sizes else 0)
    if usage.media:
        keys.append((semconv.MEDIA, ""))
        tokens.append(usage.input - text_tokens)
    rest = usage.input - sum(tokens)
    if rest:  # the request holds nothing that was read as text
        keys.append((semconv.OTHER, ""))
        tokens.append(rest)
    series = out.models.series(sent.model)
    series.tokens.add(keys, tokens)
    remedied: Remedied = []
    for is_on, less_by_remedy in ((True, sent.removed), (False, sent.savable())):
        for strategy, less in less_by_remedy.items():
            if less:  # at the request's own bytes of a token
                remedy, count = out.models.remedy(strategy, is_on=is_on), round(less * text_tokens / max(sent.bytes, 1))
                remedy.tokens.record(count)
                remedied.append((remedy, count))
    models.when_answered(sent.model, sent.answered_by, _pay, sent.shares, totals, usage, series, keys, tokens, remedied)


def unreported(out: Telemetry, sent: SentRequest) -> None:
    """Count the tools that a request without a report of its tokens has offered."""
    if sent.tools is not None:
        _offered(out, sent, 0)


def _offered(out: Telemetry, sent: SentRequest, tokens: int) -> None:
    tools, sent.tools = sent.tools, None
    if tools is None:
        return
    tool_sets.sent(out, tools, tokens)
    if tokens and sent.span.is_recording():
        attributes = {semconv.CONTEXT_TOOLS_TOKENS: tokens}
        if tools.uncalled and tools.bytes:
            uncalled_bytes = sum(tools.sizes[name] for name in tools.uncalled)
            attributes[semconv.CONTEXT_UNCALLED_TOKENS] = tokens * uncalled_bytes // tools.bytes
        put_on_any(sent.span, attributes)


def _pay(  # noqa: PLR0913, PLR0917 - the readings of one request
    shares: Shares,
    totals: Tokens | None,
    usage: Usage,
    series: ModelSeries,
    keys: list[Key],
    tokens: list[int],
    remedied: Remedied,
    facts: ModelFacts,
) -> None:
    rates = facts.rates(usage)
    cost = None if rates is None else rates.cost(usage)
    if totals is not None:
        totals.priced(None if cost is None else cost.input + cost.output)
    if cost is None or rates is None or not usage.input:
        return
    mean = cost.input / usage.input
    if usage.cached or usage.written or usage.audio:
        costs = by_part(shares, tokens, usage, rates, cost.input)
    else:
        costs = [mean * count for count in tokens]
    series.costs.add(keys, costs)
    for remedy, count in remedied:
        remedy.pay(count * mean)


def by_part(shares: Shares, tokens: list[int], usage: Usage, rates: Rates, total: float) -> list[float]:
    """Return the price of each part of a request; they sum up to the total.

    ``tokens`` are those of the parts, in the order of the shares; what is behind them is no text, such as images, and
    pays what is left of the total.
    """
    sizes = shares.bytes.values()
    others = tokens[len(sizes) :]
    of_others = sum(others)
    whole, of_text = sum(sizes), usage.input - of_others
    if not (whole and of_text > 0):
        return [total * count / usage.input for count in tokens]
    bytes_of_token = whole / of_text
    rate = rates.cached / bytes_of_token
    costs = [size * rate for size in sizes]
    rate = (rates.written - rates.cached if usage.written else rates.input - rates.cached) / bytes_of_token
    shares.add_behind(costs, whole - usage.cached * bytes_of_token, rate)
    if usage.written:
        rate = (rates.input - rates.written) / bytes_of_token
        shares.add_behind(costs, whole - (usage.cached + usage.written) * bytes_of_token, rate)
    if others:
        left = max(total - sum(costs), 0.0)
        costs += [left * count / of_others for count in others]
    return costs
