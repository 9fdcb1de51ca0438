"""Gives each test of the contract suite the cases of its class, and what its children reported."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from tests.contract.once import reported

pytest.register_assert_rewrite("tests.contract.suite", "tests.contract.delivery", "tests.contract.composition")

from tests.contract.suite import Contract, Runs  # noqa: E402 - after asking for readable assertions

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize by the cases of the class."""
    if "case_name" in metafunc.fixturenames and metafunc.cls is not None and issubclass(metafunc.cls, Contract):
        metafunc.parametrize("case_name", metafunc.cls.cases())


@pytest.fixture(scope="class")
def runs(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    environment: Callable[[str], Environment],
) -> Runs:
    """Run both children of the class, once for all workers of the test run."""
    contract: type[Contract] = request.cls
    report = reported(
        request,
        tmp_path_factory,
        lambda folder: dataclasses.asdict(contract.run_children(environment(contract.environment), folder)),
    )
    return Runs(**report)
