"""A pytest plugin for the tests of mutants.

It extends mutmut's mutants to child processes, and leaves out the tests that fail without a mutant. Mutmut wraps each
function, and some tests count work or frames.
"""

# mypy: disable-error-code="import-not-found,unused-ignore"
# mutmut is not installed where types are checked.

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import mutmut
import pytest
from mutmut.state import state

from tests import environments

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.environments import Environment

HITS = Path(os.environ["MUTANT_HITS"])
FAILED = Path(os.environ["MUTANT_FAILED"])
_PACKAGES = Path(mutmut.__file__).parent.parent
_SHIM = FAILED.parent / "child"
_environment, _environ = environments.environment, environments.Environment.environ
# The tree of the mutants is made anew for each run. The environments of the children stay.
environments.FOLDER = FAILED.parent.parent / "mutants.children"


def _is_first_run() -> bool:
    return os.environ.get("MUTANT_UNDER_TEST") == "stats"


def environment(name: str) -> Environment:
    """Return an environment. A child in it can import mutmut, and records the functions that it calls."""
    made = _environment(name)
    if not _SHIM.exists():
        _SHIM.mkdir()
        for path in _PACKAGES.glob("mutmut*"):
            (_SHIM / path.name).symlink_to(path)
        (_SHIM / "mutant_child.py").symlink_to(Path(__file__).parent / "child.py")
    for packages in made.folder.glob("lib/python*/site-packages"):
        (packages / "mutant_child.pth").write_text(f"{_SHIM}\nimport mutant_child\n")
    return made


def environ(self: Environment, env: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables of a child, with the mutant's name."""
    names = ("MUTANT_UNDER_TEST", "MUTANT_HITS", "MUTMUT_DEPENDENCY_DEPTH")
    return {**_environ(self, env), **{name: os.environ[name] for name in names if name in os.environ}}


environments.environment = environment
environments.Environment.environ = environ  # type: ignore[method-assign]


def pytest_configure(config: pytest.Config) -> None:
    """Let the first run go to its end."""
    if _is_first_run():
        config.option.maxfail = 0
        FAILED.write_text("", encoding="utf-8")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests that failed in the first run."""
    failed = set() if _is_first_run() or not FAILED.exists() else set(FAILED.read_text(encoding="utf-8").split("\n"))
    left_out = [item for item in items if item.nodeid in failed]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item.nodeid not in failed]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Remember a test that fails in the first run."""
    if _is_first_run() and report.failed:
        with FAILED.open("a", encoding="utf-8") as file:
            file.write(f"{report.nodeid}\n")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown() -> Iterator[None]:
    """Add the functions that children called to the functions that mutmut has recorded in this process."""
    if HITS.exists():
        state()._stats.update(HITS.read_text(encoding="utf-8").split())
        HITS.unlink()
    yield


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Let the first run succeed."""
    if _is_first_run():
        session.exitstatus = pytest.ExitCode.OK
