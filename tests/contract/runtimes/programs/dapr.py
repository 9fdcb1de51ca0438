"""Workflows of Dapr's SDK, beside a stand-in for daprd in the same process, or a daprd of its own."""

# mypy: disable-error-code="import-not-found,import-untyped,misc,unused-ignore"
# The SDK is not installed where types are checked.

from __future__ import annotations

import contextlib
import inspect
import json
import time
from datetime import timedelta
from types import FunctionType
from typing import TYPE_CHECKING, Any

import grpc
from dapr.conf import settings
from dapr.ext.workflow import DaprWorkflowClient, RetryPolicy, WorkflowRuntime, when_all

from tests.contract.runtimes import steps
from tests.system.engines.dapr_sidecar import sidecar
from tests.system.engines.daprd import daprd

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.system.engines.daprd import Daprd

ACTIVITIES = (
    steps.produce,
    steps.produce_later,
    steps.consume,
    steps.flaky,
    steps.broken,
    steps.use_tool,
)


def one(ctx: Any, given: dict[str, Any]) -> Any:
    """Run one activity; how long its result is."""
    text = yield ctx.call_activity(given["activity"], input=given["n"])
    return len(text)


def retried(ctx: Any, given: dict[str, Any]) -> Any:
    """Run one activity, twice at most."""
    policy = RetryPolicy(first_retry_interval=timedelta(milliseconds=10), max_number_of_attempts=2)
    text = yield ctx.call_activity(given["activity"], input=given["n"], retry_policy=policy)
    return len(text)


def parallel(ctx: Any, given: dict[str, Any]) -> Any:
    """Run two activities at once."""
    texts = yield when_all([ctx.call_activity("produce", input=given["n"] + more) for more in (0, 1)])
    return sum(len(text) for text in texts)


def turns(ctx: Any, given: dict[str, Any]) -> Any:
    """Carry every turn's text into the next turn."""
    texts: list[str] = []
    length = 0
    for turn in range(given["turns"]):
        texts.append((yield ctx.call_activity("produce", input=given["n"] + turn)))
        length = yield ctx.call_activity("consume", input=texts)
    return length


def resumed(ctx: Any, given: dict[str, Any]) -> Any:
    """Run one activity, wait for another worker, run one more."""
    before = yield ctx.call_activity("produce", input=given["n"])
    ctx.set_custom_status("waiting")
    yield ctx.wait_for_external_event("go")
    after = yield ctx.call_activity("produce", input=given["n"] + 1)
    return len(before) + len(after)


def renewed(ctx: Any, given: dict[str, Any]) -> Any:
    """Continue as new with one turn less, until none is left."""
    text = yield ctx.call_activity("produce", input=given["n"])
    if given["left"]:
        ctx.continue_as_new({**given, "left": given["left"] - 1})
        return None
    return len(text)


def nested(ctx: Any, given: dict[str, Any]) -> Any:
    """Run another workflow."""
    length = yield ctx.call_child_workflow("one", input=given)
    return length


def spread(ctx: Any, given: dict[str, Any]) -> Any:
    """Hand the same text to several activities at once."""
    texts = [steps.produce(given["n"])]
    lengths = yield when_all([ctx.call_activity("consume", input=texts) for _ in range(given["times"])])
    return sum(lengths)


def handing(ctx: Any, given: dict[str, Any]) -> Any:
    """Run another workflow with a text of its own."""
    yield ctx.call_child_workflow("one", input=steps.produce(given["n"]))


def showing(ctx: Any, given: dict[str, Any]) -> Any:
    """Show a text as the status, and run an activity."""
    ctx.set_custom_status(steps.produce(given["n"]))
    yield ctx.call_activity("consume", input=["a"])


def leaving(ctx: Any, given: dict[str, Any]) -> Any:
    """Run an activity, and end with a text as the status."""
    length = yield ctx.call_activity("consume", input=["a"])
    ctx.set_custom_status(steps.produce(given["n"]))
    return length


def spread_later(ctx: Any, given: dict[str, Any]) -> Any:
    """Run one activity before."""
    yield ctx.call_activity("produce", input=1)
    length = yield from spread(ctx, given)
    return length


WORKFLOWS = (one, retried, parallel, turns, resumed, renewed, nested, spread, spread_later, handing, showing, leaving)
BY_NAME = {workflow.__name__: workflow for workflow in WORKFLOWS}


@contextlib.contextmanager
def working() -> Iterator[None]:
    """Run a worker."""
    runtime = WorkflowRuntime()
    for workflow in WORKFLOWS:
        # A function remembers that it is registered, and must not be twice.
        runtime.register_workflow(FunctionType(workflow.__code__, globals()), name=workflow.__name__)
    for function in ACTIVITIES:
        runtime.register_activity(_activity(function), name=function.__name__)
    runtime.start()
    try:
        yield
    finally:
        runtime.shutdown()


def _activity(function: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    if inspect.iscoroutinefunction(function):

        async def run_later(_: Any, given: Any) -> Any:
            return await function(given)

        return run_later

    def run(_: Any, given: Any) -> Any:
        return function(given)

    return run


@contextlib.contextmanager
def serving(engine: dict[str, Any]) -> Iterator[Daprd | None]:
    """Run the stand-in, or a real daprd with the options that ``engine`` names; the SDK finds it unasked.

    It is this program's alone: a workflow that never ends would go on with the next program's worker.
    """
    if "daprd" not in engine:
        with sidecar(scheduler_retries=3, scheduler_interval=0.2):
            yield None
        return
    with daprd(**engine["daprd"]) as real:
        settings.DAPR_RUNTIME_HOST, settings.DAPR_GRPC_PORT = "127.0.0.1", real.grpc_port
        yield real


@contextlib.contextmanager
def running(engine: dict[str, Any]) -> Iterator[Callable[[str, Any], Any]]:
    """Start the sidecar and a worker; yield what runs a workflow."""
    with serving(engine), contextlib.ExitStack() as workers:
        workers.enter_context(working())
        client = DaprWorkflowClient()

        def start(workflow: str, given: Any) -> Any:
            instance = client.schedule_new_workflow(BY_NAME[workflow], input=given)
            if workflow == "resumed":
                _wait_for_status(client, instance)
                workers.close()
                workers.enter_context(working())
                _go(client, instance)
            state = client.wait_for_workflow_completion(instance, timeout_in_seconds=given.get("seconds", 200))
            if state.failure_details is not None:
                raise RuntimeError(state.failure_details.message)
            return json.loads(state.serialized_output or "null")

        yield start


def _go(client: Any, instance: str) -> None:
    """Raise the event; daprd knows of no workflows for a moment after a worker has come."""
    for _ in range(100):
        try:
            client.raise_workflow_event(instance, "go")
        except grpc.RpcError as error:
            if "not registered" not in str(error.details()):
                raise
        else:
            return
        time.sleep(0.05)
    raise TimeoutError("no worker")


def _wait_for_status(client: Any, instance: str) -> None:
    for _ in range(200):
        if client.get_workflow_state(instance).serialized_custom_status:
            return
        time.sleep(0.05)
    raise TimeoutError("no status")
