"""The cost of the parts of requests: each request's input tokens and their price, divided by bytes."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from agent_otel import semconv
from agent_otel.core.models import models
from agent_otel.core.request_shares import divided

if TYPE_CHECKING:
    from agent_otel.core.execution_state import Totals
    from agent_otel.core.models import ModelFacts
    from agent_otel.core.sent_request import SentRequest
    from agent_otel.core.usage import Usage
    from agent_otel.telemetry.setup import Telemetry


def responded(out: Telemetry, sent: SentRequest, totals: Totals | None, usage: Usage) -> None:
    """Divide the tokens of a request, and their price as soon as it is known; the parts sum up to the total."""
    shares = divided(max(usage.input - usage.media, 0), sent.shares.bytes)
    if usage.media:
        shares[semconv.MEDIA, ""] = usage.media
    rest = usage.input - sum(shares.values())
    if rest:  # the request holds nothing that was read as text
        shares[semconv.OTHER, ""] = rest
    out.models.tokens(sent.model, shares)
    models.when_known(sent.model, functools.partial(_pay, out, sent, totals, usage, shares))


def _pay(  # noqa: PLR0913, PLR0917 - the readings of one request
    out: Telemetry,
    sent: SentRequest,
    totals: Totals | None,
    usage: Usage,
    shares: dict[tuple[str, str], int],
    facts: ModelFacts,
) -> None:
    cost = facts.cost(usage)
    if cost is None:
        return
    if usage.input:
        out.models.costs(sent.model, shares, cost.input / usage.input)
    if totals is not None and totals.tokens is not None:
        totals.tokens.cost = (totals.tokens.cost or 0.0) + cost.input + cost.output
