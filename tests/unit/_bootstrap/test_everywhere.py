"""The import hook's own tests on every Python, and what only some of them can do."""

import subprocess
from collections.abc import Callable
from importlib.metadata import version as installed_version
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests import interpreters
from tests.environments import Environment
from tests.patience import communicate
from tests.unit._bootstrap.conftest import Maker

_MODULES = """
import importlib, importlib.util, pkgutil, agent_otel

has_cli = importlib.util.find_spec("click") is not None  # the command line is an extra
for module in pkgutil.walk_packages(agent_otel.__path__, "agent_otel."):
    # They need opentelemetry-instrumentation, PyInstaller and pytest, which load them.
    if module.name.endswith(("_bootstrap.otel_instrumentor", "_pyinstaller.hook-agent_otel", "testing.plugin")):
        continue
    if has_cli or not module.name.startswith(("agent_otel.cli.", "agent_otel.alerts", "agent_otel.doctor.observed")):
        importlib.import_module(module.name)
print(has_cli)
"""
_LAZY = """
import agent_otel._bootstrap.import_hook as hook

fired = []
hook.install({"framework": fired.append})
lazy import framework
print(fired)
print(framework.VALUE, fired)
"""


@pytest.mark.parametrize("version", interpreters.VERSIONS)
def test_there_is_an_interpreter(interpreter: Callable[[str], Path], version: str) -> None:
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    said = subprocess.run((interpreter(version), "-c", code), capture_output=True, text=True, check=True).stdout

    assert f"{version}\n" == said


@pytest.fixture
def complete(make: Maker, wheel: Path, version: str) -> Environment:
    """Return an environment with the wheel, its dependencies as new as there are, the command line's, and pytest."""
    wanted = (f"agent-otel[cli,top] @ {wheel.as_uri()}", f"pytest=={installed_version('pytest')}")
    return make(version, *wanted, purpose="complete")


def test_every_module_can_be_imported(complete: Environment) -> None:
    assert ("True\n", "", 0) == _outcome(complete.run(_MODULES, options=("-W", "error")))


def test_every_module_can_be_imported_with_the_oldest_dependencies(environment: Callable[[str], Environment]) -> None:
    assert ("False\n", "", 0) == _outcome(environment("oldest").run(_MODULES))


def test_the_import_hook(complete: Environment) -> None:
    tests = Path(__file__).with_name("test_importhook.py")
    options = ("--noconftest", "-c", "/dev/null", "-p", "no:cacheprovider", "--import-mode=importlib", "-W", "error")
    with complete.start(str(complete.python), "-m", "pytest", "-q", *options, str(tests), cwd=complete.folder) as child:
        out, complaints = communicate(child, 60)

    assert 0 == child.returncode, out + complaints
    assert "skipped" not in out


@pytest.mark.parametrize("version", ["3.15"], indirect=True)
def test_lazy_imports(installed: Environment, tmp_path: Path) -> None:
    (tmp_path / "framework.py").write_text("VALUE = 42\n")
    run = installed.run(_LAZY, env={"PYTHONPATH": str(tmp_path)})

    assert ("[]\n42 ['framework']\n", "") == (run.stdout, run.stderr)


def _outcome(run: CompletedProcess[str]) -> tuple[str, str, int]:
    return run.stdout, run.stderr, run.returncode
