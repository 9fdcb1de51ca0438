"""The program that `benchmarks.soak` measures: hand-written tools called from eight threads and an event loop."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import statistics
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import agent_otel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from io import RawIOBase

THREADS = 8
TOOLS = 5_000
EXECUTIONS = 10_000
_TEXT = "x" * 20_000
_PAUSE_SECONDS = 0.005  # four threads that pause for 1 ms keep the interpreter busy, and every call waits for it
_SWITCH_SECONDS = 0.0005
#: Attributes of a span: as many as this package sets.
_ATTRIBUTES = 12
_WARM = 200


@dataclass(frozen=True)
class Plan:
    """Calls numbered from 0: each with a tool's name and a size, every hundredth fails."""

    calls: int

    @staticmethod
    def size(number: int) -> int:
        """Return the bytes of the result of a call."""
        return number * 7919 % 20_000

    @staticmethod
    def fails(number: int) -> bool:
        """Return whether a call raises."""
        return number % 100 == 0

    @property
    def failures(self) -> int:
        """The calls that raise."""
        return sum(map(self.fails, range(self.calls)))

    @property
    def runs(self) -> int:
        """The executions: each thread, and the loop, puts a hundred calls into one."""
        return len([start for first in range(THREADS + 1) for start in range(first, self.calls, (THREADS + 1) * 100)])

    @property
    def bytes(self) -> int:
        """The bytes of all results."""
        return sum(self.size(number) for number in range(self.calls) if not self.fails(number))


class ToolError(Exception):
    """Raised by every hundredth call."""


def call(number: int) -> None:
    """Make one call, as a framework without an integration reports it."""
    with agent_otel.tool_call(f"tool_{number % TOOLS}", {"number": number}) as measured:
        if Plan.fails(number):
            raise ToolError
        measured.result(_TEXT[: Plan.size(number)])


def _share(plan: Plan, first: int, step: int, tenths: _Tenths) -> Iterator[int]:
    """Yield every ``step``-th call, each within one of the executions."""
    for start in range(first, plan.calls, step * 100):
        execution = start // max(1, plan.calls // EXECUTIONS)
        with agent_otel.execution(f"run-{execution}-{first}", workflow="soak"):
            for number in range(start, min(plan.calls, start + step * 100), step):
                yield number
                tenths.made()


class _Tenths:
    """Resident memory in each tenth of the calls: the median of ten readings: a scrape takes 3 MB for a moment."""

    def __init__(self, calls: int) -> None:
        self._lock = threading.Lock()
        self._made = 0
        self._hundredth = max(1, calls // 100)
        self._readings: list[int] = []

    def made(self) -> None:
        """Count a call."""
        with self._lock:
            self._made += 1
            if self._made % self._hundredth == 0:
                self._readings.append(int(Path("/proc/self/statm").read_text().split()[1]) * 4096)

    @property
    def resident(self) -> list[int]:
        """Return the bytes of each tenth."""
        tenths = (self._readings[start : start + 10] for start in range(0, len(self._readings), 10))
        return [int(statistics.median(readings)) for readings in tenths]


def soak(calls: int) -> None:
    """Make all calls, report when they are made, and end when told."""
    counter = _count_spans()
    plan, tenths = Plan(calls), _Tenths(calls)

    def work(first: int) -> None:
        for number in _share(plan, first, THREADS + 1, tenths):
            with contextlib.suppress(ToolError):
                call(number)

    async def work_in_loop() -> None:
        for number in _share(plan, THREADS, THREADS + 1, tenths):
            with contextlib.suppress(ToolError):
                call(number)
            await asyncio.sleep(0)

    threads = [threading.Thread(target=work, args=(first,)) for first in range(THREADS)]
    threads.append(threading.Thread(target=lambda: asyncio.run(work_in_loop())))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print("done", flush=True)
    sys.stdin.readline()
    print(json.dumps({**counter, "resident": tenths.resident}), flush=True)


def _count_spans() -> dict[str, int]:
    """Set a provider whose processor counts what ends, so that nothing is dropped on a way to a collector."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider

    counts = {"spans": 0, "runs": 0, "span_bytes": 0}
    lock = threading.Lock()

    class Counting(SpanProcessor):
        def on_end(self, span: ReadableSpan) -> None:
            attributes: Any = span.attributes or {}
            kind = "spans" if attributes["gen_ai.operation.name"] == "execute_tool" else "runs"
            with lock:
                counts[kind] += 1
                counts["span_bytes"] += attributes.get("tool.result.bytes", 0)

    provider = TracerProvider()
    provider.add_span_processor(Counting())
    trace.set_tracer_provider(provider)
    return counts


def sdk(calls: int) -> None:
    """Make the paced calls with a span of OpenTelemetry's SDK alone around each, for comparison."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider()
    if os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT"):
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    tracer = provider.get_tracer("soak")

    def traced(number: int) -> None:
        name = f"tool_{number % TOOLS}"
        attributes = {f"attribute.{at}": name for at in range(_ATTRIBUTES)}
        with tracer.start_as_current_span(f"execute_tool {name}", attributes=attributes):
            if Plan.fails(number):
                raise ToolError

    paced(calls, traced)


def paced(calls: int, call: Callable[[int], None] = call) -> None:
    """Make calls from four threads, as far apart as tools make them, and report how long each took.

    Three delays are not this package's and left out. A garbage collection takes up to 80 ms, in whichever call
    allocates next. A thread that computes keeps the interpreter for 5 ms before another gets its turn: turns of 0.5 ms
    leave the waits for an exporter. And the kernel makes a thread wait while other programs have the core.
    """
    sys.setswitchinterval(_SWITCH_SECONDS)
    delays: list[float] = []
    for number in range(_WARM):
        with contextlib.suppress(ToolError):
            call(number)
    gc.collect()
    gc.disable()

    def work(share: int) -> None:
        with Path("/proc/thread-self/schedstat").open("rb", buffering=0) as statistics_of_thread:
            for number in range(share):
                time.sleep(_PAUSE_SECONDS)
                waited = _waited_for_core(statistics_of_thread)
                started = time.perf_counter()
                with contextlib.suppress(ToolError):
                    call(number)
                took = time.perf_counter() - started
                delays.append(took - (_waited_for_core(statistics_of_thread) - waited))

    threads = [threading.Thread(target=work, args=(calls // 4,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps({"delays": delays}), flush=True)


def _waited_for_core(statistics_of_thread: RawIOBase) -> float:
    """Return the seconds for which a thread could run and had no core."""
    statistics_of_thread.seek(0)
    return int((statistics_of_thread.read(64) or b"0 0").split()[1]) / 1e9


if __name__ == "__main__":
    {"soak": soak, "paced": paced, "sdk": sdk}[sys.argv[1]](int(sys.argv[2]))
