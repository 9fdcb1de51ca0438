"""The calls of Prometheus's HTTP API that commands need, and their options.

VictoriaMetrics, vmalert and Mimir answer them, too: https://prometheus.io/docs/prometheus/latest/querying/api/
"""

from __future__ import annotations

import math
import re
import time
from typing import TYPE_CHECKING, Any, Final

import click
import httpx

from agent_otel.alerts import promql
from agent_otel.alerts.options import seconds
from agent_otel.cli.console import Failure
from agent_otel.cli.http_client import Server, Variables
from agent_otel.semconv.types import GAUGE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agent_otel.semconv.types import Metric

url_option: Final = click.option(
    "--prometheus",
    "--url",
    "url",
    required=True,
    metavar="URL",
    help="Where Prometheus, VictoriaMetrics or Mimir is queried.",
)
header_option: Final = click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="NAME:VALUE",
    help="A header to send, such as Mimir's X-Scope-OrgID: team. May be given again.",
)

VARIABLES: Final = Variables("PROMETHEUS_TOKEN", "PROMETHEUS_USER", "PROMETHEUS_PASSWORD")
_API: Final = "/api/v1"
#: Paths of the names of metrics and of labels.
METRIC_NAMES: Final = "/label/__name__/values"
LABEL_NAMES: Final = "/labels"


def pairs(texts: tuple[str, ...], what: str, separator: str = "=") -> dict[str, str]:
    """Return name -> value of texts such as ``name=value``."""
    found = {}
    for text in texts:
        name, separates, value = text.partition(separator)
        if not (name.strip() and separates):
            raise Failure(f"{what}: {text!r} is not name{separator}value")
        found[name.strip()] = value.strip()
    return found


def sent(texts: tuple[str, ...]) -> dict[str, str]:
    """Return the headers of ``--header``."""
    found = pairs(texts, "--header", ":")
    for name, value in found.items():
        if not (name + value).isascii() or not (name + value).isprintable() or " " in name:
            raise Failure(f"--header: {name!r} cannot be sent")
    return found


def seconds_of(duration: str) -> float:
    """Return the seconds of a Prometheus duration such as ``1h30m``; ValueError for anything else."""
    if not re.fullmatch(r"(?:\d+(?:ms|[smhdwy]))+|0", duration):
        raise ValueError(f"{duration!r} is no duration such as 15m or 1h30m")
    return seconds(duration)


def seconds_since(text: str) -> float:
    """Return the seconds of ``--since``."""
    try:
        found = seconds_of(text)
    except ValueError as error:
        raise Failure(f"--since: {error}") from None
    if not found:
        raise Failure(f"--since: {text!r} is no time at all")
    return found


def gained(metric: Metric, part: str, labels: Iterable[str], window: str, matchers: Iterable[str] = ()) -> str:
    """Return an expression for the increase of a metric or a histogram's part in a window; of a gauge, the largest."""
    series = promql.selector(promql.exposed(metric, part), matchers)
    if metric.kind == GAUGE:
        return f"max by ({', '.join(labels)}) (max_over_time({series}[{window}]))"
    return promql.total(labels, promql.gained(series, window))


class Prometheus(Server):
    """A client of a server with Prometheus's API. Every method raises Failure with the cause."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        super().__init__("Prometheus", url, VARIABLES, headers)
        self._formats = True

    def check(self) -> None:
        """Check that the server answers queries."""
        self._data("/query", {"query": "1"})

    def version(self) -> tuple[str, str]:
        """Return the server's kind and version; the version is empty when the server does not report it."""
        said = self.json("GET", f"{_API}/status/buildinfo", none_for=(httpx.codes.NOT_FOUND,))
        build = (said or {}).get("data")
        if not isinstance(build, dict):
            return "a server with Prometheus's API", ""
        version = str(build.get("version") or "")
        if build.get("application"):
            return str(build["application"]), version
        # VictoriaMetrics reports only the version of the Prometheus that it is compatible with.
        return ("Prometheus", version) if build.get("revision") or build.get("goVersion") else ("VictoriaMetrics", "")

    def rules(self) -> list[dict[str, Any]]:
        """Return every rule, with its pending and firing alerts."""
        found = self._data("/rules", {})
        groups = found.get("groups") if isinstance(found, dict) else None
        return [rule for group in groups or [] for rule in group.get("rules") or []]

    def values(self, expression: str, labels: Iterable[str], at: float | None = None) -> dict[tuple[str, ...], float]:
        """Return an instant query's finite values by the values of labels, at a time (epoch seconds) or now."""
        parameters = {"query": expression} if at is None else {"query": expression, "time": f"{at:.3f}"}
        found = self._data("/query", parameters)
        rows = (found.get("result") if isinstance(found, dict) else None) or []
        keys = [tuple(row["metric"].get(label, "") for label in labels) for row in rows]
        values = zip(keys, (float(row["value"][1]) for row in rows), strict=True)
        return {key: value for key, value in values if math.isfinite(value)}

    def names(self, path: str, selector: str, seconds: float) -> set[str]:
        """Return the names at a path, of the series of a selector with samples in the last ``seconds``."""
        now = time.time()
        lately = {"match[]": selector, "start": f"{now - seconds:.0f}", "end": f"{now + 1:.0f}"}
        return set(self._data(path, lately) or [])

    def formatted(self, expression: str) -> str | None:
        """Return an expression in this server's format; None when the server cannot format."""
        if not self._formats:
            return None
        # Only Prometheus and Mimir have this endpoint; other servers refuse it with different statuses.
        answers = (httpx.codes.NOT_FOUND, httpx.codes.BAD_REQUEST, httpx.codes.METHOD_NOT_ALLOWED)
        response = self.send("POST", f"{_API}/format_query", accept=answers, data={"query": expression})
        if response.status_code == httpx.codes.OK:
            return str(self.parsed(response, f"{_API}/format_query").get("data"))
        self._formats = response.status_code == httpx.codes.BAD_REQUEST
        return None

    def _data(self, path: str, parameters: Mapping[str, str]) -> Any:
        said = self.json("GET", _API + path, params=dict(parameters))
        if "data" not in said:
            raise Failure(self.other_json(_API + path))
        return said["data"]
