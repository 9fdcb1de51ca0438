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
from concurrent.futures import TimeoutError as FutureTimeoutError
from concurrent.futures import thread as pools
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar
from weakref import WeakSet, WeakValueDictionary

from agent_otel import semconv
from agent_otel._internal import errors, fork
from agent_otel._internal.daemon_pool import is_in_asyncio

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
            return wait(waiter)

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
        call.out.metrics.record(semconv.BACKPRESSURE_WAIT, now - began, semconv.PARALLEL)
        call.started = now  # the call begins now
        call.start_ns = time.time_ns() if call.start_ns else 0


def _release(waiter: Future[Slot]) -> None:
    if not waiter.cancelled():
        waiter.result().release()


_T = TypeVar("_T")

#: Seconds between two looks at the pool, and the looks in a row that have to find it without a free thread.
_SECONDS: Final = 0.5
_LOOKS: Final = 4
_SAID: Final = (
    "AGENT_OTEL_MAX_PARALLEL_TOOL_CALLS: a call runs at once, because all threads of its pool wait for the call that "
    "runs, which may wait for a thread itself. Make the event loop's executor larger, or the tools async."
)

# The wait of a sync call for a slot, in a thread of a pool whose other threads may all wait for one as well. The call
# that has the slot may be a coroutine that needs a thread of the same pool, for example to look a host up. When all
# threads of a pool wait and the pool has work left, one of the calls runs without a slot, because otherwise none of
# them would ever run.


class _Blocked:
    """The threads that wait for a slot."""

    def __init__(self) -> None:
        self.reset()
        fork.after_fork(self.reset)

    def reset(self) -> None:
        """Forget all threads; a forked child calls this."""
        self.lock = threading.Lock()
        self.threads: WeakSet[threading.Thread] = WeakSet()


_blocked: Final = _Blocked()


def wait(waiter: Future[_T]) -> _T | None:
    """Block until the future is done; return None where the threads of the pool wait for each other."""
    thread = threading.current_thread()
    if thread is threading.main_thread():
        return waiter.result()
    looks = 0
    with _blocked.lock:
        _blocked.threads.add(thread)
    try:
        while True:
            try:
                return waiter.result(_SECONDS)
            except errors.ours(FutureTimeoutError):
                looks = looks + 1 if _is_starved(thread) else 0
            if looks >= _LOOKS and _leaves(thread, waiter):
                return None
    finally:
        with _blocked.lock:
            _blocked.threads.discard(thread)


def _leaves(thread: threading.Thread, waiter: Future[Any]) -> bool:
    """Give up the place in the queue of calls, unless another thread of the pool has just done so."""
    with _blocked.lock:
        if not _is_starved(thread) or not waiter.cancel():
            return False
        _blocked.threads.discard(thread)
    errors.warn_once("starved threads", _SAID)
    return True


def _is_starved(thread: threading.Thread) -> bool:
    """Return True when all threads of the thread's pool wait for slots, and the pool has work left."""
    queues = getattr(pools, "_threads_queues", {})  # a pool registers a thread after its start
    work = queues.get(thread)
    try:
        others = [other for other, own in list(queues.items()) if own is work]
    except errors.ours(RuntimeError):  # another pool has started a thread meanwhile
        return False
    return work is not None and not work.empty() and all(other in _blocked.threads for other in others)
