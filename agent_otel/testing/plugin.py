"""The pytest plugin: the fixture ``agent_run``, and two options. A test that asks for the fixture loads the package.

With ``--agent-otel``, or ``agent_otel = true`` in pytest's configuration, the package is activated before the tests are
collected. Without it, the first test with the fixture activates the package; a function that a test module imported by
name from a framework before stays unmeasured then, where the framework's integration wraps functions of a module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_otel.testing.agent_run import AgentRun

#: The folder of the snapshots, beside the test.
CONTRACTS = "agent_otel_contracts"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("agent-otel", "tests of agents with agent_otel")
    group.addoption("--agent-otel", action="store_true", help="Activate agent_otel before the tests are collected.")
    group.addoption("--agent-otel-update", action="store_true", help="Write the snapshots of assert_contract.")
    parser.addini("agent_otel", "Activate agent_otel before the tests are collected.", type="bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    """Activate the package where the run asks for it."""
    if config.getoption("--agent-otel") or config.getini("agent_otel"):
        from agent_otel.testing.agent_run import activate  # noqa: PLC0415 - loaded where it is asked for

        activate()


@pytest.fixture
def agent_run(request: pytest.FixtureRequest) -> Iterator[AgentRun]:
    """Record what the agents of this test do; see ``agent_otel.testing.AgentRun``."""
    from agent_otel.testing.agent_run import record  # noqa: PLC0415 - loaded where it is asked for

    folder = request.path.parent / CONTRACTS
    with record(folder, update=request.config.getoption("--agent-otel-update")) as run:
        yield run
