"""A Temporal activity that returns a tool call for the workflow's state: the model's text, and a lean record.

The activity's result, and so the history and each later input, hold 32 KiB of the tool's 200 KB and a record with 4 KiB
and the reference; ``call.claim`` has them, so that no text is parsed. In a worker the workflow's run owns the result.
Prints what the activity returns, with Temporal's own environment for activities, which needs no server:
``AGENT_OTEL=1 AGENT_OTEL_CLAIM_CHECK=memory: python examples/systems/000_lean_temporal.py``.
"""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.testing import ActivityEnvironment

import agent_otel
import agent_otel.auto

TURNS = 5


async def find(query: str) -> str:
    """Return 200,000 bytes."""
    return f"{query}\n" * (200_000 // (len(query) + 1))


@activity.defn
async def search(call_id: str, query: str) -> dict[str, Any]:
    """Return what the model reads of a search, and the record of the call."""
    started = time.monotonic()
    arguments = {"query": query}
    with agent_otel.tool_call("search", arguments, call_id=call_id) as call:
        content = await call.aresult(await find(query))
    record = agent_otel.remedies.LeanRecord.of(
        call_id, "search", arguments, content, duration_ms=(time.monotonic() - started) * 1000, claim=call.claim
    )
    return {"content": content, "record": record.to_dict()}


@workflow.defn
class Agent:
    """A workflow whose state holds the messages for the model, and beside them a lean record of each call."""

    @workflow.run
    async def run(self, question: str) -> list[dict[str, Any]]:
        """Search once a turn."""
        messages, records = [question], []
        for turn in range(TURNS):
            found = await workflow.execute_activity(
                search, args=[f"call_{turn}", question], start_to_close_timeout=timedelta(minutes=1)
            )
            messages.append(found["content"])
            records.append(found["record"])
        return records


async def main() -> dict[str, Any]:
    """Run the activity once."""
    with agent_otel.execution("run-1"):
        found: dict[str, Any] = await ActivityEnvironment().run(search, "call_1", "pull requests")
    return found


if __name__ == "__main__":
    answer = asyncio.run(main())
    print(f"content: {len(answer['content']):,} bytes")
    for name, value in answer["record"].items():
        print(f"{name}: {value if name != 'truncated_preview' else f'{len(value):,} bytes'}")
