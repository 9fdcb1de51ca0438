"""A workflow of Temporal whose large payloads are in a store: ``run`` it, ``replay`` it, or run it where that fails.

``python -m tests.unit.remedies.claim_check.temporal_driver_program MODE ADDRESS STORE KEY HISTORY``: a file last.
Prints what came of it as JSON.
"""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,unused-ignore"
# The SDK is not installed where types are checked.

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from temporalio import activity, workflow
from temporalio.api.history.v1 import History
from temporalio.client import Client, WorkflowFailureError, WorkflowHistory
from temporalio.common import RetryPolicy
from temporalio.converter import DataConverter, ExternalStorage, StorageDriver
from temporalio.worker import Replayer, Worker

if TYPE_CHECKING:
    from collections.abc import Callable

with workflow.unsafe.imports_passed_through():
    from agent_otel.remedies.claim_check.payload_store import temporal_storage_driver

SIZE = 5 * 1024 * 1024
_ONCE: Any = {"start_to_close_timeout": timedelta(seconds=200), "retry_policy": RetryPolicy(maximum_attempts=1)}


@activity.defn
def produce(size: int) -> str:
    """Return a text of this length."""
    return "ab" * (size // 2)


@activity.defn
def digest(text: str) -> str:
    """Return a text's digest."""
    return hashlib.sha256(text.encode()).hexdigest()


@workflow.defn
class Passing:
    """Passes what one activity makes to another."""

    @workflow.run
    async def run(self, size: int) -> str:
        """Return the digest."""
        text = await workflow.execute_activity(produce, size, **_ONCE)
        said: str = await workflow.execute_activity(digest, text, **_ONCE)
        return said


async def run(client: Client, keep: Callable[[bytes], object]) -> dict[str, Any]:
    """Run the workflow, and keep its history."""
    with ThreadPoolExecutor() as threads:
        async with Worker(
            client, task_queue="q", workflows=[Passing], activities=[produce, digest], activity_executor=threads
        ):
            handle = await client.start_workflow(Passing.run, SIZE, id=uuid4().hex, task_queue="q")
            try:
                said = {"said": await handle.result()}
            except WorkflowFailureError as error:
                return {"error": f"{error.cause}: {error.cause.__cause__}"}
        history = await handle.fetch_history()
        keep(History(events=history.events).SerializeToString())
        described = (await handle.describe()).raw_description.workflow_execution_info
        return {**said, "run_id": described.execution.run_id, "history_bytes": described.history_size_bytes}


async def replay(converter: DataConverter, kept: bytes) -> dict[str, Any]:
    """Replay the workflow, and say whether it does again what it has done."""
    events = History.FromString(kept).events
    replayer = Replayer(workflows=[Passing], data_converter=converter)
    replayed = await replayer.replay_workflow(WorkflowHistory(uuid4().hex, events), raise_on_replay_failure=False)
    return {"failure": None if replayed.replay_failure is None else str(replayed.replay_failure)}


async def connected(address: str, converter: DataConverter, keep: Callable[[bytes], object]) -> dict[str, Any]:
    """Run the workflow on the server at an address."""
    return await run(await Client.connect(address, data_converter=converter), keep)


def main() -> None:
    """Do what the command line says."""
    mode, address, store, key, name = sys.argv[1:]
    file = Path(name)
    driver = temporal_storage_driver(store, key=key)
    assert isinstance(driver, StorageDriver)
    converter = dataclasses.replace(DataConverter.default, external_storage=ExternalStorage(drivers=[driver]))
    if mode == "run":
        said = asyncio.run(connected(address, converter, file.write_bytes))
    else:
        said = asyncio.run(replay(converter, file.read_bytes()))
    print(json.dumps(said), flush=True)
    # Native threads of the SDK's core outlive the loop, and call into an interpreter that ends: seen to crash it.
    os._exit(0)


if __name__ == "__main__":
    main()
