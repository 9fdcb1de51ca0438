"""The model that needs no key: a scripted one that decides from the tool results it is sent.

It knows no repository. Every hash, file name and subject that it writes was read out of the conversation in the
request, so the same script works on any repository, and an agent that loses a result gets another answer.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import PurePosixPath
from uuid import uuid4

from agent_otel.testing.servers.openai import Json, OpenAIServer, Reply, ToolCall, chat_tool_results

_COMMIT = re.compile(
    r"^(?P<sha>[0-9a-f]{7,40}) \S+ (?P<author>.*?): (?P<subject>.*) \[(?P<stat>[^\[\]]*)\]$", re.MULTILINE
)
_CHANGED_LINES = re.compile(r"(\d+) (?:insertion|deletion)")
_CHANGED_FILE = re.compile(r"^(?P<status>[A-Z])\d*\t(?P<path>.+)$", re.MULTILINE)
_FAILED = re.compile(r"git [a-z-]+ failed: |Error( invoking tool .*)?: ")

Calls = list[ToolCall]
Script = Generator[Calls, list[str], str]
"""Yields the calls of a turn, gets their results in the same order, returns the answer."""


@dataclass(frozen=True)
class Commit:
    """A commit as ``list_commits`` shows it."""

    sha: str
    subject: str
    changed_lines: int


def scripted_model() -> OpenAIServer:
    """Return the server, to be used in a ``with`` statement."""
    return OpenAIServer(decide)


def decide(request: Json) -> Reply:
    """Replay the script against the conversation in the request, and return what it says next."""
    messages: list[Json] = request["messages"]
    asked = max((i for i, message in enumerate(messages) if message["role"] == "user"), default=-1)
    results = chat_tool_results(request)
    script = latest_changes()
    try:
        calls = next(script)
        for message in messages[asked + 1 :]:
            if message.get("tool_calls"):
                calls = script.send([results.get(call["id"], "") for call in message["tool_calls"]])
    except StopIteration as finished:
        return str(finished.value)
    return calls


def latest_changes() -> Script:
    """Answer "what changed lately?" the way an agent does, with a wrong guess and a look too many."""
    (listing,) = yield [_call("list_commits", limit=20)]
    commits = read_commits(listing)
    if not commits:
        return f"There is nothing to tell: the repository shows no commits. The tool said: {_quote(listing)}"
    newest = commits[0]

    diff, changed = yield [_call("get_commit", sha=newest.sha), _call("list_changed_files", sha=newest.sha)]

    # "main" is a guess, as models make it; when there is no such branch, the hash that was sent is sure to exist.
    (tree,) = yield [_call("get_repository_tree", ref="main")]
    if _failed(tree):
        (tree,) = yield [_call("get_repository_tree", ref=newest.sha)]

    found = ""
    for path in _worth_searching(changed, tree)[:2]:
        (found,) = yield [_call("search_code", pattern=_longest_word(path))]
        if found and not _failed(found):
            break

    largest = max(commits, key=lambda commit: commit.changed_lines)
    if largest.sha != newest.sha:
        yield [_call("get_commit", sha=largest.sha)]

    # It has the newest commit already and asks again, word for word: the repeat that costs a turn and its bytes.
    (again,) = yield [_call("get_commit", sha=newest.sha)]
    return _summary(commits, largest, read_files(changed), again or diff, len(found.splitlines()))


def read_commits(listing: str) -> list[Commit]:
    """Read what ``list_commits`` answered; newest first, empty when it failed."""
    return [
        Commit(match["sha"], match["subject"], sum(map(int, _CHANGED_LINES.findall(match["stat"]))))
        for match in _COMMIT.finditer(listing)
    ]


def read_files(changed: str) -> list[str]:
    """Read the paths out of what ``list_changed_files`` answered, without those that the commit deleted."""
    return [match["path"] for match in _CHANGED_FILE.finditer(changed) if match["status"] != "D"]


def _worth_searching(changed: str, tree: str) -> list[str]:
    """Return files to search for: changed ones first, and a merge or an empty commit has none; source before others."""
    paths = read_files(changed) or ([] if _failed(tree) else tree.splitlines())
    named = [path for path in paths if len(_longest_word(path)) > 2]  # noqa: PLR2004 - "io" is found everywhere
    return sorted(named, key=lambda path: (not path.endswith((".py", ".go", ".rs", ".ts", ".js", ".java", ".c")), path))


def _longest_word(path: str) -> str:
    words = re.findall(r"\w+", PurePosixPath(path).stem)
    return max((word for word in words if not word.startswith("__")), key=len, default="")


def _summary(commits: list[Commit], largest: Commit, files: list[str], diff: str, hits: int) -> str:
    newest = commits[0]
    lines = [f"The newest of the {len(commits)} commits I was shown is {newest.sha}: {newest.subject}."]
    if files:
        lines.append(f"Files touched: {len(files)}, first {', '.join(files[:3])}. The search found {hits} lines.")
    if diff.rstrip().endswith("characters truncated] ..."):
        lines.append("Its diff was cut before it reached me, so I have read its beginning only.")
    if largest.sha != newest.sha:
        lines.append(f"The largest is {largest.sha}, {largest.changed_lines} lines: {largest.subject}.")
    if earlier := [f"  {commit.sha} {commit.subject}" for commit in commits[1:6]]:
        lines += ["Before it came:", *earlier]
    return "\n".join(lines)


def _call(name: str, **arguments: str | int) -> ToolCall:
    return ToolCall(f"call_{uuid4().hex[:24]}", name, arguments)


def _failed(result: str) -> bool:
    return not result.strip() or _FAILED.match(result) is not None


def _quote(text: str) -> str:
    return repr(text[:200])
