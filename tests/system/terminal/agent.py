"""An agent with three tools and a workflow, which waits to be looked at: SIGUSR1 is one more search."""

from __future__ import annotations

import signal

import agent_otel


@agent_otel.tool
def search(query: str) -> str:
    """Return 20,000 bytes, cut."""
    return query * 10_000 + "\n... [output truncated]"


@agent_otel.tool(name="read_[file]\x1b[31m")
def read_file(number: int) -> str:
    """Return 300 bytes."""
    return str(number) * 300


@agent_otel.tool
def fetch_page(url: str) -> str:
    """Return 100,000 bytes."""
    return url * 50_000


with agent_otel.execution("run-1", workflow="triage"):
    search("ab")
    for _ in range(3):
        read_file(1)
    fetch_page("ab")
    for turn in range(1, 4):
        agent_otel.payload("x" * 600_000 * turn, runtime="dapr", workflow="triage", activity="ask", direction="input")
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
print("ready", flush=True)
while signal.sigwait({signal.SIGUSR1}):
    search("cd")
    print("again", flush=True)
