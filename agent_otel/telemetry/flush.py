"""What happens to owned providers when a process forks or ends.

``atexit`` alone loses the last batch in children of multiprocessing and of Celery, and a hanging exporter would hold
the exit; so waiting daemon threads do the flushing and everybody else waits for them with a limit.
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
    """Runs each ``flush`` function in a thread of its own and waits for all of them no longer than told.

    A thread is started with its provider, and again in a forked child, because Python 3.12 and later start none
    during shutdown, and because a signal handler must not take a lock that the interrupted code may hold.
    """

    def __init__(self) -> None:
        self._waiting: list[_Waiting] = []

    def add(self, flush: Callable[[], object]) -> None:
        """Run this too when flushing."""
        self._waiting.append(_Waiting(flush))

    def flush(self, seconds: float) -> bool:
        """Flush everything; False when it took longer than ``seconds``."""
        until = time.monotonic() + seconds
        asked = [waiting.ask() for waiting in self._waiting]
        return all(done.wait(max(0.0, until - time.monotonic())) for done in asked)

    def restart(self) -> None:
        """Start the threads again; a forked child calls this, where only the forking thread goes on."""
        for waiting in self._waiting:
            waiting.start()


class _Waiting:
    """One function and the daemon thread that waits to run it."""

    def __init__(self, flush: Callable[[], object]) -> None:
        self._flush = errors.guarded("emit.flush")(flush)
        self.start()

    def start(self) -> None:
        # A SimpleQueue takes requests from a signal handler, whatever the interrupted code was doing.
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
    """Flush at exit and at the end of children; ``_sigterm`` is the other way out."""
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
    """Multiprocessing children leave by ``os._exit``; its finalizers are the only thing that runs."""
    from multiprocessing import process, util  # noqa: PLC0415 - imported already, or we would not be called

    def arm(_: Any) -> None:
        util.Finalize(None, flusher.flush, args=(CHILD_SECONDS,), exitpriority=0)

    util.register_after_fork(flusher, arm)
    if process.parent_process() is not None:
        arm(flusher)


@errors.guarded("emit.celery")
def _arm_celery(flusher: Flusher, name: str) -> None:
    """Flush at the last signal, Celery's own, of its children: they are billiard's and leave by ``os._exit``."""

    def flush(**_: Any) -> None:
        flusher.flush(CHILD_SECONDS)

    sys.modules[name].worker_process_shutdown.connect(flush, weak=False)
