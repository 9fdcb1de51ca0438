"""Flush of owned providers when a process forks or ends.

``atexit`` alone loses the last batch in children of multiprocessing and of Celery, and a hanging exporter would block
the exit. So daemon threads flush, and callers wait for them with a timeout.
"""

from __future__ import annotations

import atexit
import queue
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from agent_otel._bootstrap import import_hook
from agent_otel._internal import errors, fork

if TYPE_CHECKING:
    from collections.abc import Callable

EXIT_SECONDS = 5.0
CHILD_SECONDS = 2.0


class Flusher:
    """Daemon threads, one for each ``flush`` function.

    A thread starts with its provider, and again in a forked child. It cannot start at the end of the process: Python
    3.12 and later start no threads during shutdown, and a signal handler must not take a lock that the interrupted
    code may hold.
    """

    def __init__(self) -> None:
        self._waiting: list[_Waiting] = []

    def add(self, flush: Callable[[], object]) -> None:
        """Add a function to run at each flush."""
        self._waiting.append(_Waiting(flush))

    def flush(self, seconds: float) -> bool:
        """Run all functions; return False when they do not finish within ``seconds``."""
        until = time.monotonic() + seconds
        asked = [waiting.ask() for waiting in self._waiting]
        return all(done.wait(max(0.0, until - time.monotonic())) for done in asked)

    def restart(self) -> None:
        """Start the threads again in a forked child, in which only the forking thread runs."""
        for waiting in self._waiting:
            waiting.start()


class _Waiting:
    """A function and the daemon thread that waits to run it."""

    def __init__(self, flush: Callable[[], object]) -> None:
        self._flush = errors.guarded("emit.flush")(flush)
        self.start()

    def start(self) -> None:
        # SimpleQueue.put is reentrant, so that a signal handler can call it.
        self._requests: queue.SimpleQueue[threading.Event] = queue.SimpleQueue()
        threading.Thread(target=self._serve, args=(self._requests,), name="agent_otel-flush", daemon=True).start()

    def ask(self) -> threading.Event:
        done = threading.Event()
        self._requests.put(done)
        return done

    def _serve(self, requests: queue.SimpleQueue[threading.Event]) -> None:
        while True:
            done = requests.get()
            self._flush()
            done.set()


def install(flusher: Flusher) -> None:
    """Flush at exit and at the end of child processes; `agent_otel._bootstrap.sigterm` flushes on signals."""
    atexit.register(_at_exit, flusher)
    fork.after_fork(errors.guarded("emit.fork")(flusher.restart))
    import_hook.install(
        {
            "multiprocessing.util": lambda _: _arm_children(flusher),
            "celery.signals": lambda name: _arm_celery(flusher, name),
        }
    )


def _at_exit(flusher: Flusher) -> None:
    if not flusher.flush(EXIT_SECONDS):
        errors.warn_once("exit", f"Telemetry could not be delivered within {EXIT_SECONDS:g} s of the program's end.")


@errors.guarded("emit.children")
def _arm_children(flusher: Flusher) -> None:
    """Register a finalizer in multiprocessing children, which end by ``os._exit`` and run nothing but finalizers."""
    from multiprocessing import process, util  # noqa: PLC0415 - imported already: its import calls this

    def arm(_: Any) -> None:
        util.Finalize(None, flusher.flush, args=(CHILD_SECONDS,), exitpriority=0)
        handling = sys.modules.get("agent_otel._bootstrap.sigterm")
        if handling is not None:
            handling.watch()

    util.register_after_fork(flusher, arm)
    if process.parent_process() is not None:
        arm(flusher)


@errors.guarded("emit.celery")
def _arm_celery(flusher: Flusher, name: str) -> None:
    """Flush at Celery's worker_process_shutdown signal, because its child processes end by ``os._exit``."""

    def flush(**_: Any) -> None:
        flusher.flush(CHILD_SECONDS)

    sys.modules[name].worker_process_shutdown.connect(flush, weak=False)
