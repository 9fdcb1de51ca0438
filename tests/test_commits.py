"""The rule for the subjects of commits, and the checkouts in which nothing can be checked."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from tests import commits, history

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

#: Subject -> whether it is refused.
SUBJECTS = {
    "fix(dapr): count the oversized payload when a refused turn ends the workflow": True,  # 73 characters and more
    "fix(dapr): count the oversized payload of a refused turn": False,
    "refactor: remove duplication from the last fixes": False,
    "fix(autogen): don't use turn numbers as tool call ids": False,
    f"docs: {66 * 'a'}": False,
    f"docs: {67 * 'a'}": True,
    'Revert "fix(dapr): count the oversized payload"': False,
    "fix(payload): reported the smallest cap": True,
    "fix(payload): reports the smallest cap": True,
    "fix(payload): reporting the smallest cap": True,
    "The gauge of a cap is the smallest": True,
    "chore: update things": True,
    "Fix(payload): report the smallest cap": True,
    "fix (payload): report the smallest cap": True,
    "fix(payload) report the smallest cap": True,
    "fix(payload):": True,
    "fixup! fix(payload): report the smallest cap": True,
    "WIP: report the smallest cap": True,
}


def _commit(root: Path, *subjects: str) -> None:
    who = ("-c", "user.name=tests", "-c", "user.email=tests@agents.example", "-c", "core.hooksPath=/dev/null")
    for subject in subjects:
        history.git(*who, "commit", "--quiet", "--allow-empty", "-m", subject, root=root)


def test_subjects(subtests: pytest.Subtests) -> None:
    for subject, is_refused in SUBJECTS.items():
        with subtests.test(subject=subject):
            assert is_refused == bool(commits.faults(f"{subject}\n\nWhy, at any length and in any Mood.\n"))


def test_commits_after_the_base_are_checked(tmp_path: Path) -> None:
    history.git("init", "--quiet", root=tmp_path)
    _commit(tmp_path, "What came before", "Anything")
    base = history.git("rev-parse", "HEAD", root=tmp_path).strip()
    _commit(tmp_path, "feat(core): count results", "Counted results")
    (fault, mood) = commits.faults_since(base, tmp_path)
    assert "'Counted results'" in fault
    assert "imperative" in mood
    assert history.has_base(base, tmp_path)

    shallow = tmp_path / "shallow"
    subprocess.run(("git", "clone", "--quiet", "--depth", "1", tmp_path.as_uri(), str(shallow)), check=True)
    assert not history.has_base(base, shallow)
    exported = tmp_path / "exported"  # a tree without git, below another repository
    exported.mkdir()
    assert not history.has_base(base, exported)


def test_no_git(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert 0 == commits.main([])
    assert "skipped" in capsys.readouterr().out


def test_a_message_in_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    message = tmp_path / "COMMIT_EDITMSG"
    message.write_text("feat: count results\n\nThe body.\n# Please enter the commit message\n")
    assert 0 == commits.main([str(message)])
    message.write_text("fixup! feat: count results\n")  # a later rebase folds it
    assert 0 == commits.main([str(message)])
    message.write_text("Count results\n")
    assert 1 == commits.main([str(message)])
    assert "scripts/commits: 'Count results'" in capsys.readouterr().err
