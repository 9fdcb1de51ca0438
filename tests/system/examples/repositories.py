"""Git repositories with known commits."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

LARGE = "".join(f"line {number} of a large file\n" for number in range(2000))
_IDENTITY = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgSign=false")


def git(folder: Path, *arguments: str) -> str:
    """Run git in a folder and return what it printed."""
    command = ("git", "-C", str(folder), *_IDENTITY, *arguments)
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def commit(folder: Path, subject: str, **files: str) -> str:
    """Write Python files, commit them, and return the abbreviated hash."""
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    git(folder, "add", "--all")
    git(folder, "commit", "--allow-empty", "-m", subject)
    return git(folder, "log", "-1", "--format=%h")


def empty(folder: Path) -> Path:
    """Make a repository whose branch is not called what the scripted model guesses."""
    git(folder, "init", "-b", "trunk")
    return folder


def three_commits(folder: Path) -> list[str]:
    """Fill a repository with three commits, the second the largest; return their hashes, oldest first."""
    return [
        commit(folder, "Begin: größe [draft]", engine="def start() -> None: ...\n"),
        commit(folder, "Add a large file", large=LARGE),
        commit(folder, "Teach the engine to stop", engine="def stop() -> None: ...\n"),
    ]
