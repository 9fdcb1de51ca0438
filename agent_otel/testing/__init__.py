"""The test kit: what an agent's tools, requests and payloads did in a test, and assertions about it.

Where pytest is installed, tests have the fixture ``agent_run``; `record` does the same for other test runners.
`scripted` is a model that answers from a script, and ``python -m agent_otel.testing serve`` the same as a command.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_otel.testing.agent_run import AgentRun, record
    from agent_otel.testing.servers.providers import scripted
    from agent_otel.testing.servers.replies import call

__all__ = ["AgentRun", "call", "record", "scripted"]

_EXPORTS = {
    "AgentRun": "agent_otel.testing.agent_run",
    "call": "agent_otel.testing.servers.replies",
    "record": "agent_otel.testing.agent_run",
    "scripted": "agent_otel.testing.servers.providers",
}


def __getattr__(name: str) -> object:
    """Load a public name from its module on first use (PEP 562)."""
    from agent_otel._internal import fork  # noqa: PLC0415 - the pytest plugin imports this package in every test run

    return fork.load(__name__, _EXPORTS, name)
