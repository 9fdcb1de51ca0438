"""Dapr Workflows on a real daprd."""

# ruff: noqa: D101, D102 - a test's name and body say it
from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from tests.contract.runtimes import test_dapr
from tests.engines import daprd

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.contract.runtimes.suite import Json
    from tests.environments import Environment


class TestDaprd(test_dapr.TestDapr):
    @classmethod
    @contextlib.contextmanager
    def engine(cls, environment: Callable[[str], Environment]) -> Iterator[Json]:
        daprd.build()
        yield {"daprd": {}}


class TestDaprdOldest(TestDaprd):
    environment = "dapr-1.18"
