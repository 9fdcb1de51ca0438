"""Cost of carrying a tool's bytes: their tokens in each later request of the conversation, and the price of these.

Both are estimates: a token is four bytes, each request holds all turns before it, and nothing is cached.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_otel._internal.installing import installed_with
from agent_otel.core.models import UNKNOWN, ModelFacts, configured, read_facts
from agent_otel.core.usage import Usage
from agent_otel.measure.forecast import turns_to_cap

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.explain.conversation import Turn

BYTES_PER_TOKEN: Final = 4
CARRIED_HEAD: Final = ("tool", "tokens", "sent again", "US dollars")
ESTIMATED: Final = "Tokens are estimates of 4 bytes each, sent again in each later turn; without a prompt cache."


class Carried(NamedTuple):
    """Tokens of a tool's results and arguments, those sent in all later requests, and US dollars for these."""

    tool: str
    tokens: int
    sent_tokens: int
    dollars: float | None


class ContextWindow(NamedTuple):
    """The window of a model in tokens, the tokens of the conversation, and the turns until it is full."""

    model: str
    tokens: int
    used_tokens: int
    turns_left: int | None


def facts_of(model: str, warn: Callable[[str], None]) -> ModelFacts:
    """Return the window and the prices of a model; of the setting alone, with a warning, without genai-prices."""
    if not model:
        return UNKNOWN
    try:
        return read_facts(model)
    except PackageNotFoundError:
        warn(f"prices of models need a package: {installed_with('prices')}")
        return ModelFacts(configured().get(model))


def carried(turns: list[Turn], facts: ModelFacts) -> list[Carried]:
    """Return the cost of carrying for each tool, the most expensive first."""
    totals = [0, *accumulate(turn.bytes for turn in turns)]
    # Of the request of each turn, and of all up to it: US dollars for a token that stands in every one of them.
    rates = list(accumulate(_rate(facts, total) for total in totals[:-1]))
    held: dict[str, int] = {}
    sent: dict[str, int] = {}
    dollars: dict[str, float] = {}
    for number, turn in enumerate(turns, 1):
        for (_, tool), count in turn.parts.items():
            if tool:
                held[tool] = held.get(tool, 0) + count
                sent[tool] = sent.get(tool, 0) + count * (len(turns) - number)
                dollars[tool] = dollars.get(tool, 0) + count * (rates[-1] - rates[number - 1])
    rows = [
        Carried(
            tool,
            count // BYTES_PER_TOKEN,
            sent[tool] // BYTES_PER_TOKEN,
            dollars[tool] / BYTES_PER_TOKEN if facts.tiers else None,
        )
        for tool, count in held.items()
    ]
    return sorted(rows, key=lambda row: (-row.sent_tokens, -row.tokens))


def context_window(model: str, turns: list[Turn], facts: ModelFacts) -> ContextWindow | None:
    """Return the use of a model's window; None where the window is unknown or the payload has no turns."""
    if facts.window is None or not turns:
        return None
    used = [total // BYTES_PER_TOKEN for total in accumulate(turn.bytes for turn in turns)]
    return ContextWindow(model, facts.window, used[-1], turns_to_cap(used, facts.window))


def _rate(facts: ModelFacts, total_bytes: int) -> float:
    """Return US dollars for an input token of a request with so many bytes; 0 for a model without prices."""
    tokens = max(1, total_bytes // BYTES_PER_TOKEN)
    cost = facts.cost(Usage(input=tokens))
    return 0.0 if cost is None else cost.input / tokens


def carried_rows(rows: list[Carried]) -> list[tuple[str, ...]]:
    """Return the rows of a table for people."""
    return [
        (row.tool, f"{row.tokens:,}", f"{row.sent_tokens:,}", "" if row.dollars is None else f"{row.dollars:,.2f}")
        for row in rows
    ]


def window_line(window: ContextWindow) -> str:
    """Return the sentence about a model's window."""
    left = "" if window.turns_left is None else f", {window.turns_left:,} turns left"
    return f"Context window of {window.model}: {window.used_tokens:,} of {window.tokens:,} tokens{left}."
