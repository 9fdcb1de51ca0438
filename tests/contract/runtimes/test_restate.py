"""Restate, on its real server."""

# ruff: noqa: D102 - a test's name and body say it
from __future__ import annotations

import contextlib
import dataclasses
import json
from typing import TYPE_CHECKING, Any, ClassVar

from tests.contract.runtimes.steps import produce
from tests.contract.runtimes.suite import TURN, TURNS, Case, Json, Payload, Runs, RuntimeContract
from tests.system.engines import restate, starting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.environments import Environment

SERVICE = "agent"
# The server takes messages of 33,816,575 bytes; this is 34 MiB and two quotation marks.
REFUSED = 34 * 1024 * 1024
REFUSED_BYTES = REFUSED + 2


class Restate(RuntimeContract):
    """What all ways of calling a service have in common."""

    program = "restate"
    environment = "restate"
    runtime = "restate"
    stores_inputs = False
    integrations: ClassVar = {"restate": ["restate.server_context:ServerInvocationContext.create_run_coroutine"]}
    #: Whether the server traces, and sends a trace context with each attempt.
    traced: ClassVar[bool] = False
    #: Whether the server speaks HTTP/1.1 to the service.
    http_11: ClassVar[bool] = False
    #: Whether a codec makes everything unreadable.
    sealed: ClassVar[bool] = False
    #: How often a handler is begun that sleeps between two steps.
    begun: ClassVar[int] = 2

    @classmethod
    @contextlib.contextmanager
    def engine(cls, environment: Callable[[str], Environment]) -> Iterator[Json]:
        del environment
        settings = {"RESTATE_WORKER__INVOKER__INACTIVITY_TIMEOUT": "1s"}
        if cls.traced:
            settings["RESTATE_TRACING_ENDPOINT"] = "http://127.0.0.1:9/"  # no program listens there
        with starting.or_skip(restate.server(**settings)) as server:
            given = {"http_11": cls.http_11, "sealed": cls.sealed}
            yield {"ingress": server.ingress, "admin": server.admin, **given}

    @classmethod
    def step(cls, workflow: str, activity: str, given: Any, result: Any) -> tuple[Payload, ...]:
        """What a run takes in are the handler's own variables; only its result is sent."""
        del given
        return () if result is None else (Payload(workflow, activity, "output", cls.encoded(result)),)

    @classmethod
    def cases(cls) -> dict[str, Case]:
        more = {"slept": cls.slept(), "crashes": cls.crashes()}
        found = {name: _of_service(case) for name, case in {**super().cases(), **more}.items()}
        return {**found, "state": cls.remembered()}

    @classmethod
    def slept(cls) -> Case:
        """The handler says how often it was begun, so that there was a replay."""
        given = {"n": 1007, "seconds": 3.0}
        steps = cls.step("slept", "produce", None, produce(1007)) * 2
        payloads = (*cls.around("slept", given, cls.begun), *steps)
        return Case("slept", given, cls.begun, payloads, (("produce", None),) * 2)

    @classmethod
    def crashes(cls) -> Case:
        """Each attempt is given the same input, which is one payload."""
        given = {"n": 1008}
        return Case("crashes", given, None, cls.around("crashes", given, None), ())

    @classmethod
    def remembered(cls) -> Case:
        workflow, given = "memory/remember", {"n": 1006}
        stored = Payload(workflow, "", "state", cls.encoded(produce(1006)))
        steps = cls.step(workflow, "produce", None, produce(1006))
        return Case(workflow, given, 1006, (*cls.around(workflow, given, 1006), stored, *steps), (("produce", None),))


class TestRestate(Restate):
    """Both ways are open while a handler runs: an attempt goes on until it fails or has nothing to do."""

    @classmethod
    def cases(cls) -> dict[str, Case]:
        return {**super().cases(), "refused": _of_service(cls.refused()), "returned": _of_service(cls.returned())}

    @classmethod
    def refused(cls) -> Case:
        """Each of three attempts runs the step again."""
        given = {"n": REFUSED}
        made = (Payload("refused", "produce", "output", REFUSED_BYTES),) * 3
        return Case("refused", given, None, (*cls.around("refused", given, None), *made), (("produce", None),) * 3)

    @classmethod
    def returned(cls) -> Case:
        given = {"n": REFUSED}
        made = (Payload("returned", "", "output", REFUSED_BYTES),) * 3
        return Case("returned", given, None, (*cls.around("returned", given, None), *made), ())

    def test_attempts_are_counted(self, runs: Runs) -> None:
        attempts = [span["attributes"].get("workflow.activity.attempt") for span in self.steps(runs, "retry")]
        assert attempts == [None, 2]

    def test_a_step_that_is_run_again_for_its_result_was_refused(self, runs: Runs) -> None:
        counters = _counters(runs, "refused", "agent/refused", "produce")
        assert counters == {"over_cap": 3, "rejected": 2, "stuck_retries": 1}
        attempts = [span["attributes"].get("workflow.activity.attempt") for span in self.steps(runs, "refused")]
        assert attempts == [None, 2, 3]

    def test_a_handler_that_is_run_again_for_its_result_was_refused(self, runs: Runs) -> None:
        counters = _counters(runs, "returned", "agent/returned", None)
        assert counters == {"over_cap": 3, "rejected": 2, "stuck_retries": 1}

    def test_no_other_case_was_refused_anything(self, runs: Runs) -> None:
        refused = {
            name
            for name, case in runs.on["cases"].items()
            for metric in case["metrics"]
            if metric["name"] == "agent_otel.workflow.payload.rejected" and metric["sum"]
        }
        assert refused == {"refused", "returned"}


class TestRestateOverHTTP11(TestRestate):
    """HTTP/1.1 has no way back while a request is read: each result ends the attempt, and the next one replays."""

    http_11 = True
    begun = 4


class TestRestateSealed(Restate):
    """With a codec of the program's own: sizes are right, and nothing can be read."""

    sealed = True
    traced = True

    @classmethod
    def encoded(cls, value: Any) -> int:
        return len("sealed") + super().encoded(value)

    def test_from_the_warn_ratio_up_the_payload_is_looked_into(self, runs: Runs) -> None:
        consumed = [s for s in self.steps(runs, "turns") if s["attributes"]["workflow.activity"] == "consume"]
        gathered = [produce(TURN + turn) for turn in range(TURNS)]
        assert consumed[-1]["attributes"]["workflow.payload.bytes"] == self.encoded(gathered)
        assert not any("workflow.payload.largest_path" in span["attributes"] for span in consumed)

    def test_the_steps_of_a_run_are_below_the_server_s_span(self, runs: Runs) -> None:
        """Each of them would be the root of a trace else."""
        steps = self.steps(runs, "turns")
        assert (len(steps), len({span["trace"] for span in steps})) == (2 * TURNS, 1)


_OWN = """
import json, sys
from tests.contract.child import Telemetry
telemetry = Telemetry()
import agent_otel
from tests.contract.runtimes.programs import restate
from tests.contract.toolbox import lookup
looked_up = agent_otel.tool(lookup)

@restate.agent.handler()
async def own(ctx, given):
    looked_up(key="a")
    return len(await ctx.run_typed("look", looked_up, restate.ONCE, key="a"))

with restate.running(json.loads(sys.argv[1])) as call:
    call("agent/own", {})
spans = [span["attributes"] for span in telemetry.spans() if "tool.args_hash" in span["attributes"]]
repeats = [metric["sum"] for metric in telemetry.metrics() if metric["name"] == "agent_otel.tool.repeats"]
print(json.dumps([[span.get("gen_ai.workflow.name") for span in spans], sum(repeats)]))
"""


def test_a_tool_in_a_handlers_own_code_belongs_to_the_invocation(environment: Callable[[str], Environment]) -> None:
    """The same call in a step of the handler repeats it."""
    with TestRestate.engine(environment) as engine:
        done = environment("restate").run(_OWN, json.dumps(engine), env={"AGENT_OTEL": "1"}, check=True)
    assert json.loads(done.stdout.splitlines()[-1]) == [["agent/own", "agent/own"], 1]


def _of_service(case: Case) -> Case:
    """A workflow is a service's handler, and both make its name."""
    payloads = tuple(dataclasses.replace(each, workflow=f"{SERVICE}/{each.workflow}") for each in case.payloads)
    return dataclasses.replace(case, workflow=f"{SERVICE}/{case.workflow}", payloads=payloads)


def _counters(runs: Runs, case: str, workflow: str, activity: str | None) -> dict[str, int]:
    """What the alerting counters say of a workflow's or step's output, by the last part of their names."""
    found: dict[str, int] = {}
    for metric in runs.on["cases"][case]["metrics"]:
        name, labels = metric["name"].rpartition(".")[2], metric["attributes"]
        is_counter = name in ("over_cap", "rejected", "stuck_retries")
        of_it = labels.get("gen_ai.workflow.name") == workflow and labels.get("workflow.activity") == activity
        if is_counter and of_it and labels["direction"] == "output":
            found[name] = found.get(name, 0) + metric["sum"]
    return found
