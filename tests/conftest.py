"""Fixtures for all tests."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from tests import environments, interpreters
from tests.environments import Environment
from tests.interpreters import UnavailableError


@pytest.fixture(scope="session")
def environment() -> Callable[[str], Environment]:
    """Return a function from the name of a row of ``environments.toml`` to its environment."""

    def get(name: str) -> Environment:
        try:
            return environments.environment(name)
        except UnavailableError as error:
            skip(error)

    return get


@pytest.fixture(scope="session")
def interpreter() -> Callable[[str], Path]:
    """Return a function from a version of Python to an interpreter."""

    def get(version: str) -> Path:
        try:
            return interpreters.find(version)
        except UnavailableError as error:
            skip(error)

    return get


def skip(error: UnavailableError) -> NoReturn:
    """Skip for a missing environment; in CI that is a failure, if the machine could have had it."""
    if error.obtainable and os.environ.get("CI") == "true":
        pytest.fail(str(error), pytrace=False)
    pytest.skip(str(error))
