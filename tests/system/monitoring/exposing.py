"""What a child exposes, step by step, as a scraper would have stored it: with a time, a job and an instance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.openmetrics.exposition import generate_latest

if TYPE_CHECKING:
    from pathlib import Path


class Target:
    """One endpoint that is scraped: its registry, and what a scraper adds to its samples."""

    def __init__(self, registry: CollectorRegistry, job: str, instance: str, started: float) -> None:
        self.registry = registry
        self.labels = f'job="{job}",instance="{instance}"'
        Gauge("process_start_time_seconds", "When the process began.", registry=registry).set(started)


class Samples:
    """Samples of all scrapes, by metric family."""

    def __init__(self) -> None:
        self._families: dict[str, list[str]] = {}

    def scrape(self, target: Target, at: float) -> None:
        """Take what a target exposes at this time (epoch seconds)."""
        self._add("# TYPE up gauge", f"up{{{target.labels}}} 1 {at}")
        family = ""
        for line in generate_latest(target.registry).decode().splitlines():  # type: ignore[no-untyped-call]
            if line.startswith("# TYPE"):
                family = line
            elif not line.startswith("#"):
                self._add(family, _stamped(line, target.labels, at))

    def write(self, file: Path) -> None:
        """Write a family's samples below the line with its type."""
        with file.open("w") as out:
            for family, lines in self._families.items():
                out.write("\n".join((family, *lines, "")))

    def _add(self, family: str, line: str) -> None:
        self._families.setdefault(family, []).append(line)


def _stamped(line: str, labels: str, at: float) -> str:
    sample, _, value = line.rpartition(" ")
    name, brace, own = sample.partition("{")
    return f"{name}{{{labels}{',' if brace else ''}{own or '}'} {value} {at}"
