"""``agent-otel top`` in a real terminal, over the endpoint of a real agent, and over a real Prometheus."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_otel.cli.top import shortened
from tests.system.engines import prometheus, starting
from tests.system.terminal.screen import Terminal, terminal
from tests.unit.cli import watched
from tests.unit.cli.running import run

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator

    from tests.environments import Environment

PROGRAM = str(Path(sys.executable).parent / "agent-otel")
AGENT = Path(__file__).parent / "agent.py"
#: A name with brackets and a control character, as it is shown.
NAME = "read_[file]\N{REPLACEMENT CHARACTER}[31m"


class Agent:
    """An agent that is watched, and searches once more when it is to."""

    def __init__(self, child: subprocess.Popen[str], address: str) -> None:
        self._child = child
        self.address = address

    def search(self) -> None:
        """Let it search once more."""
        assert self._child.stdout
        self._child.send_signal(signal.SIGUSR1)
        assert "again\n" == self._child.stdout.readline()


@pytest.fixture
def agent(environment: Callable[[str], Environment]) -> Iterator[Agent]:
    """Return an agent that has called its tools."""
    bare, port = environment("bare"), starting.free_port()
    env = {"AGENT_OTEL": "1", "AGENT_OTEL_PROMETHEUS_PORT": str(port)}
    with bare.start(str(bare.python), str(AGENT), env=env) as child:
        assert child.stdout
        assert "ready\n" == child.stdout.readline()
        yield Agent(child, f"localhost:{port}")


def _lines(screen: Terminal, *names: str) -> list[list[str]]:
    """Return the words of the lines that begin with one of these names, from above."""
    lines = [line.split() for line in screen.text.splitlines()]
    return [line for line in lines if line and line[0].startswith(names)]


def _keep_filter(screen: Terminal) -> None:
    """Press Enter in the field of the filter, and wait until the table has the keys again.

    The footer is drawn after the rows. While it still names the table's key, the field may have the keys already, and a
    second Enter would be the field's too.
    """
    screen.lacks("Runbook")
    screen.press("\r")
    screen.shows("Runbook")


def test_tools_by_bytes_and_workflows_by_room(agent: Agent) -> None:
    with terminal(PROGRAM, "top", agent.address, "--interval", "1") as screen:
        screen.shows("fetch_page", "triage", "Quit")
        tools = [
            ["fetch_page", "1", "0", "97.7", "KiB", "97.7", "KiB", "1", "0", "0", "0"],
            ["search", "1", "0", "19.6", "KiB", "19.6", "KiB", "1", "1", "0", "0"],
            [NAME, "3", "0", "900", "B", "300", "B", "0", "0", "2", "0"],
        ]
        screen.becomes(tools, lambda: _lines(screen, "fetch", "search", "read"))
        # 1.8 MB of 2 MiB; it grew by 600,000 bytes a turn.
        workflow = ["triage", "dapr", "input", "85.8%", "290.2", "KiB", "0", "1", "0", "0"]
        screen.becomes([workflow], lambda: _lines(screen, "triage"))


def test_eighty_columns_hold_both_tables(agent: Agent) -> None:
    """A name that is too long has an ellipsis, and stands in the line above when the cursor is on it."""
    with terminal(PROGRAM, "top", agent.address, "--interval", "1", columns=80) as screen:
        screen.shows("fetch_page", "refused")
        heads = ["tool", "calls", "/min", "bytes", "v", "largest", "large", "cut", "repeats", "partial"]
        screen.becomes([heads], lambda: _lines(screen, "tool"))
        figures = ["3", "0", "900", "B", "300", "B", "0", "0", "2", "0"]
        screen.becomes([(True, figures)], lambda: [("…" in line[0], line[1:]) for line in _lines(screen, "read")])
        assert NAME not in screen.text
        screen.press("\x1b[B\x1b[B")  # down, to the third
        screen.shows(NAME)


@pytest.mark.parametrize(
    ("name", "room", "expected"),
    [("fetch", 5, "fetch"), ("fetch_page", 9, "fetc…page"), ("fetch_page", 8, "fetc…age"), ("ab", 1, "…")],
)
def test_the_middle_of_a_long_name_is_left_out(name: str, room: int, expected: str) -> None:
    assert expected == shortened(name, room)


def test_keys(agent: Agent) -> None:
    names = ("fetch", "search", "read")
    with terminal(PROGRAM, "top", agent.address, "--interval", "1") as screen:
        screen.shows("bytes v", "fetch_page")
        screen.press("c")
        screen.shows("cut v")
        screen.becomes(["search", "fetch_page", NAME], lambda: [line[0] for line in _lines(screen, *names)])
        screen.press("r")
        screen.shows("repeats v")
        screen.becomes([NAME], lambda: [line[0] for line in _lines(screen, *names)[:1]])
        screen.press("s")
        screen.shows("partial v")
        screen.press("S")
        screen.shows("repeats v")
        screen.press("/")
        screen.shows("part of a name")
        screen.press("SEAR")
        screen.lacks("fetch_page")
        _keep_filter(screen)
        screen.press("\r")
        screen.shows("AgentToolFirstTruncation", "Look for larger results")
        screen.press("q")
        screen.lacks("AgentToolFirstTruncation")
        screen.press("\x1b")
        screen.shows("fetch_page")
        screen.press("q")
        assert 0 == screen.ends()


def test_counts_from_now_on(agent: Agent) -> None:
    with terminal(PROGRAM, "top", agent.address, "--interval", "1") as screen:
        screen.shows("fetch_page")
        screen.press("z")
        screen.lacks("fetch_page")
        agent.search()
        screen.shows("search")
        screen.becomes([["search", "1"]], lambda: [line[:2] for line in _lines(screen, "search")])
        screen.press(" ")
        screen.shows("paused")


def test_an_endpoint_that_ends_is_named_and_the_other_stays(agent: Agent) -> None:
    silent = f"localhost:{starting.free_port()}"
    with terminal(PROGRAM, "top", agent.address, silent, "--interval", "1") as screen:
        screen.shows("fetch_page", f"the agent at http://{silent}/metrics does not answer")


def test_a_row_without_trouble_has_no_runbook(agent: Agent) -> None:
    with terminal(PROGRAM, "top", agent.address, "--interval", "1") as screen:
        screen.shows("fetch_page")
        screen.press("/")
        screen.shows("part of a name")
        screen.press("read")
        screen.lacks("fetch_page")
        _keep_filter(screen)
        screen.press("\r")
        screen.shows("nothing was cut,")  # in a box that wraps


def test_a_prometheus(environment: Callable[[str], Environment]) -> None:
    programs = starting.obtained(prometheus.programs, prometheus.NEWEST)
    with (
        watched.server(environment("bare"), programs) as engine,
        terminal(PROGRAM, "top", "--prometheus", engine.url, "--since", "10m", columns=120) as screen,
    ):
        screen.shows("search")
        # Twenty-three calls in ten minutes, of no execution in which they could be repeats.
        tool = ["search", "23", "2", "58.7", "KiB", "19.5", "KiB", "3", "0", "0", "0"]
        screen.becomes([tool], lambda: _lines(screen, "search"))
        found = json.loads(run("top", "--prometheus", engine.url, "--since", "10m", "--json").out)
        of_search = [
            (row["calls"], row["per_minute"], row["large"]) for row in found["tools"] if row["name"] == "search"
        ]
        assert [(23, 2.3, 3)] == of_search


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give the address of an endpoint, such as localhost:9464, or --prometheus URL"),
        (("localhost:1", "--prometheus", "http://localhost:1"), "give the address of an endpoint"),
        (("localhost:1",), "the live view needs a terminal; `agent-otel metrics URL` prints the same once"),
    ],
)
def test_what_it_needs(arguments: tuple[str, ...], message: str) -> None:
    ran = run("top", *arguments)
    assert 0 != ran.code
    assert message in ran.err
