"""The commits since the rules for subjects and prose exist."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: The last commit before the rules. Its subjects and its text are not checked.
BASE = "6276bc280d3bb2ca8685173d680cf7affb2b33a1"


def git(*arguments: str, root: Path = ROOT, stdin: str | None = None) -> str:
    """Return the output of a git command; raise OSError or CalledProcessError if git fails."""
    command = ("git", "-c", "core.quotePath=false", *arguments)
    return subprocess.run(command, cwd=root, input=stdin, capture_output=True, encoding="utf-8", check=True).stdout


def has_base(base: str = BASE, root: Path = ROOT) -> bool:
    """Return whether the checkout has the base commit: an exported tree and a shallow clone do not."""
    try:
        top = git("rev-parse", "--show-toplevel", root=root).strip()
        git("merge-base", "--is-ancestor", base, "HEAD", root=root)
    except (OSError, subprocess.CalledProcessError):
        return False
    return Path(top).resolve() == root.resolve()
