"""Microsoft's durabletask, on its in-memory backend."""

# ruff: noqa: D101, D102 - a test's name and body say it
from __future__ import annotations

import json
from typing import TYPE_CHECKING, ClassVar

import pytest

from tests.contract.runtimes.steps import produce
from tests.contract.runtimes.suite import CAP_BYTES, Case, Payload, RuntimeContract
from tests.contract.suite import QUIET

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.contract.runtimes.suite import Json, Runs
    from tests.environments import Environment

MESSAGE = 4 * 1024 * 1024
TOO_MUCH = MESSAGE + 1000


class TestDurabletask(RuntimeContract):
    program = "durabletask"
    environment = "durabletask"
    runtime = "durabletask"
    has_runs = True
    integrations: ClassVar = {"durabletask": ["durabletask.worker:_ActivityExecutor.execute"]}
    without: ClassVar[tuple[str, ...]] = ("async",)  # its activities are functions
    span = "activity:{activity}"  # its own tracing
    scope = "durabletask"
    #: What is refused in the cases in which something is: activity and direction.
    refused: ClassVar[dict[str, dict[tuple[str, str], int]]] = {
        "result too large": {("produce", "output"): 1},
        "input too large": {("consume", "input"): 1},
        "inputs too large together": {("consume", "input"): 1},
        "child's input too large": {("", "input"): 1},
        "status too large": {("", "state"): 1},
        "last status too large": {("", "state"): 1},
    }

    @classmethod
    def cases(cls) -> dict[str, Case]:
        return {
            **super().cases(),
            "resumed": cls.resumed(),
            "renewed": cls.renewed(),
            "nested": cls.nested(),
            "result too large": cls.result_too_large(),
            "input over a cap": cls.spread(CAP_BYTES, 1),
            "input too large": cls.spread(TOO_MUCH, 1, seconds=2),
            "inputs too large together": cls.spread(900_000, 5, seconds=2),
            "child's input too large": cls.turn_too_large("handing", "input", cls.encoded(produce(TOO_MUCH))),
            "status too large": cls.turn_too_large(
                *("showing", "state", cls.status(produce(TOO_MUCH))),
                Payload("showing", "consume", "input", cls.given_to("consume", ["a"])),
            ),
            "last status too large": cls.last_status_too_large(),
            "history": cls.history(),
        }

    @classmethod
    def resumed(cls) -> Case:
        given = {"n": 1006}
        steps = [payload for n in (1006, 1007) for payload in cls.step("resumed", "produce", n, produce(n))]
        return Case("resumed", given, 2013, (*cls.around("resumed", given, 2013), *steps), (("produce", None),) * 2)

    @classmethod
    def renewed(cls) -> Case:
        """What a workflow continues with is an input, once; it is no output."""
        inputs = [payload for left in (2, 1, 0) for payload in cls.around("renewed", {"n": 1008, "left": left}, None)]
        said = Payload("renewed", "", "output", cls.encoded(1008))
        steps = cls.step("renewed", "produce", 1008, produce(1008)) * 3
        return Case("renewed", {"n": 1008, "left": 2}, 1008, (*inputs, said, *steps), (("produce", None),) * 3)

    @classmethod
    def nested(cls) -> Case:
        one = cls.one("produce", 1009)
        return Case(
            "nested", one.given, 1009, (*cls.around("nested", one.given, 1009), *one.payloads), one.steps, "one"
        )

    @classmethod
    def result_too_large(cls, activity: str = "produce") -> Case:
        """The sidecar does not take it, the worker says so in its log, and the workflow never ends."""
        given = {"activity": activity, "n": TOO_MUCH, "seconds": 2}
        step = cls.step("one", activity, TOO_MUCH, produce(TOO_MUCH))
        return Case("one", given, None, (*cls.around("one", given, None), *step), ((activity, None),))

    @classmethod
    def spread(cls, n: int, times: int, seconds: int | None = None) -> Case:
        """Inputs that pass, or that the sidecar does not take: these never reach an activity, nor an end."""
        given = {"n": n, "times": times, **({"seconds": seconds} if seconds else {})}
        said = None if seconds else n * times
        step = cls.step("spread", "consume", [produce(n)], None if seconds else n) * times
        ran = () if seconds else (("consume", None),) * times
        return Case("spread", given, said, (*cls.around("spread", given, said), *step), ran)

    @classmethod
    def status(cls, text: str) -> int:
        """Bytes of a workflow's status."""
        return cls.encoded(text)

    @classmethod
    def turn_too_large(cls, workflow: str, direction: str, size: int, *beside: Payload) -> Case:
        """The first turn sends a text that is no activity's, which the sidecar does not take."""
        given = {"n": TOO_MUCH, "seconds": 2}
        text = Payload(workflow, "", direction, size)
        return Case(workflow, given, None, (*cls.around(workflow, given, None), text, *beside), ())

    @classmethod
    def last_status_too_large(cls) -> Case:
        """The turn that sends it ends the workflow, with a result of one letter."""
        given = {"n": TOO_MUCH, "seconds": 2}
        text = Payload("leaving", "", "state", cls.status(produce(TOO_MUCH)))
        payloads = (*cls.around("leaving", given, 1), *cls.step("leaving", "consume", ["a"], 1), text)
        return Case("leaving", given, None, payloads, (("consume", None),))

    @classmethod
    def history(cls) -> Case:
        """Four turns of 390,000 B: 3.9 MB of history are sent with the last one's result, then 5.5 MB never arrive."""
        given = {"turns": 4, "n": 390_000, "seconds": 3}
        payloads = list(cls.around("turns", given, None))
        for turn in range(4):
            texts = [produce(390_000 + each) for each in range(turn + 1)]
            payloads += cls.step("turns", "produce", 390_000 + turn, texts[-1])
            payloads += cls.step("turns", "consume", texts, sum(map(len, texts)))
        return Case("turns", given, None, tuple(payloads), (("produce", None), ("consume", None)) * 4)

    @staticmethod
    def counted(runs: Runs, case_name: str, name: str) -> dict[tuple[str, str], Json]:
        """Points of a metric by activity and direction, with the sum of all that were collected."""
        found: dict[tuple[str, str], Json] = {}
        for metric in runs.on["cases"][case_name]["metrics"]:
            if metric["name"] == f"agent_otel.workflow.{name}":
                labels = metric["attributes"]
                key = labels.get("workflow.activity", ""), labels.get("direction", "")
                before = found.get(key, {"sum": 0})["sum"]
                found[key] = {**metric, "sum": before + metric["sum"]}
        return found

    def test_what_the_sidecar_refuses_is_counted(self, runs: Runs) -> None:
        refused = {
            name: {where: metric["sum"] for where, metric in self.counted(runs, name, "payload.rejected").items()}
            for name in self.cases()
        }
        assert {name: found for name, found in refused.items() if found} == self.refused

    def test_history_is_all_events_that_come_with_a_turn(self, runs: Runs) -> None:
        payloads = self.cases()["turns"].payloads
        (given,) = (payload.bytes for payload in payloads if not payload.activity and payload.direction == "input")
        steps = [payload.bytes for payload in payloads if payload.activity]
        # A turn for each step, in and out, and the first.
        sent = [given + sum(steps[:done]) for done in range(0, len(steps) + 1, 2)]
        events = [2 + 3 * turn for turn in range(len(sent))]
        (metric,) = self.counted(runs, "turns", "history.size").values()
        assert metric["count"] == len(sent)
        assert 0 < metric["sum"] - sum(sent) < 100 * sum(events)

    def test_history_near_its_cap_is_told_before_it_no_longer_arrives(self, runs: Runs) -> None:
        near = self.counted(runs, "history", "payload.near_cap")["", "history"]
        assert near["sum"] == 2  # 3.5 and 3.9 of 4.2 MB, or of 4.0 at Dapr
        assert ("", "history") not in self.counted(runs, "history", "payload.over_cap")


class TestDurabletaskOldest(TestDurabletask):
    environment = "durabletask-1.5"


ATTEMPTS = """
import json
from durabletask import worker
from durabletask.internal import orchestrator_service_pb2 as pb
import agent_otel
from tests.contract.child import Messages, Telemetry

messages, telemetry = Messages(), Telemetry()

@agent_otel.tool
def charge(customer):
    return "charged"

def pay(context, customer):
    return charge(customer)

class Hub:
    def CompleteActivityTask(self, response):
        assert response.result.value == '"charged"', response

worker = worker.TaskHubGrpcWorker()
name = worker.add_activity(pay)
for run, task in (("run-1", 3), ("run-1", 3), ("run-1", 4), ("run-2", 3), ("run-1", 3), (None, 3), (None, 3)):
    request = pb.ActivityRequest(name=name, taskId=task)
    request.orchestrationInstance.instanceId = "order"
    if run is not None:
        request.orchestrationInstance.executionId.value = run
    request.input.value = '"a"'
    worker._execute_activity(request, Hub(), "token")
calls = [span["attributes"] for span in telemetry.spans() if span["name"].startswith("execute_tool")]
print(json.dumps([[call.get("workflow.activity.attempt") for call in calls], messages.take()]))
"""


@pytest.mark.parametrize("name", ["durabletask", "durabletask-1.5"])
@pytest.mark.shows("000.replay")
def test_the_attempt_is_known_where_the_hub_names_the_run(environment: Callable[[str], Environment], name: str) -> None:
    """As the worker calls it with a hub's requests; the backend in memory names no run."""
    done = environment(name).run(ATTEMPTS, env={**QUIET, "AGENT_OTEL": "1"}, check=True)
    assert json.loads(done.stdout.splitlines()[-1]) == [[None, 2, None, None, 3, None, None], []]


STORED = """
import json
from durabletask import client
from durabletask.payload import LargePayloadStorageOptions, PayloadStore
from tests.contract.child import Messages, Telemetry
from tests.contract.runtimes.programs import durabletask as program


class Memory(PayloadStore):
    options = LargePayloadStorageOptions(enable_compression=False)

    def __init__(self):
        self.stored = {}

    def upload(self, data, *, instance_id=None):
        token = f"memory:{len(self.stored)}"
        self.stored[token] = data
        return token

    def download(self, token):
        return self.stored[token]

    async def upload_async(self, data, *, instance_id=None):
        return self.upload(data)

    async def download_async(self, token):
        return self.download(token)

    def is_known_token(self, value):
        return value in self.stored


messages, telemetry, store = Messages(), Telemetry(), Memory()
with program.backend() as address, program.working(address, store):
    tasks = client.TaskHubGrpcClient(host_address=address, payload_store=store)
    instance = tasks.schedule_new_orchestration("one", input={"activity": "produce", "n": 5_000_000})
    done = tasks.wait_for_orchestration_completion(instance, timeout=200)
    stored = len(store.stored)
    spans = telemetry.spans()
    names = [metric["name"] for metric in telemetry.metrics()]
    instance = tasks.schedule_new_orchestration("one", input={"activity": "produce", "n": 11_000_000})
    try:
        tasks.wait_for_orchestration_completion(instance, timeout=1)
    except TimeoutError:
        pass
refused = [m["attributes"] for m in telemetry.metrics() if m["name"].endswith("payload.rejected") and m["sum"]]
spans = [span["attributes"] for span in spans if "workflow.activity" in span["attributes"]]
print(json.dumps([done.serialized_output, stored, spans, names, refused, messages.take()]))
"""


@pytest.mark.parametrize("name", ["durabletask", "durabletask-1.5"])
def test_with_a_payload_store_its_limit_is_the_cap(environment: Callable[[str], Environment], name: str) -> None:
    done = environment(name).run(STORED, env={"AGENT_OTEL": "1"}, check=True)
    said, stored, spans, names, refused, messages = json.loads(done.stdout.splitlines()[-1])
    assert (said, stored, messages) == ("5000000", 1, [])
    (step,) = (span for span in spans if "workflow.payload.largest_path" not in span)
    assert step["workflow.payload.bytes"] == 5_000_002
    assert (step["workflow.payload.cap_bytes"], step["workflow.payload.cap_source"]) == (10_485_760, "discovered")
    assert "agent_otel.workflow.history.size" not in names, "of the history only the token is sent"
    (where,) = refused
    assert (where["workflow.activity"], where["direction"]) == ("produce", "output")


_TO_AN_ENTITY = """
import json, time
from durabletask import client, entities, worker
from tests.contract.child import Messages, Telemetry
from tests.contract.runtimes.programs import durabletask as program

messages, telemetry = Messages(), Telemetry()

def asking(context, _):
    context.signal_entity(entities.EntityInstanceId("counter", "a"), "add", "a" * 5_000_000)
    yield context.call_activity(program.consume, input=["a"])

with program.backend() as address, worker.TaskHubGrpcWorker(host_address=address) as hub:
    hub.add_orchestrator(asking)
    hub.add_activity(program.consume)
    hub.start()
    client.TaskHubGrpcClient(host_address=address).schedule_new_orchestration("asking")
    refused = []
    while not refused:
        time.sleep(0.1)
        refused = [m for m in telemetry.metrics() if m["name"].endswith("payload.rejected") and m["sum"]]
print(json.dumps([[[m["attributes"], m["sum"]] for m in refused], messages.take()]))
"""


def test_a_refused_message_to_an_entity_is_the_workflows(environment: Callable[[str], Environment]) -> None:
    """No payload of it is measured; the activity beside it has an input of 5 bytes."""
    done = environment("durabletask").run(_TO_AN_ENTITY, env={**QUIET, "AGENT_OTEL": "1"}, check=True, timeout=60)
    refused, messages = json.loads(done.stdout.splitlines()[-1])
    names = {"gen_ai.agent.name": "asking", "gen_ai.workflow.name": "asking"}
    where = {"workflow.runtime": "durabletask", "direction": "input", **names}
    assert (refused, messages) == ([[where, 1]], [])


_SCHEDULED = """
import json
from durabletask.azuremanaged.client import DurableTaskSchedulerClient
from durabletask.azuremanaged.worker import DurableTaskSchedulerWorker
from tests.contract.child import Messages, Telemetry
from tests.contract.runtimes.programs import durabletask as program

messages, telemetry = Messages(), Telemetry()
with program.backend() as address:
    hub = {"host_address": address, "taskhub": "hub", "token_credential": None, "secure_channel": False}
    with DurableTaskSchedulerWorker(**hub) as worker:
        worker.add_orchestrator(program.one)
        worker.add_activity(program.produce)
        worker.start()
        tasks = DurableTaskSchedulerClient(**hub)
        instance = tasks.schedule_new_orchestration("one", input={"activity": "produce", "n": 1_048_575})
        done = tasks.wait_for_orchestration_completion(instance, timeout=60)
caps = {m["attributes"]["direction"]: m["sum"] for m in telemetry.metrics() if m["name"].endswith("payload.cap")}
steps = [span["attributes"] for span in telemetry.spans() if span["name"] == "activity:produce"]
(step,) = (attributes for attributes in steps if "workflow.payload.utilization" in attributes)
print(json.dumps([done.serialized_output, caps, step["workflow.payload.utilization"], messages.take()]))
"""


@pytest.mark.shows("000.near_cap")
def test_azure_s_scheduler_has_smaller_caps(environment: Callable[[str], Environment]) -> None:
    """Its own worker and client, on the backend in memory, which takes what the scheduler would not."""
    done = environment("durabletask-azure").run(_SCHEDULED, env={**QUIET, "AGENT_OTEL": "1"}, check=True)
    said, caps, utilization, messages = json.loads(done.stdout.splitlines()[-1])
    assert (said, messages) == ("1048575", [])
    # In turns the worker gets a whole history, at most 4 MiB.
    assert caps == {"input": 1_048_576, "output": 1_048_576, "history": MESSAGE}
    assert utilization == 1_048_577 / 1_048_576


_OWN = """
import json
from tests.contract.child import Telemetry
telemetry = Telemetry()
import agent_otel
from tests.contract.runtimes.programs import durabletask
from tests.contract.toolbox import lookup
looked_up = agent_otel.tool(lookup)
runs = []

def activity(_, key):
    return looked_up(key=key)

def own(ctx, key):
    runs.append(looked_up(key=key))
    yield ctx.call_activity(activity, input=key)
    return len(runs)

durabletask.WORKFLOWS = (own,)
durabletask.ACTIVITIES = [activity]
with durabletask.running({}) as start:
    again = start("own", {"key": "a"})
spans = [span for span in telemetry.spans() if "tool.args_hash" in span["attributes"]]
print(json.dumps([again, [span["parent"] for span in spans]]))
"""


def test_a_tool_in_an_orchestrators_own_code_is_not_measured(environment: Callable[[str], Environment]) -> None:
    """That code runs again whenever it is replayed: twice here."""
    done = environment("durabletask").run(_OWN, env={**QUIET, "AGENT_OTEL": "1"}, check=True)
    assert json.loads(done.stdout.splitlines()[-1]) == [2, ["activity:activity"]]
