"""Figures of a program that ran under ``agent-otel doctor``: its calls, sizes, losses and the first step.

The program's metrics are read from the files that prometheus_client keeps in multiprocess mode, because they survive
every way in which a process ends, and count forked children.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml
from prometheus_client import CollectorRegistry, multiprocess

from agent_otel import semconv
from agent_otel.semconv.types import prometheus_label

if TYPE_CHECKING:
    from agent_otel.semconv.types import Metric

_BYTES_OF_A_TOKEN: Final = 4
_ADVICE: Final = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
_TOOL: Final = prometheus_label(semconv.GEN_AI_TOOL_NAME)

_Sample = tuple[dict[str, str], float]


@dataclass
class Observed:
    """Samples of a program's metrics by their names in Prometheus."""

    samples: dict[str, list[_Sample]] = field(default_factory=lambda: defaultdict(list))

    def total(self, metric: Metric, suffix: str = "", **labels: str) -> int:
        """Return the sum of a metric's samples with these labels."""
        of_metric = self.samples.get(metric.exposed_name + suffix, ())
        return int(sum(value for own, value in of_metric if labels.items() <= own.items()))

    def values(self, metric: Metric, label: str, suffix: str = "", **only: str) -> list[str]:
        """Return the values of a label, those with the largest sum first; a sum of 0 does not count."""
        sums: dict[str, float] = defaultdict(float)
        for labels, value in self.samples.get(metric.exposed_name + suffix, ()):
            if only.items() <= labels.items():
                sums[labels[label]] += value
        return sorted((name for name, value in sums.items() if value), key=lambda name: (-sums[name], name))


#: The figures of a tool, each with its metric and the part of a histogram; sizes are bytes.
_FIGURES: Final = {
    "calls": (semconv.ARGS_SIZE, "_count"),
    "result_bytes": (semconv.RESULT_SIZE, "_sum"),
    "large": (semconv.RESULTS_LARGE, ""),
    "truncated": (semconv.RESULTS_TRUNCATED, ""),
    "repeats": (semconv.TOOL_REPEATS, ""),
    "incomplete_answers": (semconv.ANSWERS_INCOMPLETE, ""),
}


@dataclass(frozen=True)
class Definitions:
    """Tools that a program has offered to models: how many, those called, and tokens of a request for definitions.

    Where no provider has reported tokens, these are the bytes ÷ 4.
    """

    offered: int
    called: int
    tokens: int
    uncalled_tokens: int

    def sentence(self) -> str:
        """Return the figures in words."""
        uncalled = self.offered - self.called
        text = (
            f"{self.offered:,} tools offered, {self.called:,} called: {self.tokens:,} tokens of definitions a request"
        )
        return f"{text}, {self.uncalled_tokens:,} of them for the {uncalled:,} never called" if uncalled else text


def read(folder: Path) -> Observed:
    """Return the counters of a program's processes from a folder of prometheus_client."""
    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry, str(folder))  # type: ignore[no-untyped-call]
    observed = Observed()
    for family in registry.collect():
        for sample in family.samples:
            observed.samples[sample.name].append((dict(sample.labels), sample.value))
    return observed


def tools(observed: Observed) -> list[dict[str, Any]]:
    """Return the name and the figures of each tool, those with the most bytes first."""
    rows = [
        {"name": name}
        | {figure: observed.total(metric, part, **{_TOOL: name}) for figure, (metric, part) in _FIGURES.items()}
        for name in observed.values(semconv.ARGS_SIZE, _TOOL, "_count")
    ]
    return sorted(rows, key=lambda tool: (-tool["result_bytes"], tool["name"]))


def definitions(observed: Observed) -> Definitions | None:
    """Return the definitions of tools in the requests of a program; None without any."""
    offered = observed.values(semconv.TOOL_OFFERED, _TOOL)
    calls = observed.values(semconv.ARGS_SIZE, _TOOL, "_count")
    uncalled = [name for name in offered if not _is_called(name, calls)]
    tokens = {}
    for name in offered:
        sums = (semconv.TOOL_OFFERED, semconv.DEFINITION_TOKENS, semconv.DEFINITION_SENT)
        requests, reported, sent = (observed.total(metric, **{_TOOL: name}) for metric in sums)
        tokens[name] = round((reported or sent / _BYTES_OF_A_TOKEN) / requests)
    if not offered:
        return None
    unused = sum(tokens[name] for name in uncalled)
    return Definitions(len(offered), len(offered) - len(uncalled), sum(tokens.values()), unused)


def _is_called(name: str, calls: list[str]) -> bool:
    """Return true for a tool that was called, by its name with or without its server's."""
    return any(name == call or (name.endswith(call) and not name[-len(call) - 1].isalnum()) for call in calls if call)


def advice(observed: Observed) -> list[str]:
    """Return advice, the most harmful fault first. It is empty when nothing was lost or refused.

    Results above the budget that stands where no layer has a limit do not count: `auto` withholds none of them.
    """
    name, layer = semconv.RESULTS_OVER_BUDGET.exposed_name, prometheus_label(semconv.LAYER)
    limited = [sample for sample in observed.samples.get(name, ()) if sample[0].get(layer) != semconv.DEFAULT]
    observed = Observed({**observed.samples, name: limited})
    found = []
    for row in _ADVICE:
        metric, only = getattr(semconv, row["metric"]), {key: row[key] for key in (semconv.REASON,) if key in row}
        count = observed.total(metric, **only)
        if count:
            who = next(iter(observed.values(metric, metric.prometheus_labels[0], **only)), "")
            found.append(row["text"].format(n=f"{count:,}", who=who or "the provider"))
    return found
