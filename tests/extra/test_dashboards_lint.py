"""Grafana Labs' dashboard-linter has nothing against the dashboards, but for what ``dashboard-linter.yaml`` explains.

``scripts/extra`` runs this; ``scripts/test`` has these rules, written anew, and more.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.system.engines import starting
from tests.system.engines.go_tools import DASHBOARD_LINTER

if TYPE_CHECKING:
    from subprocess import CompletedProcess

ROOT = Path(__file__).resolve().parents[2]
BOARDS = sorted((ROOT / "dashboards").glob("*.json"))


def lint(board: Path) -> CompletedProcess[str]:
    """Lint a dashboard, each warning being an error."""
    config = Path(__file__).with_name("dashboard-linter.yaml")
    return starting.obtained(DASHBOARD_LINTER.run, "lint", "--strict", "--config", config, board)


def complaints(done: CompletedProcess[str]) -> list[str]:
    """Return what it complains of, each thing once."""
    said = (done.stdout + done.stderr).splitlines()
    return list(dict.fromkeys(line for line in said if "❌" in line or "⚠" in line))


def test_there_are_dashboards() -> None:
    assert len(BOARDS) == 5


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.stem)
def test_a_dashboard_is_as_grafana_wants_it(board: Path) -> None:
    done = lint(board)

    assert (complaints(done), done.returncode) == ([], 0), done.stderr


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.stem)
def test_the_linter_finds_what_is_wrong(board: Path, tmp_path: Path) -> None:
    changed = json.loads(board.read_text())
    changed["editable"] = True
    changed["panels"] = [panel for panel in changed["panels"] if panel["type"] != "row"]
    changed["panels"][0] |= {"description": "", "targets": [{**changed["panels"][0]["targets"][0], "expr": "sum("}]}
    (tmp_path / "board.json").write_text(json.dumps(changed))

    found = "\n".join(complaints(lint(tmp_path / "board.json")))

    assert "is editable" in found
    assert "description" in found
    assert "parse error" in found
