"""DBOS, on SQLite."""

# ruff: noqa: D102 - a test's name and body say it
from __future__ import annotations

import base64
import contextlib
import dataclasses
import pickle
import sys
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from tests.contract.runtimes.steps import produce
from tests.contract.runtimes.suite import TURN, TURNS, Case, Json, Payload, Runs, RuntimeContract

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.environments import Environment

#: More than the database takes in these tests, once it is a pickle in base64.
REFUSED = 1_500_000
#: sqlite3 can be told of a limit since Python 3.11.
LIMITED = sys.version_info >= (3, 11)


class TestDBOS(RuntimeContract):
    """Version 3: steps have contexts of their own, so that several of a workflow may run at once."""

    program = "dbos"
    environment = "dbos"
    runtime = "dbos"
    has_runs = True
    stores_inputs = False
    integrations: ClassVar = {
        "dbos": [
            "dbos._sys_db:SystemDatabase.record_operation_result",
            "dbos._outcome:Immediate._intercept",
            "dbos._context:EnterDBOSStepRetry.__enter__",
            "dbos._core:EnterDBOSStepCtx.__enter__",
        ],
    }
    sees_attempts = False  # they are made inside the step
    without = () if LIMITED else ("refused", "refused_later", "refused_output", "refused_input")
    otlp: ClassVar[bool] = False

    @classmethod
    @contextlib.contextmanager
    def engine(cls, environment: Callable[[str], Environment]) -> Iterator[Json]:
        del environment
        yield {"otlp": cls.otlp, "limited": LIMITED}

    @classmethod
    def encoded(cls, value: Any) -> int:
        return len(base64.b64encode(pickle.dumps(value)))

    @classmethod
    def around(cls, workflow: str, given: Json, said: Any) -> tuple[Payload, ...]:
        """A workflow's arguments are stored as what the function is called with."""
        taken = Payload(workflow, "", "input", cls.encoded({"args": (given,), "kwargs": {}}))
        return (taken,) if said is None else (taken, Payload(workflow, "", "output", cls.encoded(said)))

    @classmethod
    def step(cls, workflow: str, activity: str, given: Any, result: Any) -> tuple[Payload, ...]:
        """A step's arguments are not stored."""
        del given
        return () if result is None else (Payload(workflow, activity, "output", cls.encoded(result)),)

    @classmethod
    def cases(cls) -> dict[str, Case]:
        more = {
            "queued": cls.queued(),
            "resumed": cls.resumed(),
            "listed": cls.listed(),
            "refused": cls.refused("one", "produce"),
            "refused_later": cls.refused("later", "produce_later"),
            "refused_output": cls.refused_output(),
            "refused_input": cls.refused_input(),
        }
        found = {**super().cases(), **more}
        found["async"] = _of(found["async"], "later")
        return {name: case for name, case in found.items() if name not in cls.without}

    @classmethod
    def parallel(cls) -> Case:
        given = {"n": 1004}
        both = [each for n in (1004, 1005) for each in cls.step("parallel", "produce_later", n, produce(n))]
        payloads = (*cls.around("parallel", given, 2009), *both)
        return Case("parallel", given, 2009, payloads, (("produce_later", None),) * 2)

    @classmethod
    def queued(cls) -> Case:
        """What a queue hands on is stored when it is put in."""
        given = {"activity": "produce", "n": 1006, "queued": True}
        payloads = (*cls.around("one", given, 1006), *cls.step("one", "produce", 1006, produce(1006)))
        return Case("one", given, 1006, payloads, (("produce", None),))

    @classmethod
    def resumed(cls) -> Case:
        """Another process has made the input and the first step's result; they are only read."""
        given = {"n": 1007}
        _, output = cls.around("resumed", given, 2015)
        payloads = (output, *cls.step("resumed", "produce", None, produce(1008)))
        return Case("resumed", given, 2015, payloads, (("produce", None),))

    @classmethod
    def listed(cls) -> Case:
        """DBOS records some operations of its own like steps."""
        given = {"ids": ["nobody"]}
        payloads = (*cls.around("listed", given, 0), *cls.step("listed", "DBOS.listWorkflows", None, []))
        return Case("listed", given, 0, payloads, ())

    @classmethod
    def refused(cls, workflow: str, activity: str) -> Case:
        given = {"activity": activity, "n": REFUSED}
        payloads = (*cls.around(workflow, given, None), *cls.step(workflow, activity, None, produce(REFUSED)))
        return Case(workflow, given, None, payloads, ((activity, "DataError"),))

    @classmethod
    def refused_output(cls) -> Case:
        given = {"n": REFUSED}
        return Case("returned", given, None, cls.around("returned", given, produce(REFUSED)), ())

    @classmethod
    def refused_input(cls) -> Case:
        given = {"ids": [produce(REFUSED)]}
        return Case("listed", given, None, cls.around("listed", given, None), ())

    def test_turns_to_the_cap_are_known_from_the_third_on(self, runs: Runs) -> None:
        consumed = [s for s in self.steps(runs, "turns") if s["attributes"]["workflow.activity"] == "consume"]
        left = [span["attributes"].get("workflow.payload.turns_to_cap") for span in consumed]
        # 1,048,576 bytes of cap less 400,040 are 4 more turns of 133,344: four thirds of 100,000 letters.
        assert left == [None, None, 4, 3, 2, 1]

    def test_from_the_warn_ratio_up_the_payload_is_looked_into(self, runs: Runs) -> None:
        """A pickle cannot be read; what it is made of can, where the step returns it."""
        consumed = [s for s in self.steps(runs, "turns") if s["attributes"]["workflow.activity"] == "consume"]
        last = consumed[-1]["attributes"]
        assert last["workflow.payload.largest_path"].endswith("[]")
        assert last["workflow.payload.largest_path_bytes"] >= TURNS * TURN
        assert all("workflow.payload.largest_path" not in span["attributes"] for span in consumed[:3])

    @pytest.mark.skipif(not LIMITED, reason="sqlite3 cannot be told of a limit")
    def test_what_the_database_does_not_take_was_refused(self, runs: Runs) -> None:
        assert _refused(runs) == {
            "refused": {("one", "produce", "output"): 1},
            "refused_later": {("later", "produce_later", "output"): 1},
            "refused_output": {("returned", None, "output"): 1},
            "refused_input": {("listed", None, "input"): 1},
        }
        for name in ("refused", "refused_later"):
            (span,) = self.steps(runs, name)
            assert span["attributes"]["workflow.payload.rejected"] is True


def _refused(runs: Runs) -> dict[str, dict[tuple[str, str | None, str], int]]:
    """How often each case was refused what."""
    found: dict[str, dict[tuple[str, str | None, str], int]] = {}
    for name, case in runs.on["cases"].items():
        for metric in case["metrics"]:
            if metric["name"] == "agent_otel.workflow.payload.rejected" and metric["sum"]:
                labels = metric["attributes"]
                what = labels["gen_ai.workflow.name"], labels.get("workflow.activity"), labels["direction"]
                found.setdefault(name, {})[what] = metric["sum"]
    return found


class TestDBOSTraced(TestDBOS):
    """DBOS traces itself, and its spans of steps are enriched; of caps nothing is configured."""

    otlp = True
    span = "{activity}"
    scope = "dbos-tracer"
    env: ClassVar = {"AGENT_OTEL_CAPS": ""}

    def test_a_step_s_span_shows_the_payload_nearer_to_its_cap(self, runs: Runs) -> None:
        """SQLite's own."""
        for name in ("sync", "async", "queued", "resumed"):
            (span,) = self.steps(runs, name)
            attributes = span["attributes"]
            assert attributes["workflow.payload.cap_bytes"] == 1_000_000_000
            assert attributes["workflow.payload.cap_source"] == "table"
            assert attributes["workflow.payload.utilization"] == attributes["workflow.payload.bytes"] / 1_000_000_000

    def test_turns_to_the_cap_are_known_from_the_third_on(self, runs: Runs) -> None:
        consumed = [s for s in self.steps(runs, "turns") if s["attributes"]["workflow.activity"] == "consume"]
        left = [span["attributes"].get("workflow.payload.turns_to_cap") for span in consumed]
        # 1,000,000,000 bytes of cap less 400,040 are 7,496 more turns of 133,344.
        assert left == [None, None, 7496, 7495, 7494, 7493]

    def test_from_the_warn_ratio_up_the_payload_is_looked_into(self, runs: Runs) -> None:
        assert not any("workflow.payload.largest_path" in span["attributes"] for span in self.steps(runs, "turns"))


class TestDBOSOldest(TestDBOS):
    """Version 2: the row of a workflow that is taken up again is written once more."""

    environment = "dbos-2"
    integrations: ClassVar = {"dbos": [*TestDBOS.integrations["dbos"][:3], "dbos._core:EnterDBOSStep.__enter__"]}
    without = (*TestDBOS.without, "parallel")  # a workflow is in one step at a time


def _of(case: Case, workflow: str) -> Case:
    payloads = tuple(dataclasses.replace(payload, workflow=workflow) for payload in case.payloads)
    return dataclasses.replace(case, workflow=workflow, payloads=payloads)
