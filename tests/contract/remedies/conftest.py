"""Gives each test of the remedies what the child of its class and its carrier reported."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.contract.once import reported
from tests.contract.remedies.suite import CARRIERS, OLDER, Carrier, Remedies, Seen, dictionary

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment


_NAMES = [pytest.param(name, marks=pytest.mark.weekly) if name in OLDER else name for name in CARRIERS]


def pytest_itemcollected(item: pytest.Item) -> None:
    """Leave the carriers that a class does not name for CI to the weekly run."""
    named = getattr(item.cls, "in_ci", ()) if isinstance(item, pytest.Function) else ()
    if named and item.callspec.params["carrier_name"] not in named:  # type: ignore[attr-defined]
        item.add_marker(pytest.mark.weekly)


@pytest.fixture(scope="class", params=_NAMES)
def carrier_name(request: pytest.FixtureRequest) -> str:
    """Each carrier in turn."""
    return str(request.param)


@pytest.fixture(scope="class")
def carrier(carrier_name: str) -> Carrier:
    """The carrier itself."""
    return CARRIERS[carrier_name]


@pytest.fixture(scope="class")
def seen(
    request: pytest.FixtureRequest,
    carrier_name: str,
    carrier: Carrier,
    tmp_path_factory: pytest.TempPathFactory,
    environment: Callable[[str], Environment],
) -> Seen:
    """Run the child of the class for this carrier, once for all workers of the test run."""
    remedies: type[Remedies] = request.cls
    report = reported(
        request,
        tmp_path_factory,
        lambda folder: dictionary(remedies.run(carrier, environment(carrier.environment), folder)),
        carrier_name,
    )
    return Seen(**report)
