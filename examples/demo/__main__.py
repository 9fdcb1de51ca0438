"""Runs the agent of the demo twice, the second time with one variable more, and prints what agent_otel has seen.

Start it with ``scripts/demo``. All figures of agent_otel come from its spans, which a receiver on loopback gets; the
number of files that a commit touches comes from git.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from agent_otel.testing.servers.openai import OpenAIServer
from examples.demo.model import decide, question
from examples.local_servers.otlp import TraceReceiver

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from examples.local_servers.otlp import Span

WIDTH = 100
TURNS = 8
VARIABLE = "AGENT_OTEL_CLAIM_CHECK"
_DIES_IN = 6  # turns until the state of the first run is at its cap, where the commits are large enough
_LEAST_CAP = 32 * 1024
_CUTS = (1_500, 40_000)
_NEWEST = 300
_MOST_LINES, _MOST_BYTES = 6_000, 250_000
_CANDIDATES = 24
_LINES = re.compile(r"(\d+) (?:insertion|deletion)")


@dataclass(frozen=True)
class Commit:
    """A commit: its hash, the bytes of its diff, and the files in it."""

    sha: str
    bytes: int
    files: int


@dataclass(frozen=True)
class Row:
    """One turn: the figures of agent_otel, and the agent's answer or error."""

    commit: Commit
    state: int
    cap: int
    turns_left: int | None
    result: int
    handed_back: int
    cut_by: str
    answer: str
    error: str
    refused: int

    @property
    def counted(self) -> int | None:
        """The files that the answer names."""
        found = re.search(r"\d+", self.answer)
        return int(found[0]) if found else None


def main() -> int:
    """Run the demo; 0 when there was something to show."""
    parser = argparse.ArgumentParser(prog="scripts/demo", description="Watch an agent die of bytes, and live.")
    parser.add_argument("repository", type=Path, nargs="?", default=Path.cwd(), help="default: this folder")
    parser.add_argument("--html", type=Path, help="write the page with the picture to this file")
    parser.add_argument("--picture", type=Path, help="write the tables to this SVG file")
    given = parser.parse_args()
    console = Console(highlight=False, width=WIDTH, record=True)
    try:
        repository = git(given.repository, "rev-parse", "--show-toplevel").removesuffix("\n")
        commits = chosen(Path(repository))
    except (subprocess.CalledProcessError, FileNotFoundError) as error:
        said = (getattr(error, "stderr", None) or str(error)).strip()
        console.print(f"[red]scripts/demo:[/red] {escape(said)}", soft_wrap=True)
        return 1
    if not commits:
        console.print("[red]scripts/demo:[/red] the repository has no commits")
        return 1
    cut, cap = limits(commits)
    runs = show(Path(repository), commits, cut, cap, console)
    if given.html:
        from examples.demo.page import page  # noqa: PLC0415 - only the page needs Plotly

        given.html.write_text(page(runs, cap, console), encoding="utf-8")
        console.print(f"\n{given.html} is written.", soft_wrap=True)
    if given.picture:
        svg = console.export_svg(title="scripts/demo", clear=False)
        given.picture.write_text(re.sub(r" *@font-face \{.*?\}\n", "", svg, flags=re.DOTALL), encoding="utf-8")
    return 0


def show(repository: Path, commits: Sequence[Commit], cut: int, cap: int, console: Console) -> list[list[Row]]:
    """Run the agent without the variable and with it; print each run when it has ended."""
    console.print(
        f"An agent answers {TURNS} questions about commits of [b]{escape(repository.name)}[/b].\n"
        f"Its middleware cuts a result at {cut:,} characters; its database takes {cap:,} bytes of state.\n"
    )
    variables: tuple[dict[str, str], ...] = ({}, {VARIABLE: "memory:"})
    with ThreadPoolExecutor() as together:
        ran = [together.submit(run, repository, commits, cut, cap, each) for each in variables]
    runs = []
    for title, future in zip(("AGENT_OTEL=1", f"AGENT_OTEL=1 {VARIABLE}=memory:"), ran, strict=True):
        spans, ended = future.result()
        rows = rows_of(spans, ended, commits)
        console.print(f"[b]{title}[/b] python agent.py")
        console.print(table(rows))
        for line in findings(rows, spans):
            console.print(f"  {line}")
        console.print()
        runs.append(rows)
    return runs


def git(folder: Path, *arguments: str) -> str:
    """Return the output of git."""
    command = ("git", "-C", str(folder), "--no-pager", *arguments)
    return subprocess.run(command, capture_output=True, check=True, encoding="utf-8", errors="replace").stdout


def chosen(repository: Path) -> list[Commit]:
    """Return the commits of the questions, the oldest first: the largest ones of the newest that are not huge.

    Raises:
        CalledProcessError: there is no repository, or no commit in it.
    """
    listing = git(repository, "log", "--no-merges", f"--max-count={_NEWEST}", "--shortstat", "--format=%x00%h")
    sizes = [
        (sum(map(int, _LINES.findall(entry))), age, entry.split()[0])
        for age, entry in enumerate(listing.split("\0")[1:])
    ]
    usual = [each for each in sizes if 0 < each[0] <= _MOST_LINES] or sizes[:1]
    found = [(_commit(repository, sha), age) for _, age, sha in sorted(usual, reverse=True)[:_CANDIDATES]]
    small = [each for each in found if each[0].bytes <= _MOST_BYTES] or found[:1]
    commits = [commit for commit, _ in sorted(small[:TURNS], key=lambda each: -each[1])]
    return [commits[turn % len(commits)] for turn in range(TURNS if commits else 0)]


def _commit(repository: Path, sha: str) -> Commit:
    diff = git(repository, "show", "--format=%h %s", "--no-renames", "--no-color", sha)
    return Commit(sha, len(diff.encode()), len(re.findall(r"^diff --git ", diff, re.MULTILINE)))


def limits(commits: Sequence[Commit]) -> tuple[int, int]:
    """Return the characters of a result for the model, and the bytes of the state, by the size of the commits."""
    ordered = sorted(commit.bytes for commit in commits)
    cut = min(max(ordered[len(ordered) // 2] // 2, _CUTS[0]), _CUTS[1])
    grown = sum(commit.bytes + min(commit.bytes, cut) for commit in commits[: _DIES_IN - 1])
    return cut, max(grown, _LEAST_CAP)


def run(
    repository: Path, commits: Sequence[Commit], cut: int, cap: int, variables: Mapping[str, str]
) -> tuple[list[Span], list[dict[str, str]]]:
    """Run the agent in a process of its own; return its spans, and its answer or error by turn."""
    ours = ("OTEL_", "AGENT_OTEL", "OPENAI_")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    with TraceReceiver() as receiver, OpenAIServer(decide) as model:
        environ |= {
            "AGENT_OTEL": "1",
            "AGENT_OTEL_METRICS": "off",
            "AGENT_OTEL_CLAIM_CHECK_BYTES": str(cut * 4 // 5),
            "AGENT_OTEL_CAPS": f"langgraph.state={cap}",
            "OTEL_TRACES_EXPORTER": "otlp",
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url,
            "NO_PROXY": "127.0.0.1,localhost",
            "no_proxy": "127.0.0.1,localhost",
            **model.environment,
            **variables,
        }
        given = ("--repository", str(repository), "--cap", str(cap), "--cut", str(cut))
        questions = "".join(f"{question(commit.sha)}\n" for commit in commits)
        # -I: a folder named examples where the demo is started must not be taken for ours.
        command = (sys.executable, "-I", "-m", "examples.demo.agent", *given)
        done = subprocess.run(command, env=environ, input=questions, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.stderr.write(done.stderr)
            raise SystemExit(done.returncode)
        # The agent's process has sent all its spans before it ended.
        return list(receiver.inbox.spans), [json.loads(line) for line in done.stdout.splitlines()]


def rows_of(spans: Sequence[Span], ended: Sequence[dict[str, str]], commits: Sequence[Commit]) -> list[Row]:
    """Return a row for each turn."""
    calls = sorted((span for span in spans if span.name == "execute_tool get_commit"), key=lambda span: span.start_ns)
    refused = [span.attributes for span in spans if span.attributes.get("workflow.payload.rejected")]
    rows = []
    for call, end, commit in zip(calls, ended, commits, strict=False):
        seen = call.attributes
        result = seen["tool.result.bytes"]
        reason = f"{seen.get('tool.result.truncation.layer')}" if seen.get("tool.result.truncated") else ""
        rows.append(
            Row(
                commit=commit,
                state=seen.get("workflow.payload.bytes", 0),
                cap=seen.get("workflow.payload.cap_bytes", 0),
                turns_left=seen.get("workflow.payload.turns_to_cap"),
                result=result,
                handed_back=seen.get("tool.result.handed_back_bytes", result),
                cut_by=reason,
                answer=end.get("answer", ""),
                error=end.get("error", ""),
                refused=max((each["workflow.payload.bytes"] for each in refused), default=0) if "error" in end else 0,
            )
        )
    return rows


def table(rows: Sequence[Row]) -> Table:
    """Return the table of a run."""
    found = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("turn", "state bytes", "of cap", "turns left", "result bytes", "model gets"):
        found.add_column(name, justify="right", no_wrap=True)
    found.add_column("answer", no_wrap=True)
    for number, row in enumerate(rows, 1):
        left = "-" if row.turns_left is None else str(row.turns_left)
        found.add_row(
            str(number),
            f"{row.state:,}",
            f"{100 * row.state / max(1, row.cap):.0f} %",
            f"[red]{left}[/red]" if row.turns_left is not None and row.turns_left < 3 else left,  # noqa: PLR2004
            f"{row.result:,}",
            f"[yellow]{row.handed_back:,}[/yellow]" if row.cut_by else f"{row.handed_back:,}",
            _answer(row),
        )
    return found


def _answer(row: Row) -> str:
    if row.error:
        return "[red]none: the state is refused[/red]"
    if row.counted == row.commit.files:
        return f"[green]{row.counted} files[/green]"
    return f"[red]{row.counted} files; git: {row.commit.files}[/red]"


def findings(rows: Sequence[Row], spans: Sequence[Span]) -> list[str]:
    """Return the sentences below a table."""
    found = []
    cut = [row for row in rows if row.cut_by == "framework"]
    if cut:
        wrong = sum(row.counted != row.commit.files for row in cut if row.answer)
        found.append(f"{len(cut)} results were cut above the tool; {wrong} answers built on a fragment are wrong.")
    stored = [row for row in rows if row.cut_by == "remedy"]
    if stored:
        found.append(f"{len(stored)} results were stored; the model got the beginning and a reference, and read on.")
    if rows and rows[-1].error:
        found.append(f"[red]{escape(rows[-1].error)}[/red]: a state of {rows[-1].refused:,} bytes.")
        found += _filling(spans)
    elif rows:
        found.append(f"[green]{len(rows)} questions are answered[/green]; the state has room for more.")
    return found


def _filling(spans: Sequence[Span]) -> list[str]:
    """Return what fills the refused state."""
    refused = [span.attributes for span in spans if span.attributes.get("workflow.payload.rejected")]
    seen: dict[str, Any] = max(refused, key=lambda each: each["workflow.payload.bytes"], default={})
    found = []
    if "workflow.payload.largest_tool" in seen:
        of_tool = seen["workflow.payload.largest_tool_bytes"]
        path = f"{seen['workflow.payload.largest_path']} with {seen['workflow.payload.largest_path_bytes']:,}"
        found.append(f"{seen['workflow.payload.largest_tool']} fills it with {of_tool:,} bytes; largest: {path}.")
    if "workflow.payload.unread_bytes" in seen:
        found.append(f"No model request held {seen['workflow.payload.unread_bytes']:,} bytes of it.")
    return found


if __name__ == "__main__":
    sys.exit(main())
