"""PromQL over the catalogue's metrics, in forms that Prometheus from 2.42 on and VictoriaMetrics both answer.

Three habits keep one query right on every way that metrics come in (scraped, pushed, remote-written): series are
aggregated ``by`` labels and never ``without``, no matcher is on ``le``, and the ``job`` label need not exist.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_otel import semconv
from agent_otel.alerts import promql
from agent_otel.alerts.promql import JOB
from agent_otel.semconv.types import prometheus_label

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_otel.semconv.types import Metric

#: The time range that the dashboard shows; for stats, bar gauges and tables.
RANGE = "$__range"
#: What the reader chose to smooth lines over.
WINDOW = "$window"
#: So many series are read in one graph.
MOST = 10
#: As short as the scrape interval allows; for heatmaps, whose columns stand for themselves.
STEP = "$__rate_interval"

TOOL = prometheus_label(semconv.GEN_AI_TOOL_NAME)
AGENT = prometheus_label(semconv.AGENT_NAME)
ERROR = prometheus_label(semconv.ERROR_TYPE)
RUNTIME = prometheus_label(semconv.RUNTIME)
WORKFLOW = prometheus_label(semconv.WORKFLOW_NAME)
#: Labels of what is counted for each execution.
RUN = (WORKFLOW, AGENT)
ACTIVITY = prometheus_label(semconv.ACTIVITY)


def legend(*labels: str) -> str:
    """Return how series that differ by these labels are called in a graph."""
    return " ".join(f"{{{{{name}}}}}" for name in labels)


@dataclass(frozen=True)
class Scope:
    """The dashboard's variables, by the label that each of them filters."""

    variables: dict[str, str]

    def select(self, metric: Metric, suffix: str = "", matchers: Iterable[str] = ()) -> str:
        """Return a selector with those of the variables whose label the metric has."""
        labels = (JOB, *metric.prometheus_labels)
        own = [f'{name}=~"${variable}"' for name, variable in self.variables.items() if name in labels]
        return promql.selector(f"{metric.exposed_name}{suffix}", (*own, *matchers))

    def sum(  # noqa: PLR0913 - what a sum may be of
        self,
        metric: Metric,
        suffix: str = "",
        *,
        by: tuple[str, ...] = (),
        over: str = RANGE,
        function: str = "increase",
        matchers: Iterable[str] = (),
    ) -> str:
        """Return how much a counter grew in a range of time, or, as ``function="rate"``, in a second of it.

        ``suffix`` is the part of a histogram: ``_count``, ``_sum`` or ``_bucket``.
        """
        series = self.select(metric, suffix, matchers)
        gains = promql.gained(series, over) if function == "increase" else f"{function}({series}[{over}])"
        return on_one_line(promql.total(by, gains))

    def events(self, metric: Metric, suffix: str = "", *, by: tuple[str, ...], matchers: Iterable[str] = ()) -> str:
        """Return what was counted in the window before each point; nothing where nothing was."""
        return f"{self.sum(metric, suffix, by=by, over=WINDOW, matchers=matchers)} > 0"

    def quantile(
        self,
        at: float,
        metric: Metric,
        *,
        by: tuple[str, ...] = (),
        over: str = RANGE,
        matchers: Iterable[str] = (),
    ) -> str:
        """Return a quantile of a histogram; of 1, the upper bound of the bucket that the largest value is in."""
        buckets = self.sum(metric, "_bucket", by=("le", *by), over=over, matchers=matchers)
        return on_one_line(promql.quantile(at, buckets))

    def buckets(self, metric: Metric) -> str:
        """Return the buckets of a histogram, which heatmaps draw."""
        return self.sum(metric, "_bucket", by=("le",), over=STEP)


def largest(histogram: str, *by: str) -> str:
    """Return the upper bound of the largest value of another program's histogram in the window."""
    buckets = promql.total((promql.LE, *by), promql.gained(f"{histogram}_bucket", WINDOW))
    return on_one_line(promql.quantile(1, buckets))


def on_one_line(expression: str) -> str:
    """Return an expression without its line breaks, as an editor of queries shows it."""
    return re.sub(r"(?<=\() | (?=\))", "", " ".join(expression.split()))


#: The processes that report, of the chosen jobs.
PROCESSES = f'{semconv.BUILD_INFO.exposed_name}{{{JOB}=~"$job"}}'


def or_zero(expression: str, over: str = RANGE) -> str:
    """Return 0 for a missing counter, and nothing where no process reported in the range of time."""
    return f"{expression} or {_zero(over)}"


def _zero(over: str) -> str:
    return f"0 * max(last_over_time({PROCESSES}[{over}]))"


def mean(part: str, whole: str) -> str:
    """Return a quotient that may be above 1; nothing where the divisor is nothing."""
    return f"({part}) / ({whole} > 0)"


def drawn(expression: str) -> str:
    """Leave out what is not a number: a quantile of a series that had no values in the range."""
    return f"{expression} >= 0"


def worst(expression: str, most: int = MOST) -> str:
    """Return the series of an instant with the largest first, and no more than can be read."""
    return f"sort_desc(topk({most}, {expression}))"


def top(expression: str, most: int = MOST) -> str:
    """Return the largest series of each point of a graph: with many tools, lines hide each other."""
    return f"topk({most}, {expression})"


def bottom(expression: str, most: int = MOST) -> str:
    """Return the smallest series of each point of a graph, where little is bad."""
    return f"bottomk({most}, {expression})"


def highest(expression: str) -> str:
    """Return the series with the largest value, for a tile that names it."""
    return f"topk(1, {expression})"


def lowest(expression: str) -> str:
    """Return the series with the smallest value, for a tile that names it."""
    return f"bottomk(1, {expression})"


def most_often(expression: str, label: str, of: str = "") -> str:
    """Return the series that counted most; `none` with 0 where nothing was counted and ``of``, or a process, exists."""
    zero = f"0 * {of}" if of else _zero(RANGE)
    return f'topk(1, ({expression}) > 0 or label_replace({zero}, "{label}", "none", "", ""))'


def named(expression: str, label: str) -> str:
    """Return the series of a tile with `unnamed` in the place of an empty label."""
    return f'label_replace({expression}, "{label}", "unnamed", "{label}", "")'
