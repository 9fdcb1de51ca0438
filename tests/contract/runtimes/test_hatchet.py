"""Hatchet, in its worker's runner: there is no engine to be had as a package."""

# ruff: noqa: D102 - a test's name and body say it
from __future__ import annotations

import contextlib
import dataclasses
import json
from typing import TYPE_CHECKING, Any, ClassVar

from tests.contract.runtimes.suite import Case, Json, Payload, RuntimeContract

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.contract.runtimes.suite import Runs
    from tests.environments import Environment


class TestHatchet(RuntimeContract):
    """The engine is played by the program: it hands actions to the runner and takes its events."""

    program = "hatchet"
    environment = "hatchet"
    runtime = "hatchet"
    integrations: ClassVar = {"hatchet": ["hatchet_sdk.worker.runner.runner:Runner.handle_start_step_run"]}
    measures_workflows = False  # a workflow is its tasks
    instrumented: ClassVar[bool] = False

    @classmethod
    @contextlib.contextmanager
    def engine(cls, environment: Callable[[str], Environment]) -> Iterator[Json]:
        del environment
        yield {"instrumented": cls.instrumented}

    @classmethod
    def encoded(cls, value: Any) -> int:
        """Tasks return objects."""
        return len(json.dumps({"said": value}, separators=(",", ":")))

    @classmethod
    def given_to(cls, activity: str, value: Any) -> int:
        """What a task takes in is in a field of what the engine sends."""
        given = {"texts": value} if activity == "consume" else {"n": value}
        return len(json.dumps({"input": given}, separators=(",", ":")))

    @classmethod
    def cases(cls) -> dict[str, Case]:
        found = super().cases()
        broken = found["raises"]
        found["raises"] = dataclasses.replace(broken, steps=broken.steps * 2, payloads=broken.payloads * 2)
        found["illegal"] = cls.other("illegal", "IllegalTaskOutputError")
        found["silent"] = cls.other("silent", None)
        return found

    @classmethod
    def other(cls, activity: str, error: str | None) -> Case:
        """A task whose result is not sent."""
        payloads = (Payload("one", activity, "input", cls.given_to(activity, 7)),)
        return Case("one", {"activity": activity, "n": 7}, None, payloads, ((activity, error),))

    def test_attempts_are_told(self, runs: Runs) -> None:
        attempts = [span["attributes"].get("workflow.activity.attempt") for span in self.steps(runs, "retry")]
        assert attempts == [None, 2]


class TestHatchetBesideItsOwnTracing(TestHatchet):
    """Hatchet's instrumentor has a span of each step run: it is enriched."""

    instrumented = True
    span = "hatchet.start_step_run"
    scope = "hatchet_sdk.opentelemetry.instrumentor"
