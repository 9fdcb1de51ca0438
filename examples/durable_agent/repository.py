"""The git repository that the agent reads: made anew wherever it is run, every byte known beforehand."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from examples.repository_agent.tools import Repository

if TYPE_CHECKING:
    from pathlib import Path

LINES = 2000
"""Lines of each topic's file; what ``search_code`` returns of it is about 160 KB."""

_NOBODY = ("-c", "user.name=Nobody", "-c", "user.email=nobody@example.org", "-c", "commit.gpgSign=false")


def make(folder: Path, topics: int) -> Repository:
    """Commit one file for each topic, all of them different, into a new repository."""
    repository = Repository(folder)
    folder.mkdir(parents=True)
    for number in range(1, topics + 1):
        topic = topic_of(number)
        (folder / f"{topic}.py").write_text("".join(f"{line}\n" for line in lines_of(topic)))
    subprocess.run(("git", "init", "--quiet", str(folder)), check=True, env={**os.environ, "LC_ALL": "C.UTF-8"})
    repository.git("add", "--all")
    repository.git(*_NOBODY, "commit", "--quiet", "--message", "Register the handlers of every topic")
    return repository


def topic_of(number: int) -> str:
    """Return the name of a topic, which is what the agent searches for; none begins with another up to number 255."""
    return f"topic_{number:02x}"


def lines_of(topic: str) -> list[str]:
    """Return the lines of a topic's file; each one is found when the topic is searched for."""
    return [
        f"register({topic}, handler_{number:04d}, queue={number * 7919 % 10000:04d}, retries=3, lazy)"
        for number in range(1, LINES + 1)
    ]
