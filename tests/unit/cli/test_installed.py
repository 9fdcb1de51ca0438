"""The wheel holds dashboards and rules, and the command that is installed from it finds them."""

from __future__ import annotations

import io
import re
import shutil
import sys
import zipfile
from pathlib import Path

import pytest

from tests import environments
from tests.environments import ROOT, Environment


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a wheel that is built from a copy of the checkout."""
    copy = tmp_path_factory.mktemp("checkout")
    for name in ("agent_otel", "alerts", "dashboards", "startup"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in (".gitignore", "LICENSE", "README.md", "hatch_build.py", "pyproject.toml"):
        shutil.copy(ROOT / name, copy)
    environments.uv("build", "--wheel", "--out-dir", str(copy / "dist"), str(copy))
    (built,) = (copy / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Return a new environment with the wheel and its extra."""
    return environments.make(tmp_path_factory.mktemp("installed"), Path(sys.executable), f"{wheel}[cli]")


def test_the_wheel_holds_them(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        files = archive.read("agent_otel/cli/files.zip")
    with zipfile.ZipFile(io.BytesIO(files)) as archive:
        packed = {name: archive.read(name) for name in archive.namelist()}
    assert len(files) < 300_000
    dashboards = [path for pattern in ("*.json", "*/*.yaml") for path in (ROOT / "dashboards").glob(pattern)]
    rules = [path for path in (ROOT / "alerts").rglob("*") if path.is_file()]
    assert {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in (*dashboards, *rules)} == packed


def test_the_installed_command_exports_them(installed: Environment, tmp_path: Path) -> None:
    for arguments in (("dashboards", "export", "one"), ("alerts", "export", "two")):
        with installed.start(str(installed.program("agent-otel")), *arguments, cwd=tmp_path) as child:
            out, err = child.communicate()
        assert 0 == child.returncode, out
        assert err.startswith("Warning: the alerts have no links to their runbooks" if "alerts" in arguments else "")
    exported = {path.name: path.read_bytes() for path in tmp_path.glob("one/*")}
    assert {path.name: path.read_bytes() for path in (ROOT / "dashboards").glob("*.json")} == exported
    assert 5 == len(exported)
    rules = (tmp_path / "two" / "agent-otel.rules.yaml").read_text()
    shipped = (ROOT / "alerts" / "agent-otel.rules.yaml").read_text()
    assert re.findall("alert: .*", shipped) == re.findall("alert: .*", rules) != []
