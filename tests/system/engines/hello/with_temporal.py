"""A workflow of one activity: ``with_temporal.py <address> <bytes>``; prints its result and the server's cap."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,no-any-return,unused-ignore"
# The SDK is not installed where types are checked.

import asyncio
import json
import os
import sys
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError
from temporalio.worker import Worker


@activity.defn
async def greet(name: str) -> str:
    """Greet."""
    return f"Hello, {name}!"


@workflow.defn
class Hello:
    """Greets in an activity."""

    @workflow.run
    async def run(self, name: str) -> str:
        """Greet."""
        return await workflow.execute_activity(greet, name, start_to_close_timeout=timedelta(seconds=200))


async def main(address: str, size: int) -> None:
    """Say what came of a greeting, and of one with a name of so many bytes."""
    client = await Client.connect(address)
    namespace = await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace="default"))
    limits = getattr(namespace.namespace_info, "limits", None)  # not in what 1.20 knows of
    cap = limits and limits.blob_size_limit_error
    async with Worker(client, task_queue="hello", workflows=[Hello], activities=[greet]):
        said = await client.execute_workflow(Hello.run, "World", id="hello", task_queue="hello")
    try:
        await client.start_workflow(Hello.run, "x" * size, id="large", task_queue="hello")
        error = None
    except RPCError as raised:
        error = str(raised)
    print(json.dumps([said, cap, error]))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
    # The SDK's threads often abort a Python that ends right after its last worker.
    sys.stdout.flush()
    os._exit(0)
