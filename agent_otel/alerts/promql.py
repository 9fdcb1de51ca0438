"""Expressions over the metrics of the catalogue, with what an export adds to every selector and every ``by``."""

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
    """The name of an attribute as a label in Prometheus."""
    return name.replace(".", "_")


@dataclass(frozen=True)
class Selector:
    """A selector, and the labels that tell the series of one process apart: none are known of other programs'."""

    text: str
    own: tuple[str, ...] | None = None

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Query:
    """Writes selectors and expressions for one export."""

    thresholds: Thresholds
    options: Options

    def counter(self, metric: Metric, *matchers: str) -> Selector:
        """A selector of a counter or a gauge; matchers read ``result="error"``."""
        return Selector(self._select(metric.exposed_name, *matchers), metric.prometheus_labels)

    def part(self, metric: Metric, part: str, *matchers: str) -> Selector:
        """A selector of a part of a histogram: ``bucket``, ``sum`` or ``count``."""
        labels = metric.prometheus_labels
        own = (*labels, LE) if part == "bucket" else labels
        return Selector(self._select(f"{metric.exposed_name}_{part}", *matchers), own)

    def select(self, series: str, *matchers: str) -> Selector:
        """A selector of another program's series with these matchers and those of the export."""
        return Selector(self._select(series, *matchers))

    def _select(self, series: str, *matchers: str) -> str:
        own = self.options.matchers.rstrip(", ")
        chosen = ", ".join((*matchers, own) if own else matchers)
        return f"{series}{{{chosen}}}" if chosen else series

    def by(self, *attributes: str) -> str:
        """Labels to group by: the job, what the export adds, and these."""
        return ", ".join(dict.fromkeys((JOB, *self.options.by, *map(label, attributes))))

    def gained(self, counter: Selector, window: str) -> str:
        """What a counter, or a histogram's bucket, gained in a window, series by series.

        ``increase`` alone knows nothing of the first value of a series, and a worker's first event is often there at
        its first scrape; it sees no restart of a process that counts to the same value in each of its lives; it misses
        what happens while nothing is scraped; and it extrapolates each bucket of a histogram by itself, which puts
        observations where there were none. So: the whole value of a series whose process began in the window, or which
        is new in the window while its process is known; else the difference of two values; else ``increase``, when a
        counter was reset in the window, and for a process that has not been scraped for long.
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
        """How many events a counter saw in a window, by these labels."""
        return total(self.by(*attributes), self.gained(counter, window))

    def fullest(self, bucket: Selector, window: str, *attributes: str) -> str:
        """The upper bound of the highest bucket that anything fell into; NaN where there were no observations."""
        buckets = total(self.by(*attributes, LE), self.gained(bucket, window))
        return f"histogram_quantile(1,\n{indented(buckets)}\n)"


def total(labels: str, expression: str) -> str:
    """``sum by (labels) (expression)``, on lines of its own."""
    return f"sum by ({labels}) (\n{indented(expression)}\n)"


def at_least(events: str, number: int) -> str:
    """Where there were so many events; ``increase`` is off by fractions of one."""
    return f"{events} > 0" if number == 1 else f"round(\n{indented(events)}\n) >= {number}"


def share(part: str, whole: str) -> str:
    """A part of a whole, at most 1; nothing where the whole is 0 or the part is not known."""
    return f"clamp_max(\n{indented(part)}\n  /\n{indented(f'({whole} > 0)')},\n1)"


def indented(expression: str) -> str:
    """Each line two further in."""
    return textwrap.indent(expression, "  ")
