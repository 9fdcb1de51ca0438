"""The executions of this process that cost most, for its status file: a metric has no ids."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_otel._internal import fork

if TYPE_CHECKING:
    from agent_otel.telemetry.spans import Exemplar

_MOST: Final = 10


class Ended(NamedTuple):
    """A finished execution: its id, and its trace where one is recorded."""

    id: str
    exemplar: Exemplar | None = None


class Costly(NamedTuple):
    """Tokens and model requests of an execution, and US dollars where its model has a price."""

    execution: str
    trace: str
    workflow: str
    agent: str
    dollars: float | None
    tokens: int
    requests: int


class Costliest:
    """The ten executions that cost most; of those without a price, the ones with most tokens."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all, for a forked child, which has executions of its own."""
        self._lock = threading.Lock()
        self._rows: list[Costly] = []

    def add(self, row: Costly, before: Costly | None = None) -> None:
        """Add an execution; in the place of what was ``before`` its price."""
        with self._lock:
            others = [other for other in self._rows if other is not before]
            self._rows = sorted([*others, row], key=lambda one: (-(one.dollars or 0.0), -one.tokens))[:_MOST]

    def rows(self) -> list[dict[str, Any]]:
        """Return the executions as plain data, the costliest first."""
        return [row._asdict() for row in self._rows]


costliest = Costliest()
fork.after_fork(costliest.reset)
