"""Fixtures for the unit tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.measure import hostile

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def nothing_ran() -> Iterator[None]:
    """Fail the test if code of a hostile value ran in it."""
    with hostile.untouched():
        yield
