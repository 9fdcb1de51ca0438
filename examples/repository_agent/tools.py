"""What the agent can do: read a git repository. Plain functions around git, nothing else."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

MAX_DIFF_CHARACTERS = 30_000
"""As much of a diff as :meth:`Repository.get_commit` hands out, the usual limit of command-line agents."""

_TIMEOUT_SECONDS = 120


class GitError(Exception):
    """What git said when it would not do what it was asked."""


@dataclass(frozen=True)
class Repository:
    """A git repository; its public methods are the agent's tools, and their docstrings are what the model reads."""

    path: Path

    @classmethod
    def at(cls, path: Path) -> Repository:
        """Return the repository that holds ``path``; raise GitError when there is none."""
        if not path.is_dir():
            raise GitError(f"{path} is not a directory")
        return cls(Path(cls(path).git("rev-parse", "--show-toplevel").removesuffix("\n")))

    def list_commits(self, limit: int = 20) -> str:
        """List the newest commits, newest first: hash, date, author, subject, and how much each one changed."""
        text = self.git("log", f"--max-count={limit}", "--date=short", "--shortstat", "--format=%x00%h %ad %an: %s")
        commits = (entry.split("\n", 1) for entry in text.split("\0") if entry)
        return "\n".join(f"{head} [{' '.join(rest).strip() or 'no files changed'}]" for head, *rest in commits)

    def get_commit(self, sha: str) -> str:
        """Show one commit: author, date, message and the full diff."""
        text = self.git("show", "--stat", "--patch", "--end-of-options", sha)
        if len(text) <= MAX_DIFF_CHARACTERS:
            return text
        return f"{text[:MAX_DIFF_CHARACTERS]}\n... [{len(text) - MAX_DIFF_CHARACTERS} characters truncated] ...\n"

    def list_changed_files(self, sha: str) -> str:
        """List the files that one commit changed, one path a line, each after its status letter."""
        return self.git("show", "--format=", "--name-status", "--no-renames", "--end-of-options", sha)

    def search_code(self, pattern: str) -> str:
        """Search all tracked files for a regular expression; each hit is a line `path:line:text`."""
        return self.git("grep", "-n", "-I", "-E", "-e", pattern, allowed=(0, 1))

    def get_repository_tree(self, ref: str = "HEAD") -> str:
        """List every file of the repository as of a branch, tag or commit, one path a line."""
        return self.git("ls-tree", "-r", "--name-only", "--end-of-options", ref)

    def git(self, *arguments: str, allowed: tuple[int, ...] = (0,)) -> str:
        """Run git and return what it printed; raise GitError with what it complained about."""
        command = ("git", "-C", str(self.path), "--no-pager", "-c", "core.quotePath=off", "-c", "color.ui=never")
        try:
            done = subprocess.run(
                (*command, *arguments),
                capture_output=True,
                check=False,
                encoding="utf-8",
                errors="replace",
                env={**os.environ, "LC_ALL": "C.UTF-8", "GIT_TERMINAL_PROMPT": "0"},
                stdin=subprocess.DEVNULL,
                timeout=_TIMEOUT_SECONDS,
            )
        except FileNotFoundError:
            raise GitError("git is not installed") from None
        except (subprocess.TimeoutExpired, ValueError) as error:  # ValueError: a NUL in an argument
            raise GitError(f"git {arguments[0]} failed: {error}") from None
        if done.returncode not in allowed:
            raise GitError(f"git {arguments[0]} failed: {done.stderr.strip() or f'exit {done.returncode}'}")
        return done.stdout
