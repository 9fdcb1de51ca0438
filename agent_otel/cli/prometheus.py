"""The calls of Prometheus's HTTP API that a check needs; VictoriaMetrics, vmalert and Mimir answer them, too.

https://prometheus.io/docs/prometheus/latest/querying/api/
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import httpx

from agent_otel.cli.console import Failure
from agent_otel.cli.http_client import Server, Variables

if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLES: Final = Variables("PROMETHEUS_TOKEN", "PROMETHEUS_USER", "PROMETHEUS_PASSWORD")
_API: Final = "/api/v1"


class Prometheus:
    """A client of a server with Prometheus's API. Every method raises Failure with the cause."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self._server = Server("Prometheus", url, VARIABLES, headers)
        self.url = self._server.url
        self._formats = True

    def close(self) -> None:
        """Close the connections."""
        self._server.close()

    def check(self) -> None:
        """Check that the server answers queries."""
        self._data("/query", {"query": "1"})

    def version(self) -> tuple[str, str]:
        """Return the server's kind and version; the version is empty when the server does not report it."""
        said = self._server.json("GET", f"{_API}/status/buildinfo", none_for=(httpx.codes.NOT_FOUND,))
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

    def query(self, expression: str, at: float | None = None) -> list[tuple[dict[str, str], float]]:
        """Return labels and value of each series of an instant query, at a time (epoch seconds) or now."""
        parameters = {"query": expression} if at is None else {"query": expression, "time": f"{at:.3f}"}
        found = self._data("/query", parameters)
        rows = found.get("result") if isinstance(found, dict) else None
        return [(row["metric"], float(row["value"][1])) for row in rows or []]

    def metrics(self, selector: str, seconds: float) -> list[str]:
        """Return the names of the metrics with samples in the last ``seconds``."""
        return sorted(self._data("/label/__name__/values", self._lately(selector, seconds)) or [])

    def labels(self, selector: str, seconds: float) -> set[str]:
        """Return the names of the labels of these series."""
        return set(self._data("/labels", self._lately(selector, seconds)) or [])

    def formatted(self, expression: str) -> str | None:
        """Return an expression in this server's format; None when the server cannot format."""
        if not self._formats:
            return None
        # Only Prometheus and Mimir have this endpoint; other servers refuse it with different statuses.
        answers = (httpx.codes.NOT_FOUND, httpx.codes.BAD_REQUEST, httpx.codes.METHOD_NOT_ALLOWED)
        response = self._server.send("POST", f"{_API}/format_query", accept=answers, data={"query": expression})
        if response.status_code == httpx.codes.OK:
            return str(self._server.parsed(response, f"{_API}/format_query").get("data"))
        self._formats = response.status_code == httpx.codes.BAD_REQUEST
        return None

    @staticmethod
    def _lately(selector: str, seconds: float) -> dict[str, str]:
        now = time.time()
        return {"match[]": selector, "start": f"{now - seconds:.0f}", "end": f"{now + 1:.0f}"}

    def _data(self, path: str, parameters: Mapping[str, str]) -> Any:
        said = self._server.json("GET", _API + path, params=dict(parameters))
        if "data" not in said:
            raise Failure(self._server.other_json(_API + path))
        return said["data"]
