"""Prefect, with a server of its own in a process of its own."""

# ruff: noqa: D102 - a test's name and body say it
from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import shutil
import sqlite3
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any, ClassVar

from tests.contract.runtimes.steps import produce
from tests.contract.runtimes.suite import Case, Json, Payload, RuntimeContract
from tests.system.engines import starting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.contract.runtimes.suite import Runs
    from tests.environments import Environment

REFUSED = 600_000
SERIALIZER: Json = {
    "type": "json",
    "jsonlib": "json",
    "object_encoder": "prefect.serializers.prefect_json_object_encoder",
    "object_decoder": "prefect.serializers.prefect_json_object_decoder",
    "dumps_kwargs": {},
    "loads_kwargs": {},
}


def _compact(value: Any) -> int:
    return len(json.dumps(value, separators=(",", ":")))


def _answers(url: str) -> bool:
    with contextlib.suppress(urllib.error.URLError), urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310
        return bool(answer.status == 200)
    return False


def _is_copied(kept: Path, database: Path) -> bool:
    """Return true when an earlier server has left its empty database: to make one takes half of the server's start."""
    with contextlib.suppress(FileNotFoundError):
        return bool(shutil.copyfile(kept, database))
    return False


def _keep(database: Path, kept: Path) -> None:
    """Keep a copy of a server's database, which the server may write to meanwhile."""
    new = kept.with_suffix(f".{os.getpid()}")
    with contextlib.closing(sqlite3.connect(database)) as source, contextlib.closing(sqlite3.connect(new)) as target:
        source.backup(target)
    new.replace(kept)


class TestPrefect(RuntimeContract):
    """Prefect has a span of each task run, which has ended when the result is stored."""

    program = "prefect"
    environment = "prefect"
    runtime = "prefect"
    stores_inputs = False
    integrations: ClassVar = {
        "prefect": [
            "prefect.task_engine:SyncTaskRunEngine.call_task_fn",
            "prefect.flow_engine:FlowRunEngine.call_flow_fn",
            "prefect.results:ResultRecord.serialize",
            "prefect.client.orchestration._flow_runs.client:FlowRunClient.create_flow_run",
        ],
    }

    @classmethod
    @contextlib.contextmanager
    def engine(cls, environment: Callable[[str], Environment]) -> Iterator[Json]:
        port = starting.free_port()
        url = f"http://127.0.0.1:{port}/api"
        made = environment(cls.environment)
        with starting.folder() as folder:
            database = folder / "prefect.db"
            is_migrated = _is_copied(made.folder / database.name, database)
            settings = {"PREFECT_HOME": str(folder), "PREFECT_SERVER_ANALYTICS_ENABLED": "false", "DO_NOT_TRACK": "1"}
            with starting.process(
                *(made.program("prefect"), "server", "start", "--port", str(port)),
                answers=lambda: _answers(f"{url}/health"),
                env=made.environ(settings),
                cwd=folder,
            ):
                if not is_migrated:
                    _keep(database, made.folder / database.name)
                yield {"url": url}

    @classmethod
    def encoded(cls, value: Any) -> int:
        """The record of a task's result."""
        metadata = {
            "storage_key": f"/tmp/prefect-12345678/storage/{'0' * 32}",  # noqa: S108 - of a length that is known
            "expiration": None,
            "serializer": SERIALIZER,
            "prefect_version": "3.8.8",
            "storage_block_id": None,
        }
        return _compact({"metadata": metadata, "result": json.dumps(value)})

    @classmethod
    def around(cls, workflow: str, given: Json, said: Any) -> tuple[Payload, ...]:
        """A flow's result is stored beside what describes it."""
        taken = Payload(workflow, "", "input", _compact(given))
        return (taken,) if said is None else (taken, Payload(workflow, "", "output", len(json.dumps(said))))

    @classmethod
    def step(cls, workflow: str, activity: str, given: Any, result: Any) -> tuple[Payload, ...]:
        """What a task takes in are Python's own references."""
        del given
        return () if result is None else (Payload(workflow, activity, "output", cls.encoded(result)),)

    @classmethod
    def cases(cls) -> dict[str, Case]:
        found = {
            **super().cases(),
            "once": cls.once(),
            "forgotten": cls.forgotten(),
            "given": cls.given(1000, 1000),
            "refused": cls.given(REFUSED, None),
        }
        later = found["async"]
        payloads = tuple(dataclasses.replace(each, workflow="later") for each in later.payloads)
        found["async"] = dataclasses.replace(later, workflow="later", payloads=payloads)
        retried = found["retry"]
        given = {**retried.given, "activity": "flaky"}
        taken, *others = retried.payloads
        payloads = (dataclasses.replace(taken, bytes=_compact(given)), *others)
        found["retry"] = dataclasses.replace(retried, given=given, payloads=payloads)
        return found

    @classmethod
    def once(cls) -> Case:
        """A result that is found in the store is not made."""
        payloads = (*cls.around("once", {"n": 1006}, 2012), *cls.step("once", "produce", None, produce(1006)))
        return Case("once", {"n": 1006}, 2012, payloads, (("produce", None),))

    @classmethod
    def forgotten(cls) -> Case:
        """A result that is not stored is not serialised."""
        return Case("forgotten", {"n": 1007}, 1007, cls.around("forgotten", {"n": 1007}, 1007), (("produce", None),))

    @classmethod
    def given(cls, n: int, said: int | None) -> Case:
        """The server does not take parameters above 524,288 bytes."""
        return Case("given", {"n": n}, said, cls.around("given", {"text": produce(n)}, said), ())

    def test_each_step_is_a_span(self, runs: Runs, case_name: str) -> None:
        """A second attempt finds the span taken, and gets one of its own."""
        case, found = self.cases()[case_name], self.steps(runs, case_name)
        read = [(span["attributes"]["workflow.activity"], span["attributes"].get("error.type")) for span in found]
        assert sorted(read, key=str) == sorted(case.steps, key=str)
        for span in found:
            attributes = span["attributes"]
            activity, attempt = attributes["workflow.activity"], attributes.get("workflow.activity.attempt")
            assert span["scope"] == ("prefect" if attempt is None else "agent_otel")
            name = rf"{activity}-[0-9a-f]{{3}}" if attempt is None else f"execute_activity {activity}"
            assert re.fullmatch(name, span["name"])
            assert attributes["workflow.runtime"] == self.runtime
            assert attributes["gen_ai.workflow.name"] == case.workflow
        assert len({span["attributes"]["workflow.execution.id"] for span in found}) <= 1

    def test_a_step_s_span_shows_the_payload_nearer_to_its_cap(self, runs: Runs) -> None:
        """Only that of a second attempt can."""
        (span,) = (each for each in self.steps(runs, "retry") if each["scope"] == "agent_otel")
        attributes = span["attributes"]
        assert attributes["workflow.activity.attempt"] == 2
        assert attributes["workflow.payload.bytes"] == self.encoded(produce(1003))
        assert attributes["workflow.payload.direction"] == "output"

    def test_turns_to_the_cap_are_known_from_the_third_on(self, runs: Runs) -> None:
        beside = [span for span in runs.on["cases"]["turns"]["spans"] if span["name"] == "workflow_payload consume"]
        assert [span["attributes"].get("workflow.payload.turns_to_cap") for span in beside] == [4]

    def test_what_the_server_refuses_is_counted(self, runs: Runs) -> None:
        refused = {
            name: metric["attributes"]
            for name, case in runs.on["cases"].items()
            for metric in case["metrics"]
            if metric["name"] == "agent_otel.workflow.payload.rejected" and metric["sum"]
        }
        names = {"gen_ai.agent.name": "given", "gen_ai.workflow.name": "given"}
        assert refused == {"refused": {"workflow.runtime": "prefect", "direction": "input", **names}}


_ROLLED_BACK = """
import gc, json
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
import agent_otel
from agent_otel.integrations.runtimes import prefect as adapter

exporter, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)

from prefect import flow, task
from prefect.transactions import transaction

@task(persist_result=True)
def large(number):
    return "x" * 1000

@flow
def work():
    large(0)
    for number in (1, 2):
        try:
            with transaction():
                large(number)
                raise ValueError
        except ValueError:
            pass

work()
gc.collect()
agent_otel.flush()
spans = [span.name for span in exporter.get_finished_spans()]
print(json.dumps([len(adapter._unstored), spans.count("execute_activity large")]))
"""


def test_a_task_that_is_rolled_back_ends_and_leaves_no_result_behind(environment: Callable[[str], Environment]) -> None:
    with TestPrefect.engine(environment) as server:
        env = {"AGENT_OTEL": "1", "AGENT_OTEL_SPANS": "own", "PREFECT_API_URL": server["url"], "DO_NOT_TRACK": "1"}
        child = environment("prefect").run(_ROLLED_BACK, env=env, check=True, timeout=200)
    assert json.loads(child.stdout.splitlines()[-1]) == [0, 3]
