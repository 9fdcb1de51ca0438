"""Threads for work that may hang: few, daemons, started at first use, and never waited for when the program ends."""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

from agent_otel.emit import lifecycle

if TYPE_CHECKING:
    from collections.abc import Callable

_T = TypeVar("_T")


class Workers:
    """At most ``limit`` threads.

    Whoever waits for a job does so no longer than they like. A job that hangs keeps its thread; when all hang, later
    jobs wait in a queue, where ``Future.cancel`` still takes them back. ``concurrent.futures`` has no daemon threads:
    one hanging job would keep the program from ending.
    """

    def __init__(self, name: str, limit: int) -> None:
        self._name = name
        self._limit = limit
        self._reset()
        lifecycle.after_fork(self._reset)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._jobs: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = queue.SimpleQueue()
        self._started = 0
        self._idle = 0

    def submit(self, job: Callable[[], _T]) -> Future[_T]:
        """Have a job done in the caller's context; RuntimeError when the machine gives no thread."""
        future: Future[_T] = Future()
        context = contextvars.copy_context()
        with self._lock:
            self._jobs.put((future, lambda: context.run(job)))
            if self._idle:
                self._idle -= 1
            elif self._started < self._limit:
                try:
                    threading.Thread(
                        target=self._serve, args=(self._jobs,), name=f"agent_otel-{self._name}", daemon=True
                    ).start()
                except RuntimeError:
                    future.cancel()
                    raise
                self._started += 1
        return future

    def _serve(self, jobs: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]]]) -> None:
        while True:
            try:
                future, job = jobs.get_nowait()
            except queue.Empty:
                with self._lock:
                    self._idle += 1
                future, job = jobs.get()
            _do(future, job)
            del future, job  # a waiting thread keeps nobody's bytes


def is_in_asyncio() -> bool:
    """Whether the caller runs in an event loop of asyncio, which alone can wait for a future."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _do(future: Future[_T], job: Callable[[], _T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = job()
    except Exception as error:
        future.set_exception(error)
    else:
        future.set_result(result)
