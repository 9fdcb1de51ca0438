"""Celery, with a broker and results in memory."""

# ruff: noqa: D102 - a test's name and body say it
from __future__ import annotations

import contextlib
import dataclasses
import json
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from tests.contract.runtimes.steps import produce
from tests.contract.runtimes.suite import TURNS, Case, Json, Payload, Runs, RuntimeContract

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.environments import Environment

ID = "01234567-89ab-cdef-0123-456789abcdef"
REFUSED = 2_400_000  # twice in base64, 4,266,667 bytes
EMBEDDED: Json = {"callbacks": None, "errbacks": None, "chain": None, "chord": None}


def _record(value: Any, *, children: int = 0, **more: str) -> int:
    """Bytes of what is stored of a task that succeeded."""
    record = {
        "status": "SUCCESS",
        "result": value,
        "traceback": None,
        "children": [[[ID, None], None]] * children,
        "date_done": "2026-11-21T00:00:00.123456+00:00",
        **more,
        "task_id": ID,
    }
    return len(json.dumps(record))


class TestCelery(RuntimeContract):
    """A workflow is a task that calls others."""

    program = "celery"
    environment = "celery"
    runtime = "celery"
    integrations: ClassVar = {
        "celery": [
            "celery.app.trace:build_tracer",
            "celery.loaders.base:BaseLoader.on_task_init",
            "celery.backends.base:Backend.encode",
            "kombu.serialization:loads",
            "kombu.messaging:Producer._prepare",
        ],
    }
    without = ("async",)  # tasks are functions
    instrumented: ClassVar[bool] = False

    @classmethod
    @contextlib.contextmanager
    def engine(cls, environment: Callable[[str], Environment]) -> Iterator[Json]:
        del environment
        yield {"broker": "like-sqs://", "instrumented": cls.instrumented}

    @classmethod
    def encoded(cls, value: Any) -> int:
        """A task that another has called says so."""
        return _record(value, parent_id=ID)

    @classmethod
    def given_to(cls, activity: str, value: Any) -> int:
        """A message's body."""
        del activity
        return len(json.dumps([[value], {}, EMBEDDED]))

    @classmethod
    def around(cls, workflow: str, given: Json, said: Any) -> tuple[Payload, ...]:
        """The calling task is a step as well."""
        taken = Payload(workflow, workflow, "input", cls.given_to(workflow, given))
        if said is None:
            return (taken,)
        children = {"parallel": 2, "turns": 2 * TURNS, "eager": 0}.get(workflow, 1)
        return taken, Payload(workflow, workflow, "output", _record(said, children=children))

    @classmethod
    def cases(cls) -> dict[str, Case]:
        more = {"eager": cls.eager(), "redelivered": cls.redelivered(), "refused": cls.refused()}
        return {**super().cases(), **more}

    def steps(self, runs: Runs, case_name: str) -> list[Json]:
        """The tasks that are called, not the one that calls them."""
        spans = super().steps(runs, case_name)
        return [span for span in spans if span["attributes"]["workflow.activity"] != self.cases()[case_name].workflow]

    @classmethod
    def eager(cls) -> Case:
        """What runs in place is not serialised."""
        given = {"n": 1006}
        return Case("eager", given, 1006, cls.around("eager", given, 1006), (("produce", None),))

    @classmethod
    def redelivered(cls) -> Case:
        """The same message twice is one payload."""
        case = cls.one("rejecting", 1007)
        return dataclasses.replace(case, steps=(("rejecting", "Reject"), ("rejecting", None)))

    @classmethod
    def refused(cls) -> Case:
        """What the broker does not take is counted where it was made."""
        given = {"n": REFUSED}
        sent = Payload("handing", "consume", "input", cls.given_to("consume", [produce(REFUSED)]))
        return Case("handing", given, None, (*cls.around("handing", given, None), sent), ())

    def test_what_the_broker_refuses_is_counted(self, runs: Runs) -> None:
        counted = {
            (name, metric["attributes"]["workflow.activity"], metric["attributes"]["direction"]): metric["sum"]
            for name, case in runs.on["cases"].items()
            for metric in case["metrics"]
            if metric["name"] == "agent_otel.workflow.payload.rejected" and metric["sum"]
        }
        assert counted == {("refused", "consume", "input"): 1}

    def test_attempts_are_told(self, runs: Runs) -> None:
        flaky = [s for s in self.steps(runs, "retry") if s["attributes"]["workflow.activity"] == "flaky"]
        assert {span["attributes"].get("workflow.activity.attempt") for span in flaky} == {None, 2}

    def test_the_calling_task_is_a_step_too(self, runs: Runs) -> None:
        errors = {"raises": "BrokenError", "refused": "ValueError"}
        for name, case in self.cases().items():
            (span,) = (
                each for each in super().steps(runs, name) if each["attributes"]["workflow.activity"] == case.workflow
            )
            assert span["attributes"].get("error.type") == errors.get(name)
            assert span["attributes"]["gen_ai.workflow.name"] == case.workflow


class TestCeleryBesideOpenTelemetry(TestCelery):
    """OpenTelemetry's instrumentation has a span of each task: it is enriched."""

    instrumented = True
    #: When the next attempt begins before the instrumentation has ended the span of the one before.
    said_by_others = ("Failed to detach context", "no existing span found for task_id=")
    span = "run/{activity}"
    scope = "opentelemetry.instrumentation.celery"


SCRIPT = """
import json, sys
from tests.contract.runtimes.child import Telemetry, settle
telemetry = Telemetry()
from tests.contract.runtimes.programs import celery
case = {}
with celery.running(json.loads(sys.argv[1])) as start:
    case["said"] = start(sys.argv[2], json.loads(sys.argv[3]))
    settle(telemetry, case)
from agent_otel._internal import errors
print(json.dumps({**case, "errors": dict(errors.errors)}))
"""


def _start(environment: Callable[[str], Environment], engine: Json, task: str, given: Json) -> Json:
    done = environment("celery").run(
        SCRIPT, json.dumps(engine), task, json.dumps(given), env={"AGENT_OTEL": "1"}, check=True
    )
    report: Json = json.loads(done.stdout.splitlines()[-1])
    assert report["errors"] == {}
    return report


def _sizes(report: Json) -> dict[tuple[str, str, str], tuple[int, int]]:
    """Count and sum by workflow, activity and direction."""
    return {
        (labels["gen_ai.workflow.name"], labels["workflow.activity"], labels["direction"]): (each["count"], each["sum"])
        for each in report["metrics"]
        for labels in (each["attributes"],)
        if each["name"] == "agent_otel.workflow.payload.size"
    }


@pytest.mark.parametrize(
    ("broker", "cap"), [("memory://", None), ("like-sqs://", (587_202, "inferred"))], ids=["memory", "sqs"]
)
def test_the_cap_is_the_broker_s(
    environment: Callable[[str], Environment], broker: str, cap: tuple[int, str] | None
) -> None:
    report = _start(environment, {"broker": broker}, "handing", {"n": 1008})
    (attributes,) = (each["attributes"] for each in report["spans"] if each["name"] == "execute_activity consume")
    found = attributes.get("workflow.payload.cap_bytes"), attributes.get("workflow.payload.cap_source")
    assert found == (cap or (None, None))


def test_a_chain_is_one_execution_named_after_its_first_task(environment: Callable[[str], Environment]) -> None:
    report = _start(environment, {}, "chained", {"n": 1009})
    sizes = _sizes(report)
    text = produce(1009)
    following: Json = {**EMBEDDED, "chain": []}
    assert {key: count for key, (count, _) in sizes.items()} == {
        ("produce", activity, direction): 1
        for activity in ("produce", "listed", "consume")
        for direction in ("input", "output")
    }
    assert sizes["produce", "consume", "input"] == (1, len(json.dumps([[[text]], {}, following])))
    assert len({span["attributes"]["workflow.execution.id"] for span in report["spans"]}) == 1


def test_results_that_are_sent_are_counted_once(environment: Callable[[str], Environment]) -> None:
    """RPC results are messages of their own."""
    report = _start(environment, {"results": "rpc://"}, "handing", {"n": 1010})
    assert _sizes(report)["handing", "consume", "output"] == (1, _record(1010, parent_id=ID))


PREFORK = """
import sys, time
from celery import Celery
from celery.contrib.testing.worker import start_worker

folder = sys.argv[1]
# The parent alone uses the broker: it hands tasks to its children through pipes.
app = Celery("forked", broker="memory://", backend=f"file://{folder}")
app.conf.update(broker_transport_options={"polling_interval": 0.02}, worker_hijack_root_logger=False)

@app.task(name="produce")
def produce(n):
    return "x" * n

@app.task(name="scrape")
def scrape():
    from prometheus_client import REGISTRY, generate_latest
    return generate_latest(REGISTRY).decode()

if __name__ == "__main__":
    with start_worker(app, pool="prefork", concurrency=1, perform_ping_check=False, loglevel="CRITICAL"):
        assert produce.delay(1011).get(timeout=200, interval=0.02) == "x" * 1011
        print(scrape.delay().get(timeout=200, interval=0.02))
"""


def test_a_task_in_a_forked_process_is_measured_there(
    environment: Callable[[str], Environment], tmp_path: Path
) -> None:
    script = tmp_path / "forked.py"
    script.write_text(PREFORK)
    env = {"AGENT_OTEL": "1", "AGENT_OTEL_METRICS": "prometheus"}
    done = environment("celery").run(script, str(tmp_path), env=env, check=True)
    labels = 'direction="{}",gen_ai_agent_name="produce",gen_ai_workflow_name="produce"'
    labels += ',workflow_activity="produce",workflow_runtime="celery"'
    sums = dict(
        line.rsplit(" ", 1)
        for line in done.stdout.splitlines()
        if line.startswith("agent_otel_workflow_payload_size_bytes_sum")
    )
    given = len(json.dumps([[1011], {}, EMBEDDED]))
    for direction, size in (("input", given), ("output", _record("x" * 1011))):
        assert float(sums[f"agent_otel_workflow_payload_size_bytes_sum{{{labels.format(direction)}}}"]) == size


ACROSS = """
import json, sys, time
from celery import Celery
from celery.contrib.testing.worker import start_worker
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
folder, queue = sys.argv[1:3]
app = Celery("across", broker="filesystem://", backend=f"file://{folder}")
app.conf.update(
    broker_transport_options={
        "data_folder_in": folder, "data_folder_out": folder, "polling_interval": 0.02, "store_processed": False
    },
    task_routes={"inner": {"queue": "second"}},
    task_default_queue="first",
    worker_hijack_root_logger=False,
)

@app.task(name="outer")
def outer():
    return inner.delay().id

@app.task(name="inner")
def inner():
    return "done"

with start_worker(app, pool="solo", queues=[queue], perform_ping_check=False, loglevel="CRITICAL"):
    if queue == "first":
        print(outer.delay().get(timeout=200, interval=0.02))
    else:
        assert app.AsyncResult(sys.argv[3]).get(timeout=200, interval=0.02) == "done"
while not (spans := exporter.get_finished_spans()):
    time.sleep(0.02)
print(json.dumps([
    [span.name, span.context.span_id, [link.context.span_id for link in span.links], span.context.trace_id,
     [link.context.trace_id for link in span.links]]
    for span in spans
]))
"""


def test_the_root_of_another_process_is_linked_to_the_run_s_first_span(
    environment: Callable[[str], Environment], tmp_path: Path
) -> None:
    script = tmp_path / "across.py"
    script.write_text(ACROSS)
    folder = tmp_path / "queues"
    folder.mkdir()

    def run(*arguments: str) -> list[str]:
        variables = {"AGENT_OTEL": "1"}
        done = environment("celery").run(script, str(folder), *arguments, env=variables, timeout=300, check=True)
        return done.stdout.splitlines()

    *_, inner_id, first = run("first")
    *_, second = run("second", inner_id)
    ((outer, outer_span, outer_links, outer_trace, _),) = json.loads(first)
    ((inner, _, inner_links, _, inner_traces),) = json.loads(second)
    assert (outer, outer_links) == ("execute_activity outer", [])
    assert (inner, inner_links, inner_traces) == ("execute_activity inner", [outer_span], [outer_trace])


NO_REQUEST = """
from celery import Celery
from celery.app.trace import trace_task

app = Celery(broker="memory://", backend="cache+memory://")

@app.task(request=None)
def plain():
    return 1

trace_task(plain, "id-1", [], {}, app=app)
from agent_otel._internal import errors
print(dict(errors.errors))
"""


def test_a_task_without_a_request_which_celery_fails_is_no_failure_of_ours(
    environment: Callable[[str], Environment],
) -> None:
    done = environment("celery").run(NO_REQUEST, env={"AGENT_OTEL": "1"})
    assert done.stdout.splitlines()[-1] == "{}"
