"""Flush on SIGTERM, where asked to (``AGENT_OTEL_FLUSH_ON_SIGTERM``). Standard library only.

Installed at interpreter start, because a server such as uvicorn puts its own handler in front, and after its
graceful shutdown re-raises the signal for the handler that was there before: this one.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

_SECONDS = 2.0


def install() -> None:
    """Handle SIGTERM, if the default action is in force and this is the main thread of the main interpreter."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        try:
            signal.signal(signal.SIGTERM, _flush_and_die)
        except ValueError:  # a subinterpreter, which gets no signals
            return


def _flush_and_die(number: int, _frame: FrameType | None) -> None:
    """Flush for at most two seconds, then die of the signal as the parent expects."""
    try:
        # A signal may come while that module is being imported: then there is nothing to flush.
        flush = getattr(sys.modules.get("agent_otel.emit.telemetry"), "flush", None)
        if flush is not None:
            flush(_SECONDS)
    finally:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
