"""Beside other instrumentations, in every order of activation: the table of ``rows.py``.

``scripts/coexistence`` runs all of it; without that, what the rows name for CI.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.once import kept
from tests.system.coexistence import beside
from tests.system.coexistence.row import ALONE, EVERY, ORDERS
from tests.system.coexistence.rows import ROWS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.environments import Environment
    from tests.system.coexistence.row import Row


def _cases() -> list[Any]:
    """Return each row with each order that is to run."""
    keys = os.environ.get(EVERY, "").splitlines()
    return [
        pytest.param(row, order, id=f"{row.title}, {order}".replace(", ", "-").replace(" ", "_"))
        for row in ROWS
        for order in (row.orders if row.key in keys else () if keys else row.in_ci)
    ]


@pytest.mark.parametrize(("row", "order"), _cases())
def test_one_set_of_numbers_for_each_call(  # noqa: PLR0913, PLR0917 - fixtures
    row: Row,
    order: str,
    environment: Callable[[str], Environment],
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
    record_property: Callable[[str, object], None],
) -> None:
    record_property("row", row.key)
    record_property("order", order)
    place, names = environment(row.environment), ("coexistence", row.key)
    alone = kept(request, tmp_path_factory, lambda folder: beside.run(row, ALONE, place, folder), *names)
    for name, version in alone["versions"].items():
        record_property(name, version)

    beside.verify(row, alone, beside.run(row, ORDERS[order], place, tmp_path))
