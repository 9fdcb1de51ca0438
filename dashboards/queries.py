"""PromQL over the catalogue's metrics, in forms that Prometheus from 2.42 on and VictoriaMetrics both answer.

Three habits keep one query right on every way that metrics come in (scraped, pushed, remote-written): series are
aggregated ``by`` labels and never ``without``, no matcher is on ``le``, and the ``job`` label need not exist.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_otel import semconv

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_otel.semconv import Metric

#: The time range that the dashboard shows; for stats, bar gauges and tables.
RANGE = "$__range"
#: What the reader chose to smooth lines over.
WINDOW = "$window"
#: As short as the scrape interval allows; for heatmaps, whose columns stand for themselves.
STEP = "$__rate_interval"

JOB = "job"

_MEMORY = "1h"


def label(name: str) -> str:
    """Return the name that an attribute has as a label in Prometheus."""
    return name.replace(".", "_")


TOOL = label(semconv.GEN_AI_TOOL_NAME)
AGENT = label(semconv.AGENT_NAME)
ERROR = label(semconv.ERROR_TYPE)
RUNTIME = label(semconv.RUNTIME)
WORKFLOW = label(semconv.WORKFLOW_NAME)
ACTIVITY = label(semconv.ACTIVITY)


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
        return f"{metric.exposed_name}{suffix}{{{', '.join([*own, *matchers])}}}"

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
        grown = gained(series, over) if function == "increase" else f"{function}({series}[{over}])"
        grouping = f" by ({', '.join(by)})" if by else ""
        return f"sum{grouping} ({grown})"

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
        return f"histogram_quantile({at:g}, {buckets})"

    def buckets(self, metric: Metric) -> str:
        """Return the buckets of a histogram, which heatmaps draw."""
        return self.sum(metric, "_bucket", by=("le",), over=STEP)


def gained(series: str, over: str) -> str:
    """Return what counters gained in a range of time, that of newborn ones included.

    ``increase`` alone does not know the first value of a series: of a worker whose first call is over before it is
    first scraped, it shows nothing. What was not there in the hour before the range has gained all it has. With
    restarts in the range, ``increase`` sees more than what the last of them left.
    """
    increase = f"increase({series}[{over}])"
    newborn = f"last_over_time({series}[{over}]) unless last_over_time({series}[{_MEMORY}] offset {over})"
    return f"({newborn}) > {increase} or {increase}"


#: The processes that report, of the chosen jobs.
PROCESSES = f'{semconv.BUILD_INFO.exposed_name}{{{JOB}=~"$job"}}'


def or_zero(expression: str, over: str = RANGE) -> str:
    """Return 0 for a missing counter, and nothing where no process reported in the range of time."""
    return f"{expression} or 0 * max(last_over_time({PROCESSES}[{over}]))"


def share(part: str, whole: str) -> str:
    """Return a part of a whole as 0 to 1; nothing where the whole is nothing.

    Parts may be counted a scrape before the whole is, so that the quotient is clamped.
    """
    return f"clamp_max(({part}) / ({whole} > 0), 1)"


def share_or_none(part: str, whole: str) -> str:
    """Return `share`, and 0 for those of the whole that have no such part."""
    return share(f"{part} or {whole} * 0", whole)


def mean(part: str, whole: str) -> str:
    """Return a quotient that may be above 1; nothing where the divisor is nothing."""
    return f"({part}) / ({whole} > 0)"


def drawn(expression: str) -> str:
    """Leave out what is not a number: a quantile of a series that had no values in the range."""
    return f"{expression} >= 0"


def worst(expression: str) -> str:
    """Return the series of an instant with the largest first."""
    return f"sort_desc({expression})"
