"""Flush on SIGTERM and SIGHUP, where asked to (``AGENT_OTEL_FLUSH_ON_SIGTERM``). Standard library only.

Installed at interpreter start, because a server such as uvicorn puts its own handler in front, and after its
graceful shutdown re-raises the signal for the handler that was there before: this one. gunicorn sets the signals of
its workers back to their default actions, so that there it is installed once more.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

from agent_otel._bootstrap import import_hook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

_SECONDS = 2.0
_SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))  # Windows: no SIGHUP


def install() -> None:
    """Handle the signals of this process, and of the workers that gunicorn may start."""
    _handle()
    import_hook.install({"gunicorn.workers.base": _handle_in_workers})


def _handle() -> None:
    """Handle each signal whose default action is in force, if this is the main thread of the main interpreter."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number in _SIGNALS:
        if signal.getsignal(number) == signal.SIG_DFL:
            try:
                signal.signal(number, _flush_and_die)
            except ValueError:  # a subinterpreter, which gets no signals
                return


def _handle_in_workers(module: str) -> None:
    """Let gunicorn's workers handle the signals again before they load the application.

    By then they have set all signals back. Only uvicorn's classes leave SIGTERM so, and re-raise it at their end.
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
    """Flush for at most two seconds, then die of the signal as the parent expects."""
    try:
        # A signal may come while that module is being imported: then there is nothing to flush.
        flush = getattr(sys.modules.get("agent_otel.telemetry.setup"), "flush", None)
        if flush is not None:
            flush(_SECONDS)
    finally:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
