"""A program whose signal handler raises at random moments, amid calls of tools, generators, steps and models.

Prints what is left behind of what was interrupted, and what is counted afterwards.
"""

from __future__ import annotations

import asyncio
import json
import random
import signal
import sys
from typing import TYPE_CHECKING, Any

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import agent_otel
from agent_otel.core import handler, step_handler, tool_visit
from agent_otel.core.types import (
    Invocation,
    ModelReader,
    ModelRequest,
    Payload,
    RequestPart,
    Step,
    StepOutcome,
    StepReader,
)
from agent_otel.integrations.hooks import Hook, Within, hooked

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import FrameType

INTERRUPTS = 2_000


class Interrupted(BaseException):
    """What the handler raises."""


def _interrupt(_: int, __: FrameType | None) -> None:
    raise Interrupted


@agent_otel.tool
def tool(size: int) -> str:
    """Return so many bytes."""
    return "x" * size


@agent_otel.tool
def outer(size: int) -> str:
    """Use another tool."""
    return tool(size)


@agent_otel.tool
async def later(size: int) -> str:
    """Return so many bytes."""
    await asyncio.sleep(0)
    return "x" * size


@agent_otel.tool
def letters(size: int) -> Generator[str, None, None]:
    """Yield so many bytes."""
    for _ in range(size):
        yield "x"


def by_hand(size: int) -> None:
    """Call a tool as a hand-written loop does."""
    with agent_otel.tool_call("by hand", {"size": size}) as call:
        if call.refused() is None:
            call.result("x" * size)


_steps = StepReader(
    lambda *_: Step("temporal", "activity", "workflow", "stale"),
    lambda *_: Payload("input", 1),
    lambda *_: StepOutcome(Payload("output", 1)),
)
_requests = ModelReader(lambda *_: ModelRequest([RequestPart("user", "text")], execution="stale"), outermost=True)


def step(size: int) -> None:
    """Run a step of a durable runtime."""
    visit = step_handler.enter_step(_steps, Invocation(None, (), {}))
    if visit is not None:
        with visit:
            visit.returned(tool(size))


_open: Within[object] = Within("open")


def _work(size: int) -> str:
    return "x" * size


_hooked = hooked(Hook(lambda _: [], lambda *_: None, within=_open), is_async=False)


def hook(size: int) -> None:
    """Call a function that a hook surrounds."""
    _hooked(_work, None, (size,), {})


def model(_: int) -> None:
    """Send a request to a model."""
    visit = handler.enter_model(_requests, Invocation(None, (), {}))
    if visit is not None:
        with visit:
            visit.returned(None)


def stream(size: int) -> None:
    """Use a generator up."""
    list(letters(size % 5))


def loop(size: int) -> None:
    """Call a tool in an event loop of its own."""
    running = later(size)
    try:
        running.send(None)
        running.send(None)
    except StopIteration:
        pass
    finally:
        running.close()


WORK = (tool, outer, stream, by_hand, step, hook, model, loop)


def _left_behind() -> list[str]:
    left = []
    if tool_visit.running() is not None:
        left.append("record")
    if step_handler.current_step() is not None:
        left.append("step")
    from agent_otel.core import execution_context
    from agent_otel.core.thread import model_request

    if execution_context.carrier() is not None:
        left.append("execution")
    if model_request._running() is not None:
        left.append("request")
    if _open.get() is not None:
        left.append("hook")
    if trace.get_current_span() is not trace.INVALID_SPAN:
        left.append("span")
    return left


def _interrupted(seed: int, exporter: InMemorySpanExporter) -> dict[str, int]:
    """Interrupt each kind of work at random moments; what was left behind, by kind."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    signal.signal(signal.SIGALRM, _interrupt)
    left: dict[str, int] = {}
    hits = 0
    while hits < INTERRUPTS:
        work = chance.choice(WORK)
        try:
            signal.setitimer(signal.ITIMER_REAL, chance.uniform(1e-6, 3e-4))
            for _ in range(100):  # Python swallows what is raised while it frees an object
                work(10)
            signal.setitimer(signal.ITIMER_REAL, 0)
        except Interrupted:
            hits += 1
        exporter.clear()
        for each in _left_behind():
            left[f"{each} after {work.__name__}"] = left.get(f"{each} after {work.__name__}", 0) + 1
    return left


def main() -> None:
    """Interrupt, then count."""
    exporter = InMemorySpanExporter()
    if "spans" in sys.argv:
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        trace.set_tracer_provider(provider)
    for work in WORK:
        work(10)
    said: dict[str, Any] = {"left": _interrupted(7, exporter)}
    with agent_otel.execution("after"):
        exporter.clear()
        results = [tool(10) for _ in range(100)]
        said["large"] = len(tool(1_000_000))
    finished = exporter.get_finished_spans()
    spans = [span for span in finished if span.name == "execute_tool tool"]
    said["results"] = sum(map(len, results))
    said["spans"] = len(spans)
    said["roots"] = sum(span.parent is None for span in finished)
    said["running"] = _running()
    print(json.dumps(said))


def _running() -> int:
    """Return how many calls the limits believe to be running."""
    acting: Any = handler.result_remedies()
    limits = acting._limits if acting is not None else None
    spent = limits._spent.values() if limits is not None else ()
    return sum(visit() is not None for each in spent for visit in each.running)


if __name__ == "__main__":
    main()
