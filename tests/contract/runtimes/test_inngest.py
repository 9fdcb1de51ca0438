"""Inngest, behind its SDK's own handler: there is no server to be had as a package."""

# ruff: noqa: D102 - a test's name and body say it
from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any, ClassVar

from tests.contract.runtimes.steps import produce
from tests.contract.runtimes.suite import TURN, TURNS, Case, Json, Payload, RuntimeContract

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.contract.runtimes.suite import Runs
    from tests.environments import Environment


def _compact(value: Any) -> int:
    return len(json.dumps(value, separators=(",", ":")))


def _state(workflow: str, given: Json, results: Sequence[Any]) -> int:
    """Bytes of a request: the event, and what the steps so far have returned by their ids."""
    memos = {f"{number:040}": {"data": result} for number, result in enumerate(results)}
    context = {
        "attempt": 0,
        "disable_immediate_execution": False,
        "max_attempts": 2,
        "run_id": "run-001",
        "stack": {"stack": list(memos)},
    }
    event = {"name": f"agent/{workflow}", "data": given, "id": "event", "ts": 1}
    return _compact({"ctx": context, "event": event, "events": [event], "steps": memos, "use_api": False})


class TestInngest(RuntimeContract):
    """The server is played by the program: it calls a function until no step is left."""

    program = "inngest"
    environment = "inngest"
    runtime = "inngest"
    stores_inputs = False
    integrations: ClassVar = {
        "inngest": [
            "inngest._internal.execution_lib.v0:ExecutionV0.report_step",
            "inngest._internal.function:Function.call",
            "inngest._internal.comm_lib.models:_prep_call_result",
        ],
    }

    @classmethod
    def around(cls, workflow: str, given: Json, said: Any) -> tuple[Payload, ...]:
        taken = Payload(workflow, "", "input", _compact(given))
        return (taken,) if said is None else (taken, Payload(workflow, "", "output", cls.encoded(said)))

    @classmethod
    def step(cls, workflow: str, activity: str, given: Any, result: Any) -> tuple[Payload, ...]:
        """What a step takes in are the function's own variables; only its result is sent."""
        del given
        return () if result is None else (Payload(workflow, activity, "output", cls.encoded(result)),)

    @classmethod
    def cases(cls) -> dict[str, Case]:
        found = super().cases()
        found["raises"] = dataclasses.replace(found["raises"], steps=(("broken", cls.error_type),) * 2)
        found["unserialisable"] = Case(
            "unserialisable",
            {"n": 1},
            None,
            cls.around("unserialisable", {"n": 1}, None),
            (("opaque", "OutputUnserializableError"),) * 2,
        )
        found["bare"] = Case("bare", {"n": 1006}, produce(1006), cls.around("bare", {"n": 1006}, produce(1006)), ())
        return {name: cls.with_states(name, case) for name, case in found.items()}

    @classmethod
    def with_states(cls, name: str, case: Case) -> Case:
        """The state comes with the first call, and with each that follows a result; not again with a retry."""
        texts = [produce(TURN + turn) for turn in range(TURNS)]
        known: dict[str, list[Any]] = {
            "parallel": [produce(1004), produce(1005)],
            "turns": [result for turn in range(TURNS) for result in (texts[turn], texts[: turn + 1])],
        }
        results = known.get(name, [] if case.said is None or name == "bare" else [produce(case.given["n"])])
        # The other calls are of steps that were planned.
        calls = [0, 2] if name == "parallel" else list(range(len(results) + 1))
        states = [
            Payload(case.workflow, "", "state", _state(case.workflow, case.given, results[:done])) for done in calls
        ]
        return dataclasses.replace(case, payloads=(*case.payloads, *states))

    def test_attempts_are_told(self, runs: Runs) -> None:
        attempts = [span["attributes"].get("workflow.activity.attempt") for span in self.steps(runs, "retry")]
        assert attempts == [None, 2]

    def test_from_the_warn_ratio_up_the_payload_is_looked_into(self, runs: Runs) -> None:
        """The state is nearer to its cap than any result: it has all of them."""
        spans = [span for span in runs.on["cases"]["turns"]["spans"] if span["name"] == "workflow_payload turns"]
        looked_into = [span["attributes"] for span in spans if "workflow.payload.largest_path" in span["attributes"]]
        assert looked_into
        for attributes in looked_into:
            assert attributes["workflow.payload.direction"] == "state"
            assert attributes["workflow.payload.largest_path"].startswith("steps.")


_UNKNOWN = """
import gc, json, logging
import agent_otel, fastapi, inngest, inngest.fast_api
from starlette.testclient import TestClient
from agent_otel.integrations.runtimes import inngest as adapter

client = inngest.Inngest(app_id="agent", is_production=False, logger=logging.getLogger("quiet"))
client.logger.setLevel(100)

@client.create_function(fn_id="one", trigger=inngest.TriggerEvent(event="a/one"))
async def one(ctx: inngest.Context) -> int:
    return 1

app = fastapi.FastAPI()
inngest.fast_api.serve(app, client, [one])
http = TestClient(app)
stack = {"attempt": 0, "disable_immediate_execution": True, "run_id": "r", "stack": {"stack": []}}
event = {"name": "a/one", "data": {"x": "x" * 1000}}
body = {"ctx": stack, "event": event, "events": [event], "steps": {}, "use_api": False}
found = []
for name in ("agent-one", "agent-renamed"):
    answer = http.post(f"/api/inngest?fnId={name}&stepId=step", json=body)
    gc.collect()
    found.append([answer.status_code, len(adapter._bodies)])
print(json.dumps(found))
"""


def test_a_request_that_calls_no_function_leaves_nothing_behind(environment: Callable[[str], Environment]) -> None:
    child = environment("inngest").run(_UNKNOWN, env={"AGENT_OTEL": "1"}, check=True)
    assert json.loads(child.stdout.splitlines()[-1]) == [[200, 0], [500, 0]]
