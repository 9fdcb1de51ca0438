"""A program that raises exceptions from outside, at random moments of measured calls.

``program.py KIND COUNT`` prints how many exceptions were swallowed and which context was not restored. KIND is sync,
nested, async, thread or gevent.
"""

# ruff: noqa: ARG001, ARG002, PERF203, TRY203 - handlers get arguments that they do not use
# mypy: disable-error-code="import-not-found,import-untyped,untyped-decorator,misc,unused-ignore"
from __future__ import annotations

import asyncio
import contextlib
import contextvars
import ctypes
import functools
import json
import random
import signal
import sys
import threading
import time
import types
import weakref
from collections import Counter
from typing import TYPE_CHECKING, Any

from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

import agent_otel
from agent_otel.core.types import (
    AgentRun,
    Invocation,
    ModelReader,
    ModelRequest,
    Payload,
    RequestPart,
    RunReader,
    Step,
    StepOutcome,
    StepReader,
)
from agent_otel.integrations.hooks import Hook, Within, hooked
from agent_otel.integrations.wrap import wrapper_for

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    Handler = Callable[[int, Any], None]


class PlainError(Exception):
    """An exception of the program, such as Celery's SoftTimeLimitExceeded."""


class DescribedError(Exception):
    """An exception that gives its own reason."""

    def __init__(self) -> None:
        super().__init__("the limit of 5 s")


KINDS: tuple[type[Exception], ...] = (
    *(PlainError, DescribedError, TimeoutError, ValueError, RuntimeError, KeyError, TypeError, OSError, AttributeError),
)
chance = random.Random(7)  # noqa: S311 - no secret
fired: list[type[Exception]] = []


def _raise(kind: type[Exception]) -> None:
    fired.append(kind)
    raise kind


def handlers(kind: type[Exception]) -> list[Handler]:
    """Return signal handlers of all shapes, which raise this class."""

    def function(signum: int, frame: object) -> None:
        _raise(kind)

    def deleting(signum: int, frame: object) -> None:
        del signum, frame
        fired.append(kind)
        raise kind

    def raising_again(*_: object) -> None:
        try:
            _raise(kind)
        except kind:
            raise

    def uninstalled(*_: object) -> None:
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        _raise(kind)

    class Shapes:
        def __call__(self, signum: int, frame: object) -> None:
            _raise(kind)

        def method(self, signum: int, frame: object) -> None:
            _raise(kind)

    def bound(reason: str, signum: int, frame: object) -> None:
        fired.append(kind)
        raise kind(reason)

    partial = functools.partial(bound, "reason") if kind is not DescribedError else function
    shapes = (lambda *_: _raise(kind), Shapes(), Shapes().method, partial)
    return [function, deleting, raising_again, uninstalled, *shapes]


@agent_otel.tool
def tool(size: int) -> str:
    """Return so many bytes."""
    return "x" * size


@agent_otel.tool
def data(size: int) -> dict[str, Any]:
    """Return a structure that contains JSON and a cursor."""
    return {"items": [{"id": number, "text": '{"a": [1, 2'} for number in range(size)], "next_cursor": "abc"}


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


def block(size: int) -> None:
    """Call a tool as a hand-written loop does."""
    with agent_otel.tool_call("by hand", {"size": size}) as call:
        if call.refused() is None:
            call.result("x" * size)


def execution(size: int) -> None:
    """Name the execution of a call."""
    with agent_otel.execution("named", labels={"team": "blue"}):
        tool(size)


def stream(size: int) -> None:
    """Use a generator up."""
    for _ in letters(size % 5):
        pass


def loop(size: int) -> None:
    """Await a tool without an event loop."""
    running = later(size)
    try:
        running.send(None)
        running.send(None)
    except StopIteration:
        pass
    finally:
        running.close()


_open: Within[object] = Within("open")
_invocation = Invocation(None, (), {})
_step = StepReader(
    lambda *_: Step("temporal", "activity", "workflow", "stale"),
    lambda *_: Payload("input", 1),
    lambda *_: StepOutcome(Payload("output", 1)),
)
_request = ModelReader(lambda *_: ModelRequest([RequestPart("user", "text")], execution="stale"), outermost=True)
_run = RunReader(lambda *_: AgentRun("agent"))
_hook = Hook(lambda _: [], lambda *_: None, within=_open)


def _wrapped(reader: Any) -> Callable[[int], object]:
    wrapper = hooked(reader, is_async=False) if isinstance(reader, Hook) else wrapper_for(reader, tool)

    def work(size: int) -> object:
        return wrapper(tool, None, (size,), {})

    work.__name__ = type(reader).__name__
    return work


step, model, run, hook = map(_wrapped, (_step, _request, _run, _hook))
WORK: tuple[Any, ...] = (tool, data, outer, block, execution, stream, loop, step, model, run, hook)


def context() -> dict[str, object]:
    """Return the values of all context variables, without empty values and dead references."""
    values = {variable.name: value for variable, value in contextvars.copy_context().items()}
    alive = {
        name: value() if isinstance(value, weakref.ref) else value
        for name, value in values.items()
        if name != "decimal_context"
    }
    return {name: value for name, value in alive.items() if value is not None and value is not False and value != {}}


class Observed:
    """The outcome of the interrupts."""

    def __init__(self) -> None:
        self.interrupts = 0
        self.swallowed: Counter[str] = Counter()
        self.left: Counter[str] = Counter()

    def came(self, work: str, *, is_raised: bool, before: dict[str, object]) -> None:
        """Note one interrupt."""
        self.interrupts += 1
        if not is_raised:
            self.swallowed[work] += 1
        for name, value in context().items():
            if before.get(name) is not value:
                self.left[f"{name} after {work}"] += 1
        if trace.get_current_span() is not trace.INVALID_SPAN:
            self.left[f"span after {work}"] += 1


def sync(count: int) -> Observed:
    """Interrupt synchronous work by signals."""
    observed, before = Observed(), context()

    def attempt() -> None:
        work = chance.choice(WORK)
        signal.signal(signal.SIGALRM, chance.choice(handlers(chance.choice(KINDS))))
        fired.clear()
        is_raised = False
        try:
            signal.setitimer(signal.ITIMER_REAL, chance.uniform(1e-6, 3e-4))
            while not fired:
                work(10)
        except Exception as error:
            is_raised = type(error) is fired[-1]
        observed.came(work.__name__, is_raised=is_raised, before=before)

    while observed.interrupts < count:
        with contextlib.suppress(*KINDS):  # from 3.13 on, an exception at a loop's jump back leaves its block uncaught
            contextvars.copy_context().run(attempt)
    return observed


def nested(count: int) -> Observed:
    """Interrupt work by a signal that comes again and again, also while its first exception is handled."""
    observed, before = Observed(), context()

    def attempt() -> None:
        work = chance.choice(WORK)
        signal.signal(signal.SIGALRM, chance.choice(handlers(chance.choice(KINDS))[:3]))
        fired.clear()
        is_raised = False
        try:
            try:
                try:
                    signal.setitimer(signal.ITIMER_REAL, chance.uniform(1e-6, 3e-4), chance.uniform(2e-5, 1e-4))
                    while not fired:
                        work(10)
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except Exception as error:
            is_raised = type(error) is fired[-1]
        observed.came(work.__name__, is_raised=is_raised, before=before)

    while observed.interrupts < count:
        contextvars.copy_context().run(attempt)
    return observed


def _is_measured(step: Any) -> bool:
    while step is not None:
        if "agent_otel" in step.tb_frame.f_code.co_filename.split("/"):
            return True
        step = step.tb_next
    return False


def _take_unraisable(taken: list[object], about: sys.UnraisableHookArgs) -> None:
    if isinstance(about.object, types.CoroutineType) or not _is_measured(about.exc_traceback):
        taken.append(about)


def in_tasks(count: int) -> Observed:
    """Interrupt tasks of an event loop by signals."""
    observed, before = Observed(), context()

    async def main(taken: list[object]) -> None:
        running = asyncio.get_running_loop()

        def take(_: object, about: dict[str, Any]) -> None:
            taken.append(about.get("exception"))
            running.stop()  # otherwise the interrupted task would wait forever

        running.set_exception_handler(take)
        while not fired:
            await asyncio.gather(later(10), later(10))

    while observed.interrupts < count:
        signal.signal(signal.SIGALRM, chance.choice(handlers(chance.choice(KINDS))))
        fired.clear()
        taken: list[object] = []  # by asyncio, as without the package
        # Python swallows exceptions while it frees an object: a task's weak reference, or a coroutine that was left.
        sys.unraisablehook = functools.partial(_take_unraisable, taken)
        loop = asyncio.new_event_loop()  # `asyncio.run` would wait for tasks that it lost by an interrupt
        is_raised = False
        try:
            signal.setitimer(signal.ITIMER_REAL, chance.uniform(1e-6, 3e-3))
            loop.run_until_complete(main(taken))
        except Exception as error:
            is_raised = bool(fired) and type(error) is fired[-1]
        signal.setitimer(signal.ITIMER_REAL, 0)
        loop.close()
        if not fired:
            continue
        observed.came("later", is_raised=is_raised or bool(taken), before=before)
    return observed


def in_thread(count: int) -> Observed:
    """Interrupt a thread by exceptions that another thread sets."""
    observed, before = Observed(), context()
    came = threading.Event()
    names = [""]

    def work() -> None:
        while True:
            chosen = chance.choice(WORK)
            names[0] = chosen.__name__
            for _ in range(20):
                chosen(10)

    def keep() -> None:
        """Work until an exception comes; the next is set only after it has come."""
        while observed.interrupts < count:
            try:
                work()
            except Exception:
                observed.came(names[0], is_raised=True, before=before)
                came.set()

    thread = threading.Thread(target=keep, daemon=True)
    thread.start()
    while observed.interrupts < count:
        came.clear()
        kind = ctypes.py_object(chance.choice(KINDS))
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), kind)
        if not came.wait(5):
            observed.came(names[0], is_raised=False, before=context())
        time.sleep(chance.uniform(0, 3e-4))
    return observed


def in_greenlets(count: int) -> Observed:
    """Interrupt greenlets by gevent's timeouts, in tools and in a span processor that waits."""
    import gevent

    class Waiting(SpanProcessor):
        def on_end(self, span: object) -> None:
            gevent.sleep(0)

    provider: Any = trace.get_tracer_provider()
    provider.add_span_processor(Waiting())
    observed, before = Observed(), context()
    gevent.spawn(_spin)

    @agent_otel.tool
    def waiting(size: int) -> str:
        gevent.sleep(0)
        return "x" * size

    while observed.interrupts < count:
        kind = chance.choice(KINDS)
        timeout = gevent.Timeout(chance.uniform(1e-5, 1e-3), kind)
        timeout.start()
        is_raised = False
        try:
            began = time.monotonic()
            while timeout.pending or time.monotonic() - began < 1e-3:
                waiting(10)
        except Exception as error:
            is_raised = type(error) is kind
        finally:
            timeout.close()
        observed.came("waiting", is_raised=is_raised, before=before)
    return observed


def _spin() -> None:
    """Keep the hub busy, so that timers fire between switches."""
    import gevent

    while True:
        gevent.sleep(0)


def main(kind: str, count: int) -> None:
    """Interrupt ``count`` times, and print the outcome."""
    trace.set_tracer_provider(TracerProvider())
    for work in WORK:
        work(10)
    ways = {"sync": sync, "nested": nested, "async": in_tasks, "thread": in_thread, "gevent": in_greenlets}
    observed = ways[kind](count)
    tools = [tool(10) for _ in range(10)]
    said = {"interrupts": observed.interrupts, "swallowed": observed.swallowed, "left": observed.left}
    print(json.dumps({**said, "afterwards": len(tools)}))


if __name__ == "__main__":
    if sys.argv[1] == "gevent":
        from gevent import monkey

        monkey.patch_all()
    main(sys.argv[1], int(sys.argv[2]))
