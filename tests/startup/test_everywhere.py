"""The import hook's own tests on every Python, and what only some of them can do."""

from importlib.metadata import version as installed_version
from pathlib import Path

import pytest

from tests.environments import Environment
from tests.startup.conftest import Maker

_LAZY = """
import agent_otel._importhook as hook

fired = []
hook.install({"framework": fired.append})
lazy import framework
print(fired)
print(framework.VALUE, fired)
"""


def test_the_import_hook(make: Maker, wheel: Path, version: str) -> None:
    pytest_of_ours = f"pytest=={installed_version('pytest')}"
    made = make(version, f"agent-otel @ {wheel.as_uri()}", pytest_of_ours, purpose="importhook")
    tests = Path(__file__).with_name("test_importhook.py")
    options = ("--noconftest", "-c", "/dev/null", "-p", "no:cacheprovider", "--import-mode=importlib", "-W", "error")
    with made.start(str(made.python), "-m", "pytest", "-q", *options, str(tests), cwd=made.folder) as child:
        out, complaints = child.communicate(timeout=60)

    assert 0 == child.returncode, out + complaints
    assert "skipped" not in out


def test_lazy_imports(installed: Environment, version: str, tmp_path: Path) -> None:
    if version != "3.15":
        pytest.skip("lazy imports came with Python 3.15")
    (tmp_path / "framework.py").write_text("VALUE = 42\n")
    run = installed.run(_LAZY, env={"PYTHONPATH": str(tmp_path)})

    assert ("[]\n42 ['framework']\n", "") == (run.stdout, run.stderr)
