"""PromQL expressions over the metrics of the catalogue, with an export's matchers and grouping labels."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_otel import semconv
from agent_otel.alerts.thresholds import seconds

if TYPE_CHECKING:
    from agent_otel.alerts.options import Options
    from agent_otel.alerts.thresholds import Thresholds
    from agent_otel.semconv import Metric

JOB = "job"
LE = "le"


def label(name: str) -> str:
    """Return the name of an attribute as a Prometheus label."""
    return name.replace(".", "_")


@dataclass(frozen=True)
class Selector:
    """A selector, and the labels that distinguish the series of one process; None for series of another program."""

    text: str
    own: tuple[str, ...] | None = None

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Query:
    """Builder of the selectors and expressions of one export."""

    thresholds: Thresholds
    options: Options

    def counter(self, metric: Metric, *matchers: str) -> Selector:
        """Return a selector of a counter or a gauge; matchers have the form ``result="error"``."""
        return Selector(self._select(metric.exposed_name, *matchers), metric.prometheus_labels)

    def part(self, metric: Metric, part: str, *matchers: str) -> Selector:
        """Return a selector of a part of a histogram: ``bucket``, ``sum`` or ``count``."""
        labels = metric.prometheus_labels
        own = (*labels, LE) if part == "bucket" else labels
        return Selector(self._select(f"{metric.exposed_name}_{part}", *matchers), own)

    def select(self, series: str, *matchers: str) -> Selector:
        """Return a selector of another program's series with these matchers and those of the export."""
        return Selector(self._select(series, *matchers))

    def _select(self, series: str, *matchers: str) -> str:
        own = self.options.matchers.rstrip(", ")
        chosen = ", ".join((*matchers, own) if own else matchers)
        return f"{series}{{{chosen}}}" if chosen else series

    def by(self, *attributes: str) -> str:
        """Return the labels to group by: the job, the export's labels, and these."""
        return ", ".join(dict.fromkeys((JOB, *self.options.by, *map(label, attributes))))

    def gained(self, counter: Selector, window: str) -> str:
        """Return an expression for the increase of a counter, or of a histogram's bucket, in a window, per series.

        ``increase`` alone is wrong in four cases. It ignores the first value of a series, and a worker's first event is
        often counted before its first scrape. It misses the restart of a process that counts to the same value in each
        life. It misses events that happen while nothing is scraped. It extrapolates each bucket of a histogram
        separately, which adds observations to buckets that had none.

        The expression takes the first of these that applies:

          - the whole value of a series, when its process began in the window;
          - the whole value of a series that is new in the window, when its process was scraped before;
          - the difference of two values;
          - ``increase``, when a counter was reset in the window or its process was not scraped for long.
        """
        now = f"last_over_time({counter}[{window}])"
        before = f"last_over_time({counter}[{self.thresholds.counter_memory}] offset {window})"
        reset = f"unless resets({counter}[{window}]) > 0"
        began, unknown = "", ""
        if counter.own is not None:
            start, matching = self.counter(semconv.PROCESS_START), f"ignoring ({', '.join(counter.own)})"
            began_at, since = f"last_over_time({start}[{window}])", f"time() - {seconds(window):g}"
            known = f"last_over_time({start}[{self.thresholds.counter_memory}] offset {window})"
            began = f"  {now}\n    and {matching} {began_at} > {since}\n    {reset}\nor\n"
            unknown = f"    unless {matching} ({began_at} <= {since} unless {known})\n"
        return (
            f"{began}  {now}\n    unless {before}\n{unknown}"
            f"or\n  {now}\n    - {before} >= 0\n    {reset}\n"
            f"or\n  increase({counter}[{window}])"
        )

    def events(self, counter: Selector, window: str, *attributes: str) -> str:
        """Return an expression for the number of events of a counter in a window, by these labels."""
        return total(self.by(*attributes), self.gained(counter, window))

    def fullest(self, bucket: Selector, window: str, *attributes: str) -> str:
        """Return an expression for the upper bound of the highest bucket with observations; NaN without any."""
        buckets = total(self.by(*attributes, LE), self.gained(bucket, window))
        return f"histogram_quantile(1,\n{indented(buckets)}\n)"


def total(labels: str, expression: str) -> str:
    """Return ``sum by (labels) (expression)``, on separate lines."""
    return f"sum by ({labels}) (\n{indented(expression)}\n)"


def at_least(events: str, number: int) -> str:
    """Return a condition for at least ``number`` events; it rounds, because ``increase`` yields fractions."""
    return f"{events} > 0" if number == 1 else f"round(\n{indented(events)}\n) >= {number}"


def share(part: str, whole: str) -> str:
    """Return the ratio of a part to a whole, at most 1; no series where the whole is 0 or the part is absent."""
    return f"clamp_max(\n{indented(part)}\n  /\n{indented(f'({whole} > 0)')},\n1)"


def indented(expression: str) -> str:
    """Indent each line by two blanks."""
    return textwrap.indent(expression, "  ")
