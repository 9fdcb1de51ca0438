"""Fixtures for all tests."""

import gc
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import HealthCheck, settings

from tests import environments, interpreters, rows
from tests.environments import Environment
from tests.forks import Forks
from tests.interpreters import UnavailableError

# Modules of assertions, which many tests import: their failures show the values only if they are named before that.
pytest.register_assert_rewrite(
    *(f"tests.contract.{name}" for name in ("suite", "delivery", "composition")),
    *(f"tests.contract.{folder}.suite" for folder in ("remedies", "runtimes", "stores")),
    "tests.system.coexistence.beside",
    "tests.unit.measure.hostile",
)
os.environ.pop("COLUMNS", None)  # pytest-xdist gives its workers a width, which tables of the command line follow

# How long an example takes is the machine's business; hypothesis has another profile where CI is set.
settings.register_profile("machine", deadline=None, suppress_health_check=(HealthCheck.too_slow,))
if os.environ.get("CI") != "true":
    settings.load_profile("machine")


@pytest.fixture(scope="session")
def environment() -> Callable[[str], Environment]:
    """Return a function from the name of a row of ``environments.toml`` to its environment."""

    def get(name: str) -> Environment:
        try:
            return environments.environment(name)
        except UnavailableError as error:
            skip(error)

    return get


@pytest.fixture(scope="module")
def forks(environment: Callable[[str], Environment], request: pytest.FixtureRequest) -> Iterator[Forks]:
    """Return the children that run the programs of a file in forks. They end with the file."""
    made = Forks(environment, str(request.config.rootpath))
    with made.open:
        yield made


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
    """Fail for a missing environment that this machine could have; skip for another, or where SKIP_MISSING allows it.

    CI takes no such permission.
    """
    allowed = os.environ.get("SKIP_MISSING") == "true" and os.environ.get("CI") != "true"
    if error.obtainable and not allowed:
        pytest.fail(f"{error}\nSKIP_MISSING=true skips the tests of environments that cannot be made", pytrace=False)
    pytest.skip(str(error))


#: The tests that fail most often run first: the units, the contract of one carrier of each boundary, then the rest.
_FIRST = (
    *("tests/test_", "tests/unit/", "tests/contract/frameworks/test_handwritten.py"),
    *("tests/contract/model_sdks/test_openai.py", "tests/contract/runtimes/test_celery.py"),
)

#: The files that take longest follow, so that no worker is left with one of them in the end.
_LONG = (
    *("tests/system/answers/", "tests/system/bundle/", "tests/system/false_alarms/"),
    *("tests/system/processes/test_children.py", "tests/system/processes/test_ends.py"),
    *("tests/system/monitoring/test_rules.py", "tests/system/monitoring/test_end_to_end.py"),
    *("tests/contract/runtimes/test_prefect.py", "tests/contract/runtimes/test_temporal.py"),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the choice of rows within a test."""
    parser.addoption("--row", default="", help="run only the rows of `each_row` whose names contain this text")


def pytest_configure(config: pytest.Config) -> None:
    """Give the chosen rows to the loops over rows."""
    rows.only = config.getoption("--row")


def pytest_collection() -> None:
    """Disable the garbage collector: collected tests stay, and a collection takes seconds."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Enable it again, for the objects that the tests make."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)  # before items are chosen by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run tests that fail quickly first; in CI, leave out the tests of the weekly run and ``scripts/matrix``.

    The files of the rest are mixed, in the same order each time: tests that wait for a server run beside tests that
    compute.
    """
    weekly = environments.weekly()
    for item in items:
        if not weekly.isdisjoint(_environments(item)):
            item.add_marker(pytest.mark.weekly)
    if os.environ.get("CI") == "true" and environments.OTHER not in os.environ:
        items[:] = [item for item in items if not _is_weekly(item)]
    items.sort(key=_place)


def _place(item: pytest.Item) -> tuple[int, str]:
    file = item.nodeid.partition("::")[0]
    if file.startswith(_FIRST):
        return -2, ""
    return (-1, file) if file.startswith(_LONG) else (zlib.crc32(file.encode()), file)


def _environments(item: pytest.Item) -> Iterator[str]:
    """Return the environments that the class of a test names, or its parameters; and other texts among these."""
    if isinstance(item, pytest.Function):
        yield getattr(item.cls, "environment", "")
        for value in item.callspec.params.values() if hasattr(item, "callspec") else ():
            yield value if isinstance(value, str) else getattr(value, "environment", "")


def _is_weekly(item: pytest.Item) -> bool:
    """Return whether the test or its class has the mark; a class that is derived from one with it does not get it."""
    marks = list(item.own_markers)
    if isinstance(item, pytest.Function) and item.cls is not None:
        marks += vars(item.cls).get("pytestmark", ())
    return any(mark.name == "weekly" for mark in marks)
