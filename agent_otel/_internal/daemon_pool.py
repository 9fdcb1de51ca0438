"""Threads for work that may hang: few, daemons, started at first use, and never waited for when the program ends."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections import deque
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final, TypeVar

from agent_otel._internal import fork

if TYPE_CHECKING:
    from collections.abc import Callable

_T = TypeVar("_T")

#: Jobs that may wait for a thread.
_MOST_WAITING: Final = 256


class BusyError(RuntimeError):
    """All threads are busy, and as many jobs wait as may."""


class Job(Future[_T]):
    """A function that a thread is to call; cancelling it lets go of the function, and of the bytes in it."""

    def __init__(self, call: Callable[[], _T]) -> None:
        super().__init__()
        self._call: Callable[[], _T] | None = call

    def cancel(self) -> bool:
        """Take the job back, if no thread has begun it."""
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
        except Exception as error:
            self.set_exception(error)
        else:
            self.set_result(result)


class Workers:
    """At most ``limit`` threads.

    Callers pass their own timeout to ``Job.result``. A job that hangs keeps its thread; when all hang, later jobs wait
    in a queue, where ``Job.cancel`` still takes them back, and further ones are refused. ``concurrent.futures`` has no
    daemon threads: one hanging job would keep the program from ending.
    """

    def __init__(self, name: str, limit: int) -> None:
        self._name = name
        self._limit = limit
        self._reset()
        fork.after_fork(self._reset)

    def _reset(self) -> None:
        self._ready = threading.Condition()
        self._jobs: deque[Job[Any]] = deque()
        self._started = 0
        self._idle = 0

    def submit(self, call: Callable[[], _T]) -> Job[_T]:
        """Have a function called in the caller's context.

        BusyError when too many jobs wait, RuntimeError when the machine gives no thread.
        """
        context = contextvars.copy_context()
        job = Job(lambda: context.run(call))
        with self._ready:
            if len(self._jobs) >= _MOST_WAITING:
                self._jobs = deque(each for each in self._jobs if not each.cancelled())
            if len(self._jobs) >= _MOST_WAITING:
                raise BusyError(f"{_MOST_WAITING} jobs wait for {self._limit} threads")
            if len(self._jobs) >= self._idle and self._started < self._limit:
                threading.Thread(target=self._serve, name=f"agent_otel-{self._name}", daemon=True).start()
                self._started += 1
            self._jobs.append(job)
            self._ready.notify()
        return job

    def _serve(self) -> None:
        while True:
            self._next().do()

    def _next(self) -> Job[Any]:
        """Wait for a job; a waiting thread keeps no bytes."""
        with self._ready:
            while not self._jobs:
                self._idle += 1
                self._ready.wait()
                self._idle -= 1
            return self._jobs.popleft()


def is_in_asyncio() -> bool:
    """Return whether the caller runs in an event loop of asyncio, which alone can wait for a future."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
