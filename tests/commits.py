"""Check the subjects of commits: the module of ``scripts/commits``."""

from __future__ import annotations

import sys
from pathlib import Path

from commit_check.api import validate_message

from tests.history import BASE, ROOT, git, has_base

#: The settings of commit-check. Its rule for the imperative refuses fixed, fixing and fixes as the first word.
RULES = {
    "commit": {
        "allow_commit_types": ["feat", "fix", "perf", "refactor", "test", "docs", "build", "ci"],
        "subject_imperative": True,
        "subject_max_length": 72,
        "allow_wip_commits": False,
        "allow_empty_commits": False,
        "allow_fixup_commits": False,
    }
}


def faults(message: str) -> list[str]:
    """Return the faults of a commit message, each with a suggestion."""
    subject = message.partition("\n")[0]
    result = validate_message(message, config=RULES)
    return [f"{subject!r}: {each['error']}; {each['suggest']}" for each in result["checks"] if each["status"] == "fail"]


def faults_since(base: str, root: Path) -> list[str]:
    """Return the faults of all commits after the base, without merges."""
    subjects = git("log", "--no-merges", "--format=%h %s", f"{base}..HEAD", root=root).splitlines()
    return [
        f"{commit} {fault}"
        for commit, _, subject in (line.partition(" ") for line in subjects)
        for fault in faults(subject)
    ]


def main(arguments: list[str]) -> int:
    """Check the message in a file, or every commit after the base; return 1 if one has a fault."""
    if arguments:
        message = Path(arguments[0]).read_text(encoding="utf-8")
        found = [] if message.startswith(("fixup! ", "squash! ", "amend! ")) else faults(message)
    elif has_base():
        found = faults_since(BASE, ROOT)
    else:
        print("scripts/commits: skipped, this checkout has no history back to the first commit to check")
        return 0
    for fault in found:
        print(f"scripts/commits: {fault}", file=sys.stderr)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
