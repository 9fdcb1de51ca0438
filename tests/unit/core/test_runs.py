"""Which execution, conversation and owner a call has inside a run of an agent, and when a run is over."""

from __future__ import annotations

import contextvars
import uuid
from typing import TYPE_CHECKING
from uuid import UUID

import agent_otel
from agent_otel.core import execution_context, run_visit
from agent_otel.core.execution_context import Carrier, current_run, owner_here, resolve
from agent_otel.core.types import AgentRun, Invocation, RunReader

if TYPE_CHECKING:
    import pytest

    from agent_otel.core.run_visit import RunVisit

_READER = RunReader(lambda _: AgentRun("clerk"))


def _run(conversation: str | None = None) -> RunVisit:
    visit = run_visit.begin(_READER, AgentRun("clerk", conversation))
    assert visit is not None
    return visit


def test_a_run_without_a_thread_is_its_own_conversation() -> None:
    with _run() as visit:
        assert current_run() is visit.run
        assert resolve(None, None) == owner_here() == visit.run.id
        assert execution_context.conversation() is None
    assert (current_run(), resolve(None, None), owner_here()) == (None, None, None)


def test_runs_of_a_thread_share_what_belongs_to_the_conversation() -> None:
    ids = set()
    for _ in range(2):
        with _run("thread-1") as visit:
            assert resolve(None, None) == owner_here() == execution_context.conversation() == "thread-1"
            ids.add(visit.run.id)
    assert len(ids) == 2


def test_a_program_s_own_ids_are_not_used_up(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = iter([UUID(int=1), UUID(int=2)])
    monkeypatch.setattr(uuid, "uuid4", lambda: next(numbers))
    runs = [_run(), _run()]
    assert uuid.uuid4() == UUID(int=1)
    assert runs[0].run.id != runs[1].run.id
    assert {32} == {len(bytes.fromhex(visit.run.id)) * 2 for visit in runs}


def test_a_nested_agent_belongs_to_the_outermost_run() -> None:
    with _run("thread-1") as visit:
        assert run_visit.enter_run(_READER, Invocation(None, (), {})) is None
        assert run_visit.enter_run_stream(_READER, Invocation(None, (), {})) is None
        assert resolve("thread-2", None) == "thread-2"
        assert owner_here() == "thread-1"
        assert current_run() is visit.run


def test_an_execution_that_the_program_names_comes_first() -> None:
    with _run("thread-1"), agent_otel.execution("mine"):
        assert (current_run(), resolve("thread-1", None), owner_here()) == (None, "mine", "mine")
    with agent_otel.execution("mine", workflow="audit"), _run("thread-1"):
        assert (current_run(), resolve("thread-1", None), owner_here()) == (None, "mine", "mine")
        assert execution_context.names("helper") == ("clerk", "audit")
    with agent_otel.execution("mine", agent="boss"), _run("thread-1"):
        assert execution_context.names() == ("boss", "boss")


def test_a_durable_runtime_s_run_comes_before_the_agent_s() -> None:
    token = execution_context.runtime.set(Carrier("workflow-1", workflow="audit"))
    try:
        assert execution_context.names() == ("audit", "audit")
        with _run("thread-1"):
            assert (current_run(), owner_here(), execution_context.names()) == (None, "workflow-1", ("audit", "audit"))
    finally:
        execution_context.runtime.reset(token)


def test_what_outlives_a_run_does_not_belong_to_it() -> None:
    with _run():
        background = contextvars.copy_context()
    assert background.run(current_run) is None
    assert background.run(_begins_one)


def _begins_one() -> bool:
    with _run() as visit:
        return current_run() is visit.run


def test_a_run_that_an_interrupt_ended_is_detached() -> None:
    visit = _run()
    visit.__enter__()
    assert current_run() is not None
    del visit
    assert current_run() is None
    assert execution_context.outermost.get() is None
