"""The example agent over a repository with known commits; what it asked and was told is read from the wire."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_otel.testing.servers.openai import Json, chat_tool_results
from examples.repository_agent.model_server import scripted_model
from examples.repository_agent.tools import MAX_DIFF_CHARACTERS, GitError, Repository
from tests.system.examples.repositories import commit, empty, git, three_commits

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

ROOT = Path(__file__).resolve().parents[3]
AGENT = ROOT / "examples" / "repository_agent" / "agent.py"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return empty(tmp_path)


@pytest.fixture
def hashes(folder: Path) -> list[str]:
    return three_commits(folder)


def ask(environment: Callable[[str], Environment], folder: Path) -> tuple[str, list[Json]]:
    """Run the agent as a program; return what it printed and the requests that its model received."""
    with scripted_model() as model:
        arguments = ("--repository", str(folder), "--question", "What is new?")
        child = environment("langchain").run(AGENT, *arguments, env=model.environment, check=True)
        return child.stdout, model.requests


def calls_and_results(request: Json) -> list[tuple[str, Json, str]]:
    """Return the conversation's tool calls in order, each with what the model was told."""
    results = chat_tool_results(request)
    return [
        (call["function"]["name"], json.loads(call["function"]["arguments"]), results[call["id"]])
        for message in request["messages"]
        for call in message.get("tool_calls") or ()
    ]


def test_the_model_decides_from_what_it_is_sent(
    environment: Callable[[str], Environment], folder: Path, hashes: list[str]
) -> None:
    _, large, newest = hashes
    tools = Repository(folder)
    answer, requests = ask(environment, folder)

    assert calls_and_results(requests[-1]) == [
        ("list_commits", {"limit": 20}, tools.list_commits(20)),
        ("get_commit", {"sha": newest}, tools.get_commit(newest)),
        ("list_changed_files", {"sha": newest}, "M\tengine.py\n"),
        ("get_repository_tree", {"ref": "main"}, "git ls-tree failed: fatal: Not a valid object name main"),
        ("get_repository_tree", {"ref": newest}, "engine.py\nlarge.py\n"),
        ("search_code", {"pattern": "engine"}, ""),
        ("get_commit", {"sha": large}, tools.get_commit(large)),
        ("get_commit", {"sha": newest}, tools.get_commit(newest)),
    ]
    assert requests[-1]["messages"][1] == {"role": "user", "content": "What is new?"}
    assert len(requests) == 8  # two of the calls are one turn
    for subject in ("Begin: größe [draft]", "Add a large file", "Teach the engine to stop"):
        assert subject in answer


def test_one_commit(environment: Callable[[str], Environment], folder: Path) -> None:
    only = commit(folder, "The only one")  # and it changes no file
    answer, requests = ask(environment, folder)
    asked = [(name, arguments) for name, arguments, _ in calls_and_results(requests[-1])]
    assert asked == [
        ("list_commits", {"limit": 20}),
        ("get_commit", {"sha": only}),
        ("list_changed_files", {"sha": only}),
        ("get_repository_tree", {"ref": "main"}),
        ("get_repository_tree", {"ref": only}),
        ("get_commit", {"sha": only}),
    ]
    assert f"{only}: The only one" in answer


def test_no_commit(environment: Callable[[str], Environment], folder: Path) -> None:
    answer, requests = ask(environment, folder)
    assert len(requests) == 2
    assert "shows no commits" in answer
    assert "does not have any commits yet" in answer


def test_no_repository(environment: Callable[[str], Environment], tmp_path: Path) -> None:
    child = environment("langchain").run(AGENT, "--repository", str(tmp_path / "absent"))
    assert child.returncode == 1
    assert child.stderr == f"{tmp_path / 'absent'} is not a directory\n"


def test_the_agent_is_the_unchanged_one() -> None:
    for name in ("agent.py", "tools.py"):
        assert "agent_otel" not in AGENT.with_name(name).read_text(encoding="utf-8")


def test_tools(folder: Path, hashes: list[str]) -> None:
    tools = Repository.at(folder)
    assert tools.path == folder.resolve()
    assert [line.split()[0] for line in tools.list_commits(2).splitlines()] == hashes[:0:-1]
    first = tools.list_commits().splitlines()[-1]
    assert first.endswith(" Ada: Begin: größe [draft] [1 file changed, 1 insertion(+)]")
    assert tools.get_commit(hashes[0]).endswith("\n+def start() -> None: ...\n")
    assert tools.search_code("def st[aou]") == "engine.py:1:def stop() -> None: ...\n"
    assert tools.search_code("no such text") == ""


def test_a_large_diff_is_cut_and_says_by_how_much(folder: Path, hashes: list[str]) -> None:
    whole = git(folder, "show", "--stat", "--patch", hashes[1]) + "\n"
    cut = Repository(folder).get_commit(hashes[1])
    removed = len(whole) - MAX_DIFF_CHARACTERS
    assert cut == f"{whole[:MAX_DIFF_CHARACTERS]}\n... [{removed} characters truncated] ...\n"


@pytest.mark.parametrize("reference", ["nothing", "--help", "-p", "", "a\0b", "--output=written"])
@pytest.mark.parametrize("tool", [Repository.get_commit, Repository.list_changed_files, Repository.get_repository_tree])
def test_a_reference_is_never_an_option(
    folder: Path, hashes: list[str], tool: Callable[[Repository, str], str], reference: str
) -> None:
    assert hashes
    with pytest.raises(GitError, match=r"git (show|ls-tree) failed: "):
        tool(Repository(folder), reference)
    assert not (folder / "written").exists()
