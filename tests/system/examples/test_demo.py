"""``scripts/demo`` as a user starts it: what it prints and keeps is what the repository's bytes say."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from examples.repository_agent.readings import Scrape
from examples.repository_agent.tools import Repository
from tests.system.examples.repositories import empty, three_commits

DEMO = Path(__file__).resolve().parents[3] / "scripts" / "demo"
NO_SUCH_BRANCH = "git ls-tree failed: fatal: Not a valid object name main"


def start(*arguments: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    """Start the demo on a wide terminal, with none of our own settings."""
    ours = ("OPENAI_", "OTEL_", "AGENT_OTEL")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    environ |= {"COLUMNS": "160", **env}
    return subprocess.run((str(DEMO), *arguments), cwd=cwd, env=environ, capture_output=True, text=True, check=False)


@pytest.fixture(scope="session", autouse=True)
def _environment_made() -> None:
    """Make the demo's environment outside the time that a test may take."""
    made = start("--help")
    assert made.returncode == 0, made.stderr


def test_the_numbers_are_the_repositorys(tmp_path: Path) -> None:
    folder, output = tmp_path / "repository", tmp_path / "output"
    folder.mkdir()
    _, large, newest = three_commits(empty(folder))
    shown = start(str(folder), "--output", str(output), OTEL_TRACES_EXPORTER="none", AGENT_OTEL_SPANS="off")
    assert shown.returncode == 0, shown.stdout + shown.stderr

    tools = Repository(folder)
    turns = [
        [("list_commits", tools.list_commits())],
        [("get_commit", tools.get_commit(newest)), ("list_changed_files", tools.list_changed_files(newest))],
        [("get_repository_tree", NO_SUCH_BRANCH)],
        [("get_repository_tree", tools.get_repository_tree(newest))],
        [("search_code", "")],
        [("get_commit", tools.get_commit(large))],
        [("get_commit", tools.get_commit(newest))],
    ]
    returned = [(tool, size(text)) for turn in turns for tool, text in turn if text != NO_SUCH_BRANCH]
    recorded = json.loads((output / "spans.json").read_text())
    assert [span["name"] for span in recorded if span["name"].startswith("invoke_agent")] == ["invoke_agent"]
    spans: list[dict[str, Any]] = [span["attributes"] for span in recorded if "tool.name" in span["attributes"]]
    failed = [span for span in spans if "error.type" in span]
    assert [(span["tool.name"], span.get("tool.result.bytes")) for span in failed] == [("get_repository_tree", None)]
    succeeded = [span for span in spans if span not in failed]
    assert sorted((s["tool.name"], s["tool.result.bytes"]) for s in succeeded) == sorted(returned)
    cut = [span for span in spans if span.get("tool.result.truncated")]
    assert [span["tool.result.bytes"] for span in cut] == [size(tools.get_commit(large))]
    assert [span["tool.result.truncation.reason"] for span in cut] == ["marker"]

    metrics = Scrape((output / "metrics.txt").read_text())
    assert {tool: count for tool, count in metrics.repeats.items() if count} == {"get_commit": 1}
    sent = [sum(size(text) for _, text in turn) for turn in turns]
    assert metrics.request_bytes["tool_results"] == sum(sum(sent[:turn]) for turn in range(len(turns) + 1))

    p50, largest = f"{size(tools.get_commit(newest)):,}", f"{size(tools.get_commit(large)):,}"
    rows = [line.replace("│", " ").split() for line in shown.stdout.splitlines()]
    assert ["get_commit", "3", p50, largest, largest, "1", "(marker)", "1", "0"] in rows
    assert "Teach the engine to stop" in shown.stdout
    assert sorted(path.name for path in folder.iterdir()) == [".git", "engine.py", "large.py"]


def size(text: str) -> int:
    return len(text.encode())


def test_a_folder_without_a_repository_is_an_error(tmp_path: Path) -> None:
    shown = start(cwd=tmp_path)
    assert shown.returncode == 1
    assert "scripts/demo: git rev-parse failed: fatal: not a git repository" in shown.stdout
