"""Workflows of Microsoft's durabletask on its in-memory backend."""

# mypy: disable-error-code="import-not-found,import-untyped,unused-ignore"
# The SDK is not installed where types are checked.

from __future__ import annotations

import contextlib
import json
import socket
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from durabletask import client, task, worker
from durabletask.testing import create_test_backend

from tests.contract.runtimes import steps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from durabletask.payload import PayloadStore


def _activity(function: Callable[[Any], Any]) -> Callable[[task.ActivityContext, Any], Any]:
    def run(_: task.ActivityContext, given: Any) -> Any:
        return function(given)

    run.__name__ = function.__name__
    return run


produce, consume, flaky, broken, use_tool = ACTIVITIES = [
    _activity(function) for function in (steps.produce, steps.consume, steps.flaky, steps.broken, steps.use_tool)
]


def one(ctx: task.OrchestrationContext, given: dict[str, Any]) -> Any:
    """Run one activity; how long its result is."""
    text = yield ctx.call_activity(given["activity"], input=given["n"])
    return len(text)


def retried(ctx: task.OrchestrationContext, given: dict[str, Any]) -> Any:
    """Run one activity, twice at most."""
    policy = task.RetryPolicy(first_retry_interval=timedelta(milliseconds=10), max_number_of_attempts=2)
    text = yield ctx.call_activity(given["activity"], input=given["n"], retry_policy=policy)
    return len(text)


def parallel(ctx: task.OrchestrationContext, given: dict[str, Any]) -> Any:
    """Run two activities at once."""
    texts = yield task.when_all([ctx.call_activity(produce, input=given["n"] + more) for more in (0, 1)])
    return sum(len(text) for text in texts)


def turns(ctx: task.OrchestrationContext, given: dict[str, Any]) -> Any:
    """Carry every turn's text into the next turn."""
    texts: list[str] = []
    length = 0
    for turn in range(given["turns"]):
        texts.append((yield ctx.call_activity(produce, input=given["n"] + turn)))
        length = yield ctx.call_activity(consume, input=texts)
    return length


def resumed(ctx: task.OrchestrationContext, given: dict[str, Any]) -> Any:
    """Run one activity, wait for another worker, run one more."""
    before = yield ctx.call_activity(produce, input=given["n"])
    ctx.set_custom_status("waiting")
    yield ctx.wait_for_external_event("go")
    after = yield ctx.call_activity(produce, input=given["n"] + 1)
    return len(before) + len(after)


def renewed(ctx: task.OrchestrationContext, given: dict[str, Any]) -> Any:
    """Continue as new with one turn less, until none is left."""
    text = yield ctx.call_activity(produce, input=given["n"])
    if given["left"]:
        ctx.continue_as_new({**given, "left": given["left"] - 1})
        return None
    return len(text)


def nested(ctx: task.OrchestrationContext, given: dict[str, Any]) -> Any:
    """Run another workflow."""
    length = yield ctx.call_sub_orchestrator(one, input=given)
    return length


def spread(ctx: task.OrchestrationContext, given: dict[str, Any]) -> Any:
    """Hand the same text to several activities at once."""
    texts = [steps.produce(given["n"])]
    lengths = yield task.when_all([ctx.call_activity(consume, input=texts) for _ in range(given["times"])])
    return sum(lengths)


def handing(ctx: task.OrchestrationContext, given: dict[str, Any]) -> Any:
    """Run another workflow with a text of its own."""
    yield ctx.call_sub_orchestrator(one, input=steps.produce(given["n"]))


def showing(ctx: task.OrchestrationContext, given: dict[str, Any]) -> Any:
    """Show a text as the status, and run an activity."""
    ctx.set_custom_status(steps.produce(given["n"]))
    yield ctx.call_activity(consume, input=["a"])


def leaving(ctx: task.OrchestrationContext, given: dict[str, Any]) -> Any:
    """Run an activity, and end with a text as the status."""
    length = yield ctx.call_activity(consume, input=["a"])
    ctx.set_custom_status(steps.produce(given["n"]))
    return length


WORKFLOWS = (one, retried, parallel, turns, resumed, renewed, nested, spread, handing, showing, leaving)


@contextlib.contextmanager
def backend() -> Iterator[str]:
    """Start the backend; yield its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    running = create_test_backend(port=port)
    try:
        yield f"127.0.0.1:{port}"
    finally:
        running.stop()


@contextlib.contextmanager
def working(address: str, store: PayloadStore | None = None) -> Iterator[None]:
    """Run a worker."""
    with worker.TaskHubGrpcWorker(host_address=address, payload_store=store) as hub:
        for workflow in WORKFLOWS:
            hub.add_orchestrator(workflow)
        for activity in ACTIVITIES:
            hub.add_activity(activity)
        hub.start()
        yield


@contextlib.contextmanager
def running(_: dict[str, Any]) -> Iterator[Callable[[str, Any], Any]]:
    """Start the backend and a worker; yield what runs a workflow."""
    with backend() as address, contextlib.ExitStack() as workers:
        workers.enter_context(working(address))
        tasks = client.TaskHubGrpcClient(host_address=address)

        def start(workflow: str, given: Any) -> Any:
            instance = tasks.schedule_new_orchestration(workflow, input=given)
            if workflow == "resumed":
                _wait_for_status(tasks, instance)
                workers.close()
                workers.enter_context(working(address))
                tasks.raise_orchestration_event(instance, "go")
            done = tasks.wait_for_orchestration_completion(instance, timeout=given.get("seconds", 200))
            assert done is not None
            done.raise_if_failed()
            return json.loads(done.serialized_output or "null")

        yield start


def _wait_for_status(tasks: client.TaskHubGrpcClient, instance: str) -> None:
    for _ in range(200):
        state = tasks.get_orchestration_state(instance)
        if state is not None and state.serialized_custom_status:
            return
        time.sleep(0.05)
    raise TimeoutError("no status")
