"""Counts the functions and files of the package that four flows pass; see ``scripts/flows``."""

from __future__ import annotations

import argparse
import itertools
import json
from dataclasses import dataclass

from agent_otel.testing.servers.openai import OpenAIServer
from tests import environments
from tests.system.flows.flows_program import FLOWS

PAGE = environments.ROOT / "docs" / "how-it-works.md"
PROGRAM = environments.ROOT / "tests" / "system" / "flows" / "flows_program.py"
BEGIN, END = "<!-- written by scripts/flows --write -->\n", "<!-- flows: end -->\n"
HEAD = "| flow | calls | files | changes of file |\n| --- | --- | --- | --- |\n"
TITLES = {
    "tool_result": "one tool result (LangGraph's `ToolNode`, a recorded span)",
    "model_request": "one model request (OpenAI's SDK, 8 messages, 3 results)",
    "payload": "one payload (a checkpoint of LangGraph)",
    "claim_checked_result": "one claim-checked result (the same call with 200 KB, a store in memory)",
}


@dataclass(frozen=True)
class Flow:
    """The calls of a flow, each the file and the name of a function."""

    calls: tuple[tuple[str, str], ...]

    @property
    def files(self) -> int:
        """The number of files that the flow passes."""
        return len({file for file, _ in self.calls})

    @property
    def changes(self) -> int:
        """How often a call is of another file than the call before."""
        return sum(before != after for (before, _), (after, _) in itertools.pairwise(self.calls))

    def row(self, name: str) -> str:
        """Return the line of the table."""
        return f"| {TITLES[name]} | {len(self.calls)} | {self.files} | {self.changes} |\n"


def trace(name: str) -> Flow:
    """Run a flow in an interpreter of its own."""
    env = {"AGENT_OTEL": "1", "LANGSMITH_TRACING": "false"}
    if name == "claim_checked_result":
        env["AGENT_OTEL_CLAIM_CHECK"] = "memory:"
    with OpenAIServer(lambda _: "done") as server:
        done = environments.environment("langchain").run(PROGRAM, name, server.base_url, env=env, check=True)
    return Flow(tuple((file, function) for file, function in json.loads(done.stdout.splitlines()[-1])))


def rows() -> dict[str, str]:
    """Return the table of the page, by the flow's title."""
    _, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN + HEAD)
    return {line.split(" | ")[0].removeprefix("| "): line for line in rest.partition(END)[0].splitlines()}


def main() -> None:
    """Print the figures, and write them."""
    parser = argparse.ArgumentParser(prog="scripts/flows", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the table into docs/how-it-works.md")
    parser.add_argument("--calls", action="store_true", help="print each call as well")
    options = parser.parse_args()
    table = HEAD
    for name in FLOWS:
        flow = trace(name)
        table += flow.row(name)
        if options.calls:
            print(f"{TITLES[name]}:", *(f"    {file}: {function}" for file, function in flow.calls), sep="\n")
    print(table, end="")
    if options.write:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        PAGE.write_text(before + BEGIN + table + END + rest.partition(END)[2], encoding="utf-8")


if __name__ == "__main__":
    main()
