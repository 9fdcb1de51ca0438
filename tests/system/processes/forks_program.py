"""Forks beside threads that call tools; prints how many children did not come to their end.

Arguments: how many forks, and ``first`` when the threads make the first call of the process amid the forks, else
``later``. The last child sends what it has before it ends.
"""

from __future__ import annotations

import faulthandler
import os
import sys
import threading
import time
from collections import deque

import agent_otel

_THREADS = 8
_AT_A_TIME = 16  # a child waits for a processor, and the threads of the parent call meanwhile
_CHILD_SECONDS = 60  # a hung child never ends; one that gets no processor may take long
_FIRST_SECONDS = 3.0  # the first call and what it starts are over by then, on a quick machine


def call(name: str) -> None:
    """Make one tool call."""
    with agent_otel.execution("run"), agent_otel.tool_call(name, {"a": 1}) as running:
        running.result("x" * 30)


def work(stop: list[bool]) -> None:
    """Call without rest."""
    while not stop:
        call("parent")


def fork(*, flush: bool) -> int:
    """Call a tool in a forked child, which leaves as multiprocessing's children do; return its process."""
    child = os.fork()
    if not child:
        # Not sys.stderr: it has a lock that another thread of the parent may hold, and Python does not renew it.
        faulthandler.dump_traceback_later(_CHILD_SECONDS, exit=True, file=2)
        call("last child" if flush else "child")
        if flush:
            from agent_otel.telemetry import setup  # the first call is to find nothing loaded

            setup.flush(_CHILD_SECONDS / 2)
        os._exit(0)
    return child


def has_ended(child: int) -> bool:
    """Wait for a child; return False for one that hung."""
    return os.waitpid(child, 0)[1] == 0


def main(forks: int, when: str) -> None:
    """Fork, and count the children that hang."""
    sys.setswitchinterval(1e-5)  # a thread is interrupted amid whatever it does
    if when == "later":
        call("parent")
    stop: list[bool] = []
    threads = [threading.Thread(target=work, args=(stop,)) for _ in range(_THREADS)]
    for thread in threads:
        thread.start()
    hung = 0
    children: deque[int] = deque()
    for number in range(1, forks + 1):
        if when == "first":
            time.sleep(_FIRST_SECONDS / forks)
        children.append(fork(flush=number == forks))
        if len(children) == _AT_A_TIME:
            hung += not has_ended(children.popleft())
        if hung:
            break
    hung += sum(not has_ended(child) for child in children)
    stop.append(True)
    for thread in threads:
        thread.join()
    print(hung)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
