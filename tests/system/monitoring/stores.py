"""Three servers with the same half hour of data: the oldest and the newest Prometheus, and VictoriaMetrics."""

from __future__ import annotations

import contextlib
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.system.engines import prometheus, starting, victoria_metrics
from tests.system.engines.prometheus import BOOKWORM, NEWEST

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.system.engines.prometheus import Prometheus

VICTORIA_METRICS = "victoria-metrics"
#: The names of the servers, to parametrize by.
NAMES = (BOOKWORM, NEWEST, VICTORIA_METRICS)


@dataclass(frozen=True)
class Stored:
    """What the servers start from, made once: OpenMetrics text, and a folder with each suite's blocks made of it."""

    samples: Path
    blocks: Path


def store(samples: Path, blocks: Path) -> None:
    """Make each suite's blocks in this folder; UnavailableError when its promtool is not to be had."""
    for suite in prometheus.SUITES:
        prometheus.programs(suite).backfill(samples, blocks / suite)


@contextlib.contextmanager
def server(stored: Stored, name: str) -> Iterator[Prometheus]:
    """Start one of the servers with all data in it; UnavailableError when it is not to be had."""
    if name == VICTORIA_METRICS:
        with victoria_metrics.server(victoria_metrics.programs()) as engine:
            engine.import_openmetrics(stored.samples.read_text())
            yield engine
        return
    with starting.folder() as folder:
        shutil.copytree(stored.blocks / name, folder / "data")  # the server writes beside them
        with prometheus.server(prometheus.programs(name), data=folder / "data") as engine:
            yield engine
