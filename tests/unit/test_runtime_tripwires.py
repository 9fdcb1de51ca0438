"""No code of a value runs where a durable runtime's adapter reads it: each kind of hostile value at each place.

The doors are found by themselves: a function of an adapter that is added without a row here fails.
"""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel._internal import errors
from agent_otel._internal.failures import error_type, text_of
from agent_otel.core import handler, step_handler
from agent_otel.core.types import Invocation, Payload, Step, StepOutcome, StepReader
from agent_otel.integrations import frameworks, payloads, runtimes
from agent_otel.integrations.frameworks import agno, openai_agents
from agent_otel.integrations.hooks import Family, Hook, Within, _Visit
from agent_otel.integrations.runtimes import (
    azure_durable,
    celery,
    hatchet,
    inngest,
    langgraph,
    prefect,
    restate,
)
from agent_otel.semconv import INPUT
from tests.rows import each_row
from tests.unit.measure import hostile

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

_space = SimpleNamespace
_PAYLOAD = Payload(INPUT, 2, b"{}")


#: The calls that run in this context: a wrapper's frame would hold them.
_held: list[object] = []


def _error() -> Any:
    return hostile._hostile(Exception, ("said",))


def _visit(runtime: str) -> handler.carried.StepVisit:  # type: ignore[name-defined]
    reader = StepReader(lambda *_: Step(runtime, "a"), lambda *_: None, lambda *_: StepOutcome())
    visit = step_handler.enter_step(reader, Invocation(None, (), {}))
    assert visit is not None
    visit.__enter__()
    return visit


def _before(hook: Hook, invocation: Invocation) -> Any:
    assert hook.before is not None
    return hook.before(invocation)


def _after(hook: Hook, invocation: Invocation, value: Any, error: BaseException | None) -> None:
    assert hook.after is not None
    hook.after(invocation, value, error)


def _agno_saved(value: Any) -> None:
    run, transfer = _space(messages=value, tools=[value], content=value), payloads.Transfer()
    transfer.bytes = 10**9
    for given in (run, value):
        _after(agno.saved, Invocation(None, (given, value), {}, transfer), None, _error())


def _agno_read(value: Any) -> None:
    run, transfer = _space(messages=value, tools=[value], content=value), payloads.Transfer()
    transfer.bytes = 10**9
    for session in (_space(runs=[run, value]), value):
        _after(agno.read, Invocation(None, (value,), {}, transfer), session, None)


def _celery_encoded(value: Any) -> None:
    for record in (value, {"status": value}, {"status": "SUCCESS", "task_id": value}):
        celery._thread.runs = [celery._Run("t", None)]
        _after(celery.encoded, Invocation(None, (record,), {}), value, None)


def _celery_decoded(value: Any) -> None:
    for decoded in (value, [value, {}, {}], [[], {}, value]):
        _after(celery.decoded, Invocation(None, (b"body",), {}), decoded, None)


def _enter(within: Within[Any], state: Any) -> None:
    visit = _Visit(Hook(within=within), Invocation(None, (), {}, state))
    within.enter(visit)
    _held.append(visit)


def _langgraph_serialized(value: Any) -> None:
    saver = _space(serde=_space())
    _enter(langgraph.open_saving, langgraph._Saving(saver))
    for given in (value, {"channel_values": value}):
        call = Invocation(saver.serde, (given,), {})
        call.state = _before(langgraph.serialized, call)
        _after(langgraph.serialized, call, ("json", b"{}"), None)


def _langgraph_inlined(value: Any) -> None:
    for given in (value, {"channel_values": value}, {"channel_values": {"a": value}}):
        _enter(langgraph.open_saving, langgraph._Saving(None))
        _before(langgraph.inlined, Invocation(None, (given,), {}))


def _saving(value: Any) -> tuple[Any, Any]:
    saving = langgraph._Saving(_space(serde=None))
    saving.seen, saving.inline, saving.sizes = True, 1, [10**9]
    config = {"configurable": {"thread_id": value, "checkpoint_ns": value}}
    return saving, config


def _langgraph_put(value: Any) -> None:
    saving, config = _saving(value)
    checkpoint = {"channel_values": {"a": value, "__pregel_tasks": [_space(node=value)]}}
    _after(langgraph.put, Invocation(None, (config, checkpoint, {}, {"a": 1}), {}, saving), None, None)
    _after(langgraph.put, Invocation(None, (config, checkpoint, {}, {"a": 1}), {}, saving), None, _error())


def _langgraph_put_writes(value: Any) -> None:
    saving, config = _saving(value)
    _after(langgraph.put_writes, Invocation(None, (config, [("a", value)], "t"), {}, saving), None, None)


def _inngest_call(value: Any) -> None:
    execution = _space(_request=None, _target_hashed_id=None, _memos=_space(size=0))
    context = _space(step=_space(_execution=execution), run_id=value, attempt=0, event=_space(data=value))
    _before(inngest.call, Invocation(_space(local_id=value), (None, context), {}))


def _inngest_reported(value: Any) -> None:
    _enter(inngest._call, inngest._Call(Step("inngest"), None))
    info = _space(op=_space(value="StepRun"), display_name=value)
    _after(inngest.reported, Invocation(None, (info,), {}), _space(error=None, skip=False, output=value), None)


def _azure_durable_orchestrator(value: Any) -> None:
    executor = _space(orchestrator_returned=True, output=value)
    ended = Invocation(_space(task_orchestration_executor=executor), (), {}, Step("azure-durable"))
    _after(azure_durable.orchestrator, ended, None, None)


def _inngest_ended(_: Any) -> None:
    info = _space()
    inngest._keep(inngest._ran, info, _visit("inngest"))
    _after(inngest.ended, Invocation(_space(info=info), (None, _error()), {}), None, None)


def _inngest_preparing(value: Any) -> None:
    for prepared in (value, _error()):
        step = _space()
        inngest._keep(inngest._ran, step, _visit("inngest"))
        _after(inngest.preparing, Invocation(None, (), {}, _space(step=step)), prepared, None)


def _inngest_serialised(value: Any) -> None:
    _enter(inngest._result, _space(output=value, step=_space()))
    _after(inngest.serialised, Invocation(None, (value,), {}), value, None)


def _openai_agents_added(value: Any) -> None:
    session = _space(session_id=value, session_settings=None)
    transfer = payloads.Transfer()
    transfer.bytes = 10**9
    for error in (None, _error()):
        _after(openai_agents.added, Invocation(session, (value,), {}, transfer), None, error)
        _after(openai_agents.added, Invocation(session, ([value],), {}, transfer), None, error)


def _openai_agents_read(value: Any) -> None:
    session = _space(session_id="s", session_settings=None)
    transfer = payloads.Transfer()
    transfer.bytes = 10**9
    _after(openai_agents.read, Invocation(session, (), {}, transfer), [value], None)


def _prefect_task(_: Any) -> None:
    _after(prefect.task, Invocation(None, (_space(),), {}, _visit("prefect")), None, _error())


def _prefect_flow(value: Any) -> None:
    run = _space(id=value, run_count=1, parameters=value)
    _before(prefect.flow, Invocation(_space(flow=_space(name=value), flow_run=run), (), {}))


def _hatchet_task(value: Any) -> None:
    payload = _space(input=value, parents=value)
    names = {"key": "k", "workflow_run_id": "w", "retry_count": 0, "durable_task_invocation_count": 1}
    action = _space(action_payload=payload, **names)
    hatchet._begun["k"] = None
    call = Invocation(_space(name=value, workflow=_space(name=value)), (_space(action=action),), {})
    call.state = _before(hatchet.task, call)
    _after(hatchet.task, call, value, _error())


def _hatchet_serialised(_: Any) -> None:
    hatchet._begun["k"] = _visit("hatchet")
    _enter(hatchet._action, _space(key="k"))
    _after(hatchet.serialised, Invocation(None, (), {}), None, _error())


def _restate_run(_: Any) -> None:
    assert restate.run.failed is not None
    assert restate.run.failed(_error()) == StepOutcome(error_type="Hostile")


#: Function of an adapter -> its run with the value at each place where it gets one of the program's.
ROWS: dict[str, Callable[[Any], None]] = {
    "agno.read": _agno_read,
    "agno.saved": _agno_saved,
    "celery.decoded": _celery_decoded,
    "celery.encoded": _celery_encoded,
    "hatchet.serialised": _hatchet_serialised,
    "hatchet.task": _hatchet_task,
    "azure_durable.orchestrator": _azure_durable_orchestrator,
    "inngest.call": _inngest_call,
    "inngest.ended": _inngest_ended,
    "inngest.preparing": _inngest_preparing,
    "inngest.reported": _inngest_reported,
    "inngest.serialised": _inngest_serialised,
    "langgraph.inlined": _langgraph_inlined,
    "langgraph.put": _langgraph_put,
    "langgraph.put_writes": _langgraph_put_writes,
    "langgraph.serialized": _langgraph_serialized,
    "openai_agents.added": _openai_agents_added,
    "openai_agents.read": _openai_agents_read,
    "prefect.flow": _prefect_flow,
    "prefect.task": _prefect_task,
    "restate.run": _restate_run,
}
#: Those that get texts, bytes, numbers and objects of the runtime alone, by adapter.
SERIALISED = {
    "agentcore": {"called", "invoked"},
    "agno": {"encoded", "rows", "runs"},
    "aws_durable": {"checkpoint", "collected", "invocation"},
    "azure_durable": {"awaited", "in_thread", "invoked"},
    "celery": {"published", "starting", "tracer"},
    "dapr_agents": {"saved"},
    "dbos": {
        "asked",
        "asynchronous_step",
        "dequeued",
        "ended",
        "entered",
        "recorded",
        "resumes",
        "started",
        "step",
        "tried",
    },
    "google_adk": {"appended", "bound", "read", "requested", "result", "validated"},
    "hatchet": {"step_run"},
    "inngest": {"received"},
    "langgraph": {"document_encoded", "encoded", "put_item", "put_object", "savers", "serializers", "writing"},
    "llama_index": {"restored", "saved"},
    "openai_agents": {
        "deserialized",
        "inserted",
        "loaded",
        "read",
        "rewritten",
        "saving",
        "serialized",
    },
    "prefect": {"created", "flow_success", "serialised", "storing"},
    "restate": {"failure", "handler", "invocation", "registered", "state", "success"},
    "strands": {"appended", "messages", "put", "read", "written"},
    "taskhub": {
        *("activity", "externalized", "orchestrator", "requested", "stub", "worker"),
        *("dapr_activity", "dapr_stub", "dapr_workflow"),
    },
    "temporal": {
        "activating",
        "activity",
        "beating",
        "completing_activity",
        "completing_workflow",
        "encoded",
        "handler",
        "validated",
        "workflow_code",
        "workflow_worker",
    },
}
DOORS = ROWS.keys() | {f"{adapter}.{name}" for adapter, names in SERIALISED.items() for name in names}
pytestmark = pytest.mark.usefixtures("nothing_ran")
each_kind = each_row("kind", list(hostile.everything()), around=hostile.untouched)


def _doors(package: ModuleType) -> set[str]:
    found = set()
    for module in pkgutil.iter_modules(package.__path__):
        members = vars(importlib.import_module(f"{package.__name__}.{module.name}"))
        found |= {f"{module.name}.{name}" for name, hook in members.items() if type(hook) in (Family, Hook, StepReader)}
    return found


def test_each_function_of_an_adapter_has_a_row() -> None:
    assert _doors(runtimes) <= DOORS <= _doors(runtimes) | _doors(frameworks)


@each_kind
@each_row("door", list(ROWS))
def test_a_payload(door: str, kind: str) -> None:
    with contextlib.suppress(AttributeError, TypeError):  # what is no payload of this runtime
        ROWS[door](hostile.everything()[kind])


@each_kind
@each_row("state", ["SUCCESS", "FAILURE", "RETRY"])
def test_the_value_that_a_task_of_celery_returned(kind: str, state: str) -> None:
    for value in (hostile.everything()[kind], _error()):
        celery._thread.runs = [celery._Run("t", _visit("celery"))]
        celery._postrun("t", value, state)


@each_kind
def test_the_text_of_an_exception(kind: str) -> None:
    value = hostile.everything()[kind]
    for error in (ValueError(value), ValueError("said", value), OSError(2, "said", value), _error()):
        assert text_of(error, 100) in {"", "said"}


@each_row(
    "error", [ValueError("said"), ValueError(), KeyError("said"), ValueError("a", 1), FileNotFoundError(2, "No", "f")]
)
def test_a_plain_exception_keeps_its_own_text(error: Exception) -> None:
    assert str(error) == text_of(error, 100)


def test_an_exception_is_described_by_its_class() -> None:
    assert errors.described(_error()) == "Hostile at "
    assert error_type(_error()).endswith(".Hostile")
