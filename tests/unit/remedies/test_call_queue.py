"""Parallel tool calls above the maximum wait for their turn; none is refused, and none waits for itself."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

import agent_otel
from agent_otel._internal.daemon_pool import run_now
from agent_otel.core import handler
from agent_otel.core.tool_invocation import ToolInvocation
from agent_otel.core.types import Invocation, ToolCall, ToolReader, ToolResult
from agent_otel.integrations.wrap import wrapper_for
from agent_otel.remedies.backpressure import CallQueue
from agent_otel.settings import Settings
from agent_otel.telemetry.setup import Telemetry
from agent_otel.telemetry.sinks.otel import OTelSink

if TYPE_CHECKING:
    from collections.abc import Callable

READ = ToolReader(lambda invocation: invocation.instance, ToolResult, replace=lambda _, found, __: found)
PATIENCE = 30
"""Seconds that a test waits before it fails; none waits so long when it passes."""


class Running:
    """The calls that run: how many at most, and in which order they began."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self.began: list[int] = []
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self.now -= 1


def tool(function: Any) -> Callable[..., Any]:
    """A tool as a framework's adapter wraps it; each call has an id."""
    wrapper = wrapper_for(READ, function)
    return lambda number, *more: wrapper(function, ToolCall("work", {}, f"call_{number}"), (number, *more), {})


@pytest.fixture
def one_at_a_time(set_variables: Callable[..., None]) -> None:
    set_variables(AGENT_OTEL="1", AGENT_OTEL_MAX_PARALLEL_TOOL_CALLS="1")


def within(run: str, main: Any) -> Any:
    async def limited() -> Any:
        return await asyncio.wait_for(main(), PATIENCE)

    with agent_otel.execution(run):
        return asyncio.run(limited())


@pytest.mark.parametrize("maximum", [1, 2])
@pytest.mark.shows("002.parallel")
def test_coroutines_take_their_turns_in_order(set_variables: Callable[..., None], maximum: int) -> None:
    set_variables(AGENT_OTEL="1", AGENT_OTEL_MAX_PARALLEL_TOOL_CALLS=str(maximum))
    running = Running()

    async def work(number: int) -> int:
        with running:
            running.began.append(number)
            await asyncio.sleep(0.002)
        return number

    call = tool(work)

    async def main() -> Any:
        return await asyncio.gather(*map(call, range(8)))

    assert within(f"queue-{maximum}", main) == list(range(8))
    assert (running.most, running.began) == (maximum, list(range(8)))


@pytest.mark.usefixtures("one_at_a_time")
@pytest.mark.shows("002.parallel")
def test_threads_take_their_turns() -> None:
    running = Running()

    def work(number: int) -> int:
        with running:
            time.sleep(0.002)
        return number

    call = tool(work)
    with agent_otel.execution("queue-threads"), ThreadPoolExecutor(8) as pool:
        contexts = [contextvars.copy_context() for _ in range(8)]
        done = [pool.submit(context.run, call, number) for number, context in enumerate(contexts)]
        assert [each.result(PATIENCE) for each in done] == list(range(8))
    assert running.most == 1


@pytest.mark.usefixtures("one_at_a_time")
def test_a_tool_that_calls_tools_does_not_wait_for_itself() -> None:
    inner, outer = Running(), Running()

    async def leaf(number: int) -> int:
        with inner:
            await asyncio.sleep(0.002)
        return number

    async def work(number: int) -> int:
        with outer:
            return sum(await asyncio.gather(*(call_leaf(100 + 10 * number + each) for each in range(3))))

    call_leaf, call = tool(leaf), tool(work)

    async def main() -> Any:
        return await asyncio.gather(*map(call, range(3)))

    assert within("queue-nested", main) == [303, 333, 363]
    assert (inner.most, outer.most) == (1, 1)


@pytest.mark.usefixtures("one_at_a_time")
def test_a_tool_that_calls_a_tool_in_another_thread_does_not_wait_for_itself() -> None:
    def leaf(number: int) -> int:
        return number

    async def work(number: int) -> int:
        return int(await asyncio.to_thread(call_leaf, number + 1))

    call_leaf, call = tool(leaf), tool(work)
    assert within("queue-nested-thread", lambda: call(1)) == 2


@pytest.mark.usefixtures("one_at_a_time")
def test_a_call_that_is_cancelled_while_it_waits_leaves_its_place() -> None:
    async def work(number: int, go: asyncio.Event) -> int:
        await go.wait()
        return number

    call = tool(work)

    async def main() -> Any:
        go = asyncio.Event()
        first, second, third = (asyncio.ensure_future(call(number, go)) for number in range(3))
        await asyncio.sleep(0)
        second.cancel()
        go.set()
        return await asyncio.gather(first, second, third, return_exceptions=True)

    first, second, third = within("queue-cancelled", main)
    assert (first, type(second), third) == (0, asyncio.CancelledError, 2)


@pytest.mark.usefixtures("one_at_a_time")
def test_a_call_that_is_cancelled_as_its_turn_comes_gives_the_turn_on() -> None:
    async def work(number: int, go: asyncio.Event) -> int:
        await go.wait()
        return number

    call = tool(work)

    async def main() -> Any:
        go = asyncio.Event()
        first, second, third = (asyncio.ensure_future(call(number, go)) for number in range(3))
        first.add_done_callback(lambda _: second.cancel())  # the slot has been given to the second by then
        await asyncio.sleep(0)
        go.set()
        return await asyncio.gather(first, second, third, return_exceptions=True)

    first, second, third = within("queue-cancelled-late", main)
    assert (first, type(second), third) == (0, asyncio.CancelledError, 2)


@pytest.mark.usefixtures("one_at_a_time")
def test_a_call_that_raises_makes_room() -> None:
    def work(number: int) -> int:
        raise ValueError(number)

    call = tool(work)
    with agent_otel.execution("queue-raises"):
        for number in range(2):
            with pytest.raises(ValueError, match=str(number)):
                call(number)


@pytest.mark.usefixtures("one_at_a_time")
def test_a_call_that_an_interrupt_tore_off_makes_room() -> None:
    with agent_otel.execution("queue-torn-off"):
        visit = handler.enter_tool(READ, Invocation(ToolCall("work", {}, "call_1"), (), {}))
        assert isinstance(visit, handler.Visit)
        visit.take_turn()
        visit.__enter__()  # and never left
        context = contextvars.copy_context()
        del visit
        gc.collect()
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(context.run, tool(int), 2).result(PATIENCE) == 2


@pytest.mark.usefixtures("one_at_a_time")
def test_a_call_that_has_ended_makes_room_although_something_keeps_it() -> None:
    with agent_otel.execution("queue-kept"), ThreadPoolExecutor(1) as pool:
        visit = handler.enter_tool(READ, Invocation(ToolCall("work", {}, "call_1"), (), {}))
        assert isinstance(visit, handler.Visit)
        visit.take_turn()
        with visit:
            pass
        following = pool.submit(contextvars.copy_context().run, tool(int), 2)
        try:
            assert following.result(PATIENCE) == 2
        finally:
            del visit
            gc.collect()  # lets the thread end where the slot was never released


def test_a_slot_that_nothing_keeps_is_free_again() -> None:
    queue, call = CallQueue(1), made(InMemoryMetricReader(), "queue-dropped")
    slots, taken = queue._of(call, None), run_now(queue.take(call, None, blocks=True))
    waiter = slots.ask()
    assert (taken is None, waiter.done()) == (False, False)
    del taken
    gc.collect()
    assert waiter.done()
    waiter.result().release()
    waiter.result().release()  # a second time is nothing
    asked = [slots.ask() for _ in range(2)]
    assert [each.done() for each in asked] == [True, False]


@pytest.mark.usefixtures("one_at_a_time")
def test_a_sync_call_in_the_thread_of_an_event_loop_does_not_block_it() -> None:
    async def work(number: int, go: asyncio.Event) -> int:
        await go.wait()
        return number

    call, call_now = tool(work), tool(int)

    async def main() -> Any:
        go = asyncio.Event()
        first = asyncio.ensure_future(call(1, go))
        await asyncio.sleep(0)
        found = call_now(2)
        go.set()
        return await first, found

    assert within("queue-loop", main) == (1, 2)


def made(reader: InMemoryMetricReader, execution: str) -> ToolInvocation:
    """A call with its own telemetry."""
    out = Telemetry(Settings(), None, [OTelSink(MeterProvider([reader]).get_meter("test"))])
    return ToolInvocation(ToolCall("work", {}, execution=execution), out, ())


def test_the_time_of_a_wait_is_measured_and_is_not_the_tools() -> None:
    reader, queue = InMemoryMetricReader(), CallQueue(1)
    first, second = made(InMemoryMetricReader(), "queue-measured"), made(reader, "queue-measured")
    started = second.started
    slot = run_now(queue.take(first, None, blocks=True))
    assert slot is not None
    threading.Timer(0.05, slot.release).start()
    assert run_now(queue.take(second, None, blocks=True)) is not None
    [metric] = [
        each
        for resource in reader.get_metrics_data().resource_metrics  # type: ignore[union-attr]
        for scope in resource.scope_metrics
        for each in scope.metrics
        if each.name == "agent_otel.backpressure.wait"
    ]
    point: Any = metric.data.data_points[0]
    assert (point.attributes, point.count) == ({"reason": "parallel"}, 1)
    assert 0.02 < point.sum <= second.started - started


def test_many_threads_and_cancelled_coroutines_leave_all_slots_free() -> None:
    queue, running, call = CallQueue(3), Running(), made(InMemoryMetricReader(), "queue-many")

    def block(_: int) -> None:
        slot = run_now(queue.take(call, None, blocks=True))
        with running:
            time.sleep(0.0005)
        assert slot is not None
        slot.release()

    async def main() -> None:
        async def wait(number: int) -> None:
            slot = await queue.take(call, None, blocks=False)
            with running:
                await asyncio.sleep(0.0005 * (number % 3))
            assert slot is not None
            slot.release()

        tasks = [asyncio.ensure_future(wait(number)) for number in range(200)]
        await asyncio.sleep(0.01)
        for task in tasks[::3]:
            task.cancel()
        await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), PATIENCE)

    with ThreadPoolExecutor(8) as pool:
        blocked = [pool.submit(block, number) for number in range(200)]
        asyncio.run(main())
        for each in blocked:
            each.result(PATIENCE)
    gc.collect()
    assert running.most <= 3
    slots = [queue._of(call, None).ask() for _ in range(4)]
    assert [each.done() for each in slots] == [True, True, True, False]


@pytest.mark.usefixtures("one_at_a_time")
def test_a_running_call_that_needs_a_thread_gets_one_where_all_of_the_pool_wait(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fetch(_: int) -> str:
        await all_wait.wait()
        return await asyncio.to_thread(lambda: "fetched")

    fetching_tool, reading_tool = tool(fetch), tool(lambda number: number)
    all_wait = asyncio.Event()

    async def main() -> list[object]:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(3))
        fetching = asyncio.ensure_future(fetching_tool(100))
        await asyncio.sleep(0)
        reading = [asyncio.ensure_future(asyncio.to_thread(reading_tool, number)) for number in range(4)]
        await asyncio.sleep(0)
        all_wait.set()
        return list(await asyncio.gather(fetching, *reading))

    assert within("run-1", main) == ["fetched", *range(4)]
    assert caplog.text.count("all threads of its pool wait") == 1
