"""The figures of tools in a recording."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from agent_otel import semconv

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_otel.testing.memory_sink import Reading

#: Follow-ups of a cut result or a page by which the agent gets the rest.
GOOD_FOLLOWUPS: Final = (semconv.PAGINATED, semconv.NARROWED)


@dataclass(frozen=True, slots=True)
class Cut:
    """A truncation: the layer that cut, and how it is known; bytes of the result, and of the part that is left.

    ``result_bytes`` is None for a cut on the way to the model, ``left_bytes`` for a cut before that.
    """

    layer: str
    reason: str
    result_bytes: int | None = None
    left_bytes: int | None = None


@dataclass(slots=True)
class Tool:
    """The figures of one tool in a recording. Sizes are UTF-8 bytes of the results as the handler returned them.

    ``cuts`` are the truncations that nothing announces; ``remedied`` counts the results that a remedy replaced.
    ``delivered_bytes`` are those that models were sent, each result once. ``followups`` maps what the agent did after a
    cut or a page (`paginated`, `narrowed`, `repeated`, `ignored`) to a number of times.
    """

    name: str
    calls: int = 0
    sizes: list[int] = field(default_factory=list)
    cuts: list[Cut] = field(default_factory=list)
    repeats: int = 0
    remedied: int = 0
    delivered_bytes: int = 0
    followups: dict[str, int] = field(default_factory=dict)
    over_budget: dict[str, int] = field(default_factory=dict)
    incomplete_answers: dict[str, int] = field(default_factory=dict)
    _last_delivered: int = 0

    @property
    def bytes(self) -> int:
        """Bytes of all results."""
        return sum(self.sizes)

    @property
    def max_result_bytes(self) -> int:
        """Bytes of the largest result; 0 when no call returned one."""
        return max(self.sizes, default=0)

    def take(self, reading: Reading) -> None:
        """Add a reading."""
        metric, value = reading.metric, int(reading.value)
        labels = dict(zip(metric.labels, reading.labels, strict=True))
        if metric is semconv.ARGS_SIZE:
            self.calls += 1
        elif metric is semconv.RESULT_SIZE:
            self.sizes.append(value)
        elif metric is semconv.RESULT_DELIVERED:
            self.delivered_bytes += value
            self._last_delivered = value
        elif metric is semconv.TOOL_REPEATS:
            self.repeats += value
        elif metric is semconv.RESULTS_TRUNCATED:
            self._cut(labels[semconv.LAYER], labels[semconv.REASON])
        elif metric in _COUNTED:
            name, label = _COUNTED[metric]
            counts: dict[str, int] = getattr(self, name)
            counts[labels[label]] = counts.get(labels[label], 0) + value

    def _cut(self, layer: str, reason: str) -> None:
        if layer == semconv.LAYER_REMEDY:
            self.remedied += 1
        elif layer == semconv.LAYER_MODEL_REQUEST:
            self.cuts.append(Cut(layer, reason, None, self._last_delivered))
        else:
            self.cuts.append(Cut(layer, reason, self.sizes[-1] if self.sizes else None))


_COUNTED: Final = {
    semconv.TOOL_FOLLOWUPS: ("followups", semconv.OUTCOME),
    semconv.RESULTS_OVER_BUDGET: ("over_budget", semconv.LAYER),
    semconv.ANSWERS_INCOMPLETE: ("incomplete_answers", semconv.REASON),
}


class Tools(dict[str, Tool]):
    """The tools of a recording by name."""

    def __missing__(self, name: str) -> Tool:
        """Raise a KeyError that names the tools that were called."""
        raise KeyError(f"no call of {name!r} was recorded; called: {', '.join(sorted(self)) or 'no tool'}")


def tools_of(readings: Iterable[Reading]) -> Tools:
    """Return the figures of all tools that were called."""
    found = Tools()
    for reading in readings:
        labels = reading.metric.labels
        if labels[:1] == (semconv.GEN_AI_TOOL_NAME,):
            name = reading.labels[0]
            found.setdefault(name, Tool(name)).take(reading)
    return found
