"""Dapr Workflows: the SDK's own worker against a stand-in for daprd."""

# ruff: noqa: D101, D102 - a test's name and body say it
from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tests.contract.runtimes import test_durabletask
from tests.contract.runtimes.steps import produce
from tests.contract.runtimes.suite import Case
from tests.contract.runtimes.test_durabletask import TOO_MUCH

if TYPE_CHECKING:
    from tests.contract.runtimes.suite import Runs


class TestDapr(test_durabletask.TestDurabletask):
    program = "dapr"
    environment = "dapr-1.19"
    runtime = "dapr"
    has_runs = True
    integrations: ClassVar = {"dapr": ["dapr.ext.workflow._durabletask.worker:_ActivityExecutor.execute"]}
    without: ClassVar[tuple[str, ...]] = ()
    span = "activity: {activity}"  # its own tracing
    scope = "dapr.ext.workflow._durabletask.worker"
    refused: ClassVar = {
        **test_durabletask.TestDurabletask.refused,
        "later result too large": {("produce_later", "output"): 1},
        "result too large twice": {("produce", "output"): 2},
        "input too large for the scheduler": {("consume", "input"): 3},
        "input and history too large for the scheduler": {("consume", "input"): 3},
    }
    #: How long a workflow is waited for that is run again and again.
    seconds: ClassVar = 2

    @classmethod
    def cases(cls) -> dict[str, Case]:
        return {
            **super().cases(),
            "later result too large": cls.result_too_large("produce_later"),
            "result too large twice": cls.result_too_large_twice(),
            "input too large for the scheduler": cls.input_too_large_for_the_scheduler(),
            "input and history too large for the scheduler": cls.input_and_history_too_large(),
        }

    @classmethod
    def status(cls, text: str) -> int:
        """It is sent as it is."""
        return len(text)

    @classmethod
    def input_too_large_for_the_scheduler(cls) -> Case:
        """No SDK is told; the workflow's second turn is run again and again, with what it has asked for."""
        given = {"n": 2_500_000, "times": 1, "seconds": cls.seconds}
        before = cls.step("spread_later", "produce", 1, produce(1))
        refused = cls.step("spread_later", "consume", [produce(2_500_000)], None)
        payloads = (*cls.around("spread_later", given, None), *before, *refused)
        return Case("spread_later", given, None, payloads, (("produce", None),))

    @classmethod
    def input_and_history_too_large(cls) -> Case:
        """The turn with what it has asked for does not fit into a message; it is run again without."""
        given = {"turns": 1, "n": 2_500_000, "seconds": cls.seconds}
        text = produce(2_500_000)
        produced = cls.step("turns", "produce", 2_500_000, text)
        payloads = (*cls.around("turns", given, None), *produced, *cls.step("turns", "consume", [text], None))
        return Case("turns", given, None, payloads, (("produce", None),))

    @classmethod
    def result_too_large_twice(cls) -> Case:
        """The worker tells the workflow, which runs the activity again for nothing."""
        given = {"activity": "produce", "n": TOO_MUCH}
        step = cls.step("retried", "produce", TOO_MUCH, produce(TOO_MUCH))
        return Case("retried", given, None, (*cls.around("retried", given, None), *step * 2), (("produce", None),) * 2)

    def test_a_retry_that_cannot_succeed_is_told_apart(self, runs: Runs) -> None:
        stuck = {name: self.counted(runs, name, "payload.stuck_retries") for name in self.cases()}
        assert {name: set(found) for name, found in stuck.items() if found} == {
            "result too large twice": {("produce", "output")},
            "input too large for the scheduler": {("consume", "input")},
            "input and history too large for the scheduler": {("consume", "input")},
        }
        assert stuck["result too large twice"]["produce", "output"]["sum"] == 1
        assert stuck["input too large for the scheduler"]["consume", "input"]["sum"] == 2

    def test_what_the_scheduler_does_not_take_is_over_its_cap_once(self, runs: Runs) -> None:
        over = self.counted(runs, "input too large for the scheduler", "payload.over_cap")
        assert over["consume", "input"]["sum"] == 1


class TestDaprOldest(TestDapr):
    environment = "dapr-1.18"
