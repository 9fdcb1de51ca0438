"""AWS Lambda durable functions, in their SDK's in-process runner."""

# ruff: noqa: D102 - a test's name and body say it
from __future__ import annotations

import contextlib
import dataclasses
import json
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from tests.contract.runtimes.steps import produce
from tests.contract.runtimes.suite import TURN, TURNS, Case, Json, Payload, Runs, RuntimeContract

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.environments import Environment

INVOKED = 1024 * 1024
MOST = INVOKED - len('{"text": ""}')


class TestAwsDurable(RuntimeContract):
    """The switch alone."""

    program = "aws_durable"
    environment = "aws-durable"
    runtime = "aws-durable"
    integrations: ClassVar = {"aws-durable": ["aws_durable_execution_sdk_python.execution:load_configured_plugins"]}
    without: ClassVar[tuple[str, ...]] = ("async",)  # its steps are functions

    @classmethod
    def encoded(cls, value: Any) -> int:
        """What the SDK's own serializer makes of plain values."""
        return len(json.dumps(value, separators=(",", ":") if isinstance(value, list) else None))

    @classmethod
    def step(cls, workflow: str, activity: str, given: Any, result: Any) -> tuple[Payload, ...]:
        """What a step takes in are the function's own variables; only its result is sent."""
        del given
        return () if result is None else (Payload(workflow, activity, "output", cls.encoded(result)),)

    @classmethod
    def parallel(cls) -> Case:
        """A branch's result is its step's, and all results are that of the whole: each is a checkpoint."""
        given = {"n": 1004}
        items = ",".join(
            f'{{"t":"m","v":{{"index":{{"t":"i","v":{index}}},"status":{{"t":"s","v":"SUCCEEDED"}},'
            f'"result":{{"t":"s","v":"{produce(n)}"}},"error":{{"t":"n","v":null}}}}}}'
            for index, n in enumerate((1004, 1005))
        )
        reason = '"completionReason":{"t":"s","v":"ALL_COMPLETED"}'
        batch = f'{{"t":"br","v":{{"all":{{"t":"l","v":[{items}]}},{reason}}}}}'
        payloads = [
            Payload("parallel", activity, "output", cls.encoded(produce(n)))
            for n in (1004, 1005)
            for activity in ("produce", "ParallelBranch")
        ]
        both = Payload("parallel", "both", "output", len(batch))
        return Case(
            "parallel", given, 2009, (*cls.around("parallel", given, 2009), *payloads, both), (("produce", None),) * 2
        )

    @classmethod
    def turns(cls) -> Case:
        """The second step returns all texts so far: only results are checkpointed."""
        given = {"turns": TURNS, "n": TURN}
        texts = [produce(TURN + turn) for turn in range(TURNS)]
        said = sum(len(text) for text in texts)
        payloads = list(cls.around("turns", given, said))
        for turn, text in enumerate(texts):
            payloads += cls.step("turns", "produce", None, text)
            payloads += cls.step("turns", "consume", None, texts[: turn + 1])
        return Case("turns", given, said, tuple(payloads), (("produce", None), ("consume", None)) * TURNS)

    @classmethod
    def cases(cls) -> dict[str, Case]:
        more = {
            "resumed": cls.resumed(),
            "polled": cls.polled(),
            "refused": cls.refused(),
            "invoking": cls.invoking(1006),
            "invoking the most": cls.invoking(MOST),
            "invoking too much": cls.invoking_too_much(),
            "nested": cls.nested(),
            "called back": cls.called_back(),
        }
        return {**super().cases(), **more}

    @classmethod
    def resumed(cls) -> Case:
        """The second step runs in another invocation, which replays the first."""
        given = {"n": 1006}
        steps = [payload for n in (1006, 1007) for payload in cls.step("resumed", "produce", n, produce(n))]
        return Case("resumed", given, 2013, (*cls.around("resumed", given, 2013), *steps), (("produce", None),) * 2)

    @classmethod
    def polled(cls) -> Case:
        """What each poll returns is checkpointed for the next."""
        given = {"n": 8}
        polls = [Payload("polled", "ask", "output", size) for size in (1, 2, 2)]  # 9, 10, 11
        return Case("polled", given, 11, (*cls.around("polled", given, 11), *polls), (("ask", None),) * 3)

    @classmethod
    def refused(cls) -> Case:
        given = {"n": 300_000}
        payloads = (*cls.around("refused", given, None), *cls.step("refused", "oversized", None, produce(300_000)))
        return Case("refused", given, None, payloads, (("oversized", "CheckpointError"),))

    @classmethod
    def invoking(cls, n: int) -> Case:
        """What another function is given and returns; it is no step of this process."""
        sent = Payload("invoking", "again", "input", cls.encoded({"text": produce(n)}))
        back = Payload("invoking", "again", "output", cls.encoded(produce(n)))
        return Case("invoking", {"n": n}, n, (*cls.around("invoking", {"n": n}, n), sent, back), ())

    @classmethod
    def invoking_too_much(cls) -> Case:
        """The runner invokes the function five times, which sends the same each time."""
        given = {"n": MOST + 1}
        sent = Payload("invoking", "again", "input", INVOKED + 1)
        return Case("invoking", given, None, (*cls.around("invoking", given, None), *(sent,) * 5), ())

    @classmethod
    def nested(cls) -> Case:
        """Another durable function counts its own."""
        one = cls.one("produce", 1009)
        around = [dataclasses.replace(each, activity="other") for each in cls.around("nested", one.given, 1009)]
        payloads = (*cls.around("nested", one.given, 1009), *around, *one.payloads)
        return Case("nested", one.given, 1009, payloads, one.steps, "one")

    @classmethod
    def called_back(cls) -> Case:
        """What comes from outside is not serialised by the SDK."""
        given = {"n": 1010}
        came = Payload("called_back", "approval", "message", 1010)
        asked = Payload("called_back", "ask", "output", len("null"))
        payloads = (*cls.around("called_back", given, 1010), asked, came)
        return Case("called_back", given, 1010, payloads, (("ask", None),))

    def test_what_the_service_refuses_is_counted(self, runs: Runs) -> None:
        counted = {
            (name, metric["name"].rpartition(".")[2], *_where(metric)): metric["sum"]
            for name, case in runs.on["cases"].items()
            for metric in case["metrics"]
            if metric["name"].endswith((".rejected", ".stuck_retries", ".over_cap")) and metric["sum"]
        }
        assert counted == {
            ("refused", "rejected", "oversized", "output"): 1,
            ("invoking too much", "over_cap", "again", "input"): 5,
            ("invoking too much", "rejected", "again", "input"): 5,
            ("invoking too much", "stuck_retries", "again", "input"): 4,
        }

    def test_attempts_are_told(self, runs: Runs) -> None:
        attempts = [span["attributes"].get("workflow.activity.attempt") for span in self.steps(runs, "retry")]
        assert attempts == [None, 2]


def _where(metric: Json) -> tuple[str, str]:
    return metric["attributes"]["workflow.activity"], metric["attributes"]["direction"]


class _Few(TestAwsDurable):
    """Some of the cases, with the plug-in put in by other ways."""

    @classmethod
    def cases(cls) -> dict[str, Case]:
        few = ("sync", "tool", "retry", "turns", "resumed", "refused", "invoking too much", "called back")
        return {name: case for name, case in super().cases().items() if name in few}


class TestAwsDurableByItsOwnVariable(_Few):
    """The SDK's variable is the switch, as in a Lambda layer."""

    env: ClassVar = {"AGENT_OTEL": "", "DURABLE_EXECUTION_PLUGINS": "agent_otel"}


class TestAwsDurableByAllWaysAtOnce(_Few):
    """The switch, the SDK's variable and the handler's own list name one plug-in."""

    env: ClassVar = {"DURABLE_EXECUTION_PLUGINS": "agent_otel"}

    @classmethod
    @contextlib.contextmanager
    def engine(cls, environment: Callable[[str], Environment]) -> Iterator[Json]:
        del environment
        yield {"explicit": True}


class TestAwsDurableBesideItsOwnTracing(TestAwsDurable):
    """AWS's plug-in has ended the span of an attempt when its result is serialised: that is said beside it."""

    env: ClassVar = {"DURABLE_EXECUTION_PLUGINS": "otel-invocation"}
    span = "{activity} attempt 1"
    scope = "aws-durable-execution-sdk-python"

    without = ("async", "raises", "empty", "parallel", "retry")

    @classmethod
    def cases(cls) -> dict[str, Case]:
        """A checkpoint that is refused is not told on the attempt's span; a second attempt's has another name."""
        found = super().cases()
        found["refused"] = dataclasses.replace(found["refused"], steps=(("oversized", None),))
        del found["polled"]
        return found

    def test_a_step_s_span_shows_the_payload_nearer_to_its_cap(self, runs: Runs) -> None:
        (span,) = self.steps(runs, "sync")
        assert "workflow.payload.bytes" not in span["attributes"]

    def test_turns_to_the_cap_are_known_from_the_third_on(self, runs: Runs) -> None:
        beside = [span for span in runs.on["cases"]["turns"]["spans"] if span["name"] == "workflow_payload consume"]
        assert [span["attributes"].get("workflow.payload.turns_to_cap") for span in beside] == [4]

    def test_attempts_are_told(self, runs: Runs) -> None:
        (refused,) = (s for s in runs.on["cases"]["refused"]["spans"] if s["name"] == "workflow_payload oversized")
        assert refused["attributes"]["workflow.payload.rejected"] is True
        assert refused["attributes"]["error.type"] == "CheckpointError"


_SIDE_BY_SIDE = """
import json, os, time
from aws_durable_execution_sdk_python import durable_execution
from aws_durable_execution_sdk_python.config import Duration, MapConfig, NestingType
from aws_durable_execution_sdk_python_testing import DurableFunctionTestRunner
from tests.contract.child import Messages, Telemetry
messages, telemetry = Messages(), Telemetry()
one_by_one = {"waiting": 1, "nested": 1}.get(os.environ["HOW"])
nesting = NestingType.FLAT if os.environ["HOW"] == "flat" else NestingType.NESTED

def produce(number):
    time.sleep(0 if one_by_one else number / 4)
    return "a" * 60_000 * number

def step(context, number):
    return context.step(lambda _: produce(number), name="produce")

@durable_execution
def handler(event, context):
    def each(branch, number, index, items):
        if os.environ["HOW"] == "waiting":
            text = step(branch, number)
            branch.wait(Duration.from_seconds(1))
            return text
        if os.environ["HOW"] == "nested":
            return branch.run_in_child_context(lambda child: step(child, number), name="inner")
        return step(branch, number)
    config = MapConfig(max_concurrency=one_by_one, nesting_type=nesting)
    return sum(len(text) for text in context.map([1, 2, 3], each, name="all", config=config).get_results())

with DurableFunctionTestRunner(handler=handler) as runner:
    done = runner.run(input="{}", execution_timeout=60)
from agent_otel.core.executions import executions
(state,) = executions._executions.values()
series = [history.sizes for (_, activity, _), history in state.tracks.items() if activity == "produce"]
metrics = telemetry.metrics()
steps = [m for m in metrics if m["attributes"].get("workflow.activity") == "produce"]
sizes = [m["sum"] for m in steps if m["name"].endswith("payload.size")]
turns = [m["name"] for m in metrics if m["name"].endswith((".growth", ".few_turns_left")) and m["sum"]]
print(json.dumps([done.result, sizes, sorted(series), turns, messages.take()]))
"""


@pytest.mark.parametrize("how", ["together", "waiting", "nested", "flat"])
def test_branches_side_by_side_are_no_turns(environment: Callable[[str], Environment], how: str) -> None:
    """60, 120 and 180 kB under a cap of 256 KiB are no payload that meets it in the next turn.

    A branch that ``waiting`` ends resumes in another invocation. The SDK's flat branches have no operations of their
    own, so that none of their steps has a series.
    """
    done = environment("aws-durable").run(_SIDE_BY_SIDE, env={"AGENT_OTEL": "1", "HOW": how}, check=True)
    series = [] if how == "flat" else [[60_002], [120_002], [180_002]]
    assert json.loads(done.stdout.splitlines()[-1]) == ["360000", [360_006], series, [], []]
