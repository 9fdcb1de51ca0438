"""The child process of the tests of runs: plain ones, runs of one thread, and runs that end in every way.

``python -m tests.contract.runs.child <agent> <base URL>``; prints as JSON what every run was, and what it left behind.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import json
import logging
import sys
import threading
from typing import TYPE_CHECKING, Any

from tests.contract import child, script, toolbox

if TYPE_CHECKING:
    from collections.abc import Callable

Json = dict[str, Any]
telemetry = child.Telemetry()
LOOP = child.LOOP


def calls(first: int, *keys: str, tool: str = "lookup") -> str:
    """Return the prompt for calls with these keys."""
    return script.prompt(*((f"call_{first + at}", tool, {"key": key}) for at, key in enumerate(keys)))


def observed(end: Callable[[], object]) -> Json:
    """Run what begins and ends runs; return the runs' telemetry, and what is current afterwards."""
    from opentelemetry import trace

    from agent_otel.core import execution_context

    error = None
    try:
        end()
    except (Exception, asyncio.CancelledError) as raised:
        error = type(raised).__name__
    return {
        "error": error,
        "left": str(execution_context.outermost.get() or ""),
        "span": trace.get_current_span().get_span_context().is_valid,
        "spans": telemetry.spans(),
        "metrics": telemetry.metrics(),
    }


class Cases:
    """All cases with the agents of one framework; a method runs one of them to its end."""

    def __init__(self, agent: Any, base_url: str) -> None:
        self._agent = agent
        self._base_url = base_url
        self._tools = [toolbox.lookup]
        self._held: Any = None

    def run(self, prompt: str, thread: str | None = None) -> Callable[[], object]:
        """Return a function that runs an agent."""
        return lambda: self._agent.run(self._base_url, self._tools, prompt, thread)

    def failing(self) -> None:
        """A tool raises."""
        self._agent.run(self._base_url, [toolbox.broken], calls(41, "a", tool="broken"), None)

    async def cancelled(self) -> None:
        """The caller cancels a run inside a tool."""
        toolbox.lingering = asyncio.Event()
        prompt = calls(50, "a", tool="linger")
        task = asyncio.ensure_future(self._agent.arun(self._base_url, [toolbox.linger], prompt, None))
        await asyncio.wait_for(toolbox.lingering.wait(), 200)
        task.cancel()
        try:
            await task
        finally:
            await asyncio.sleep(0.05)

    async def abandoned(self) -> None:
        """The consumer of a stream stops after the first event."""
        events = self._agent.events(self._base_url, self._tools, calls(60, "a"), None)
        await anext(events)
        await events.aclose()
        await asyncio.sleep(0.1)

    async def streamed(self) -> None:
        """A stream to its end."""
        async for _ in self._agent.events(self._base_url, self._tools, calls(65, "a"), None):
            pass

    async def at_once(self) -> None:
        """Three runs in tasks."""
        prompts = [calls(70 + 10 * at, "a", "b") for at in range(3)]
        await asyncio.gather(*(self._agent.arun(self._base_url, self._tools, prompt, None) for prompt in prompts))

    def in_threads(self) -> None:
        """Three runs in threads."""
        threads = [threading.Thread(target=self.run(calls(110 + 10 * at, "a", "b"))) for at in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def hold(self) -> None:
        """Begin a stream in sync code and keep it."""
        self._held = self._agent.left(self._base_url, self._tools, calls(140, "a"))

    def close(self) -> None:
        """Close that stream."""
        self._held.close()


def _awaited(case: Callable[[], Any]) -> None:
    LOOP.run_until_complete(case())


def main(agent: Any, base_url: str) -> Json:
    """Run all there is."""
    cases = Cases(agent, base_url)
    found = {
        "plain": observed(cases.run(calls(1, "a", "a", "b"))),
        "plain again": observed(cases.run(calls(11, "a"))),
        "thread": observed(cases.run(calls(21, "a", "b"), "thread-1")),
        "thread again": observed(cases.run(calls(31, "a", "c"), "thread-1")),
        "fails": observed(cases.failing),
    }
    if hasattr(agent, "left"):
        found |= {"held": observed(cases.hold), "closed": observed(cases.close)}
    for name, needed in (("cancelled", "arun"), ("at_once", "arun"), ("abandoned", "events"), ("streamed", "events")):
        if hasattr(agent, needed):
            found[name] = observed(functools.partial(_awaited, getattr(cases, name)))
    found["in threads"] = observed(cases.in_threads)
    return found


if __name__ == "__main__":
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    asked = importlib.import_module(f"tests.contract.runs.{sys.argv[1]}")
    print(json.dumps(main(asked, sys.argv[2])))
