"""The first use of telemetry, which resolves providers and sinks, amid what a program does meanwhile."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

_REPORTED = """
import json, logging
import agent_otel
import prometheus_client

@agent_otel.tool
def report(text): return "sent"

@agent_otel.tool
def search(query): return "x"

class Reports(logging.Handler):
    def emit(self, record):
        report(record.getMessage())

logging.basicConfig(level=logging.INFO, handlers=[Reports()])
search("a")
value = prometheus_client.REGISTRY.get_sample_value
name = "agent_otel_tool_args_size_bytes_count"
print(json.dumps([value(name, {"gen_ai_tool_name": tool}) for tool in ("report", "search")]))
"""


def test_a_handler_of_the_log_calls_a_tool(environment: Callable[[str], Environment]) -> None:
    """The first use is logged, when it is over: it does not wait for itself, and the handler's call is measured."""
    child = environment("bare").run(_REPORTED, env={"AGENT_OTEL": "1"}, check=True)
    assert ("", [1, 1]) == (child.stderr, json.loads(child.stdout))


_SIGNALLED = """
import json, os, signal, sys
import agent_otel
import prometheus_client
from agent_otel.telemetry import setup

@agent_otel.tool
def search(query): return "x"

def at_first_line(frame, event, argument):
    if frame.f_code is setup._resolve.__code__:
        sys.settrace(None)
        signal.raise_signal(signal.SIGUSR1)

signal.signal(signal.SIGUSR1, lambda *_: print(search("from the handler"), flush=True))
sys.settrace(at_first_line)
search("a")
search("b")
value = prometheus_client.REGISTRY.get_sample_value
print(int(value("agent_otel_tool_args_size_bytes_count", {"gen_ai_tool_name": "search"})))
"""


def test_a_signal_s_handler_calls_a_tool_meanwhile(environment: Callable[[str], Environment]) -> None:
    """That call runs and is not measured: the thread cannot wait for itself."""
    child = environment("bare").run(_SIGNALLED, env={"AGENT_OTEL": "1"}, check=True)
    assert ["x", "2"] == child.stdout.splitlines()
    assert child.stderr.startswith("agent_otel failed in tool_call.enter: UnavailableError at ")


_INTERRUPTED = """
import json, os, sys
import agent_otel
import prometheus_client
from agent_otel.telemetry import setup

@agent_otel.tool
def search(query): return "x"

def interrupted_at(number):
    lines = 0
    def trace(frame, event, argument):
        nonlocal lines
        if frame.f_code.co_filename != setup.__file__:
            return None
        lines += event == "line"
        if lines == number:
            sys.settrace(None)
            raise KeyboardInterrupt
        return trace
    sys.settrace(trace)
    try:
        search("a")
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False

def metrics():
    for _ in range(3):
        search("a")
    value = prometheus_client.REGISTRY.get_sample_value
    calls = value("agent_otel_tool_args_size_bytes_count", {"gen_ai_tool_name": "search"})
    return [calls, value("agent_otel_process_start_time_seconds") is not None]

seen, number = [], 0
while not seen or seen[-1][0]:
    number += 1
    reader, writer = os.pipe()
    if not os.fork():
        is_interrupted = interrupted_at(number)
        os.write(writer, json.dumps([is_interrupted, *metrics()]).encode())
        os._exit(0)
    os.close(writer)
    seen.append(json.loads(os.read(reader, 1000)))
    os.close(reader)
    os.wait()
print(json.dumps(seen))
"""


def test_an_interrupt_of_the_first_call_loses_no_metric(environment: Callable[[str], Environment]) -> None:
    """Ctrl-C at each line of the set-up: the next call sets up what is missing, and nothing twice."""
    child = environment("bare").run(_INTERRUPTED, env={"AGENT_OTEL": "1"}, check=True)
    *interrupted, whole = json.loads(child.stdout)
    assert ("", [False, 4, True]) == (child.stderr, whole)
    assert len(interrupted) > 50
    assert [] == [end for end in interrupted if end not in ([True, 3, True], [True, 4, True])]


_SILENT = """
import logging
import agent_otel

if "{logging}":
    logging.basicConfig(level=logging.WARNING)
agent_otel.tool(lambda query: "x", name="search")("a")
"""


def _terminal(environment: Environment, program: str, **variables: str) -> str:
    """Return what a program writes on standard error, which is a terminal."""
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        env = environment.environ({"AGENT_OTEL": "1", **variables})
        subprocess.run([str(environment.python), "-c", program], stderr=theirs, env=env, check=True)
        os.write(theirs, b"END")
        os.close(theirs)
        text = b""
        while not text.endswith(b"END"):
            text += terminal.read(4096)
    return text[:-3].decode()


def test_the_first_use_is_said_on_a_terminal(environment: Callable[[str], Environment]) -> None:
    bare = environment("bare")
    line = (
        "measures calls that the program hands to it. Spans are exported once the program sets a TracerProvider. "
        "Metrics are in prometheus_client's registry: no provider and no exporter is there for them. "
        "AGENT_OTEL_QUIET=1 ends this line.\r\n"
    )
    shown = _terminal(bare, _SILENT.format(logging=""))
    assert ("agent_otel ", line) == (shown[:11], shown[shown.index("measures") :])
    assert _terminal(bare, _SILENT.format(logging=""), AGENT_OTEL_QUIET="1") == ""
    assert _terminal(bare, _SILENT.format(logging="yes")) == ""
