"""Flush on SIGTERM and SIGHUP, if ``AGENT_OTEL_FLUSH_ON_SIGTERM`` is on. Standard library only.

The handler is installed at interpreter start, because a server such as uvicorn replaces it by its own, and re-raises
the signal for the earlier handler after its graceful shutdown. gunicorn resets the signals of its workers to their
default actions, so the handler is installed again in each worker.

CPython forgets in a forked child which signals arrived before the child's first instruction, so that the child would
survive a SIGTERM that it dies of with the default action. The signals are therefore blocked around each fork.

From CPython 3.13 on, a child that another thread than the main one has forked does not notice that a handler is to run:
it survives the signal until one of its system calls is interrupted. Such a child gets the default action back; only the
thread of `watch`, which interrupts its calls, makes the handler useful there.

CPython runs a handler between two instructions of the main thread. A signal that arrives after the last instruction
before a wait in C is handled only when that wait ends, which it may never do: ``multiprocessing.Pool.terminate`` sends
one SIGTERM to workers that wait for a lock, and then waits for the workers. In children of ``multiprocessing`` a thread
therefore interrupts the main thread until the handler runs.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

from agent_otel._bootstrap import import_hook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

_SECONDS = 2.0
_STEP_SECONDS = 0.1
_SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))  # Windows: no SIGHUP
#: The mask of each thread that forks, as it was before.
_masks: dict[int, set[int]] = {}
#: Both ends of the pipe to which the interpreter writes the numbers of signals; empty where no thread reads it.
_pipe: list[int] = []
#: Not empty once the handler has begun to run.
_begun: list[int] = []
#: The thread whose forked children notice that a handler waits.
_first_main = threading.main_thread().ident
#: The signals that were handled before the fork that made this process a deaf child.
_unnoticed: list[int] = []


def install() -> None:
    """Install the handler in this process and in workers that gunicorn starts."""
    _handle()
    import_hook.install({"gunicorn.workers.base": _handle_in_workers})
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_block, after_in_parent=_unblock, after_in_child=_unblock_in_child)


def _handle() -> None:
    """Handle each signal that has its default action, if this is the main thread of the main interpreter."""
    if threading.current_thread() is not threading.main_thread() or _is_deaf():
        return
    for number in _SIGNALS:
        if signal.getsignal(number) == signal.SIG_DFL:
            try:
                signal.signal(number, _flush_and_die)
            except ValueError:  # a subinterpreter, which gets no signals
                return


def _is_deaf() -> bool:
    """Return whether this main thread would not notice a signal: another thread than the first one has forked it."""
    return sys.version_info >= (3, 13) and threading.get_ident() != _first_main


def _block() -> None:
    """Block the signals that are handled here in the thread that forks, and therefore in the child."""
    handled = [number for number in _SIGNALS if signal.getsignal(number) is _flush_and_die]
    if handled:
        # The mask is read first: a handler that the second call runs may raise, and its result be lost.
        _masks[threading.get_ident()] = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        signal.pthread_sigmask(signal.SIG_BLOCK, handled)


def _unblock() -> None:
    """Restore the mask of the thread that forked; what has arrived is delivered."""
    thread = threading.get_ident()
    if thread in _masks:
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, _masks[thread])
        finally:
            del _masks[thread]


def _unblock_in_child() -> None:
    """Restore the mask; a child that a signal has reached dies of it here, because it has nothing to flush yet."""
    mask = _masks.get(threading.get_ident())
    if mask is not None:
        arrived = signal.sigpending().difference(mask)
        for number in _SIGNALS:
            if (number in arrived or _is_deaf()) and signal.getsignal(number) is _flush_and_die:
                signal.signal(number, signal.SIG_DFL)
                _unnoticed.append(number)
    if _pipe:  # the parent's thread reads it
        signal.set_wakeup_fd(-1)
        for end in _pipe:
            os.close(end)
        _pipe.clear()
    _unblock()
    _masks.clear()  # threads that were forking in the parent


def watch() -> None:
    """Start the thread that makes the main thread run the handler, in a child of ``multiprocessing``.

    It needs the wakeup descriptor of `signal`. One that the program has set stays, and Trio warns of any but its own.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or _pipe or "trio" in sys.modules or os.name == "nt":
        return
    if not _unnoticed and all(signal.getsignal(number) is not _flush_and_die for number in _SIGNALS):
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    earlier = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    if earlier != -1:
        signal.set_wakeup_fd(earlier)
        os.close(reader)
        os.close(writer)
        return
    _pipe.extend((reader, writer))
    arguments = (reader, threading.get_ident())
    threading.Thread(target=_interrupt, args=arguments, name="agent_otel-signals", daemon=True).start()
    for number in _unnoticed:
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _flush_and_die)
    _unnoticed.clear()


def _interrupt(reader: int, main: int) -> None:
    """Send each signal that arrives to the main thread again, until its handler has begun to run."""
    while True:
        for number in os.read(reader, 1):
            while number in _SIGNALS and signal.getsignal(number) is _flush_and_die and not _begun:
                time.sleep(_STEP_SECONDS)
                if not _begun:
                    signal.pthread_kill(main, number)


def _handle_in_workers(module: str) -> None:
    """Install the handler in gunicorn's workers before they load the application.

    At that point a worker has reset all its signals. Only uvicorn's worker classes then leave SIGTERM at its default
    action; they re-raise it when they end.
    """
    worker: Any = getattr(sys.modules[module], "Worker", None)
    load = getattr(worker, "load_wsgi", None)
    if load is None:
        return
    import functools  # noqa: PLC0415 - gunicorn has loaded it

    @functools.wraps(load)
    def load_wsgi(*args: Any, **kwargs: Any) -> Any:
        _handle()
        return load(*args, **kwargs)

    worker.load_wsgi = load_wsgi


def _flush_and_die(number: int, _frame: FrameType | None) -> None:
    """Flush for at most two seconds, then end by the default action of the signal, as the parent process expects."""
    _begun.append(number)
    try:
        # The module may be only partly imported when the signal arrives; then there is nothing to flush.
        flush = getattr(sys.modules.get("agent_otel.telemetry.setup"), "flush", None)
        if flush is not None:
            flush(_SECONDS)
    finally:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
