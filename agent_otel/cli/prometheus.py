"""The part of Prometheus's HTTP API that a check asks; VictoriaMetrics, vmalert and Mimir answer it, too.

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
    """A server that speaks Prometheus's API. Every method raises Failure with what went wrong."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self._server = Server("Prometheus", url, VARIABLES, headers)
        self.url = self._server.url
        self._formats = True

    def close(self) -> None:
        """Close the connections."""
        self._server.close()

    def check(self) -> None:
        """See that it answers queries."""
        self._data("/query", {"query": "1"})

    def version(self) -> tuple[str, str]:
        """Return what it is and its version; the version is empty when it does not say."""
        said = self._server.json("GET", f"{_API}/status/buildinfo", none_for=(httpx.codes.NOT_FOUND,))
        build = (said or {}).get("data")
        if not isinstance(build, dict):
            return "a server with Prometheus's API", ""
        version = str(build.get("version") or "")
        if build.get("application"):
            return str(build["application"]), version
        # VictoriaMetrics gives the version of the Prometheus that it answers like, and nothing else.
        return ("Prometheus", version) if build.get("revision") or build.get("goVersion") else ("VictoriaMetrics", "")

    def rules(self) -> list[dict[str, Any]]:
        """Return every rule, with the alerts that are pending or firing of it."""
        found = self._data("/rules", {})
        groups = found.get("groups") if isinstance(found, dict) else None
        return [rule for group in groups or [] for rule in group.get("rules") or []]

    def metrics(self, selector: str, seconds: float) -> list[str]:
        """Return the names of the metrics with samples in the last so many seconds."""
        return sorted(self._data("/label/__name__/values", self._lately(selector, seconds)) or [])

    def labels(self, selector: str, seconds: float) -> set[str]:
        """Return the names of the labels of these series."""
        return set(self._data("/labels", self._lately(selector, seconds)) or [])

    def formatted(self, expression: str) -> str | None:
        """Return an expression as this server writes it; None where it cannot do that."""
        if not self._formats:
            return None
        # Every server but Prometheus and Mimir lacks it, each in its own way.
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
