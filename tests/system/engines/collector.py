"""A real OpenTelemetry Collector: OTLP goes in; Prometheus scrapes what its exporter has of it, or OTLP goes out.

It is built with Go from its module proxy by the collector's own builder, with the parts that the tests use and no more.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.interpreters import lock
from tests.system.engines import starting
from tests.system.engines.go_tools import go

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VERSION = "0.155.0"

_CORE = "go.opentelemetry.io/collector"
_CONTRIB = "github.com/open-telemetry/opentelemetry-collector-contrib"


@dataclass(frozen=True)
class Collector:
    """A collector that takes metrics."""

    #: Value of ``OTEL_EXPORTER_OTLP_METRICS_ENDPOINT``, for the protocol ``http/protobuf``.
    otlp_metrics: str
    #: What Prometheus scrapes, ``host:port``; the path is ``/metrics``.
    target: str


@contextlib.contextmanager
def collector(**exporter: object) -> Iterator[Collector]:
    """Start one with these settings of its Prometheus exporter; UnavailableError when it cannot be built."""
    taken, given = (f"127.0.0.1:{starting.free_port()}" for _ in range(2))
    config = {
        "receivers": {"otlp": {"protocols": {"http": {"endpoint": taken}}}},
        "exporters": {"prometheus": {"endpoint": given, **exporter}},
        "service": {"pipelines": {"metrics": {"receivers": ["otlp"], "exporters": ["prometheus"]}}},
    }
    with running(config):
        yield Collector(f"http://{taken}/v1/metrics", given)


@contextlib.contextmanager
def running(config: dict[str, Any]) -> Iterator[None]:
    """Run a collector with this configuration, without metrics of its own; UnavailableError when it cannot be built."""
    program = build()
    config["service"]["telemetry"] = {"metrics": {"level": "none"}}
    with starting.folder() as folder:
        (folder / "config.yaml").write_text(json.dumps(config))  # which is YAML, too
        with starting.process(
            program,
            f"--config={folder / 'config.yaml'}",
            answers=lambda: "Everything is ready" in (folder / "said").read_text(),
            env={"HOME": str(folder)},
            cwd=folder,
        ):
            yield


def build() -> Path:
    """Return the program, built, in some minutes, if it is not there yet; UnavailableError when it cannot be."""
    program = starting.cache("go") / f"collector-{VERSION}-sampling" / "collector"
    with lock(program.parent.with_name(f"{program.parent.name}.lock")):
        if not program.exists():
            with starting.folder() as scratch:
                _build(scratch)
                program.parent.mkdir(exist_ok=True)
                shutil.move(scratch / "made" / "collector", program)
    return program


def _build(scratch: Path) -> None:
    parts = {
        "dist": {"name": "collector", "output_path": str(scratch / "made")},
        "receivers": [{"gomod": f"{_CORE}/receiver/otlpreceiver v{VERSION}"}],
        "processors": [{"gomod": f"{_CONTRIB}/processor/tailsamplingprocessor v{VERSION}"}],
        "exporters": [
            {"gomod": f"{_CONTRIB}/exporter/prometheusexporter v{VERSION}"},
            {"gomod": f"{_CORE}/exporter/otlphttpexporter v{VERSION}"},
        ],
    }
    (scratch / "parts.yaml").write_text(json.dumps(parts))
    go(scratch, f"OpenTelemetry Collector {VERSION}", "run", f"{_CORE}/cmd/builder@v{VERSION}", "--config=parts.yaml")
