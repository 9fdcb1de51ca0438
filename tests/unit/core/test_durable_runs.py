"""Spans of durable runs: around the steps where both ends are reported, and links between roots where they are not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.telemetry.conftest import CALL
from tests.unit.telemetry.test_spans import PROVIDERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

_REMOTE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-"
#: ``report`` runs after everything else that runs at exit.
_STEPS = """
import atexit
from agent_otel.core import step_handler
from agent_otel.core.types import Step

def report():
    finished = sorted(exporters["theirs"].get_finished_spans(), key=lambda span: span.start_time)
    ids = {span.context.span_id: span.name for span in finished}
    print(json.dumps([
        {
            "name": span.name,
            "parent": span.parent and ids.get(span.parent.span_id, format(span.parent.span_id, "016x")),
            "trace": format(span.context.trace_id, "032x"),
            "links": [
                ids.get(link.context.span_id, format(link.context.span_id, "016x")) for link in span.links
            ],
            "attributes": dict(span.attributes),
        }
        for span in finished
    ]))

atexit.register(report)
provide()

def step(name, execution="run-1"):
    step_handler.begin_step(Step("mine", name, "review", execution)).finish()
"""


def _spans(environment: Environment, program: str) -> list[dict[str, Any]]:
    child = environment.run(CALL + PROVIDERS + _STEPS + program, env={"AGENT_OTEL": "1"}, check=True)
    assert child.stderr == ""
    found: list[dict[str, Any]] = json.loads(child.stdout)
    return found


def test_later_roots_are_linked_to_the_first_of_their_run(environment: Callable[[str], Environment]) -> None:
    program = 'step("first")\nstep("other", "run-2")\nstep("second")\nstep("third")'
    found = _spans(environment("bare"), program)

    assert [(span["name"], span["parent"], span["links"]) for span in found] == [
        ("execute_activity first", None, []),
        ("execute_activity other", None, []),
        ("execute_activity second", None, ["execute_activity first"]),
        ("execute_activity third", None, ["execute_activity first"]),
    ]


@pytest.mark.parametrize("ends", [True, False])
def test_a_run_whose_ends_are_reported_is_one_trace(environment: Callable[[str], Environment], *, ends: bool) -> None:
    """A run that is open when the interpreter exits ends there."""
    program = 'step_handler.execution_began("run-1", "review")\nstep("first")\nstep("second")\n'
    root, *steps = _spans(environment("bare"), program + ('step_handler.execution_ended("run-1")' if ends else ""))

    assert (root["name"], root["parent"]) == ("invoke_workflow review", None)
    assert root["attributes"] == {
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.agent.name": "review",
        "gen_ai.workflow.name": "review",
        "workflow.execution.id": "run-1",
    }
    assert [(span["parent"], span["links"]) for span in steps] == [("invoke_workflow review", [])] * 2


@pytest.mark.parametrize(("flags", "parent"), [("01", "b7ad6b7169203331"), ("00", None)])
def test_a_run_is_below_what_its_runtime_has_propagated(
    environment: Callable[[str], Environment], flags: str, parent: str | None
) -> None:
    """A parent that is not sampled would keep the spans of the run from being recorded."""
    program = f'step_handler.execution_began("run-1", "review", "{_REMOTE}{flags}")\nstep("first")'
    root, step = _spans(environment("bare"), program)

    assert (root["parent"], step["parent"]) == (parent, "invoke_workflow review")
    assert (root["trace"] == "0af7651916cd43dd8448eb211c80319c") == (parent is not None)


@pytest.mark.parametrize(("flags", "parent"), [("01", "b7ad6b7169203331"), ("00", None)])
def test_steps_are_below_what_the_runtime_propagates_with_each_of_them(
    environment: Callable[[str], Environment], flags: str, parent: str | None
) -> None:
    """A runtime that reports no ends of a run has no span around its steps."""
    program = f"""
from agent_otel.core.durable_runs import durable_runs

durable_runs.propagated("run-1", "{_REMOTE}{flags}")
step("first")
durable_runs.propagated("run-1", None)
step("second")
"""
    first, second = _spans(environment("bare"), program)

    assert (first["parent"], second["parent"]) == (parent, parent)
    assert second["links"] == ([] if parent else ["execute_activity first"])
    assert (first["trace"] == "0af7651916cd43dd8448eb211c80319c") == (parent is not None)


def test_roots_are_linked_to_the_first_span_of_another_process(environment: Callable[[str], Environment]) -> None:
    program = f"""
from agent_otel.core.durable_runs import durable_runs

durable_runs.carried("run-1", "{_REMOTE}01")
durable_runs.carried("run-2", "nonsense")
step("first")
step("second")
step("other", "run-2")
assert durable_runs.carrier("run-1") == "{_REMOTE}01"
assert durable_runs.carrier("run-2").split("-")[0] == "00"
assert durable_runs.carrier("run-3") is None
"""
    assert [(span["name"], span["parent"], span["links"]) for span in _spans(environment("bare"), program)] == [
        ("execute_activity first", None, ["b7ad6b7169203331"]),
        ("execute_activity second", None, ["b7ad6b7169203331"]),
        ("execute_activity other", None, []),
    ]


def test_a_step_in_a_span_has_no_other_parent(environment: Callable[[str], Environment]) -> None:
    program = """
step_handler.execution_began("run-1", "review")
with trace.get_tracer("theirs").start_as_current_span("request"):
    step("first")
"""
    found = _spans(environment("bare"), program)

    assert [(span["name"], span["parent"]) for span in found] == [
        ("request", None),
        ("execute_activity first", "request"),
    ]


def test_a_run_that_is_dropped_for_others_ends_without_the_lock(environment: Callable[[str], Environment]) -> None:
    """An exporter may take seconds: another thread's step goes on meanwhile."""
    program = """
import threading

class Slow(SimpleSpanProcessor):
    def on_end(self, span):
        if span.name == "invoke_workflow review":
            other = threading.Thread(target=step, args=("beside", "run-2"), daemon=True)
            other.start()
            other.join(60)
            print(other.is_alive())

atexit.unregister(report)
trace.get_tracer_provider().add_span_processor(Slow(exporters["theirs"]))
step_handler.execution_began("run-1", "review")
step("first")
for number in range(1024):
    step_handler.execution_began(f"more-{number}", None)
"""
    child = environment("bare").run(CALL + PROVIDERS + _STEPS + program, env={"AGENT_OTEL": "1"}, check=True)
    assert child.stdout == "False\n"
