"""Both ways out in one shape, so that they can be compared: what a scraper reads and what a collector receives."""

from __future__ import annotations

import contextlib
import http.client
from typing import TYPE_CHECKING

from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prometheus_client import Metric

    from tests.servers.otlp import Point

Key = tuple[str, frozenset[tuple[str, str]]]
Series = dict[Key, float]

#: UCUM unit -> suffix, as Prometheus translates what it receives over OTLP.
_SUFFIXES = {"By": "_bytes", "s": "_seconds"}
PLAIN = "text/plain"
OPENMETRICS = "application/openmetrics-text; version=1.0.0"


def key(name: str, **labels: str) -> Key:
    """Name one series; a label without a value is no label."""
    return name, frozenset((label, value) for label, value in labels.items() if value)


def is_ours(name: str) -> bool:
    """Say whether a metric of an exposition is of this package's catalogue."""
    return name.startswith(("agent_otel_", "gen_ai_"))


def scraped(text: str) -> Series:
    """Read the samples of this package from an exposition, without the client's own ``_created``."""
    return {
        key(sample.name, **sample.labels): sample.value
        for family in _families(text)
        for sample in family.samples
        if is_ours(sample.name) and not sample.name.endswith("_created")
    }


def exemplars(text: str) -> set[tuple[str, str]]:
    """Read (sample name, trace id) of each exemplar in an OpenMetrics exposition."""
    return {
        (sample.name, sample.exemplar.labels["trace_id"])
        for family in _families(text)
        for sample in family.samples
        if sample.exemplar is not None
    }


def pushed(points: Iterable[Point]) -> Series:
    """Translate data points as Prometheus does: dots, unit suffixes, ``_total``, cumulative buckets."""
    series: Series = {}
    for point in points:
        name = point.name.replace(".", "_") + _SUFFIXES.get(point.unit, "")
        labels = {label.replace(".", "_"): str(value) for label, value in point.attributes.items()}
        if point.kind == "histogram":
            series[key(f"{name}_count", **labels)] = point.count
            series[key(f"{name}_sum", **labels)] = point.sum
            for index, bound in enumerate((*point.bounds, float("inf"))):
                below = sum(point.bucket_counts[: index + 1])
                series[key(f"{name}_bucket", **labels, le=_go(bound))] = below
        else:
            series[key(f"{name}_total" if point.monotonic else name, **labels)] = point.value
    return series


def _go(bound: float) -> str:
    """Print a bound as Go does, which is how Prometheus stores ``le``."""
    if bound == float("inf"):
        return "+Inf"
    plain = repr(bound)
    digits = plain.removesuffix(".0")
    if bound < 10**6:
        return plain
    return f"{digits[0]}.{digits[1:]}".rstrip("0").rstrip(".") + f"e+{len(digits) - 1:02}"


def _families(text: str) -> Iterable[Metric]:
    if text.endswith("# EOF\n"):
        return openmetrics.text_string_to_metric_families(text)  # type: ignore[no-untyped-call,no-any-return]
    return text_string_to_metric_families(text)


def scrape(port: int, accept: str = PLAIN) -> str:
    """Read ``/metrics`` from a port of this machine."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    with contextlib.closing(connection):
        connection.request("GET", "/metrics", headers={"Accept": accept})
        answer = connection.getresponse()
        assert answer.status == 200
        return answer.read().decode()
