"""Workflows beside the stand-in for daprd: ``with_dapr.py``; prints what came of them."""

# ruff: noqa: ARG001 - an activity is given its context
# mypy: disable-error-code="import-not-found,import-untyped,misc,no-any-return,unused-ignore"
# The SDK is not installed where types are checked.

import json
import re
from datetime import timedelta
from typing import Any

from dapr.ext.workflow import DaprWorkflowClient, RetryPolicy, WorkflowRuntime, when_all

from tests.system.engines.dapr_engine import Engine
from tests.system.engines.dapr_sidecar import sidecar

MIB = 1024 * 1024
AGAIN = RetryPolicy(first_retry_interval=timedelta(milliseconds=10), max_number_of_attempts=3)

turns: dict[str, list[bool]] = {"hello": [], "large input": []}
attempts: list[int] = []


def greet(context: Any, name: str) -> str:
    """Greet."""
    return f"Hello, {name}!"


async def agreet(context: Any, name: str) -> str:
    """Greet."""
    return f"Hello, {name}!"


def fail_twice(context: Any, name: str) -> str:
    """Greet at the third attempt."""
    attempts.append(len(attempts))
    if len(attempts) < 3:
        raise ValueError(name)
    return f"Hello at last, {name}!"


def write(context: Any, size: int) -> str:
    """Write so many bytes."""
    return "x" * size


def count(context: Any, text: str) -> int:
    """Count bytes."""
    return len(text)


def hello(context: Any, name: str) -> Any:
    """Greet in all ways."""
    turns["hello"].append(context.is_replaying)
    first = yield context.call_activity(greet, input=name)
    both = yield when_all([context.call_activity(each, input=name) for each in (greet, agreet)])
    retried = yield context.call_activity(fail_twice, input=name, retry_policy=AGAIN)
    yield context.create_timer(timedelta(milliseconds=10))
    child = yield context.call_child_workflow(inner, input=name)
    return [first, *both, retried, child]


def inner(context: Any, name: str) -> Any:
    """Greet in a workflow of its own."""
    return (yield context.call_activity(agreet, input=name))


def large_result(context: Any, size: int) -> Any:
    """Let an activity return so many bytes."""
    return len((yield context.call_activity(write, input=size)))


def large_input(context: Any, size: int) -> Any:
    """Give an activity so many bytes, in the second turn: before the end of the first, nobody has started anything."""
    yield context.call_activity(count, input="")
    turns["large input"].append(context.is_replaying)
    return (yield context.call_activity(count, input="x" * size))


def large_history(context: Any, size: int) -> Any:
    """Let activities return so many bytes, for ever."""
    while True:
        yield context.call_activity(write, input=size)


def main(engine: Engine) -> None:
    """Run the workflows."""
    runtime, client = WorkflowRuntime(), DaprWorkflowClient()
    for workflow in (hello, inner, large_result, large_input, large_history):
        runtime.register_workflow(workflow)
    for activity in (greet, agreet, fail_twice, write, count):
        runtime.register_activity(activity)
    runtime.start()

    def run(workflow: Any, given: Any, seconds: int = 60) -> Any:
        name = client.schedule_new_workflow(workflow, input=given)
        try:
            state = client.wait_for_workflow_completion(name, timeout_in_seconds=seconds)
        except TimeoutError:
            return client.get_workflow_state(name).runtime_status.name
        if state.failure_details is not None:
            return re.sub(r".* (?=Activity result|larger)", "", state.failure_details.message)
        return json.loads(state.serialized_output)

    said = {
        "hello": run(hello, "World"),
        "hello, not replaying": turns["hello"].count(False),
        "result": run(large_result, 3 * MIB),
        "large result": run(large_result, 5 * MIB),
        "input": run(large_input, MIB),
        "input, replaying": turns["large input"][:],
        "large input": run(large_input, 3 * MIB, 1),
        "large input, replaying": turns["large input"][2:],
        "refusals": engine.refusals,
        "large history": run(large_history, MIB, 1),
    }
    runtime.shutdown()
    print(json.dumps(said))


if __name__ == "__main__":
    with sidecar(scheduler_retries=2, scheduler_interval=0.1) as daprd:
        main(daprd)
