"""How times are taken: thread CPU time on one pinned core, cases interleaved, the minimum of many rounds.

Everything is given in U, the time of a 100-iteration ``t += i`` loop in the same process, because a ratio holds on
any machine and microseconds do not.
"""

from __future__ import annotations

import gc
import os
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

CORES: set[int] = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
"""The cores that there are, before the clock stays on one."""

_SAMPLE_SECONDS = 0.002


def calibration() -> None:
    """One U."""
    t = 0
    for i in range(100):
        t += i


def measure(cases: Mapping[str, Callable[[], object]], rounds: int = 60) -> dict[str, float]:
    """Return the time of one call of each case in U; ``rounds`` samples of about 2 ms each, interleaved.

    Garbage is collected between the rounds, as it is in a program: without that all objects of a framework whose calls
    leave cycles are made in memory that no cache has, ours as well, and half of what is measured is memory.
    """
    pin()
    every = {"U": calibration, **cases}
    repeats = {name: _repeats(case) for name, case in every.items()}
    best = dict.fromkeys(every, float("inf"))
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, case in every.items():
                best[name] = min(best[name], _sample(case, repeats[name]))
            gc.collect()
    finally:
        gc.enable()
        gc.unfreeze()
    return {name: best[name] / best["U"] for name in cases} | {"seconds per U": best["U"]}


def pin() -> None:
    """Stay on one core, where the system has a way to say so."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def _repeats(case: Callable[[], object]) -> int:
    case()
    return max(1, min(20_000, int(_SAMPLE_SECONDS / max(_sample(case, 3), 1e-8))))


def _sample(case: Callable[[], object], repeats: int) -> float:
    case()  # not after another case
    times = range(repeats)
    started = time.thread_time_ns()
    for _ in times:
        case()
    return (time.thread_time_ns() - started) / repeats / 1e9


def longest_wait(work: Callable[[], object]) -> float:
    """Return the milliseconds for which a thread that does next to nothing waits while another one works."""
    if CORES:
        os.sched_setaffinity(0, CORES)

    def begin() -> None:
        time.sleep(0.01)  # until the other thread is at it
        work()

    worker = threading.Thread(target=begin)
    worker.start()
    longest, before = 0.0, time.perf_counter()
    while worker.is_alive():
        time.sleep(0.0002)
        now = time.perf_counter()
        longest, before = max(longest, now - before), now
    worker.join()
    return longest * 1000
