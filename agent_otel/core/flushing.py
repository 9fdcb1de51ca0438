"""The flush that a program calls before its process is suspended or killed."""

from __future__ import annotations

import threading
import time
from concurrent import futures
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import metrics, trace

from agent_otel._internal import collected
from agent_otel._internal.daemon_pool import Workers
from agent_otel._internal.errors import ours
from agent_otel.core import payload
from agent_otel.core.cost.models import models
from agent_otel.telemetry import setup

if TYPE_CHECKING:
    from agent_otel._internal.daemon_pool import Job

#: Share of the timeout for payloads that are still being analysed; their spans end with the analysis.
_ANALYSIS_SHARE: Final = 0.5
#: Share of the timeout for prices that are still being read.
_PRICES_SHARE: Final = 0.2
#: The program's providers: one of spans and one of metrics.
_workers = Workers("flush-program", 2)


def flush(seconds: float) -> bool:
    """Export what has been recorded, through own providers and the program's; return False when it takes longer."""
    if setup.resolved is None:
        return True
    seconds = min(seconds, threading.TIMEOUT_MAX)  # the longest wait that a lock of Python takes
    until = time.monotonic() + seconds
    payload.drain(seconds * _ANALYSIS_SHARE)
    models.drain(seconds * _PRICES_SHARE)
    # In a thread: a signal handler may have interrupted code that holds a lock of what is counted.
    try:
        _is_done(_workers.submit(collected.run_due), time.monotonic() + seconds)
    except ours(RuntimeError):  # an interpreter that exits starts no thread
        collected.run_due()
    providers = [trace.get_tracer_provider(), metrics.get_meter_provider()]
    # Some implementations of the program's providers have no such function.
    flushes = [getattr(provider, "force_flush", None) for provider in providers if not setup.owns(provider)]
    jobs = [_workers.submit(force_flush) for force_flush in flushes if callable(force_flush)]
    is_done = setup.flush(max(0.0, until - time.monotonic()))
    return all(_is_done(job, until) for job in jobs) and is_done


def _is_done(job: Job[Any], until: float) -> bool:
    """Wait for a flush."""
    try:
        return job.result(max(0.0, until - time.monotonic())) is not False
    except ours(futures.TimeoutError):  # the built-in exception from Python 3.11 on
        job.cancel()
        return False
