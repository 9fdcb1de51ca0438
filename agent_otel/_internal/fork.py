"""Fork safety: a lock that another thread holds when a process forks is never released in the child.

Python's import system has such a lock for each module, and the OpenTelemetry SDK has one for each series. So a fork
waits until no other thread loads a module of this package, keeps further threads from loading, and acquires the
registered locks. Threads that load do not wait for each other, because they may hold import locks. No wait is longer
than ``_LONGEST_SECONDS`` without a module being loaded; after that, the fork goes on as it would without this module.
Standard library only.
"""

import _thread
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

_at_fork: "Callable[..., None]" = getattr(os, "register_at_fork", lambda **_: None)  # Windows has none
_LONGEST_SECONDS = 10.0
_STEP_SECONDS = 0.001
_MOMENT_SECONDS = 0.5
#: Modules that loading imports and that register fork hooks of their own, and the lock that those acquire.
_HOOKED = {"concurrent.futures.thread": "_global_shutdown_lock", "logging": "_lock"}


class _Loading:
    """A context manager around imports and first-time construction of this package's objects; forks wait for it."""

    def __init__(self) -> None:
        self._forking = _thread.RLock()
        self._forker: int | None = None  # the thread between the hooks before and after its fork
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
            # Hooks before a fork run in reverse order of registration: ours must run before those of these modules,
            # which take locks that loading needs.
            import concurrent.futures.thread  # noqa: F401, PLC0415
            import logging  # noqa: F401, PLC0415

            self.register()

    def __exit__(self, *_: object) -> None:
        thread = _thread.get_ident()
        left = self._threads.get(thread, 1) - 1
        if left:  # the thread stays in the table throughout, because a fork may look at it at any moment
            self._threads[thread] = left
        else:
            self._threads.pop(thread, None)

    def hold(self, lock: "Callable[[], _thread.RLock]", renew: "Callable[[], object]") -> None:
        """Register a lock that a fork acquires first; ``renew`` replaces it in the child."""
        self._held.append((lock, renew))

    def register(self) -> None:
        """Register the fork hooks; a second call makes them run before hooks that were registered in between."""
        _at_fork(before=self._before, after_in_parent=self._after_in_parent, after_in_child=self._after_in_child)

    def _before(self) -> None:
        """Run before a fork: acquire all locks; the hook that runs second does nothing."""
        if not self._forking.acquire(timeout=_LONGEST_SECONDS):
            return
        if self._forker is not None:
            self._forking.release()
            return
        # Threads that load need locks of these modules, whose hooks may have run before this one.
        missing = [name for name in _HOOKED if name not in sys.modules]
        lent = [lock for lock in map(_lock_of, _HOOKED) if lock is not None and self._threads and _is_held_here(lock)]
        for lock in lent:
            lock.release()
        self._wait()
        for lock in (*lent, *map(_lock_of, missing)):
            if lock is not None:
                lock.acquire()
        for lock, _ in self._held:
            lock().acquire(timeout=_LONGEST_SECONDS)
        self._forker = _thread.get_ident()

    def _wait(self) -> None:
        """Wait until no other thread loads; the forking thread itself may be loading.

        Loading is slow on a busy machine. The wait ends when no module has been loaded for its longest time.
        """
        modules, until = 0, 0.0
        while not self._threads.keys() <= {_thread.get_ident()}:
            if modules != len(sys.modules):
                modules, until = len(sys.modules), time.monotonic() + _LONGEST_SECONDS
            elif time.monotonic() > until:
                self._forget_others()
                return
            _release(self._forking)
            time.sleep(_STEP_SECONDS)
            self._forking.acquire(timeout=_LONGEST_SECONDS)

    def _after_in_parent(self) -> None:
        """Run after a fork, once: hooks may have been registered while this fork waited."""
        if self._forker == _thread.get_ident():
            self._forker = None
            for lock, _ in self._held:
                _release(lock())
            _release(self._forking)

    def _after_in_child(self) -> None:
        if self._forker is not None:
            self._forker = None
            self._forking = _thread.RLock()
            self._forget_others()
            for _, renew in self._held:
                renew()

    def _forget_others(self) -> None:
        thread = _thread.get_ident()
        self._threads = {thread: self._threads[thread]} if thread in self._threads else {}


def _lock_of(name: str) -> "Any":
    """Return the lock that the fork hook of a module acquires; None while the module is not loaded.

    The hook of a module that is loaded while a fork waits runs after that fork only, and releases the lock.
    """
    return getattr(sys.modules.get(name), _HOOKED[name], None)


def _is_held_here(lock: "Any") -> bool:
    """Return true when this thread holds a lock; another thread holds it for a moment only."""
    is_owned = getattr(lock, "_is_owned", None)
    if is_owned is not None:
        return bool(is_owned())
    if not lock.acquire(timeout=_MOMENT_SECONDS):
        return True
    lock.release()
    return False


def _release(lock: _thread.RLock) -> None:
    try:  # noqa: SIM105 - contextlib is not loaded yet
        lock.release()
    except RuntimeError:  # not acquired: the wait timed out
        pass


loading = _Loading()
loading.register()


class recording:  # noqa: N801 - read as a variable
    """The lock ``held`` by threads while they bind or record a series on any sink; a fork waits for it.

    The locks of the OpenTelemetry SDK and of the Prometheus client are taken only inside it. If another thread held
    one of those at a fork, it would stay locked in the child, and neither library renews all of its locks. A single
    lock also costs less, because a tool call records on four series. It is reentrant, because the garbage collector
    may finish another call while a thread holds it.
    """

    held = _thread.RLock()


def _renew() -> None:
    recording.held = _thread.RLock()


loading.hold(lambda: recording.held, _renew)


def after_fork(reset: "Callable[[], object]") -> None:
    """Run ``reset`` in forked children."""
    _at_fork(after_in_child=reset)


def load(package: str, exports: "Mapping[str, str]", name: str) -> object:
    """Return a public name of a package that is loaded on first use (PEP 562), and set it on the package.

    ``exports`` maps each name to its module, followed by a colon and the attribute where that has another name.

    Raises:
        AttributeError: the package has no such name.
    """
    import importlib  # noqa: PLC0415 - not at interpreter start

    module, _, attribute = exports.get(name, "").partition(":")
    if not module:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    with loading:
        loaded = importlib.import_module(module)
        value = loaded if module == f"{package}.{name}" else getattr(loaded, attribute or name)
        setattr(sys.modules[package], name, value)
    return value
