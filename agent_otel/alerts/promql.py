"""PromQL over the metrics of the catalogue, for alerts and dashboards alike.

The gain of a counter has one definition, `gained`. Recording rules use it with the start times of processes. Dashboards
use it without them, because a window that a reader chooses is not a number of seconds.
"""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_otel import semconv
from agent_otel.alerts.options import seconds
from agent_otel.semconv.types import prometheus_label

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_otel.alerts.options import Options, Thresholds
    from agent_otel.semconv.types import Metric

JOB: Final = "job"
#: Label value that distinguishes our alerts from all others, for routes and silences.
COMPONENT: Final = "agent_otel"
LE: Final = "le"
#: Time before a window in which a series is searched that the window may have begun with.
MEMORY: Final = "1h"
#: Steps of a subquery over a window: none is shorter than a usual scrape interval, but in windows with few of these.
_MOST_STEPS: Final = 60
_LEAST_STEPS: Final = 4
_SCRAPE_SECONDS: Final = 15


def exposed(metric: Metric, part: str) -> str:
    """Return the name of the samples of a metric, or of a part of a histogram."""
    return f"{metric.exposed_name}_{part}" if part else metric.exposed_name


def selector(series: str, matchers: Iterable[str] = ()) -> str:
    """Return a selector; matchers have the form ``result="error"``."""
    chosen = ", ".join(matchers)
    return f"{series}{{{chosen}}}" if chosen else series


class Process(NamedTuple):
    """The start time of a counter's process: its selector, the window in seconds, the labels that it lacks."""

    start: str
    seconds: float
    own: tuple[str, ...]


def gained(counter: str, window: str, memory: str = MEMORY, process: Process | None = None) -> str:
    """Return an expression for the increase of a counter, or of a histogram's bucket, in a window, per series.

    ``increase`` alone is wrong in four cases. It ignores the first value of a series, and a worker's first event is
    often counted before its first scrape. It misses the restart of a process that counts to the same value in each
    life. It misses events that happen while nothing is scraped. It extrapolates each bucket of a histogram separately,
    which adds observations to buckets that had none.

    The expression takes the first of these that applies:

      - the whole value of a series, when its ``process`` began in the window and has exposed it: a series may also be
        from the process before, and then its value does not count;
      - the difference of the last values in the window and before it, where a new series had 0 before it. A series
        that is below its value before the window, without a reset in the window, is a new one;
      - ``increase``, when a counter was reset in the window, or for a new series of a process that has run for longer
        than the window and was not scraped before: it may have counted before the window.
    """
    now, before = f"last_over_time({counter}[{window}])", f"last_over_time({counter}[{memory}] offset {window})"
    reset = f"unless resets({counter}[{window}]) > 0"
    whole, new = "", f"0 * {now}"
    if process is not None:
        began = f"last_over_time({process.start}[{window}])"
        since, matching = f"time() - {process.seconds:g}", f"ignoring ({', '.join(process.own)})"
        most, least = (math.ceil(process.seconds / steps) for steps in (_LEAST_STEPS, _MOST_STEPS))
        step = max(min(_SCRAPE_SECONDS, most), least)
        exposed = f"last_over_time(timestamp({counter})[{window}:{step}s])"
        whole = f"  {now}\n    and {exposed} >= {matching} group_left () ({began} > {since})\n    {reset}\nor\n"
        # A process that was up without the series had 0, whatever a process before it had counted.
        before = f"({counter} offset {window} or {before} unless {matching} {process.start} offset {window})"
        scraped_before = f"last_over_time({process.start}[{memory}] offset {window})"
        new += f" unless {matching} ({began} <= {since} unless {scraped_before})"
    difference = f"  {now}\n    - ({before} <= {now} or {new})\n    {reset}"
    return f"{whole}{difference}\nor\n  increase({counter}[{window}])"


def total(labels: Iterable[str], expression: str) -> str:
    """Return ``sum by (labels) (expression)``, on separate lines; without labels one sum of all."""
    by = f" by ({', '.join(labels)})" if labels else ""
    return f"sum{by} (\n{indented(expression)}\n)"


def quantile(at: float, buckets: str) -> str:
    """Return a quantile of the buckets of a histogram; of 1, the upper bound of the bucket with the largest value."""
    return f"histogram_quantile({at:g},\n{indented(buckets)}\n)"


def share(part: str, whole: str) -> str:
    """Return the ratio of a part to a whole, at most 1; no series where the whole is 0 or the part is absent.

    The limit is necessary because a part may be counted one scrape before the whole.
    """
    return f"clamp_max(({part}) / ({whole} > 0), 1)"


def share_or_none(part: str, whole: str) -> str:
    """Return `share`, and 0 for a whole without such a part."""
    return share(f"{part} or {whole} * 0", whole)


def at_least(events: str, number: int) -> str:
    """Return a condition for at least ``number`` events; it rounds, because ``increase`` yields fractions."""
    return f"{events} > 0" if number == 1 else f"round({events}) >= {number}"


def indented(expression: str) -> str:
    """Indent each line by two blanks."""
    return textwrap.indent(expression, "  ")


class Recording(NamedTuple):
    """A series that Prometheus computes once for alerts and panels."""

    record: str
    expr: str


class Events(NamedTuple):
    """A counter, or a histogram's ``part``, to count by these labels, with these matchers."""

    metric: Metric
    by: tuple[str, ...]
    matchers: tuple[str, ...]
    #: Name in recorded series. The default is the metric's name.
    name: str = ""
    part: str = ""

    @property
    def series(self) -> str:
        """The name in recorded series."""
        return self.name or self.metric.exposed_name.removesuffix("_total")


@dataclass(frozen=True)
class Query:
    """Builder of an alert's expression; `recorded` are the series that it reads, in the order of their dependencies."""

    thresholds: Thresholds
    options: Options
    recorded: dict[str, Recording] = field(default_factory=dict)

    def series(self, metric: Metric, *matchers: str, part: str = "") -> str:
        """Return a selector of a metric, or of a histogram's ``bucket``, ``sum`` or ``count``."""
        return self.select(exposed(metric, part), *matchers)

    def select(self, series: str, *matchers: str) -> str:
        """Return a selector with these matchers and the export's."""
        own = self.options.matchers.rstrip(", ")
        return selector(series, (*matchers, own) if own else matchers)

    def labels(self, *attributes: str) -> tuple[str, ...]:
        """Return the labels to group by: the job, the export's labels, and these."""
        return tuple(dict.fromkeys((JOB, *self.options.by, *map(prometheus_label, attributes))))

    def by(self, *attributes: str) -> str:
        """Return `labels` as text."""
        return ", ".join(self.labels(*attributes))

    def gained(self, counter: str, window: str, labels: tuple[str, ...]) -> str:
        """Return `gained` of a counter. ``labels`` distinguish this package's series; other programs have none."""
        process = Process(self.series(semconv.PROCESS_START), seconds(window), labels) if labels else None
        return gained(counter, window, self.thresholds.counter_memory, process)

    def count(self, events: Events, window: str) -> str:
        """Record the number of events in a window."""
        counter = self.series(events.metric, *events.matchers, part=events.part)
        gains = self.gained(counter, window, events.metric.prometheus_labels)
        return self.record(events.series, f"increase{window}", events.by, total(self.labels(*events.by), gains))

    def share(self, events: Events, every: Events, window: str, *, or_none: bool = False) -> str:
        """Record the share of events among all in a window; ``or_none`` records 0 without such events."""
        ratio = (share_or_none if or_none else share)(self.count(events, window), self.count(every, window))
        return self.record(events.series, f"ratio{window}", events.by, ratio)

    def fullest(self, series: str, window: str, attributes: tuple[str, ...], own: tuple[str, ...] = ()) -> str:
        """Record the upper bound of a histogram's highest bucket with observations; no series without any."""
        gains = self.gained(self.select(f"{series}_bucket"), window, own and (*own, LE))
        buckets = total(self.labels(*attributes, LE), gains)
        return self.record(series, f"max{window}", attributes, f"{quantile(1, buckets)} > 0")

    def record(self, name: str, operations: str, attributes: tuple[str, ...], expr: str) -> str:
        """Record a series, and return its name: ``job_tool:agent_otel_tool_results:increase15m``."""
        # The level has a short name of each attribute: ``tool`` of ``gen_ai.tool.name``.
        levels = [[part for part in each.split(".") if part not in {"gen_ai", "name"}][-1] for each in attributes]
        record = f"{'_'.join((JOB, *levels))}:{name}:{operations}"
        self.recorded.setdefault(record, Recording(record, expr))
        return record
