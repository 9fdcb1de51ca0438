"""A program as users write it: workflow, activity and tools in one file, frameworks imported beside them.

Prints as JSON what the workflow said, what Python warned of, how often each module of ours is there and which tools
were measured.
"""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,unused-ignore"
# The SDK is not installed where types are checked.

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib
import json
import sys
import types
import uuid
import warnings
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import Worker

import agent_otel
from agent_otel._bootstrap import import_hook
from agent_otel._internal import env

if TYPE_CHECKING:
    from collections.abc import Iterator

# Temporal's sandbox cannot load these anew: they derive classes from what it restricts.
with workflow.unsafe.imports_passed_through(), contextlib.suppress(ModuleNotFoundError):
    importlib.import_module("langchain_core.tools")
    importlib.import_module("langgraph.prebuilt")
    if workflow.unsafe.in_sandbox():
        importlib.import_module("openai")  # here before anywhere else

WATCHED = "tests.contract.runtimes.steps"
told: list[bool] = []
if workflow.unsafe.in_sandbox():
    importlib.import_module(WATCHED)
elif env.active:
    import_hook.install({WATCHED: lambda _: told.append(workflow.unsafe.in_sandbox())})


@agent_otel.tool
def look(word: str) -> str:
    """Look a word up."""
    return f"looked: {word}"


@agent_otel.tool
def shout(word: str) -> str:
    """Say it loudly."""
    return f"shouted: {word.upper()}"


@agent_otel.tool
def spell(word: str) -> Iterator[str]:
    """Give the letters of a word."""
    yield from word


def find(word: str) -> str:
    """Find a word."""
    return f"found: {word}"


@activity.defn
async def answer(word: str) -> str:
    """Use tools of both kinds."""
    core = sys.modules.get("langchain_core.tools")
    found = core.tool(find).invoke({"word": word}) if core else find(word)
    return f"{look(word)}, {found}, spelt: {'-'.join(spell(word))}"


@workflow.defn
class Asking:
    """Ask twice: in an activity and here."""

    @workflow.run
    async def run(self, word: str) -> str:
        """Run it."""
        answered = await workflow.execute_activity(answer, word, start_to_close_timeout=timedelta(seconds=200))
        from agent_otel import tool_call

        with tool_call("loud", {"word": word}) as call:
            return f"{answered}, {call.result(shout(word))}"


async def _ask(address: str) -> Any:
    client = await Client.connect(address)
    queue = str(uuid.uuid4())
    async with Worker(client, task_queue=queue, workflows=[Asking], activities=[answer], max_cached_workflows=0):
        return await client.execute_workflow(Asking.run, "abc", id=queue, task_queue=queue)


def main() -> None:
    """Run it."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        said = asyncio.run(_ask(sys.argv[1]))
    report = {"said": said, "warnings": sorted({str(each.message) for each in warned})}
    if env.active:
        importlib.import_module(WATCHED)
        report |= _look_around()
    print(json.dumps(report))
    from tests.contract.runtimes.programs.temporal import leave

    leave()


def _look_around() -> dict[str, Any]:
    from prometheus_client import REGISTRY

    from agent_otel.telemetry.setup import integrations

    modules = (each for each in gc.get_objects() if isinstance(each, types.ModuleType))
    copies = Counter(each.__name__ for each in modules if each.__name__.partition(".")[0] == "agent_otel")
    counts = (
        (sample.labels["gen_ai_tool_name"], sample.value)
        for metric in REGISTRY.collect()
        for sample in metric.samples
        if sample.name == "agent_otel_tool_result_size_bytes_count"
    )
    return {
        "copies": sorted(name for name, count in copies.items() if count > 1),
        "integrations": sorted(integrations()),
        "measured": dict(counts),
        "told": told,
    }
