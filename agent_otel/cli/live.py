"""The present state of agents, read from their ``/metrics`` endpoints or from a Prometheus: tools and workflows."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

import yaml
from prometheus_client.parser import text_string_to_metric_families

from agent_otel import semconv
from agent_otel.alerts import promql
from agent_otel.cli import prometheus
from agent_otel.cli.console import Failure, printable
from agent_otel.cli.http_client import Server, Variables, checked, told
from agent_otel.doctor import observed
from agent_otel.doctor.observed import Observed
from agent_otel.semconv.types import GAUGE, prometheus_label

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from agent_otel.cli.prometheus import Prometheus
    from agent_otel.semconv.types import Metric

#: Credentials of endpoints. An agent must not receive a Prometheus's credentials.
VARIABLES: Final = Variables("METRICS_TOKEN", "METRICS_USER", "METRICS_PASSWORD")
_TEXT: Final = {"Accept": "text/plain;version=0.0.4"}
#: Seconds over which the calls per minute of an endpoint are counted.
_RATE_SECONDS: Final = 60.0
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")
_STEP: Final = 1024
#: A payload above this share of its cap, and a workflow with fewer turns left, are in danger.
_NEAR: Final = 0.8
_FEW_TURNS: Final = 3
#: A payload above the last bucket.
_OVER: Final = ">200%"
#: What is the worse the less of it is left.
_ROOM: Final = ("room", "turns")
_TOOL: Final = prometheus_label(semconv.GEN_AI_TOOL_NAME)
_RUNTIME: Final = prometheus_label(semconv.RUNTIME)
_WORKFLOW: Final = prometheus_label(semconv.WORKFLOW_NAME)
_BY_WORKFLOW: Final = (_RUNTIME, _WORKFLOW, semconv.DIRECTION)
_IDENTITY: Final = ("runtime", "workflow", "direction")
_ROWS: Final = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
_QUERIES: Final = tuple((getattr(semconv, metric), part, labels) for metric, part, labels in _ROWS["queries"])
#: Labels that a sample with a name has, whatever has handed it on.
_LABELS: Final = {
    promql.exposed(metric, part): [label for label in labels if label in (_TOOL, promql.LE)]
    for metric, part, labels in _QUERIES
}
_GAUGES: Final = {metric.exposed_name for metric, _, _ in _QUERIES if metric.kind == GAUGE}
#: Series: the name of a sample, and its labels.
_Series = tuple[str, tuple[tuple[str, str], ...]]


# --- the rows ------------------------------------------------------------------------------------------------------


#: A tool or a direction of a workflow: its names and figures. ``largest`` is the upper bound of the bucket of a tool's
#: largest result, in bytes; ``fullest`` that of a workflow's fullest payload, where 1 is the cap. ``room`` is what this
#: payload leaves of the cap, in bytes, and ``turns`` how often its mean growth fits in.
Row = dict[str, Any]


def runbook(row: Row) -> str:
    """Return the runbook for the worst trouble of a row; empty when it has none."""
    return next((alert for name, alert in _ROWS["troubles"].items() if row.get(name)), "")


def _size(value: float | None) -> str:
    """Return a number of bytes in the largest unit below it; ``-`` for none, ``>16 MiB`` above the last bucket."""
    if not value:
        return "-" if value is None else "0 B"
    if math.isinf(value):
        return ">16 MiB"
    place = min(int(math.log(value, _STEP)), len(_UNITS) - 1)
    return f"{value / _STEP**place:.{0 if not place else 1}f} {_UNITS[place]}"


def _shown(value: float | str | None) -> str:
    return "-" if value is None else value if isinstance(value, str) else f"{value:,}"


class Column(NamedTuple):
    """A column: its head, the name of its values, a value's text, and whether a value is bad."""

    head: str
    name: str
    shown: Callable[[Any], str] = _shown
    is_bad: Callable[[Any], bool] = lambda _: False
    #: The values are upper bounds, unless the row is exact.
    is_bound: bool = False

    def text(self, row: Row) -> str:
        """Return the text of a row's cell."""
        text = self.shown(row[self.name])
        return "≤" * (self.is_bound and not row["is_exact"] and text != _OVER) + text

    def order(self, row: Row) -> tuple[float, ...] | str:
        """Return what rows are sorted by: names, else the largest first, but the least room."""
        value = row[self.name]
        if self.name in _ROOM:
            return math.inf if value is None else value, -row["fullest"]
        return value if isinstance(value, str) else (-value,)


TOOL_COLUMNS: Final = (
    Column("tool", "name"),
    Column("calls", "calls"),
    Column("/min", "per_minute", "{:.0f}".format),
    Column("bytes", "result_bytes", _size),
    Column("largest", "largest", _size, is_bound=True),
    Column("large", "large"),
    Column("cut", "truncated", is_bad=bool),
    Column("repeats", "repeats"),
    Column("partial", "incomplete_answers", is_bad=bool),
)
WORKFLOW_COLUMNS: Final = (
    Column("workflow", "workflow", lambda name: name or "-"),
    Column("runtime", "runtime"),
    Column("payload", "direction"),
    Column(
        *("full", "fullest"),
        lambda value: _OVER if math.isinf(value) else f"{value:.1%}",
        lambda value: value > _NEAR,
        is_bound=True,
    ),
    Column("room left", "room", _size),
    Column("turns left", "turns", is_bad=lambda turns: turns is not None and turns < _FEW_TURNS),
    Column("near", "near"),
    Column("over", "over", is_bad=bool),
    Column("refused", "refused", is_bad=bool),
)


def _tools(seen: Observed) -> list[Row]:
    """Return the tools, those with the most bytes first."""
    rows = []
    for tool in observed.tools(seen):
        largest = _largest(seen, semconv.RESULT_LARGEST, semconv.RESULT_SIZE, {_TOOL: tool["name"]})
        first = {"name": "", "calls": 0, "per_minute": 0.0, "result_bytes": 0, **largest}
        rows.append({**first, **tool, "name": printable(tool["name"])})
    return rows


def _workflows(seen: Observed) -> list[Row]:
    """Return the workflows, those with the fullest payload first."""
    keys = {
        tuple(labels.get(label, "") for label in _BY_WORKFLOW)
        for name in (f"{semconv.UTILIZATION.exposed_name}_bucket", semconv.PAYLOADS_REJECTED.exposed_name)
        for labels, value in seen.samples.get(name, ())
        if value
    }
    rows = [_workflow(seen, dict(zip(_BY_WORKFLOW, key, strict=True))) for key in keys]
    return sorted(rows, key=lambda row: (-row["refused"], -row["fullest"], *map(row.get, _IDENTITY)))


def _workflow(seen: Observed, own: dict[str, str]) -> Row:
    named = {_RUNTIME: own[_RUNTIME], _WORKFLOW: own[_WORKFLOW]}
    caps = [
        value
        for labels, value in seen.samples.get(semconv.PAYLOAD_CAP.exposed_name, ())
        if all(labels.get(label) == own[label] for label in (_RUNTIME, semconv.DIRECTION))
    ]
    largest = _largest(seen, semconv.PAYLOAD_LARGEST, semconv.PAYLOAD_SIZE, own)
    is_exact = largest["is_exact"] and bool(caps)
    fullest = largest["largest"] / min(caps) if is_exact else _fullest(seen, semconv.UTILIZATION, own)
    room = round(min(caps) * max(0.0, 1 - fullest)) if caps else None
    grew, times = (seen.total(semconv.PAYLOAD_GROWTH, part, **named) for part in ("_sum", "_count"))
    return {
        **{name: printable(own[label]) for name, label in zip(_IDENTITY, _BY_WORKFLOW, strict=True)},
        "fullest": fullest,
        "is_exact": is_exact,
        "room": room,
        "turns": int(room / (grew / times)) if room is not None and grew > 0 and times else None,
        "near": seen.total(semconv.PAYLOAD_NEAR_CAP, **own),
        "over": seen.total(semconv.PAYLOAD_OVER_CAP, **own),
        "refused": seen.total(semconv.PAYLOADS_REJECTED, **own),
        "few_turns_left": seen.total(semconv.FEW_TURNS_LEFT, **named),
    }


def _largest(seen: Observed, gauge: Metric, metric: Metric, own: Mapping[str, str]) -> Row:
    """Return the largest size: exact within the minutes that the gauge has one, else the upper bound of its bucket."""
    found = [value for labels, value in seen.samples.get(gauge.exposed_name, ()) if own.items() <= labels.items()]
    return {"largest": max(found) if found else _fullest(seen, metric, own), "is_exact": bool(found)}


def _fullest(seen: Observed, metric: Metric, own: Mapping[str, str]) -> float:
    """Return the upper bound of the highest bucket with observations; 0 without any."""
    sums: dict[float, float] = {}
    for labels, value in seen.samples.get(f"{metric.exposed_name}_bucket", ()):
        if own.items() <= labels.items():
            bound = float(labels[promql.LE])
            sums[bound] = sums.get(bound, 0.0) + value
    most = max(sums.values(), default=0.0)
    return min((bound for bound, count in sums.items() if count >= most), default=0.0) if most else 0.0


# --- where they are read from --------------------------------------------------------------------------------------


class Endpoint(Server):
    """A ``/metrics`` endpoint; an address without a path has it there."""

    #: Its counts are of the life of a process.
    seconds: float | None = None

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        address = url if "//" in url else f"http://{url}"
        at_root = not urlsplit(checked(address)).path.strip("/")
        super().__init__("the agent", address.rstrip("/") + "/metrics" * at_root, VARIABLES, {**_TEXT, **headers})

    def read(self) -> dict[_Series, float]:
        """Return the values of all series of this package."""
        response = self.send("GET", "")
        if response.is_error:
            raise Failure(f"{self.url} answers with {told(response)}")
        try:
            families = [*text_string_to_metric_families(response.text)]
        except ValueError:
            raise Failure(f"{self.url} does not answer in Prometheus's text format") from None
        return {
            (sample.name, _labels(sample.labels)): sample.value
            for family in families
            for sample in family.samples
            if sample.name.startswith(semconv.SCOPE)
            # A count as this package has it, with the labels to add it up by.
            and math.isfinite(sample.value)
            and sample.value >= 0
            and all(label in sample.labels for label in _LABELS.get(sample.name, ()))
        }


class Window:
    """The counts of the last ``seconds`` in a Prometheus."""

    def __init__(self, store: Prometheus, since: str) -> None:
        self._store = store
        self._since = since
        self.url, self.close = store.url, store.close
        self.seconds: float | None = prometheus.seconds_since(since)

    def read(self) -> dict[_Series, float]:
        """Return the increase of each series of the view."""
        return {
            (promql.exposed(metric, part), _labels(dict(zip(labels, own, strict=True)))): value
            for metric, part, labels in _QUERIES
            for own, value in self._store.values(prometheus.gained(metric, part, labels, self._since), labels).items()
        }


def _labels(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(labels.items()))


class Snapshot(NamedTuple):
    """The state at a moment; ``failures`` are the messages of sources that did not answer."""

    tools: list[Row]
    workflows: list[Row]
    failures: list[str]


class Live:
    """The sources of a view, and their values when it began to count."""

    def __init__(self, sources: Iterable[Endpoint | Window]) -> None:
        self.sources = tuple(sources)
        self._last: dict[str, dict[_Series, float]] = {}
        self._base: dict[str, dict[_Series, float]] = {}
        self._calls: deque[tuple[float, dict[str, int]]] = deque()
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close the connections of all sources."""
        for source in self.sources:
            source.close()

    def read(self, *, from_now: bool = False) -> Snapshot:
        """Return the state of all sources that answer.

        ``from_now`` begins to count from their last values; a window of a Prometheus stays a window.
        """
        with self._lock:
            if from_now:
                lives = (source.url for source in self.sources if source.seconds is None)
                self._base = {url: self._last.get(url, {}) for url in lives}
                self._calls.clear()
            seen, failures = Observed(), []
            for source in self.sources:
                try:
                    self._last[source.url] = source.read()
                except Failure as failure:
                    failures.append(failure.message)
                    continue
                self._add(seen, source.url)
            rows = _tools(seen)
            rates = self._per_minute({row["name"]: row["calls"] for row in rows})
            for row in rows:
                row["per_minute"] = rates.get(row["name"], 0.0)
            return Snapshot(rows, _workflows(seen), failures)

    def _add(self, seen: Observed, url: str) -> None:
        base = self._base.get(url, {})
        for series, value in self._last[url].items():
            name, labels = series
            # A smaller value means that the process restarted. Gauges have no start value.
            before = 0.0 if name in _GAUGES else base.get(series, 0.0)
            seen.samples[name].append((dict(labels), value - before if value >= before else value))

    def _per_minute(self, calls: dict[str, int]) -> dict[str, float]:
        windows = [source.seconds for source in self.sources if source.seconds]
        if windows:
            return {name: 60 * count / windows[0] for name, count in calls.items()}
        now = time.monotonic()
        self._calls.append((now, calls))
        while now - self._calls[0][0] > _RATE_SECONDS:
            self._calls.popleft()
        then, earlier = self._calls[0]
        passed = now - then
        if not passed:
            return {}
        return {name: 60 * max(0, count - earlier.get(name, 0)) / passed for name, count in calls.items()}
