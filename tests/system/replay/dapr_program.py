"""The same workflow on Dapr: its orchestrator runs from the beginning again in each of its turns.

The sidecar is the stand-in, or with ``DURABLE_SIDECAR=daprd`` a real one. Prints the workflow's answer, the side
effects, how often the orchestrator was begun, and the attempts that the spans of the tool calls name.
"""

# mypy: disable-error-code="import-not-found,import-untyped,misc,unused-ignore"
# The SDK is not installed where types are checked.

from __future__ import annotations

import json
import os
from datetime import timedelta
from typing import Any

from dapr.ext.workflow import DaprWorkflowClient, RetryPolicy, WorkflowRuntime

from tests.contract.child import Messages, Telemetry
from tests.contract.runtimes.programs.dapr import serving
from tests.system.replay.tools import attempts, charge, effects, mail

begun: list[str] = []
failed: list[str] = []


def first(_: Any, customer: str) -> str:
    """Charge the customer."""
    return charge(customer)


def second(_: Any, customer: str) -> str:
    """Charge and write, and fail behind both the first time."""
    receipt = charge(customer)
    sent = mail(customer)
    if not failed:
        failed.append(customer)
        raise ConnectionError("the state was not written")
    return f"{receipt[:16]} {sent['sent']}"


def order(ctx: Any, customers: list[str]) -> Any:
    """Run the activities, one in each turn."""
    begun.append(customers[0])
    policy = RetryPolicy(first_retry_interval=timedelta(milliseconds=10), max_number_of_attempts=3)
    answers = []
    for name, customer in zip(("first", "second", "first"), customers, strict=True):
        answer = yield ctx.call_activity(name, input=customer, retry_policy=policy)
        answers.append(answer[:16])
    return answers


def main() -> None:
    """Print what happened."""
    messages, telemetry = Messages(), Telemetry()
    with serving({"daprd": {}} if os.environ.get("DURABLE_SIDECAR") == "daprd" else {}):
        runtime = WorkflowRuntime()
        runtime.register_workflow(order, name="order")
        for function in (first, second):
            runtime.register_activity(function, name=function.__name__)
        runtime.start()
        client = DaprWorkflowClient()
        instance = client.schedule_new_workflow(order, input=["a", "b", "c"])
        state = client.wait_for_workflow_completion(instance, timeout_in_seconds=200)
        runtime.shutdown()
    report = {"answers": json.loads(state.serialized_output), "effects": effects, "begun": len(begun)}
    print(json.dumps({**report, "attempts": attempts(telemetry.spans()), "messages": messages.take()}))
