"""Three runs of a Pydantic AI agent in one event loop, in which `blockbuster` refuses calls that block.

``python -m tests.system.processes.blocking_program <base URL>``; prints what the agent said, what was refused and what
was counted.
"""

# mypy: disable-error-code="import-not-found,unused-ignore"
# Neither of the two is installed where types are checked.

from __future__ import annotations

import asyncio
import atexit
import json
import os
import sys
from typing import Any

from blockbuster import BlockBuster, BlockingError

import agent_otel
from tests.contract import script, toolbox
from tests.contract.agents import pydantic_ai

KEY = {"key": "a"}
TOOLS = [toolbox.lookup_later, toolbox.lookup, toolbox.big, toolbox.table]


async def runs(agent: Any) -> list[str]:
    """Run the agent three times: its first calls, and later ones."""
    said = []
    for run in range(3):
        calls: list[tuple[str, str, dict[str, Any]]] = [
            (f"call_{run}1", "lookup_later", KEY),
            (f"call_{run}2", "lookup", KEY),
            (f"call_{run}3", "big", {"n": 100_000}),
            (f"call_{run}4", "table", {"rows": 5_000}),
        ]
        said.append(str((await agent.run(script.prompt(*calls), conversation_id="thread-1")).output))
        agent_otel.payload(b"x" * 3_000_000, runtime="temporal", workflow="w", direction="input")
    return said


def counted() -> dict[str, float]:
    """Return the counts of results and payloads in the registry of `prometheus_client`, if that is used."""
    if "agent_otel.telemetry.sinks.prometheus" not in sys.modules:
        return {}
    from prometheus_client import REGISTRY

    names = ("agent_otel_tool_result_size_bytes_count", "agent_otel_workflow_payload_size_bytes_count")
    samples = [sample for metric in REGISTRY.collect() for sample in metric.samples]
    return {name: sum(sample.value for sample in samples if sample.name == name) for name in names}


def main(base_url: str) -> None:
    """Run the agent and print a report."""
    refused: list[str] = []
    original = BlockingError.__init__

    def refuse(self: BlockingError, function: str) -> None:
        refused.append(function)
        original(self, function)

    BlockingError.__init__ = refuse
    agent = pydantic_ai.make(base_url, TOOLS, "")  # reads certificates
    BlockBuster().activate()
    said = asyncio.run(runs(agent))
    errors = sys.modules.get("agent_otel._internal.errors")
    ours = dict(errors.errors) if errors else {}
    print(json.dumps({"said": said, "refused": refused, "errors": ours, "counted": counted()}), flush=True)


if __name__ == "__main__":
    # After all other functions at exit: `blockbuster` has changed built-in classes, with which Python's end may crash.
    atexit.register(os._exit, 0)
    main(sys.argv[1])
