"""Environments for the start-up tests: the built wheel, alone, on every Python."""

import functools
import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import environments, interpreters
from tests.conftest import skip
from tests.environments import ROOT, Environment

Maker = Callable[..., Environment]

STATE = """
import sys

def state():
    env = sys.modules.get("agent_otel._internal.env")
    finders = [finder for finder in sys.meta_path if type(finder).__module__ == "agent_otel._bootstrap.import_hook"]
    return f"{env.active if env else False} {len(finders)}"
"""


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of what a package is built from, so that nobody edits it between two builds."""
    copy = tmp_path_factory.mktemp("checkout")
    for name in ("agent_otel", "alerts", "dashboards", "startup"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in (".gitignore", "LICENSE", "README.md", "hatch_build.py", "pyproject.toml"):
        shutil.copy(ROOT / name, copy)
    return copy


@pytest.fixture(scope="session")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel that is built from the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    environments.uv("build", "--wheel", "--out-dir", str(folder), str(checkout))
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def make(tmp_path_factory: pytest.TempPathFactory, interpreter: Callable[[str], Path]) -> Maker:
    """Return a function that makes an environment, once per session, from a version of Python and requirements."""

    @functools.cache
    def get(version: str, *requirements: str, purpose: str = "") -> Environment:
        folder = tmp_path_factory.mktemp(f"python{version}-{purpose}")
        try:
            return environments.make(folder, interpreter(version), *requirements)
        except interpreters.UnavailableError as error:
            skip(error)

    return get


@pytest.fixture(params=interpreters.obtainable())
def version(request: pytest.FixtureRequest) -> str:
    """Run the test once for every Python that can be had; test_everywhere.py says which cannot."""
    return str(request.param)


@pytest.fixture
def plain(make: Maker, version: str) -> Environment:
    """Return an environment with nothing in it but a start-up file that does nothing, for comparison."""
    made = make(version)
    site_packages(made).joinpath("nothing.pth").write_text("import os; os.getpid()\n")
    site_packages(made).joinpath("nothing.start").write_text("os:getpid\n")
    return made


@pytest.fixture
def installed(make: Maker, version: str, wheel: Path) -> Environment:
    """Return an environment with the wheel and none of its dependencies: what start-up may need is in it."""
    return make(version, "--no-deps", str(wheel))


@pytest.fixture
def prepared(make: Maker, version: str, wheel: Path) -> Callable[[str], Environment]:
    """Return a function that adds a module that is imported before our own start-up file runs."""

    def get(module: str) -> Environment:
        purpose = hashlib.sha256(module.encode()).hexdigest()[:8]
        made = make(version, "--no-deps", str(wheel), purpose=purpose)
        site_packages(made).joinpath("a_module.py").write_text(module)
        site_packages(made).joinpath("a_module.pth").write_text("import a_module\n")
        return made

    return get


def site_packages(environment: Environment) -> Path:
    """Return where packages are installed in an environment."""
    (folder,) = environment.folder.glob("lib/python*/site-packages")
    return folder
