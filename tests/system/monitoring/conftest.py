"""Fixtures: half an hour of the product's own metrics, and servers that answer from it."""

from __future__ import annotations

import contextlib
import shutil
from typing import TYPE_CHECKING

import pytest

from tests import interpreters
from tests.system.engines import starting
from tests.system.monitoring import backfill, stores
from tests.system.monitoring.stores import Stored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.environments import Environment
    from tests.system.engines.prometheus import Prometheus


@pytest.fixture(scope="session")
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all workers of the test run share."""
    mine = tmp_path_factory.getbasetemp()
    folder = (mine.parent if hasattr(request.config, "workerinput") else mine) / "monitoring"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def samples(shared: Path, environment: Callable[[str], Environment]) -> Path:
    """The OpenMetrics file with all samples, made once for all workers."""
    made = shared / "samples"
    with interpreters.lock(shared / "samples.lock"):
        if not made.exists():
            backfill.generate(environment("bare"), shared / "traffic").rename(made)
    return made


@pytest.fixture(scope="session")
def stored(shared: Path, samples: Path) -> Stored:
    """What the servers start from, made once for all workers."""
    made = shared / "blocks"
    with interpreters.lock(shared / "blocks.lock"):
        if not made.exists():
            unfinished = shared / "unfinished"
            shutil.rmtree(unfinished, ignore_errors=True)
            starting.obtained(stores.store, samples, unfinished)
            unfinished.rename(made)
    return Stored(samples, made)


@pytest.fixture(scope="session")
def store(stored: Stored) -> Iterator[Callable[[str], Prometheus]]:
    """Return a function from one of ``stores.NAMES`` to the server with all data, which is started at the first use."""
    started: dict[str, Prometheus] = {}
    with contextlib.ExitStack() as stack:

        def get(name: str) -> Prometheus:
            if name not in started:
                started[name] = stack.enter_context(starting.or_skip(stores.server(stored, name)))
            return started[name]

        yield get
