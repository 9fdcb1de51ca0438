"""A real VictoriaMetrics, and vmalert, from Debian's packages; nothing is installed.

It answers Prometheus's queries (`prometheus.Prometheus`) and takes samples by import or pushed, by OTLP.
"""

from __future__ import annotations

import contextlib
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests import debian
from tests.system.engines import asking, starting
from tests.system.engines.prometheus import Prometheus

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: The largest request that it takes, and so the largest piece that a text is imported in.
REQUEST_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True)
class Programs:
    """The programs of the newest suite."""

    victoria_metrics: Path
    vmalert: Path
    vmalert_tool: Path

    def check_rules(self, *files: Path) -> str:
        """Read rule files as vmalert does; return what it says, AssertionError with it when it refuses one."""
        rules = (f"-rule={file}" for file in files)
        done = subprocess.run((self.vmalert, "-dryRun", *rules), capture_output=True, text=True, check=False)
        said = done.stdout + done.stderr
        assert done.returncode == 0, said
        return said


@dataclass(frozen=True)
class VictoriaMetrics(Prometheus):
    """A server that answers."""

    @property
    def otlp_metrics(self) -> str:
        """Value of ``OTEL_EXPORTER_OTLP_METRICS_ENDPOINT``, for the protocol ``http/protobuf``."""
        return f"{self.url}/opentelemetry/v1/metrics"

    def import_openmetrics(self, text: str) -> None:
        """Import samples with timestamps in seconds, as OpenMetrics has them; they can be queried afterwards."""
        lines: list[str] = []
        waiting = 0
        for line in text.splitlines():
            if not line or line.startswith("#"):
                continue
            sample, _, seconds = line.rpartition(" ")
            lines.append(f"{sample} {round(float(seconds) * 1000)}\n")
            waiting += len(lines[-1].encode())
            if waiting > REQUEST_BYTES // 2:
                self._import(lines)
                lines, waiting = [], 0
        self._import(lines)
        self.flush()

    def flush(self) -> None:
        """Make what was imported or pushed visible to queries at once."""
        asking.get(f"{self.url}/internal/force_flush")

    def _import(self, lines: list[str]) -> None:
        asking.post(f"{self.url}/api/v1/import/prometheus", "".join(lines))


def programs() -> Programs:
    """Return the newest suite's programs, downloaded if need be; UnavailableError when that fails."""
    bin_ = debian.unpacked(starting.cache("debian"), debian.NEWEST, "victoria-metrics")["victoria-metrics"] / "usr/bin"
    return Programs(bin_ / "victoria-metrics", bin_ / "vmalert", bin_ / "vmalert-tool")


@contextlib.contextmanager
def server(programs: Programs, **flags: str) -> Iterator[VictoriaMetrics]:
    """Start one, empty, until the block is left; flags without their dash."""
    url = f"http://127.0.0.1:{starting.free_port()}"
    with starting.folder() as folder:
        chosen = {
            "httpListenAddr": url.removeprefix("http://"),
            "storageDataPath": str(folder / "data"),
            "retentionPeriod": "100y",
            "search.disableCache": "true",
            "search.latencyOffset": "0s",
            "opentelemetry.usePrometheusNaming": "true",  # else names and labels keep their dots
            **flags,
        }
        options = (f"-{name}={value}" for name, value in chosen.items())
        with starting.process(
            programs.victoria_metrics,
            *options,
            answers=lambda: asking.is_healthy(f"{url}/health"),
            env={},
            cwd=folder,
        ):
            yield VictoriaMetrics(url)
