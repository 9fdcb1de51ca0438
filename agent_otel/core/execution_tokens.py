"""Tokens of the model requests of one execution, and their price."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_otel import semconv
from agent_otel.telemetry.recording import recording

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.core.usage import Usage


class Tokens:
    """Tokens of the responses of one execution, as the providers reported them, and their price in US dollars."""

    __slots__ = ("_unpriced", "_waiting", "cached", "cost", "input", "output", "reasoning", "requests")

    def __init__(self) -> None:
        self.requests = 0
        #: None before a request with a price.
        self.cost: float | None = None
        self.input = 0
        self.cached = 0
        self.output = 0
        self.reasoning = 0
        # Lists, because their methods are atomic: another thread reads prices.
        self._unpriced: list[None] = []
        self._waiting: list[Callable[[float], None]] = []

    def add(self, usage: Usage) -> None:
        """Add the tokens of a response, whose price is not known yet."""
        self.requests += 1
        self.input += usage.input
        self.cached += usage.cached
        self.output += usage.output
        self.reasoning += usage.reasoning
        self._unpriced.append(None)

    def priced(self, cost: float | None) -> None:
        """Add the price of a response; None where its model has none."""
        with recording.held:
            if cost is not None:
                self.cost = (self.cost or 0.0) + cost
            self._unpriced.pop()
        self._settle()

    def when_priced(self, use: Callable[[float], None]) -> None:
        """Call ``use`` with the price of all responses, as soon as all are priced; not without any price."""
        self._waiting.append(use)
        self._settle()

    def _settle(self) -> None:
        while self._waiting and not self._unpriced:
            try:
                use = self._waiting.pop()
            except IndexError:  # another thread was faster
                return
            if self.cost is not None:
                use(self.cost)

    def attributes(self) -> dict[str, int | float]:
        """Return the span attributes of an execution's tokens and price."""
        found: dict[str, int | float] = {
            semconv.EXECUTION_REQUESTS: self.requests,
            semconv.EXECUTION_INPUT_TOKENS: self.input,
            semconv.EXECUTION_CACHED_TOKENS: self.cached,
            semconv.EXECUTION_OUTPUT_TOKENS: self.output,
        }
        if self.cost is not None:
            found[semconv.EXECUTION_COST] = self.cost
        return found
