"""The contract of stores: what an agent's session or database receives and returns is counted, byte for byte.

A program runs an agent a few times in one session of a real store, and reads from the store how many bytes it has after
each run. Sizes are those: nothing here knows how a store encodes.
"""

# ruff: noqa: D102 - a test's name and body say it
from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, ClassVar

from tests.contract.runtimes.suite import CORE, Json, Runs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.environments import Environment

STATE, HISTORY = "state", "history"
LETTERS = (1000, 1001, 1002, 1003)


class StoreContract:
    """All that is true of every store. A subclass names the program, the environment and the kinds of stores."""

    program: ClassVar[str]
    environment: ClassVar[str]
    runtime: ClassVar[str]
    integrations: ClassVar[dict[str, list[str]]]
    #: Workflow -> what it is given; ``letters`` are those of the search of each run.
    cases: ClassVar[dict[str, Json]]
    #: Whether a write holds the whole session, and not only what is new.
    is_whole: ClassVar[bool] = False
    #: Writes of one run.
    writes: ClassVar[int] = 1
    #: Bytes that a read of the session has beside what was written.
    beside: ClassVar[int] = 0
    #: The name of the agent, which is that of the workflow.
    agent: ClassVar[str] = "clerk"
    env: ClassVar[dict[str, str]] = {}

    @classmethod
    @contextlib.contextmanager
    def engine(cls, environment: Callable[[str], Environment]) -> Iterator[Json]:
        """Start what the children share; what they are told of it."""
        del environment
        yield {}

    @classmethod
    def run_children(cls, environment: Callable[[str], Environment], folder: Path) -> Runs:
        """Run the children against one engine."""
        cases = {name: {"workflow": name, "given": given} for name, given in cls.cases.items()}
        first = dict([next(iter(cases.items()))])
        with cls.engine(environment) as engine:
            plan = {"engine": engine, "integrations": list(cls.integrations), "broken": CORE}
            modes = (("off", cases), ("on", cases), ("moved", first), ("broken", first))
            made = environment(cls.environment)
            return Runs(**{mode: cls.run(made, mode, {**plan, "cases": of}, folder) for mode, of in modes})

    @classmethod
    def run(cls, environment: Environment, mode: str, plan: Json, folder: Path) -> Json:
        file = folder / f"{mode}.json"
        file.write_text(json.dumps(plan))
        done = environment.run(
            "import runpy; runpy.run_module('tests.contract.runtimes.child', run_name='__main__')",
            mode,
            f"tests.contract.stores.programs.{cls.program}",
            str(file),
            env={"AGENT_OTEL": "" if mode == "off" else "1", **cls.env},
            timeout=110,
            check=True,
        )
        report: Json = json.loads(done.stdout.splitlines()[-1])
        return report

    def sizes(self, runs: Runs, name: str, direction: str) -> tuple[int, int]:
        """Return how many payloads of a direction a case has, and their bytes."""
        metric = "history" if direction == HISTORY else "payload"
        found = [
            each
            for each in runs.on["cases"][name]["metrics"]
            if each["name"] == f"agent_otel.workflow.{metric}.size"
            and each["attributes"].get("direction", HISTORY) == direction
        ]
        for each in found:
            assert each["attributes"]["workflow.runtime"] == self.runtime
            assert each["attributes"].get("gen_ai.workflow.name", "") == self.agent
        return sum(each["count"] for each in found), sum(each["sum"] for each in found)

    def total(self, runs: Runs, name: str, metric: str) -> float:
        """Add a metric of payloads up."""
        metrics = runs.on["cases"][name]["metrics"]
        return float(sum(each["sum"] for each in metrics if each["name"] == f"agent_otel.workflow.payload.{metric}"))

    def told(self, runs: Runs, name: str) -> list[Json]:
        """Return the attributes of the spans of payloads, in the order in which they ended."""
        spans = runs.on["cases"][name]["spans"]
        return [span["attributes"] for span in spans if "workflow.payload.direction" in span["attributes"]]

    # --- every store -----------------------------------------------------------------------------------------------

    def test_caller_gets_what_it_gets_without_us(self, runs: Runs) -> None:
        for name in self.cases:
            with_us, without = runs.on["cases"][name], runs.off["cases"][name]
            assert with_us["error"] is without["error"] is None
            assert with_us["said"]["said"] == without["said"]["said"]
            # Ids and times differ by a few characters from one process to the next.
            assert len(with_us["said"]["sizes"]) == len(without["said"]["sizes"]) == len(self.cases[name]["letters"])

    def test_what_is_counted_is_what_the_store_received(self, runs: Runs) -> None:
        for name, given in self.cases.items():
            sizes = runs.on["cases"][name]["said"]["sizes"]
            expected = runs.on["cases"][name]["said"].get("received", sizes[-1])
            if "refused" not in given:
                assert self.sizes(runs, name, STATE) == (self.writes * len(sizes), expected), name

    def test_each_run_carries_the_session_so_far(self, runs: Runs) -> None:
        """What a run begins with; the first one begins with nothing."""
        for name, given in self.cases.items():
            sizes = runs.on["cases"][name]["said"]["sizes"]
            if not self.is_whole and "refused" not in given:
                reads = len(sizes) - 1
                beside = reads * given.get("beside", self.beside)
                assert self.sizes(runs, name, HISTORY) == (reads, sum(sizes[:-1]) + beside), name

    def test_the_growth_is_that_of_the_session(self, runs: Runs) -> None:
        """From 16 KiB on; what is added to a session is no turn of it."""
        sizes = runs.on["cases"]["large"]["said"]["sizes"]
        last = -1 if self.is_whole else -2
        assert self.total(runs, "large", "growth") == sizes[last] - sizes[0]

    def test_nothing_is_said_or_swallowed(self, runs: Runs) -> None:
        assert [case["messages"] for case in runs.on["cases"].values()] == [[]] * len(self.cases)
        assert runs.on["errors"] == {}

    def test_what_was_wrapped_is_told(self, runs: Runs) -> None:
        for name, targets in self.integrations.items():
            assert set(targets) <= set(runs.on["integrations"][name])

    def test_what_has_moved_is_told_and_the_program_runs(self, runs: Runs) -> None:
        name = next(iter(self.cases))
        assert runs.moved["cases"][name]["said"]["said"] == runs.off["cases"][name]["said"]["said"]
        for name in self.integrations:
            assert set(runs.moved["integrations"][name]) == {"unmatched"}
        assert runs.moved["errors"] == {}

    def test_our_own_failure_is_not_the_store_s(self, runs: Runs) -> None:
        name = next(iter(self.cases))
        assert runs.broken["cases"][name]["said"]["said"] == runs.off["cases"][name]["said"]["said"]
        assert sum(runs.broken["errors"].values()) >= 1
