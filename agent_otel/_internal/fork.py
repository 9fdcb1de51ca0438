"""What a fork waits for: a lock that another thread holds when a process forks is never free in the child.

Python's import system has such a lock for each module, and the OpenTelemetry SDK one for each series. So a fork waits
until no thread loads anything of ours, keeps others from beginning, and takes the locks that it was given. Threads that
load do not wait for each other: they may hold import locks. Nobody waits longer than ``_LONGEST_SECONDS``; then
everything goes on as without this module. Standard library only.
"""

import _thread
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_LONGEST_SECONDS = 10.0
_STEP_SECONDS = 0.001


class _Loading:
    """A context in which something of ours is imported, or made for the first time."""

    def __init__(self) -> None:
        self._forking = _thread.RLock()
        self._hooks = 0
        self._threads: dict[int, int] = {}
        self._held: list[tuple[Callable[[], _thread.RLock], Callable[[], object]]] = []
        self._is_first = False

    def __enter__(self) -> None:
        thread = _thread.get_ident()
        is_held = self._forking.acquire(timeout=_LONGEST_SECONDS)
        self._threads[thread] = self._threads.get(thread, 0) + 1
        if is_held:
            self._forking.release()
        if not self._is_first:
            self._is_first = True
            # What is registered last runs first before a fork. These modules' own hooks take locks that loading needs.
            import concurrent.futures.thread  # noqa: F401, PLC0415
            import logging  # noqa: F401, PLC0415

            self.register()

    def __exit__(self, *_: object) -> None:
        thread = _thread.get_ident()
        left = self._threads.pop(thread, 1) - 1
        if left:
            self._threads[thread] = left

    def hold(self, lock: "Callable[[], _thread.RLock]", renew: "Callable[[], object]") -> None:
        """Let forks wait until no other thread holds ``lock()``; ``renew`` makes another one in the child."""
        self._held.append((lock, renew))

    def register(self) -> None:
        """Have forks wait from now on; called again, before the hooks that others have registered since."""
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self._before, after_in_parent=self._after_in_parent, after_in_child=self._after_in_child
            )

    def _before(self) -> None:
        self._forking.acquire(timeout=_LONGEST_SECONDS)
        if not self._hooks:
            self._wait()
            for lock, _ in self._held:
                lock().acquire(timeout=_LONGEST_SECONDS)
        self._hooks += 1

    def _wait(self) -> None:
        """Wait for the other threads that load; the forking thread itself may be loading."""
        until = time.monotonic() + _LONGEST_SECONDS
        while not self._threads.keys() <= {_thread.get_ident()}:
            if time.monotonic() > until:
                self._forget_others()
                return
            _release(self._forking)
            time.sleep(_STEP_SECONDS)
            self._forking.acquire(timeout=_LONGEST_SECONDS)

    def _after_in_parent(self) -> None:
        self._hooks -= 1
        if not self._hooks:
            for lock, _ in self._held:
                _release(lock())
        _release(self._forking)

    def _after_in_child(self) -> None:
        self._forking = _thread.RLock()
        self._hooks = 0
        self._forget_others()
        for _, renew in self._held:
            renew()

    def _forget_others(self) -> None:
        thread = _thread.get_ident()
        self._threads = {thread: self._threads[thread]} if thread in self._threads else {}


def _release(lock: _thread.RLock) -> None:
    try:  # noqa: SIM105 - contextlib is not loaded yet
        lock.release()
    except RuntimeError:  # not ours: the wait was too long
        pass


loading = _Loading()
loading.register()


def after_fork(reset: "Callable[[], object]") -> None:
    """Run ``reset`` in forked children."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=reset)
