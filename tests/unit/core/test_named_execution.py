"""An execution that the program names: one trace where no span is open, and nothing of the program's changed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.telemetry.conftest import CALL
from tests.unit.telemetry.test_spans import PROVIDERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

_IN_A_BLOCK = """
provide()
with agent_otel.execution("run-1", workflow="review", agent="planner"):
    call("search", "x" * 10, {"q": 1})
    with agent_otel.execution("run-2", workflow="part"):
        call("search", "x" * 10, {"q": 2})
call("alone", "x")
assert not trace.get_current_span().get_span_context().is_valid
print(json.dumps([(name, parent, attributes) for _, name, attributes, parent in spans()]))
"""
_IN_A_SPAN = """
provide()
with trace.get_tracer("theirs").start_as_current_span("request"), agent_otel.execution("run-1", workflow="review"):
    call("search", "x" * 10, {"q": 1})
print(json.dumps([(name, parent, attributes) for _, name, attributes, parent in spans()]))
"""
_FAILS = """
provide()
error = ValueError("no")
try:
    with agent_otel.execution("run-1"):
        raise error
except ValueError as caught:
    assert caught is error
finished = exporters["theirs"].get_finished_spans()
print(json.dumps([(span.name, span.status.status_code.name, span.attributes["error.type"]) for span in finished]))
"""
#: The consumer closes the generator in another context than its first step ran in.
_TORN = """
import contextvars

provide()

def work():
    with agent_otel.execution("run-1"):
        call("search", "x" * 10)
        yield 1

steps = work()
contextvars.copy_context().run(next, steps)
steps.close()
assert not trace.get_current_span().get_span_context().is_valid
print(json.dumps([(name, parent, "error.type" in attributes) for _, name, attributes, parent in spans()]))
"""


def _run(environment: Environment, program: str, **env: str) -> Any:
    child = environment.run(CALL + PROVIDERS + program, env={"AGENT_OTEL": "1", **env}, check=True)
    assert "" == child.stderr
    return json.loads(child.stdout)


@pytest.mark.shows("001.attributes")
def test_a_block_is_one_trace(environment: Callable[[str], Environment]) -> None:
    block, first, second, alone = _run(environment("bare"), _IN_A_BLOCK)

    assert block == [
        "invoke_workflow review",
        None,
        {
            "gen_ai.operation.name": "invoke_workflow",
            "gen_ai.workflow.name": "review",
            "gen_ai.agent.name": "planner",
            "gen_ai.conversation.id": "run-1",
            "workflow.execution.id": "run-1",
            "agent_otel.execution.tool_calls": 1,
        },
    ]
    for call, execution, workflow in ((first, "run-1", "review"), (second, "run-2", "part")):
        assert call[:2] == ["execute_tool search", "invoke_workflow review"]
        assert call[2]["gen_ai.conversation.id"] == execution
        assert call[2]["gen_ai.workflow.name"] == workflow
    assert alone[:2] == ["execute_tool alone", None]
    assert "gen_ai.workflow.name" not in alone[2]


def test_a_block_in_a_span_has_none_of_its_own(environment: Callable[[str], Environment]) -> None:
    request, call = _run(environment("bare"), _IN_A_SPAN)

    assert (request[0], call[:2]) == ("request", ["execute_tool search", "request"])
    assert call[2]["gen_ai.workflow.name"] == "review"


@pytest.mark.parametrize(("mode", "names"), [("own", 2), ("enrich", 0), ("off", 0)])
def test_the_setting_of_spans_applies(environment: Callable[[str], Environment], mode: str, names: int) -> None:
    program = 'provide()\nwith agent_otel.execution("run-1"):\n    call("search", "x")\nprint(len(spans()))'

    assert _run(environment("bare"), program, AGENT_OTEL_SPANS=mode) == names


def test_a_failure_is_on_the_span(environment: Callable[[str], Environment]) -> None:
    assert _run(environment("bare"), _FAILS) == [["invoke_workflow", "ERROR", "ValueError"]]


def test_a_block_that_ends_in_another_context_raises_nothing(environment: Callable[[str], Environment]) -> None:
    expected = [["invoke_workflow", None, False], ["execute_tool search", "invoke_workflow", False]]

    assert _run(environment("bare"), _TORN) == expected


#: The collector ends the block while its own lock of the costliest executions is held.
_COLLECTED = """
import gc
from agent_otel._internal import collected
from agent_otel.core.executions import executions
from agent_otel.core.execution_state import Tokens
from agent_otel.core.cost.usage import Usage
from agent_otel.telemetry.metrics import costliest

provide()

def answer():
    with agent_otel.execution("run-1"):
        executions.touched("run-1").tokens = tokens = Tokens()
        tokens.add(Usage(100, output=10))
        yield

class Cycle:
    pass

kept = Cycle()
kept.own, kept.steps = kept, answer()
next(kept.steps)
del kept
with costliest._lock:
    gc.collect()
    before = len(exporters["theirs"].get_finished_spans())
collected.run_due()
print(json.dumps([before, [row["execution"] for row in costliest.rows()], [name for _, name, _, _ in spans()]]))
"""


def test_the_collector_may_end_a_block_at_any_time(environment: Callable[[str], Environment]) -> None:
    child = environment("bare").run(PROVIDERS + CALL + _COLLECTED, env={"AGENT_OTEL": "1"}, check=True)
    assert json.loads(child.stdout) == [0, ["run-1"], ["invoke_workflow"]]
