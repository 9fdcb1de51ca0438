"""A Temporal worker and its client in one process: workflows of ten activities, each with a result of 1 KB.

``python -m benchmarks.durable_runtimes`` runs it in the environment of Temporal's tests, with AGENT_OTEL and without.
For each line that it reads it runs as many workflows at once, and prints the seconds.
"""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,unused-ignore"
# The SDK is not installed where types are checked.

from __future__ import annotations

import asyncio
import os
import sys
import time
import uuid
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import Worker

ACTIVITIES = 10
_RESULT = "x" * 1_024


@activity.defn
async def read(number: int) -> str:
    """Return a result of 1 KB."""
    return _RESULT


@workflow.defn
class Agent:
    """An agent of ten calls, one after the other."""

    @workflow.run
    async def run(self, number: int) -> int:
        """Return the characters of all results."""
        total = 0
        for step in range(ACTIVITIES):
            total += len(await workflow.execute_activity(read, step, start_to_close_timeout=timedelta(seconds=60)))
        return total


async def _serve(address: str, queue: str) -> int:
    """Run workflows until nothing more is asked; return how many activities have run."""
    client, done = await Client.connect(address), 0

    async def one() -> None:
        total = await client.execute_workflow(Agent.run, 0, id=f"{queue}-{uuid.uuid4()}", task_queue=queue)
        if total != ACTIVITIES * len(_RESULT):
            raise SystemExit(f"a workflow returned {total}")

    async with Worker(client, task_queue=queue, workflows=[Agent], activities=[read]):
        while line := await asyncio.to_thread(sys.stdin.readline):
            started = time.perf_counter()
            await asyncio.gather(*(one() for _ in range(int(line))))
            print(time.perf_counter() - started, flush=True)
            done += int(line) * ACTIVITIES
    return done


def main(address: str, queue: str) -> None:
    """Serve a queue; with the switch on, the payloads have to be measured."""
    done = asyncio.run(_serve(address, queue))
    if os.environ.get("AGENT_OTEL"):
        import prometheus_client

        text = prometheus_client.generate_latest().decode()
        counted = [
            line for line in text.splitlines() if line.startswith("agent_otel_workflow_payload_size_bytes_count")
        ]
        if sum(float(line.rsplit(" ", 1)[1]) for line in counted) < done:
            print("the payloads were not measured", file=sys.stderr, flush=True)
            os._exit(1)
    os._exit(0)  # threads of the SDK's core may fail while the interpreter ends
