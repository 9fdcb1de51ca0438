"""The cost of the parts of requests: each request's input tokens divided by bytes, and their price by their order.

The tokens that a provider has read from its cache are those at the beginning of the request, and those that it has
written to it follow them. So a part at the beginning is cheaper than one of the same size at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agent_otel import semconv
from agent_otel.core.offered_tools import tool_sets
from agent_otel.core.request_shares import portions
from agent_otel.telemetry.recording import recording

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_otel.core.execution_tokens import Tokens
    from agent_otel.core.models import ModelFacts, Rates
    from agent_otel.core.sent_request import SentRequest
    from agent_otel.core.shares import Shares
    from agent_otel.core.usage import Usage
    from agent_otel.telemetry.model_metrics import ModelSeries, RemedySeries
    from agent_otel.telemetry.setup import Telemetry

    Key = tuple[str, str]
    #: The tokens of a request by part and tool, and by remedy, to which a price is added as soon as it is known.
    Divided = tuple[Shares, ModelSeries, list[Key], list[int], list[tuple[RemedySeries, int]]]

_TOOLS: Final = (semconv.TOOLS, "")


def divide(out: Telemetry, sent: SentRequest, series: ModelSeries, usage: Usage, shown: dict[str, Any]) -> Divided:
    """Divide the tokens of a request; the parts sum up to the total. ``shown`` gets attributes for its span."""
    shares = sent.shares
    total, cached, _, _, media, _, _, _, _ = usage  # a third of the cost of the names
    sizes = shares.bytes
    keys, text_tokens = list(sizes), max(total - media, 0)
    tokens = portions(text_tokens, list(sizes.values()))
    if sent.tools is not None:
        _offered(out, sent, tokens[keys.index(_TOOLS)] if _TOOLS in sizes else 0, shown)
    if media:
        keys.append((semconv.MEDIA, ""))
        tokens.append(total - text_tokens)
    rest = total - sum(tokens)
    if rest:  # the request holds nothing that was read as text
        keys.append((semconv.OTHER, ""))
        tokens.append(rest)
    savable = sent.savable()
    remedied = _remedied(out, sent, text_tokens, savable, is_on=False) if savable else []
    if sent.removed:
        remedied += _remedied(out, sent, text_tokens, sent.removed, is_on=True)
    with recording.held:
        if cached:
            out.models.cached.add(cached)
        series.tokens.add(keys, tokens)
        for remedy, count in remedied:
            remedy.tokens.add(count)
    return shares, series, keys, tokens, remedied


def _remedied(
    out: Telemetry, sent: SentRequest, tokens: int, less_by_remedy: Mapping[str, int], *, is_on: bool
) -> list[tuple[RemedySeries, int]]:
    """Return the tokens that each remedy keeps out of a request or would, at the request's own bytes of a token."""
    found = []
    for strategy, less in less_by_remedy.items():
        if less:
            count = round(less * tokens / max(sent.bytes, 1))
            found.append((out.models.remedy(strategy, is_on=is_on), count))
    return found


def unreported(out: Telemetry, sent: SentRequest) -> None:
    """Count the tools that a request without a report of its tokens has offered."""
    if sent.tools is not None:
        _offered(out, sent, 0, {})


def _offered(out: Telemetry, sent: SentRequest, tokens: int, shown: dict[str, Any]) -> None:
    tools, sent.tools = sent.tools, None
    if tools is None:
        return
    tool_sets.sent(out, tools, tokens)
    if tokens:
        shown[semconv.CONTEXT_TOOLS_TOKENS] = tokens
        if tools.uncalled and tools.bytes:
            shown[semconv.CONTEXT_UNCALLED_TOKENS] = tokens * tools.uncalled_bytes // tools.bytes


def pay(divided: Divided, totals: Tokens | None, usage: Usage, facts: ModelFacts) -> None:
    """Divide the price of a request among its parts."""
    rates = facts.rates(usage)
    if rates is None:
        if totals is not None:
            totals.priced(None)
        return
    of_input, of_output = rates.cost(usage)
    if totals is not None:
        totals.priced(of_input + of_output)
    in_all, cached, _, _, _, written, audio, _, _ = usage
    if not in_all:
        return
    shares, series, keys, tokens, remedied = divided
    mean = of_input / in_all
    if cached or written or audio:
        costs = by_part(shares, tokens, usage, rates, of_input)
    else:
        costs = [mean * count for count in tokens]
    with recording.held:
        series.costs.add(keys, costs)
        for remedy, count in remedied:
            remedy.pay(count * mean)


def by_part(shares: Shares, tokens: list[int], usage: Usage, rates: Rates, total: float) -> list[float]:
    """Return the price of each part of a request; they sum up to the total.

    ``tokens`` are those of the parts, in the order of the shares; what is behind them is no text, such as images, and
    pays what is left of the total.
    """
    in_all, cached, _, _, _, written, _, _, _ = usage
    sizes = shares.bytes.values()
    others = tokens[len(sizes) :]
    of_others = sum(others) if others else 0
    whole, of_text = sum(sizes), in_all - of_others
    if not (whole and of_text > 0):
        return [total * count / in_all for count in tokens]
    bytes_of_token = whole / of_text
    of_input, of_cached, of_written, _, _, _, _ = rates
    rate = of_cached / bytes_of_token
    costs = [size * rate for size in sizes]
    rate = (of_written - of_cached if written else of_input - of_cached) / bytes_of_token
    shares.add_behind(costs, whole - cached * bytes_of_token, rate)
    if written:
        rate = (of_input - of_written) / bytes_of_token
        shares.add_behind(costs, whole - (cached + written) * bytes_of_token, rate)
    if others:
        left = max(total - sum(costs), 0.0)
        costs += [left * count / of_others for count in others]
    return costs
