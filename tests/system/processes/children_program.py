"""Tool calls in child processes of every kind; each child calls ``call("name", ...)`` once.

Arguments: the start method, and ``first`` when the parent calls a tool before it has children.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import agent_otel


def call(name: str) -> str:
    """Make one tool call."""
    with agent_otel.tool_call(name, {"pid": os.getpid()}) as running:
        result: str = running.result("x" * 30)
        return result


def fork_by_hand() -> None:
    """Fork as servers do, and leave as they do."""
    child = os.fork()
    if not child:
        call("os.fork")
        sys.exit()
    assert os.waitpid(child, 0) == (child, 0)


def main(method: str, *more: str) -> None:
    """Call a tool in the parent if asked to, then in one child of each kind."""
    if more:
        call("parent")
    if method == "os.fork":
        fork_by_hand()
        return
    context: Any = multiprocessing.get_context(method)
    child = context.Process(target=call, args=("Process",))
    child.start()
    child.join()
    assert child.exitcode == 0
    pool = context.Pool(1)
    assert pool.map(call, ["Pool"]) == ["x" * 30]
    pool.close()
    pool.join()
    with ProcessPoolExecutor(1, mp_context=context) as executor:
        assert executor.submit(call, "ProcessPoolExecutor").result() == "x" * 30


if __name__ == "__main__":
    main(*sys.argv[1:])
