"""Signals that reach a forked child before its first instruction, with the handler of AGENT_OTEL_FLUSH_ON_SIGTERM."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.servers.otlp import OtlpReceiver

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.environments import Environment

_ENVIRONMENTS = ("oldest", "bare", "bare-newest")
_SETTING = {"AGENT_OTEL": "1", "AGENT_OTEL_FLUSH_ON_SIGTERM": "1"}
_FORKS = """
import collections, os, signal, threading, time
import agent_otel

with agent_otel.tool_call("search", {}) as running:
    running.result("x")

def end(number, after=0):
    child = os.fork()
    if not child:
        # A signal that comes just before a wait is handled after it, as with any handler in Python.
        for _ in range(60_000):
            time.sleep(0.01)
        os._exit(0)
    time.sleep(after)
    os.kill(child, number)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def ends(number, after=0):
    return dict(collections.Counter(end(number, after) for _ in range(8)))

def mask():
    return signal.pthread_sigmask(signal.SIG_BLOCK, ())

"""


@pytest.mark.parametrize("name", _ENVIRONMENTS)
def test_a_child_dies_of_a_signal_that_comes_at_once(environment: Callable[[str], Environment], name: str) -> None:
    """CPython clears what has arrived in a child; with the default action the kernel would have ended it."""
    code = f"""{_FORKS}
print(ends(signal.SIGTERM), ends(signal.SIGHUP), mask())
def in_a_thread():
    print(ends(signal.SIGTERM), ends(signal.SIGTERM, 0.05), mask())
thread = threading.Thread(target=in_a_thread)
thread.start()
thread.join()
"""
    with OtlpReceiver() as receiver:
        env = {**_SETTING, **receiver.environment(), "OTEL_BSP_SCHEDULE_DELAY": "60000"}
        child = environment(name).run(code, env=env, options=("-W", "ignore"), check=True, timeout=300)

    assert ["{-15: 8} {-1: 8} set()", "{-15: 8} {-15: 8} set()"] == child.stdout.splitlines()
    assert 1 == len(receiver.spans)


@pytest.mark.parametrize("name", _ENVIRONMENTS)
def test_a_child_of_a_thread_dies_of_a_signal_amid_its_work(
    environment: Callable[[str], Environment], name: str
) -> None:
    """From CPython 3.13 on, handlers are not run in such a child until one of its system calls is interrupted."""
    code = """
import os, signal, threading
import agent_otel

def fork_and_end():
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.write(writer, b"x")
        for _ in range(100_000_000):
            pass
        os._exit(0)
    os.read(reader, 1)
    os.kill(child, signal.SIGTERM)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)

fork_and_end()
thread = threading.Thread(target=fork_and_end)
thread.start()
thread.join()
print(callable(signal.getsignal(signal.SIGTERM)))
"""
    child = environment(name).run(code, env=_SETTING, options=("-W", "ignore"), check=True)

    assert ["-15", "-15", "True"] == child.stdout.splitlines()


@pytest.mark.parametrize("name", _ENVIRONMENTS)
def test_masks_are_left_as_they_were(environment: Callable[[str], Environment], name: str) -> None:
    code = f"""{_FORKS}
mine = {{signal.SIGTERM, signal.SIGUSR1}}
signal.pthread_sigmask(signal.SIG_BLOCK, mine)
for _ in range(50):
    child = os.fork()
    if not child:
        waited = signal.sigwait({{signal.SIGTERM}})
        os._exit(7 if mask() == mine and callable(signal.getsignal(waited)) else 1)
    os.kill(child, signal.SIGTERM)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert mask() == mine
"""
    child = environment(name).run(code, env=_SETTING, options=("-W", "ignore"), check=True)

    assert ("", "") == (child.stdout, child.stderr)


_AMID_A_WAIT = """
import multiprocessing, signal, threading, time
import agent_otel

def call(name):
    with agent_otel.tool_call(name, {}) as running:
        running.result("x")

def signal_itself():
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

def child():
    call("child")
    threading.Timer(0.5, signal_itself).start()
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()

if __name__ == "__main__":
    call("parent")
    process = multiprocessing.get_context("METHOD").Process(target=child)
    process.start()
    process.join()
    print(process.exitcode)
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize("name", _ENVIRONMENTS)
def test_a_child_dies_although_its_main_thread_does_not_notice(
    environment: Callable[[str], Environment], tmp_path: Path, name: str, method: str
) -> None:
    """A signal that another thread gets is like one that comes just before a wait: it does not end the wait."""
    program = tmp_path / "program.py"
    program.write_text(_AMID_A_WAIT.replace("METHOD", method))
    with OtlpReceiver() as receiver:
        env = {**_SETTING, **receiver.environment(), "OTEL_BSP_SCHEDULE_DELAY": "60000"}
        child = environment(name).run(program, env=env, options=("-W", "ignore"), check=True, timeout=100)

    assert "-15\n" == child.stdout
    assert ["child", "parent"] == sorted(span.attributes["tool.name"] for span in receiver.spans)
