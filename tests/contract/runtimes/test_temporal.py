"""Temporal, on its real server: payloads against its real limits, replays, refusals, codecs."""

# ruff: noqa: D102 - a test's name and body say it
from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from tests.contract.runtimes.steps import produce
from tests.contract.runtimes.suite import CAP_BYTES, Case, Json, Payload, Runs, RuntimeContract
from tests.system.engines import starting, temporal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.environments import Environment

LIMIT = 2 * 1024 * 1024
TOO_LONG = 2_100_000


def field(size: int) -> int:
    """Bytes of a protobuf field with so many bytes in it: a tag, the length in seven bits a byte, and those."""
    length = 1
    while size >= 128**length:
        length += 1
    return 1 + length + size


def payload(size: int, encoding: str = "json/plain") -> int:
    """Bytes of a ``Payload``: one entry of metadata, whose key is ``encoding``, and the data, if there is any."""
    entry = field(len("encoding")) + field(len(encoding))
    return field(entry) + (field(size) if size else 0)


def text(value: Any) -> int:
    """Bytes of a value as the SDK's JSON, which has no spaces."""
    return len(json.dumps(value, separators=(",", ":")).encode())


class TemporalContract(RuntimeContract):
    """The cases that every runtime has."""

    program = "temporal"
    environment = "temporal"
    runtime = "temporal"
    has_runs = True
    integrations: ClassVar[dict[str, list[str]]] = {
        "temporal": [
            "temporalio.worker._activity:_ActivityWorker._handle_start_activity_task",
            "temporalio.worker._workflow:_WorkflowWorker._handle_activation",
            "temporalio.bridge.worker:Worker.complete_activity_task",
        ],
    }

    @classmethod
    def encoded(cls, value: Any) -> int:
        """The server counts a ``Payloads`` message: for text of 1000 letters 1 + 2 + (24 + 1 + 2 + 1002) bytes."""
        return field(payload(0, "binary/null") if value is None else payload(text(value)))

    @classmethod
    @contextlib.contextmanager
    def engine(cls, environment: Callable[[str], Environment]) -> Iterator[Json]:
        del environment
        with starting.or_skip(temporal.server()) as server:
            yield {"address": server.address}

    @classmethod
    def retried(cls) -> Case:
        """The server hands the same input over again."""
        case = super().retried()
        (repeated,) = cls.step("retried", "flaky", 1003, None)
        payloads = list(case.payloads)
        payloads.remove(repeated)
        return replace(case, payloads=tuple(payloads))


class TestTemporal(TemporalContract):
    """The newest SDK, whose core refuses before the server does."""

    #: How often an activity is tried whose result is refused.
    tries: ClassVar[int] = 2
    #: Whether a workflow task that is refused is done again until the workflow times out.
    sticks: ClassVar[bool] = True

    @classmethod
    def cases(cls) -> dict[str, Case]:
        return {
            **super().cases(),
            "replayed": cls.replayed("replaying", "replay"),
            "told": cls.replayed("", "tell"),
            "asked": cls.replayed("", "ask"),
            "result too large": cls.result_too_large(),
            "input too large": cls.input_too_large(),
            "output too large": cls.output_too_large(),
            "largest": cls.largest(),
            "local": cls.local(),
            "continuing": cls.continuing(),
            "parent": cls.parent(),
            "encrypted": cls.encrypted(),
            "tool in a workflow": cls.tool_in_a_workflow(),
        }

    @classmethod
    def replayed(cls, worker: str, then: str) -> Case:
        given = {"turns": 2, "n": 10, "worker": worker, "then": then}
        payloads = list(cls.around("turns", given, 21))
        for turn, texts in enumerate(([produce(10)], [produce(10), produce(11)])):
            payloads += cls.step("turns", "produce", 10 + turn, texts[-1])
            payloads += cls.step("turns", "consume", texts, sum(map(len, texts)))
        return Case("turns", given, 21, tuple(payloads), (("produce", None), ("consume", None)) * 2)

    @classmethod
    def result_too_large(cls) -> Case:
        """Each try makes the result anew, of the same input."""
        given = {"activity": "produce", "n": TOO_LONG}
        taken, made = cls.step("retried", "produce", TOO_LONG, produce(TOO_LONG))
        payloads = (*cls.around("retried", given, None), taken, *(made,) * cls.tries)
        return Case("retried", given, None, payloads, (("produce", "PayloadsTooLarge"),) * cls.tries)

    @classmethod
    def input_too_large(cls) -> Case:
        """The activity before it runs; the one beside it never does, because both are sent together."""
        given = {"n": TOO_LONG, "seconds": 5}
        size = field(payload(text("b"))) + field(payload(text(produce(TOO_LONG))))
        payloads = (
            *cls.around("feeding", given, None),
            *cls.step("feeding", "produce", 1, produce(1)),
            Payload("feeding", "join", "input", size),
        )
        return Case("feeding", given, None, payloads, (("produce", None),))

    @classmethod
    def output_too_large(cls) -> Case:
        given = {"n": TOO_LONG, "seconds": 5}
        made = Payload("returning", "", "output", cls.encoded(produce(TOO_LONG)))
        return Case("returning", given, None, (*cls.around("returning", given, None), made), ())

    @classmethod
    def largest(cls) -> Case:
        """As long as it may be: 34 bytes around the letters, the quotes among them."""
        return cls.one("produce", LIMIT - 34)

    @classmethod
    def local(cls) -> Case:
        given = {"activities": ["produce", "produce", "produce", "linger"], "n": 1010}
        ran = cls.step("local", "produce", 1010, produce(1010)) * 3
        payloads = (*cls.around("local", given, 3030), *ran, *cls.step("local", "linger", 1010, None))
        return Case("local", given, 3030, payloads, (*(("produce", None),) * 3, ("linger", "CancelledError")))

    @classmethod
    def continuing(cls) -> Case:
        """What a workflow continues with is the input of the next run, once."""
        given = [{"more": 2 - run, "text": "x" * run} for run in range(3)]
        inputs = [each for run in given for each in cls.around("continuing", run, None)]
        said = Payload("continuing", "", "output", cls.encoded(2))
        return Case("continuing", given[0], 2, (*inputs, said), ())

    @classmethod
    def parent(cls) -> Case:
        given = {"more": 0, "text": "abc"}
        nothing = Payload("parent", "", "output", cls.encoded(None))
        payloads = (*cls.around("parent", given, None), nothing, *cls.around("continuing", given, 3))
        return Case("parent", given, None, payloads, ())

    @classmethod
    def encrypted(cls) -> Case:
        """What the codec made of a payload is the data of another one."""
        n = 700_000
        given = {"activity": "produce", "n": n, "worker": "encrypting"}
        sizes = [field(payload(payload(text(value)), "binary/encrypted")) for value in (given, n, n, produce(n))]
        workflow_input, workflow_output, activity_input, activity_output = sizes
        payloads = (
            Payload("one", "", "input", workflow_input),
            Payload("one", "", "output", workflow_output),
            Payload("one", "produce", "input", activity_input),
            Payload("one", "produce", "output", activity_output),
        )
        return Case("one", given, n, payloads, (("produce", None),))

    @classmethod
    def tool_in_a_workflow(cls) -> Case:
        given = {"n": 1011}
        return Case("searching", given, 1011, cls.around("searching", given, 1011), ())

    @staticmethod
    def counted(runs: Runs, case_name: str, name: str) -> dict[tuple[str, str], int]:
        """Values of a counter by activity and direction."""
        return {
            (metric["attributes"].get("workflow.activity", ""), metric["attributes"].get("direction", "")): metric[
                "sum"
            ]
            for metric in runs.on["cases"][case_name]["metrics"]
            if metric["name"] == f"agent_otel.workflow.{name}" and metric["sum"]
        }

    def test_the_server_counts_what_is_counted_here(self, runs: Runs) -> None:
        (server,) = (span["attributes"] for span in runs.on["cases"]["told"]["spans"] if span["name"] == "server")
        counted: dict[tuple[bool, str], list[int]] = {}
        for each in self.cases()["told"].payloads:
            counted.setdefault((bool(each.activity), each.direction), []).append(each.bytes)
        assert counted == {
            (False, "input"): list(server["workflow_execution_started_event_attributes"]),
            (False, "output"): list(server["workflow_execution_completed_event_attributes"]),
            (True, "input"): list(server["activity_task_scheduled_event_attributes"]),
            (True, "output"): list(server["activity_task_completed_event_attributes"]),
        }
        # At the end of the last of five workflow tasks nothing is scheduled.
        *scheduling, _ = server["history"]
        (history,) = (
            metric
            for metric in runs.on["cases"]["told"]["metrics"]
            if metric["name"] == "agent_otel.workflow.history.size"
        )
        assert (history["count"], history["sum"]) == (len(scheduling), sum(scheduling))

    @pytest.mark.parametrize("case", ["told", "asked", "replayed"])
    def test_a_run_ends_once(self, runs: Runs, case: str) -> None:
        """Queries replay a run that has ended to its end; a worker without a cache replays it for each task."""
        metrics = runs.on["cases"][case]["metrics"]
        (calls,) = (metric for metric in metrics if metric["name"] == "agent_otel.execution.tool_calls")
        names = {"gen_ai.agent.name": "turns", "gen_ai.workflow.name": "turns"}
        assert (calls["attributes"], calls["count"]) == (names, 1)
        spans = [span["name"] for span in runs.on["cases"][case]["spans"]]
        assert spans.count("invoke_workflow turns") == 1

    def test_local_activities_of_one_workflow_task_find_one_history(self, runs: Runs) -> None:
        metrics = runs.on["cases"]["local"]["metrics"]
        (history,) = (metric for metric in metrics if metric["name"] == "agent_otel.workflow.history.size")
        assert history["count"] < len(self.cases()["local"].steps)

    def test_a_result_that_is_refused_is_counted_at_each_try(self, runs: Runs) -> None:
        refused = self.counted(runs, "result too large", "payload.rejected")
        assert refused == {("produce", "output"): self.tries}
        stuck = self.counted(runs, "result too large", "payload.stuck_retries")
        assert stuck == ({("produce", "output"): self.tries - 1} if self.tries > 1 else {})
        steps = self.steps(runs, "result too large")
        assert [span["attributes"]["workflow.payload.rejected"] for span in steps] == [True] * self.tries
        assert self.counted(runs, "largest", "payload.rejected") == {}

    @pytest.mark.parametrize(
        ("case", "where"), [("input too large", ("join", "input")), ("output too large", ("", "output"))]
    )
    @pytest.mark.shows("000.refused_for_ever")
    def test_what_workflow_code_made_too_large_is_one_payload_refused_for_ever(
        self, runs: Runs, case: str, where: tuple[str, str]
    ) -> None:
        refused = self.counted(runs, case, "payload.rejected")
        stuck = self.counted(runs, case, "payload.stuck_retries")
        assert set(refused) == {where}
        assert (refused[where] > 1) == self.sticks
        assert stuck == ({where: refused[where] - 1} if self.sticks else {})
        assert self.counted(runs, case, "payload.over_cap") == {where: 1}

    def test_what_is_encrypted_is_weighed_and_not_looked_into(self, runs: Runs) -> None:
        (span,) = self.steps(runs, "encrypted")
        assert span["attributes"]["workflow.payload.utilization"] > 0.5
        assert "workflow.payload.largest_path" not in span["attributes"]

    def test_a_tool_in_workflow_code_is_not_measured(self, runs: Runs) -> None:
        """That code runs again whenever it is replayed. Gauges of other workflows' tools keep their values."""
        case = runs.on["cases"]["tool in a workflow"]
        assert [span for span in case["spans"] if span["name"].startswith("execute_tool")] == []
        tools = [metric["attributes"] for metric in case["metrics"] if metric["name"].startswith("agent_otel.tool.")]
        assert {"searching", None}.isdisjoint(attributes.get("gen_ai.workflow.name") for attributes in tools)


class TestTemporalMiddle(TestTemporal):
    """The SDK's Python side refuses."""

    environment = "temporal-1.28"


class TestTemporalOldest(TestTemporal):
    """The server refuses what the SDK does not look at: it fails the activity, and ends the workflow."""

    environment = "temporal-1.20"
    tries = 1
    sticks = False


class TestTemporalTraced(TemporalContract):
    """Beside Temporal's own interceptor: its spans are those of the steps, and end before the result is encoded."""

    env: ClassVar[dict[str, str]] = {"TRACED": "1"}
    span = "RunActivity:{activity}"
    scope = "temporalio.contrib.opentelemetry._interceptor"
    without = ("raises", "retry")  # errors are told there as the interceptor does

    def test_a_step_s_span_shows_the_payload_nearer_to_its_cap(self, runs: Runs) -> None:
        (span,) = self.steps(runs, "sync")
        assert span["attributes"]["workflow.payload.direction"] == "input"
        assert span["attributes"]["workflow.payload.bytes"] == self.encoded(1000)
        assert span["attributes"]["workflow.payload.utilization"] == self.encoded(1000) / CAP_BYTES


class Lowered(TemporalContract):
    """Nothing is said of caps but by the server."""

    env: ClassVar[dict[str, str]] = {"AGENT_OTEL_CAPS": ""}


def test_the_server_s_own_limit_is_the_cap(environment: Callable[[str], Environment], tmp_path: Path) -> None:
    limit = 64 * 1024
    with starting.or_skip(temporal.server(**{"limit.blobSize.error": limit})) as server:
        cases = {name: Lowered.one("produce", n) for name, n in (("fits", limit - 34), ("over", limit - 33))}
        plan = {
            "engine": {"address": server.address},
            "integrations": [],
            "broken": [],
            "cases": {name: case.plan() for name, case in cases.items()},
        }
        report = Lowered._run(environment("temporal"), "on", plan, tmp_path)
    runs = Runs(on=report, off={}, moved={}, broken={})
    found = {name: Lowered().steps(runs, name)[0]["attributes"] for name in cases}
    assert [report["cases"][name]["said"] for name in cases] == [limit - 34, None]
    assert [each["workflow.payload.utilization"] for each in found.values()] == [1.0, (limit + 1) / limit]
    assert {each["workflow.payload.cap_source"] for each in found.values()} == {"discovered"}
    assert ["workflow.payload.rejected" in each for each in found.values()] == [False, True]
    assert report["errors"] == {}


@pytest.mark.shows("000.refused_for_ever")
def test_what_is_sent_elsewhere_may_be_refused_too(environment: Callable[[str], Environment], tmp_path: Path) -> None:
    """Answers to updates, signals to another workflow, failures, and heartbeats: the server takes no larger ones."""
    n = 70_000
    asked = {"n": n, "seconds": 4}
    with starting.or_skip(temporal.server(**{"limit.blobSize.error": 64 * 1024})) as server:
        cases = {name: Case(name, asked, None, (), ()) for name in ("updated", "signalling", "failing")}
        cases["retried"] = Case("retried", {"activity": "explode", "n": n}, None, (), ())
        cases["one"] = Case("one", {"activity": "beat", "n": n}, None, (), ())
        plan = {
            "engine": {"address": server.address},
            "integrations": [],
            "broken": [],
            "cases": {name: case.plan() for name, case in cases.items()},
        }
        report = Lowered._run(environment("temporal"), "on", plan, tmp_path)
    assert report["errors"] == {}
    runs = Runs(on=report, off={}, moved={}, broken={})
    refused = {name: TestTemporal.counted(runs, name, "payload.rejected") for name in cases}
    places = {name: set(counts) for name, counts in refused.items()}
    assert places == {
        "updated": {("", "output")},
        "signalling": {("", "input")},
        "failing": {("", "output")},
        "retried": {("explode", "output")},  # of two attempts one, because the server does not retry it
        "one": {("beat", "output")},
    }
    assert [refused["retried"]["explode", "output"], refused["updated"]["", "output"] > 1] == [1, True]
    assert refused["one"]["beat", "output"] == 1
    sizes = {name: TestTemporal.counted(runs, name, "payload.size")[next(iter(places[name]))] for name in cases}
    assert sizes["updated"] == sizes["one"] == Lowered.encoded(produce(n))
    assert sizes["signalling"] == Lowered.encoded(asked) + Lowered.encoded(produce(n))  # and the workflow's input
    for name in ("failing", "retried"):  # with the stack trace
        assert Lowered.encoded(produce(n)) < sizes[name] < Lowered.encoded(produce(n)) + 4_096
    (step,) = Lowered().steps(runs, "retried")
    assert (step["attributes"]["error.type"], step["attributes"]["workflow.payload.rejected"]) == ("TooMuch", True)


@pytest.mark.parametrize("name", ["temporal-agents", "temporal-1.20"])
def test_workflow_code_may_import_what_is_instrumented(environment: Callable[[str], Environment], name: str) -> None:
    """In the default sandbox, which imports it anew for each run: nothing of ours is in there, and nothing is said."""
    with starting.or_skip(temporal.server()) as server:
        off, on = (
            environment(name).run(
                "from tests.contract.runtimes.programs.temporal_sandbox import main; main()",
                server.address,
                env={"AGENT_OTEL": switch},
                check=True,
            )
            for switch in ("", "1")
        )
    without, with_us = (json.loads(done.stdout) for done in (off, on))
    assert with_us["said"] == without["said"] == "looked: abc, found: abc, spelt: a-b-c, shouted: ABC"
    assert with_us["warnings"] == without["warnings"]
    assert "agent_otel" not in on.stderr
    assert on.stderr == off.stderr
    assert with_us["copies"] == []
    # Tools in activities are measured, in workflow code they are not.
    agents = name == "temporal-agents"
    assert with_us["measured"] == {"look": 1, "spell": 1, **({"find": 1} if agents else {})}
    # openai came in from the sandbox, and belongs to the program; what the sandbox loads for itself is left alone.
    assert {"langchain", "langgraph", "openai"}.issubset(with_us["integrations"]) == agents
    assert with_us["told"] == [False]
