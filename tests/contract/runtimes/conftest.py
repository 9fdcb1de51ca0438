"""Gives each test of the runtime contract the cases of its class, and what its children reported."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from tests.contract.once import reported
from tests.contract.runtimes.suite import Runs, RuntimeContract

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment


@pytest.fixture(scope="class")
def runs(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    environment: Callable[[str], Environment],
) -> Runs:
    """Run the children of the class, once for all workers of the test run."""
    contract: type[RuntimeContract] = request.cls
    report = reported(
        request, tmp_path_factory, lambda folder: dataclasses.asdict(contract.run_children(environment, folder))
    )
    return Runs(**report)
