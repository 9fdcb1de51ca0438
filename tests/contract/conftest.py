"""Gives each test of the contract suite the cases of its class, and what its children reported."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from tests.contract import unwritten
from tests.contract.once import reported
from tests.contract.suite import Contract, Runs

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment


@pytest.fixture
def case_name() -> str:
    """Stand for each case of the class in turn, see `pytest_pyfunc_call`."""
    return ""


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test of a contract once for each case of its class, every time as a subtest."""
    is_given = "case_name" in getattr(getattr(pyfuncitem, "callspec", None), "params", {})
    if "case_name" not in pyfuncitem.funcargs or is_given or pyfuncitem.cls is None:
        return None
    subtests: pytest.Subtests = pyfuncitem._request.getfixturevalue("subtests")
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    for name in pyfuncitem.cls.cases():
        with subtests.test(case=name):
            pyfuncitem.obj(**{**arguments, "case_name": name})
    return True


@pytest.fixture(scope="class")
def runs(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    environment: Callable[[str], Environment],
) -> Runs:
    """Run both children of the class, once for all workers of the test run."""
    contract: type[Contract] = request.cls
    missing = unwritten.first(contract)
    if missing is not None:
        raise NotImplementedError(missing)
    report = reported(
        request,
        tmp_path_factory,
        lambda folder: dataclasses.asdict(contract.run_children(environment(contract.environment), folder)),
    )
    return Runs(**report)
