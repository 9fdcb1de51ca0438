"""The contract that every durable runtime keeps: one base class with all cases, a few lines for each runtime.

A runtime runs in child processes, in an environment with its real SDK, on its real engine: with the switch off, on,
with what is wrapped moved away, and with our own functions raising. Sizes are known by hand: what a step takes and
returns is written in ``steps``, and how a runtime encodes it stands in its class.
"""

# ruff: noqa: D102 - a test's name and body say it
from __future__ import annotations

import contextlib
import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from tests.contract.runtimes.steps import produce

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.environments import Environment

Json = dict[str, Any]

#: Functions of the core that are made to raise.
CORE = ("agent_otel.core.payload:weigh", "agent_otel.core.payload:finish", "agent_otel.telemetry.spans:open_step_span")

CAP_BYTES = 1024 * 1024
TURNS, TURN = 6, 100_000


@dataclass(frozen=True)
class Payload:
    """One payload that must be counted: the workflow, the activity (empty when it is the workflow's), how large."""

    workflow: str
    activity: str
    direction: str
    bytes: int


@dataclass(frozen=True)
class Case:
    """One run of a workflow and what must come of it; ``steps`` are (activity, error type) of each span.

    ``within`` is the workflow whose steps they are, where it is not the one that is started.
    """

    workflow: str
    given: Json
    said: Any
    payloads: tuple[Payload, ...]
    steps: tuple[tuple[str, str | None], ...]
    within: str = ""

    def plan(self) -> Json:
        """What the child is told."""
        return {"workflow": self.workflow, "given": self.given}


@dataclass
class Runs:
    """What the children reported."""

    on: Json
    off: Json
    moved: Json
    broken: Json
    engine: Json = field(default_factory=dict)


class RuntimeContract:
    """All cases. A subclass names the program under ``programs/``, the environment and how payloads are encoded."""

    program: ClassVar[str]
    environment: ClassVar[str]
    runtime: ClassVar[str]
    #: Integration -> ``module:first target`` of the candidate that must match.
    integrations: ClassVar[dict[str, list[str]]]
    #: How messages begin that another instrumentation logs, also where none of this package is in the runtime.
    said_by_others: ClassVar[tuple[str, ...]] = ()
    #: Whether the workflow's own input and output are payloads that are measured.
    measures_workflows: ClassVar[bool] = True
    #: Whether what a step is given is a payload; where it is not, the texts are carried in what `consume` returns.
    stores_inputs: ClassVar[bool] = True
    #: Whether a retried step shows each attempt to us.
    sees_attempts: ClassVar[bool] = True
    #: What ``error.type`` says when a step raises.
    error_type: ClassVar[str] = "BrokenError"
    #: Cases that this runtime's program has not.
    without: ClassVar[tuple[str, ...]] = ()
    #: Whether the runtime reports both ends of a workflow in the process of its steps: the run has a span then.
    has_runs: ClassVar[bool] = False
    span: ClassVar[str] = "execute_activity {activity}"
    scope: ClassVar[str] = "agent_otel"
    #: How a step's input reaches it: True when as the one argument, JSON-encoded.
    env: ClassVar[dict[str, str]] = {}
    own: ClassVar[dict[str, Case]] = {}

    @classmethod
    def encoded(cls, value: Any) -> int:
        """Bytes of a value as the runtime encodes it; here: JSON as the standard library writes it."""
        return len(json.dumps(value).encode())

    @classmethod
    def given_to(cls, activity: str, value: Any) -> int:
        """Bytes of an activity's input."""
        del activity
        return cls.encoded(value)

    @classmethod
    @contextlib.contextmanager
    def engine(cls, environment: Callable[[str], Environment]) -> Iterator[Json]:
        """Start what the children share; what they are told of it."""
        del environment
        yield {}

    @classmethod
    def cases(cls) -> dict[str, Case]:
        """Return the cases of this runtime; the first one also serves where any will do."""
        found = {
            "sync": cls.one("produce", 1000),
            "empty": cls.one("produce", 0),
            "async": cls.one("produce_later", 1001),
            "tool": cls.one("use_tool", 1002),
            "raises": cls.failing(),
            "retry": cls.retried(),
            "parallel": cls.parallel(),
            "turns": cls.turns(),
            **cls.own,
        }
        return {name: case for name, case in found.items() if case is not None and name not in cls.without}

    @classmethod
    def around(cls, workflow: str, given: Json, said: Any) -> tuple[Payload, ...]:
        """The payloads of the workflow itself; ``said`` None when it fails and has none."""
        if not cls.measures_workflows:
            return ()
        taken = Payload(workflow, "", "input", cls.encoded(given))
        return (taken,) if said is None else (taken, Payload(workflow, "", "output", cls.encoded(said)))

    @classmethod
    def step(cls, workflow: str, activity: str, given: Any, result: Any) -> tuple[Payload, ...]:
        """The payloads of a step; ``result`` None when it raises."""
        taken = Payload(workflow, activity, "input", cls.given_to(activity, given))
        return (taken,) if result is None else (taken, Payload(workflow, activity, "output", cls.encoded(result)))

    @classmethod
    def one(cls, activity: str, n: int) -> Case:
        given = {"activity": activity, "n": n}
        payloads = (*cls.around("one", given, n), *cls.step("one", activity, n, produce(n)))
        return Case("one", given, n, payloads, ((activity, None),))

    @classmethod
    def failing(cls) -> Case:
        given = {"activity": "broken", "n": 7}
        payloads = (*cls.around("one", given, None), *cls.step("one", "broken", 7, None))
        return Case("one", given, None, payloads, (("broken", cls.error_type),))

    @classmethod
    def retried(cls) -> Case:
        given = {"activity": "flaky", "n": 1003}
        steps = (("flaky", cls.error_type), ("flaky", None)) if cls.sees_attempts else (("flaky", None),)
        first = cls.step("retried", "flaky", 1003, None) if cls.sees_attempts else ()
        payloads = (*cls.around("retried", given, 1003), *first, *cls.step("retried", "flaky", 1003, produce(1003)))
        return Case("retried", given, 1003, payloads, steps)

    @classmethod
    def parallel(cls) -> Case:
        given = {"n": 1004}
        both = [payload for n in (1004, 1005) for payload in cls.step("parallel", "produce", n, produce(n))]
        return Case("parallel", given, 2009, (*cls.around("parallel", given, 2009), *both), (("produce", None),) * 2)

    @classmethod
    def turns(cls) -> Case:
        given = {"turns": TURNS, "n": TURN}
        texts = [produce(TURN + turn) for turn in range(TURNS)]
        said = sum(len(text) for text in texts)
        payloads = list(cls.around("turns", given, said))
        for turn, text in enumerate(texts):
            carried = texts[: turn + 1]
            payloads += cls.step("turns", "produce", TURN + turn, text)
            handed_on = sum(len(each) for each in carried) if cls.stores_inputs else carried
            payloads += cls.step("turns", "consume", carried, handed_on)
        return Case("turns", given, said, tuple(payloads), (("produce", None), ("consume", None)) * TURNS)

    @classmethod
    def run_children(cls, environment: Callable[[str], Environment], folder: Path) -> Runs:
        """Run the children against one engine."""
        folder.mkdir(parents=True, exist_ok=True)
        cases = {name: case.plan() for name, case in cls.cases().items()}
        first = dict([next(iter(cases.items()))])
        with cls.engine(environment) as engine:
            plan = {"engine": engine, "integrations": list(cls.integrations), "broken": CORE}
            reports = {
                mode: cls._run(environment(cls.environment), mode, {**plan, "cases": chosen}, folder)
                for mode, chosen in (("off", cases), ("on", cases), ("moved", first), ("broken", first))
            }
        return Runs(**reports)

    @classmethod
    def _run(cls, environment: Environment, mode: str, plan: Json, folder: Path) -> Json:
        file = folder / f"{mode}.json"
        file.write_text(json.dumps(plan))
        caps = f"{cls.runtime}.payload={CAP_BYTES},{cls.runtime}.state={CAP_BYTES}"
        done = environment.run(
            "import runpy; runpy.run_module('tests.contract.runtimes.child', run_name='__main__')",
            mode,
            cls.program,
            str(file),
            env={"AGENT_OTEL": "" if mode == "off" else "1", "AGENT_OTEL_CAPS": caps, **cls.env},
            timeout=110,
            check=True,
        )
        report: Json = json.loads(done.stdout.splitlines()[-1])
        return report

    # --- every case ---------------------------------------------------------------------------------------------

    def test_caller_gets_what_it_gets_without_us(self, runs: Runs, case_name: str) -> None:
        case, with_us, without = self.cases()[case_name], runs.on["cases"][case_name], runs.off["cases"][case_name]
        assert with_us["said"] == without["said"] == case.said, (with_us["error"], without["error"])
        assert (with_us["error"] is None) == (without["error"] is None)

    def test_each_payload_is_counted_once(self, runs: Runs, case_name: str) -> None:
        metrics = runs.on["cases"][case_name]["metrics"]
        counted: Counter[tuple[str, str, str]] = Counter()
        total: Counter[tuple[str, str, str]] = Counter()
        for metric in metrics:
            if metric["name"] == "agent_otel.workflow.payload.size":
                labels = metric["attributes"]
                assert labels["workflow.runtime"] == self.runtime
                key = (labels.get("gen_ai.workflow.name", ""), labels.get("workflow.activity", ""), labels["direction"])
                counted[key] += metric["count"]
                total[key] += metric["sum"]
        expected = self.cases()[case_name].payloads
        assert counted == Counter((p.workflow, p.activity, p.direction) for p in expected)
        sizes: Counter[tuple[str, str, str]] = Counter()
        for payload in expected:
            sizes[payload.workflow, payload.activity, payload.direction] += payload.bytes
        assert total == sizes

    def test_each_step_is_a_span(self, runs: Runs, case_name: str) -> None:
        case, found = self.cases()[case_name], self.steps(runs, case_name)
        read = [(span["attributes"]["workflow.activity"], span["attributes"].get("error.type")) for span in found]
        assert sorted(read, key=str) == sorted(case.steps, key=str)
        for span in found:
            attributes = span["attributes"]
            assert span["name"] == self.span.format(activity=attributes["workflow.activity"])
            assert span["scope"] == self.scope
            assert attributes["workflow.runtime"] == self.runtime
            assert attributes["gen_ai.workflow.name"] == (case.within or case.workflow)
        assert len({span["attributes"]["workflow.execution.id"] for span in found}) <= 1

    def steps(self, runs: Runs, case_name: str) -> list[Json]:
        """The spans of steps, in the order they ended."""
        spans = (span for span in runs.on["cases"][case_name]["spans"] if "workflow.activity" in span["attributes"])
        return [span for span in spans if not span["name"].startswith(_BESIDE)]

    @pytest.mark.shows("000.near_cap")
    def test_a_step_s_span_shows_the_payload_nearer_to_its_cap(self, runs: Runs) -> None:
        (span,) = self.steps(runs, "sync")
        attributes = span["attributes"]
        size = self.encoded(produce(1000))
        assert attributes["workflow.payload.bytes"] == size
        assert attributes["workflow.payload.direction"] == "output"
        assert attributes["workflow.payload.cap_bytes"] == CAP_BYTES
        assert attributes["workflow.payload.cap_source"] == "configured"
        assert attributes["workflow.payload.utilization"] == size / CAP_BYTES

    @pytest.mark.shows("000.workflow_step")
    def test_a_tool_in_a_step_belongs_to_it(self, runs: Runs) -> None:
        spans = runs.on["cases"]["tool"]["spans"]
        (tool,) = (span for span in spans if span["name"] == "execute_tool search")
        (step,) = self.steps(runs, "tool")
        assert tool["parent"] == step["name"]
        assert tool["attributes"]["workflow.execution.id"] == step["attributes"]["workflow.execution.id"]

    @pytest.mark.parametrize("name", ["sync", "tool", "turns"])
    def test_a_run_is_one_trace(self, runs: Runs, name: str) -> None:
        if not self.has_runs or self.scope != "agent_otel":
            return
        spans = [span for span in runs.on["cases"][name]["spans"] if span["scope"] == "agent_otel"]
        roots = [span["name"] for span in spans if span["parent"] is None]
        assert roots == [f"invoke_workflow {self.cases()[name].workflow}"]
        assert len({span["trace"] for span in spans}) == 1
        for tool in (span for span in spans if span["name"].startswith("execute_tool")):
            assert tool["attributes"]["gen_ai.workflow.name"] == self.cases()[name].workflow

    def test_turns_to_the_cap_are_known_from_the_third_on(self, runs: Runs) -> None:
        consumed = [s for s in self.steps(runs, "turns") if s["attributes"]["workflow.activity"] == "consume"]
        # Spans of two turns may end in another order: the one of a step ends after its runtime has gone on.
        consumed.sort(key=lambda span: span["attributes"]["workflow.payload.bytes"])
        left = [span["attributes"].get("workflow.payload.turns_to_cap") for span in consumed]
        # 1,048,576 bytes of cap less 300,000 are 7 more turns of 100,000.
        assert left == [None, None, 7, 6, 5, 4]

    def test_from_the_warn_ratio_up_the_payload_is_looked_into(self, runs: Runs) -> None:
        """What is found stands on the step's span; beside it, where that is the runtime's own and has ended."""
        said = [span["attributes"] for span in runs.on["cases"]["turns"]["spans"]]
        (last,) = (each for each in said if "workflow.payload.largest_path" in each)
        assert last["workflow.activity"] == "consume"
        texts = [produce(TURN + turn) for turn in range(TURNS)]
        assert last["workflow.payload.bytes"] == self.given_to("consume", texts)
        assert last["workflow.payload.largest_path"].endswith("[]")
        assert last["workflow.payload.largest_path_bytes"] >= TURNS * TURN
        assert last["workflow.payload.duplicate_bytes"] == 0

    def test_nothing_is_said_or_swallowed(self, runs: Runs, case_name: str) -> None:
        messages = runs.on["cases"][case_name]["messages"]
        assert [text for text in messages if not text.startswith(self.said_by_others)] == []
        assert runs.on["errors"] == {}

    # --- how it is put in ------------------------------------------------------------------------------------------

    def test_what_was_wrapped_is_told(self, runs: Runs) -> None:
        for name, targets in self.integrations.items():
            assert set(targets) <= set(runs.on["integrations"][name])

    def test_what_has_moved_is_told_and_the_program_runs(self, runs: Runs) -> None:
        name, case = next(iter(self.cases().items()))
        assert runs.moved["cases"][name]["said"] == case.said
        assert [runs.moved["integrations"][name] for name in self.integrations] == [["unmatched"]] * len(
            self.integrations
        )
        said = [text for text in runs.moved["cases"][name]["messages"] if "is not instrumented" in text]
        assert len(said) <= 1
        assert runs.moved["errors"] == {}

    def test_our_own_failure_is_not_the_step_s(self, runs: Runs) -> None:
        name, case = next(iter(self.cases().items()))
        assert runs.broken["cases"][name]["said"] == case.said
        assert sum(runs.broken["errors"].values()) >= 1
        messages = runs.broken["cases"][name]["messages"]
        assert len(messages) == len(set(messages)) >= 1, "logged once per place"


_BESIDE = "workflow_payload"
