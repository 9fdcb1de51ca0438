"""The cost of the parts of requests: each request's input tokens divided by bytes, and their price by their order.

The tokens that a provider has read from its cache are those at the beginning of the request, and those that it has
written to it follow them. So a part at the beginning is cheaper than one of the same size at the end.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, NamedTuple

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


class _Remedied(NamedTuple):
    """Tokens by remedy: those that the request lacks, and those that it would lack with a remedy that is off."""

    saved: dict[str, int]
    savable: dict[str, int]


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
    remedied = _Remedied(_tokens(sent, usage, sent.removed), _tokens(sent, usage, sent.savable()))
    for tokens, is_on in zip(remedied, (True, False), strict=True):
        if tokens:
            out.models.remedied(tokens, is_on=is_on)
    models.when_known(sent.model, functools.partial(_pay, out, sent, totals, usage, shares, remedied))


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
    if not sizes:
        return {}
    ratio = max(usage.input - usage.media, 0) / max(sent.bytes, 1)
    return {strategy: round(less * ratio) for strategy, less in sizes.items() if less}


def _pay(  # noqa: PLR0913, PLR0917 - the readings of one request
    out: Telemetry,
    sent: SentRequest,
    totals: Tokens | None,
    usage: Usage,
    shares: dict[Key, int],
    remedied: _Remedied,
    facts: ModelFacts,
) -> None:
    cost = facts.cost(usage)
    if totals is not None:
        totals.priced(None if cost is None else cost.input + cost.output)
    if cost is None or not usage.input:
        return
    rates = facts.rates(usage) if usage.cached or usage.written else None
    mean = cost.input / usage.input
    if rates is None:
        costs = {key: mean * tokens for key, tokens in shares.items()}
    else:
        costs = by_part(sent.shares, shares, usage, rates, cost.input)
    out.models.costs(sent.model, costs)
    for tokens, is_on in zip(remedied, (True, False), strict=True):
        if tokens:
            out.models.remedied_cost({strategy: count * mean for strategy, count in tokens.items()}, is_on=is_on)


def by_part(shares: Shares, tokens: dict[Key, int], usage: Usage, rates: Rates, total: float) -> dict[Key, float]:
    """Return the price of each part of a request; they sum up to the total.

    ``tokens`` are those of the parts; what is no text, such as images, pays what is left of the total.
    """
    whole = sum(shares.bytes.values())
    of_text = sum(tokens.get(key, 0) for key in shares.bytes)
    if not (whole and of_text):
        return {key: total * part / usage.input for key, part in tokens.items()}
    bytes_of_token = whole / of_text
    uncached = shares.behind(min(usage.cached, of_text) * bytes_of_token)
    plain = shares.behind(min(usage.cached + usage.written, of_text) * bytes_of_token)
    found: dict[Key, float] = {}
    for key, part_bytes in shares.bytes.items():
        late, last = uncached.get(key, 0.0), plain.get(key, 0.0)
        priced = (part_bytes - late) * rates.cached + (late - last) * rates.written + last * rates.input
        found[key] = priced / bytes_of_token
    rest = [key for key in tokens if key not in shares.bytes]
    left = max(total - sum(found.values()), 0.0)
    others = sum(tokens[key] for key in rest)
    return found | {key: left * tokens[key] / others for key in rest if others}
