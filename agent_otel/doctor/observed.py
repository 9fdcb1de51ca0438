"""Figures of a program that ran under ``agent-otel doctor``: its calls, sizes, losses and the first step.

The program's metrics are read from the files that prometheus_client keeps in multiprocess mode, because they survive
every way in which a process ends, and count forked children.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, multiprocess

from agent_otel import semconv
from agent_otel.semconv.types import Metric, prometheus_label

if TYPE_CHECKING:
    from pathlib import Path

_BYTES_OF_A_TOKEN: Final = 4
#: Metric, and one of its reasons -> advice; {n} is the sum and {who} the first label's value with the largest share.
_CHECKS: Final[dict[Metric | tuple[Metric, str], str]] = {
    **{
        (semconv.REQUESTS_REJECTED, reason): f"{{who}} refused {{n}} requests {text}"
        for reason, text in {
            semconv.RESULT_WITHOUT_CALL: "that held a result without its call: drop both or neither from the history",
            semconv.CALL_WITHOUT_RESULT: "that held a call without its result: add a result for each call, also for a "
            "call that failed, was denied or was cancelled",
            semconv.CONTEXT: "longer than its window: set AGENT_OTEL_RESULT_CEILING_BYTES=auto or "
            "AGENT_OTEL_TRIM_RESULTS",
            semconv.REQUEST_TOO_LARGE: "with too many bytes: set AGENT_OTEL_CLAIM_CHECK",
            semconv.STRING_TOO_LONG: "with a text that is too long: set AGENT_OTEL_RESULT_CEILING_BYTES",
            semconv.OTHER_REASON: "for another reason: its error says why",
        }.items()
    },
    semconv.PAYLOADS_REJECTED: "{n} payloads of {who} were refused: set AGENT_OTEL_CLAIM_CHECK",
    semconv.PAYLOAD_NEAR_CAP: (
        "{n} payloads of {who} were near their cap: set AGENT_OTEL_CLAIM_CHECK before the cap is met"
    ),
    semconv.ANSWERS_INCOMPLETE: (
        "{n} answers were built on a part of a result of {who}: let it return pages, or set AGENT_OTEL_CLAIM_CHECK"
    ),
    semconv.HISTORY_LOST: "{n} requests had lost the conversation: append it to the messages that are sent",
    semconv.TASKS_DROPPED: "{n} times a window dropped the user's task: keep the first message",
    semconv.RESULTS_TRUNCATED: "{n} results were truncated, most of {who}: let it return pages or a summary",
    semconv.RESULTS_OVER_BUDGET: (
        "{n} results were above a layer's budget, most of {who}: set AGENT_OTEL_RESULT_CEILING_BYTES=auto"
    ),
    semconv.RESULTS_LARGE: "{n} results were large, most of {who}: let it return pages or a summary",
    semconv.TOOL_REPEATS: "{n} calls repeat earlier ones, most of {who}: look at what it returns",
}
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


@dataclass(frozen=True)
class Tool:
    """The figures of one tool; sizes are bytes."""

    name: str
    calls: int
    result_bytes: int
    large: int
    truncated: int
    repeats: int
    incomplete_answers: int


#: The metrics of the figures, each with the part of a histogram.
_FIGURES: Final = (
    (semconv.ARGS_SIZE, "_count"),
    (semconv.RESULT_SIZE, "_sum"),
    *((metric, "") for metric in (semconv.RESULTS_LARGE, semconv.RESULTS_TRUNCATED, semconv.TOOL_REPEATS)),
    (semconv.ANSWERS_INCOMPLETE, ""),
)


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


def tools(observed: Observed) -> list[Tool]:
    """Return the tools, those with the most bytes first."""
    rows = [
        Tool(name, *(observed.total(metric, suffix, **{_TOOL: name}) for metric, suffix in _FIGURES))
        for name in observed.values(semconv.ARGS_SIZE, _TOOL, "_count")
    ]
    return sorted(rows, key=lambda tool: (-tool.result_bytes, tool.name))


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
    for check, text in _CHECKS.items():
        metric, only = (check, {}) if isinstance(check, Metric) else (check[0], {semconv.REASON: check[1]})
        count = observed.total(metric, **only)
        if count:
            who = next(iter(observed.values(metric, metric.prometheus_labels[0], **only)), "")
            found.append(text.format(n=f"{count:,}", who=who or "the provider"))
    return found
