"""A small pool of daemon threads for work that may hang; the end of the program does not wait for them."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import threading
from collections import deque
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

from agent_otel._internal import fork
from agent_otel._internal.errors import ours

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

_T = TypeVar("_T")


class BusyError(RuntimeError):
    """An error of a full queue: all threads are busy, and the maximum of jobs waits."""


class Job(Future[_T]):
    """A function for a thread to call; cancelling the job releases the function and the bytes that it holds."""

    def __init__(self, call: Callable[[], _T]) -> None:
        super().__init__()
        self._call: Callable[[], _T] | None = call

    def cancel(self) -> bool:
        """Cancel the job, unless a thread has begun it."""
        is_cancelled = super().cancel()
        if is_cancelled:
            self._call = None
        return is_cancelled

    def do(self) -> None:
        """Call the function, unless the job is cancelled."""
        if not self.set_running_or_notify_cancel():
            return
        call, self._call = self._call, None
        if call is None:
            return
        try:
            result = call()
        except ours(Exception) as error:
            self.set_exception(error)
        else:
            self.set_result(result)
        finally:
            if not self.done():  # SystemExit, of a function of the program, ends the thread
                self.set_exception(RuntimeError("the thread of the job has ended"))


class Workers:
    """A pool of at most ``limit`` threads, which start at first use.

    Callers pass their own timeout to ``Job.result``. A job that hangs keeps its thread. When all threads hang, later
    jobs wait in a queue, in which ``Job.cancel`` can still cancel them; when ``most_waiting`` wait, `submit`
    raises BusyError. ``concurrent.futures`` has no daemon threads, so one hanging job would keep the program from
    ending.
    """

    def __init__(self, name: str, limit: int, most_waiting: int = 256) -> None:
        self._name = name
        self._limit = limit
        self._most_waiting = most_waiting
        self._reset()
        fork.after_fork(self._reset)

    def _reset(self) -> None:
        self._ready = threading.Condition()
        self._jobs: deque[Job[Any]] = deque()
        self._started = 0
        self._idle = 0

    def submit(self, call: Callable[[], _T]) -> Job[_T]:
        """Queue a function; a thread calls it in the caller's context.

        Raises:
            BusyError: too many jobs wait.
            RuntimeError: the operating system starts no further thread.
        """
        context = contextvars.copy_context()
        job = Job(lambda: context.run(call))
        with self._ready:
            if len(self._jobs) >= self._most_waiting:
                self._jobs = deque(each for each in self._jobs if not each.cancelled())
            if len(self._jobs) >= self._most_waiting:
                raise BusyError(f"{self._most_waiting} jobs wait for {self._limit} threads")
            if len(self._jobs) >= self._idle and self._started < self._limit:
                threading.Thread(target=self._serve, name=f"agent_otel-{self._name}", daemon=True).start()
                self._started += 1
            self._jobs.append(job)
            self._ready.notify()
        return job

    async def call(self, call: Callable[[], _T], seconds: float, *, blocks: bool) -> _T:
        """Call a function in a thread, and wait as `settled` does. Raises TimeoutError, and as `submit`."""
        job = self.submit(call)
        try:
            await settled(job, seconds, blocks=blocks)
        finally:
            is_late = job.cancel() or not job.done()
        if is_late:
            raise TimeoutError
        return job.result()

    def _serve(self) -> None:
        try:
            while True:
                self._next().do()
        finally:
            with self._ready:
                self._started -= 1

    def _next(self) -> Job[Any]:
        """Wait for a job. A separate function, so that a waiting thread keeps no reference to its last job."""
        with self._ready:
            while not self._jobs:
                self._idle += 1
                self._ready.wait()
                self._idle -= 1
            return self._jobs.popleft()


def is_in_asyncio() -> bool:
    """Return true when the caller runs in an asyncio event loop, which can await a future of these threads."""
    try:
        asyncio.get_running_loop()
    except ours(RuntimeError):
        return False
    return True


def run_now(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """Run a coroutine that never suspends, and return its result."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: _T = end.value
        return result
    raise RuntimeError("a coroutine of a synchronous call has suspended")


async def settled(job: Future[Any], seconds: float, *, blocks: bool) -> None:
    """Wait until a job is done, at most so many seconds; its failure is not raised.

    ``blocks`` blocks the thread. Otherwise asyncio's event loop continues; any other loop is blocked.
    """
    if blocks or not is_in_asyncio():
        concurrent.futures.wait((job,), seconds)
        return
    waiting = asyncio.wrap_future(job)
    waiting.add_done_callback(seen)
    await asyncio.wait((waiting,), timeout=seconds)


def seen(waiting: asyncio.Future[Any]) -> None:
    """Read the failure of a future that nothing waits for: asyncio would log it."""
    if not waiting.cancelled():
        waiting.exception()
