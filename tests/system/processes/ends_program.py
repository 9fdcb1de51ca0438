"""Tool calls of programs that end in all ways: a script, a server's application, children of `multiprocessing`.

``python ends_program.py END CALLS`` makes the calls and ends as told; servers load ``wsgi`` or ``asgi``.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import agent_otel


def call(number: int) -> str:
    """Make one tool call."""
    with agent_otel.tool_call("work", {"number": number}) as running:
        result: str = running.result("x")
        return result


def wsgi(environ: Any, start_response: Any) -> list[bytes]:
    """Answer each request with one call."""
    start_response("200 OK", [("Content-Length", "1")])
    return [call(int(environ["PATH_INFO"][1:])).encode()]


async def asgi(scope: Any, _receive: Any, send: Any) -> None:
    """Answer each request with one call."""
    body = call(int(scope["path"][1:])).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"1")]})
    await send({"type": "http.response.body", "body": body})


def in_children(method: str, how: str, numbers: range) -> None:
    """Make the calls in two children, and end those."""
    context: Any = multiprocessing.get_context(method)
    if how == "executor":
        with ProcessPoolExecutor(2, mp_context=context) as executor:
            list(executor.map(call, numbers))
    elif how == "terminate":
        with context.Pool(2) as pool:  # which terminates it
            pool.map(call, numbers)
    else:
        pool = context.Pool(2)
        pool.map(call, numbers)
        pool.close()
        pool.join()


def main(end: str, calls: str) -> None:
    """Make the calls, then end."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background jobs ignore
    numbers = range(int(calls))
    method, _, how = end.partition(" ")
    if how:
        in_children(method, how, numbers)
        return
    for number in numbers:
        call(number)
    print("called", flush=True)
    while end == "signal":
        time.sleep(1)  # a signal that arrives just before a wait in C is handled after that wait
    if end == "exception":
        raise KeyError("no")
    if end == "sys.exit":
        sys.exit(3)
    if end == "os._exit":
        os._exit(4)


if __name__ == "__main__":
    main(*sys.argv[1:])
