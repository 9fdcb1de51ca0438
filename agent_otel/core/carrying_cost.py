"""The cost of the parts of requests: each request's input tokens divided by bytes, and their price by their order.

The tokens that a provider has read from its cache are those at the beginning of the request, and those that it has
written to it follow them. So a part at the beginning is cheaper than one of the same size at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_otel import semconv
from agent_otel.core.models import models
from agent_otel.core.offered_tools import tool_sets
from agent_otel.core.request_shares import divided

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_otel.core.execution_tokens import Tokens
    from agent_otel.core.models import ModelFacts, Rates
    from agent_otel.core.sent_request import SentRequest
    from agent_otel.core.shares import Shares
    from agent_otel.core.usage import Usage
    from agent_otel.telemetry.setup import Telemetry

Key = tuple[str, str]
#: Tokens by remedy: true with those that the request lacks, false with those that it would lack if the remedy were on.
Remedied = list[tuple[bool, dict[str, int]]]


def responded(out: Telemetry, sent: SentRequest, totals: Tokens | None, usage: Usage) -> None:
    """Divide the tokens of a request, and their price as soon as it is known; the parts sum up to the total."""
    shares = divided(max(usage.input - usage.media, 0), sent.shares.bytes)
    if sent.tools is not None:
        _offered(out, sent, shares.get((semconv.TOOLS, ""), 0))
    if usage.media:
        shares[semconv.MEDIA, ""] = usage.media
    rest = usage.input - sum(shares.values())
    if rest:  # the request holds nothing that was read as text
        shares[semconv.OTHER, ""] = rest
    out.models.tokens(sent.model, shares)
    remedied = [
        (is_on, tokens)
        for is_on, sizes in ((True, sent.removed), (False, sent.savable()))
        if sizes and (tokens := _tokens(sent, usage, sizes))
    ]
    for is_on, tokens in remedied:
        out.models.remedied(tokens, is_on=is_on)
    models.when_known(sent.model, _pay, out, sent, totals, usage, shares, remedied)


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
        sent.span.set_attributes(attributes)


def _tokens(sent: SentRequest, usage: Usage, sizes: Mapping[str, int]) -> dict[str, int]:
    """Return the tokens of so many bytes by remedy, at the request's own bytes of a token."""
    ratio = max(usage.input - usage.media, 0) / max(sent.bytes, 1)
    return {strategy: round(less * ratio) for strategy, less in sizes.items() if less}


def _pay(  # noqa: PLR0913, PLR0917 - the readings of one request
    out: Telemetry,
    sent: SentRequest,
    totals: Tokens | None,
    usage: Usage,
    shares: dict[Key, int],
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
        costs = by_part(sent.shares, shares, usage, rates, cost.input)
    else:
        costs = {key: mean * tokens for key, tokens in shares.items()}
    out.models.costs(sent.model, costs)
    for is_on, tokens in remedied:
        out.models.remedied_cost({strategy: count * mean for strategy, count in tokens.items()}, is_on=is_on)


def by_part(shares: Shares, tokens: dict[Key, int], usage: Usage, rates: Rates, total: float) -> dict[Key, float]:
    """Return the price of each part of a request; they sum up to the total.

    ``tokens`` are those of the parts; what is no text, such as images, pays what is left of the total.
    """
    found = shares.bytes
    others = [key for key in tokens if key not in found]
    of_others = sum([tokens[key] for key in others])
    whole, of_text = sum(found.values()), max(usage.input - of_others, 0)
    if not (whole and of_text):
        return {key: total * part / usage.input for key, part in tokens.items()}
    bytes_of_token = whole / of_text
    uncached = plain = shares.behind(min(usage.cached, of_text) * bytes_of_token)
    if usage.written:
        plain = shares.behind(min(usage.cached + usage.written, of_text) * bytes_of_token)
    rate = rates.cached / bytes_of_token
    costs = {key: part_bytes * rate for key, part_bytes in found.items()}
    for late, more in ((uncached, rates.written - rates.cached), (plain, rates.input - rates.written)):
        rate = more / bytes_of_token
        for key, part_bytes in late.items():
            costs[key] += part_bytes * rate
    if of_others:
        left = max(total - sum(costs.values()), 0.0)
        costs |= {key: left * tokens[key] / of_others for key in others}
    return costs
