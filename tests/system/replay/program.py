"""A workflow on Temporal whose activities call tools with side effects, on workers that replay its history.

`main` gets the server's address, and prints the workflow's answer, the side effects in their order, and the spans of
the tool calls. Temporal's sandbox imports this module again, so that it cannot be the main one.
"""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,unused-ignore"
# The SDK is not installed where types are checked.

from __future__ import annotations

import asyncio
import json
import os
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.common import RetryPolicy
from temporalio.worker import Replayer, Worker

from tests.contract.child import Messages, Telemetry
from tests.system.replay.tools import charge, effects, mail


@activity.defn(name="first")
def first(customer: str) -> str:
    """Charge the customer."""
    return charge(customer)


@activity.defn(name="second")
def second(customer: str) -> str:
    """Charge and write, and fail behind both in the first attempt."""
    receipt = charge(customer)
    sent = mail(customer)
    if activity.info().attempt == 1:
        raise ConnectionError("the state was not written")
    return f"{receipt[:16]} {sent['sent']}"


@workflow.defn(name="order")
class Order:
    """Run the activities, one in each workflow task."""

    @workflow.run
    async def run(self) -> list[Any]:
        """Run them."""
        retries = RetryPolicy(initial_interval=timedelta(milliseconds=10), maximum_attempts=3)
        answers = []
        for name, customer in (("first", "a"), ("second", "b"), ("first", "c")):
            answer = await workflow.execute_activity(
                name, customer, start_to_close_timeout=timedelta(seconds=200), retry_policy=retries
            )
            answers.append(answer[:16])
        return answers


async def run(address: str) -> dict[str, Any]:
    """Run the workflow on a worker that forgets it after each task; then replay its history."""
    client = await Client.connect(address)
    queue = str(uuid.uuid4())
    with ThreadPoolExecutor() as executor:
        async with Worker(
            client,
            task_queue=queue,
            workflows=[Order],
            activities=[first, second],
            activity_executor=executor,
            max_cached_workflows=0,
        ):
            handle = await client.start_workflow("order", id=str(uuid.uuid4()), task_queue=queue)
            answers = await handle.result()
        at_the_end = list(effects)
        await Replayer(workflows=[Order]).replay_workflow(await handle.fetch_history())
    return {"answers": answers, "effects": at_the_end, "by the replay": effects[len(at_the_end) :]}


def main(address: str) -> None:
    """Print what happened."""
    messages, telemetry = Messages(), Telemetry()
    report = asyncio.run(run(address))
    report["messages"] = messages.take()
    report["calls"] = [span["attributes"] for span in telemetry.spans() if span["name"].startswith("execute_tool")]
    print(json.dumps(report), flush=True)
    os._exit(0)  # the threads of the SDK's core may abort an interpreter that ends
