"""Flush on SIGTERM and SIGHUP, if ``AGENT_OTEL_FLUSH_ON_SIGTERM`` is on. Standard library only.

The handler is installed at interpreter start, because a server such as uvicorn replaces it by its own, and re-raises
the signal for the earlier handler after its graceful shutdown. gunicorn resets the signals of its workers to their
default actions, so the handler is installed again in each worker.
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
    """Install the handler in this process and in workers that gunicorn starts."""
    _handle()
    import_hook.install({"gunicorn.workers.base": _handle_in_workers})


def _handle() -> None:
    """Handle each signal that has its default action, if this is the main thread of the main interpreter."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number in _SIGNALS:
        if signal.getsignal(number) == signal.SIG_DFL:
            try:
                signal.signal(number, _flush_and_die)
            except ValueError:  # a subinterpreter, which gets no signals
                return


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
    try:
        # The module may be only partly imported when the signal arrives; then there is nothing to flush.
        flush = getattr(sys.modules.get("agent_otel.telemetry.setup"), "flush", None)
        if flush is not None:
            flush(_SECONDS)
    finally:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
