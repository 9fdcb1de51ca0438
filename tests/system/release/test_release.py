"""``scripts/release`` on a clone of this repository: what it builds, and what it refuses."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.environments import ROOT

_ADDRESS = "https://git.example/agents/agent-otel"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Return a clone of the last commit."""
    folder = tmp_path / "clone"
    subprocess.run(("git", "clone", "-q", "--depth", "1", ROOT.as_uri(), str(folder)), check=True)
    return folder


def _release(clone: Path, version: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    command = (sys.executable, str(clone / "scripts" / "release"), version, "--repository", _ADDRESS)
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False)


def _commit(clone: Path) -> None:
    who = ("-c", "user.name=tests", "-c", "user.email=tests@agents.example")
    subprocess.run(("git", *who, "commit", "-qam", "Release"), cwd=clone, check=True)


def test_what_it_builds(clone: Path) -> None:
    changes = clone / "CHANGELOG.md"
    changes.write_text(changes.read_text().replace("## 0.1.0 (unreleased)", "## 0.1.0 (2026-11-22)"))
    _commit(clone)
    ran = _release(clone, "0.1.0")
    assert (0, "") == (ran.returncode, ran.stderr)
    assert "git tag -a v0.1.0 -m 0.1.0 && git push origin v0.1.0" in ran.stdout
    with zipfile.ZipFile(clone / "dist" / "agent_otel-0.1.0-py3-none-any.whl") as wheel:
        metadata = wheel.read("agent_otel-0.1.0.dist-info/METADATA").decode()
    assert f"Project-URL: Changelog, {_ADDRESS}/blob/v0.1.0/CHANGELOG.md\n" in metadata
    assert f"({_ADDRESS}/blob/v0.1.0/docs/settings.md)" in metadata
    assert "(docs/" not in metadata
    with tarfile.open(clone / "dist" / "agent_otel-0.1.0.tar.gz") as sdist:
        names = sdist.getnames()
    assert {"agent_otel-0.1.0/docs/settings.md", "agent_otel-0.1.0/tests/system/release/test_release.py"} <= {*names}


def test_what_it_refuses(clone: Path) -> None:
    changes = clone / "CHANGELOG.md"
    changes.write_text(changes.read_text().replace("## 0.1.0 (", "## 0.1 ("))
    _commit(clone)
    assert (
        "scripts/release: agent_otel/_internal/__init__.py is not 0.2.0\n"
        "scripts/release: CHANGELOG.md has no heading `## 0.2.0 (YYYY-MM-DD)`\n"
    ) == _release(clone, "0.2.0").stderr
