"""A report that an agent writes: a completed ``write_file`` is sent to the model again in every later request.

A LangGraph agent writes a file in each turn. Its summariser reads the history, too. With
``AGENT_OTEL_COMPACT_ARGUMENTS=1`` no request after a call carries what the call has written. Prints a table of the
requests that a scripted server received: ``python examples/systems/004_compacted_arguments.py``.
"""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from agent_otel.testing.servers.openai import Json, OpenAIServer, Reply, ToolCall

VARIABLE = "AGENT_OTEL_COMPACT_ARGUMENTS"
LINE = "A line of the report, of one of its sections.\n"
CONTENT = LINE * 2_000
"""What each call writes, of 92 kB."""

SUMMARISE = "summarise"


class Run(NamedTuple):
    """The requests that the model received, and the reports in them."""

    requests: list[Json]

    @property
    def copies(self) -> int:
        """Copies of a report in all requests."""
        return sum(json.dumps(request).count(LINE.rstrip()) for request in self.requests) // CONTENT.count(LINE)

    @property
    def sent_bytes(self) -> int:
        """Bytes of all requests."""
        return sum(len(json.dumps(request)) for request in self.requests)

    @property
    def summaries(self) -> list[Json]:
        """The requests of the summariser, which has no tools."""
        return [request for request in self.requests if "tools" not in request]


def write(base_url: str, summarise: str) -> None:
    """Let the agent write its reports."""
    from langchain.agents import create_agent  # noqa: PLC0415 - only the child has it
    from langchain.agents.middleware import SummarizationMiddleware  # noqa: PLC0415
    from langchain_core.tools import tool  # noqa: PLC0415
    from langchain_openai import ChatOpenAI  # noqa: PLC0415

    @tool
    def write_file(path: str, content: str) -> str:
        """Write a file."""
        return f"Written: {len(content)} characters to {path}."

    model = ChatOpenAI(model="scripted", base_url=base_url, api_key="scripted")
    # The summariser may read the whole history: by default it reads the last 4,000 tokens.
    summariser = SummarizationMiddleware(
        model, trigger=("messages", 6), keep=("messages", 2), trim_tokens_to_summarize=None
    )
    agent = create_agent(model, tools=[write_file], middleware=[summariser] if summarise else [])
    agent.invoke({"messages": [{"role": "user", "content": "Write the report."}]}, {"recursion_limit": 100})


def measured(calls: int, *, summarise: bool = False, **variables: str) -> Run:
    """Run the agent in a process of its own; it makes so many calls, one in each turn."""
    written = 0

    def decide(request: Json) -> Reply:
        nonlocal written
        if "tools" not in request:
            return "The sections so far."
        if written == calls:
            return "The report is written."
        written += 1
        return [ToolCall(f"call_{written:024}", "write_file", {"path": f"{written}.md", "content": CONTENT})]

    with OpenAIServer(decide) as server:
        environ = {name: value for name, value in os.environ.items() if not name.startswith("AGENT_OTEL")}
        environ |= {"AGENT_OTEL": "1", "AGENT_OTEL_METRICS": "off", **variables}
        command = (sys.executable, __file__, server.base_url, SUMMARISE if summarise else "")
        subprocess.run(command, env=environ, check=True)
    return Run(server.requests)


def runs() -> dict[str, tuple[Run, Run]]:
    """Return the runs without and with the variable."""
    found = {}
    for name, calls, summarise in (("5", 4, False), ("20", 19, False), ("7, and two of a summariser", 6, True)):
        before, after = (measured(calls, summarise=summarise, **chosen) for chosen in ({}, {VARIABLE: "1"}))
        found[name] = before, after
    return found


def table(found: dict[str, tuple[Run, Run]]) -> str:
    """Return the table of runs."""
    rows = [
        "| requests | copies of a report | bytes | the same with the variable | bytes |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, (before, after) in found.items():
        rows.append(f"| {name} | {before.copies} | {before.sent_bytes:,} | {after.copies} | {after.sent_bytes:,} |")
    return "\n".join(rows)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        write(*sys.argv[1:])
    else:
        print(table(runs()))
