"""The queue of parallel tool calls: a call above the maximum waits for a slot, in the order of arrival.

The calls that a running call makes (an agent as a tool, a tool that calls another) have slots of their own. So a call
waits for its siblings only and never for itself.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

from agent_otel import semconv
from agent_otel._internal import fork
from agent_otel._internal.daemon_pool import is_in_asyncio
from agent_otel.remedies import starved_threads

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_otel.core.tool_invocation import ToolInvocation

_FREE: Final = object()


class Slot:
    """A slot that a call has. It goes back when the call ends, or when an interrupt has left nothing of the call."""

    __slots__ = ("_slots",)

    def __init__(self, slots: Slots) -> None:
        self._slots: Slots | None = slots

    def release(self) -> None:
        """Give the slot to the call that waits longest; do nothing the second time."""
        slots, self._slots = self._slots, None
        if slots is not None:
            slots.give_back()

    __del__ = release


class Slots:
    """The slots of an execution, or of the calls that a running call makes."""

    __slots__ = ("__weakref__", "_free", "_matching", "_waiting")

    def __init__(self, maximum: int) -> None:
        # Appending to a deque is atomic. The garbage collector may release a slot anywhere, also within `_match`.
        self._free = deque([_FREE] * maximum)
        self._waiting: deque[Future[Slot]] = deque()
        self._matching = threading.Lock()

    def ask(self) -> Future[Slot]:
        """Return the future of a slot; it is done at once when one is free."""
        waiter: Future[Slot] = Future()
        self._waiting.append(waiter)
        self._match()
        return waiter

    def give_back(self) -> None:
        """Free a slot."""
        self._free.append(_FREE)
        self._match()

    def _match(self) -> None:
        """Give free slots to the first waiters.

        A thread that finds another one at it leaves: that one looks again after it has released the lock.
        """
        while self._free and self._waiting and self._matching.acquire(blocking=False):
            try:
                if self._free and self._waiting:
                    waiter = self._waiting.popleft()
                    if waiter.set_running_or_notify_cancel():
                        self._free.pop()
                        waiter.set_result(Slot(self))
            finally:
                self._matching.release()


class CallQueue:
    """The slots of all executions with a call that runs or waits."""

    def __init__(self, maximum: int) -> None:
        self._maximum = maximum
        self._reset()
        fork.after_fork(self._reset)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._slots: WeakValueDictionary[str, Slots] = WeakValueDictionary()

    def take(self, call: ToolInvocation, enclosing: ToolInvocation | None) -> Slot | None:
        """Return a slot; block the thread until there is one.

        Return None in the thread of an event loop, which must not block, and where all threads of a pool wait: there
        the call runs at once.
        """
        slots = self._of(call, enclosing)
        waiter = slots.ask()
        if not waiter.done() and is_in_asyncio() and waiter.cancel():
            return None
        with _waiting(call, waiter):
            return starved_threads.wait(waiter)

    async def atake(self, call: ToolInvocation, enclosing: ToolInvocation | None) -> Slot | None:
        """Return a slot; None where another event loop than asyncio's runs the call, which then runs at once."""
        slots = self._of(call, enclosing)
        waiter = slots.ask()
        if not waiter.done() and not is_in_asyncio() and waiter.cancel():
            return None
        with _waiting(call, waiter):
            if not waiter.done():
                await asyncio.wrap_future(waiter)
            return waiter.result()

    def _of(self, call: ToolInvocation, enclosing: ToolInvocation | None) -> Slots:
        with self._lock:
            slots: Slots | None = self._slots.get(call.execution or "") if enclosing is None else enclosing.slots_inside
            if slots is None:
                slots = Slots(self._maximum)
                if enclosing is None:
                    self._slots[call.execution or ""] = slots
                else:
                    enclosing.slots_inside = slots
            return slots


@contextmanager
def _waiting(call: ToolInvocation, waiter: Future[Slot]) -> Iterator[None]:
    """Record the time of a wait; a call that is cancelled or interrupted in it leaves no slot taken."""
    if waiter.done():
        yield
        return
    began, has_slot = time.perf_counter(), False
    try:
        yield
        has_slot = True
    finally:
        if not has_slot and not waiter.cancel():
            waiter.add_done_callback(_release)
        now = time.perf_counter()
        call.out.metrics.waited(semconv.PARALLEL, now - began)
        call.started = now  # the call begins now
        call.start_ns = time.time_ns() if call.start_ns else 0


def _release(waiter: Future[Slot]) -> None:
    if not waiter.cancelled():
        waiter.result().release()
