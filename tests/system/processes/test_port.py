"""The ``/metrics`` port: there from start-up, taken over, and never kept by a forked child."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import time
import urllib.request
from typing import TYPE_CHECKING

import pytest

from agent_otel import __version__
from tests.patience import Deadline
from tests.system.engines.starting import free_port
from tests.system.processes.test_servers import _GUNICORN, _TOOL, _WSGI, _get

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.environments import Environment

_SECONDS = 60


def _scraped(port: int) -> str:
    with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text: str = answer.read().decode()
        return text
    return ""


def _wait_for(holds: Callable[[], object]) -> None:
    deadline = Deadline(_SECONDS)
    while not holds():
        assert not deadline.has_passed()
        time.sleep(0.1)


def _series(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("agent_otel_")]


def _idle(environment: Environment, port: int, module: str) -> list[str]:
    """Return this package's series of a process that has imported a module, and calls nothing."""
    env = {"AGENT_OTEL": "1", "AGENT_OTEL_PROMETHEUS_PORT": str(port)}
    program = f"import {module}, time\nprint(flush=True)\ntime.sleep(600)"
    with environment.start(str(environment.python), "-c", program, env=env) as child:
        assert child.stdout is not None
        child.stdout.readline()
        _wait_for(lambda: "python_info" in _scraped(port))
        return _series(_scraped(port))


def test_an_idle_process_is_scraped(environment: Callable[[str], Environment]) -> None:
    """A deployment without traffic reports: AgentTelemetryGone stays quiet."""
    idle = environment("openai-agents")
    series = _idle(idle, free_port(), "agents.tool")

    version = idle.run("import platform; print(platform.python_version())", check=True).stdout.strip()
    assert f'agent_otel_build_info{{python="{version}",scales_to_zero="",version="{__version__}"}} 1.0' in series
    assert any(line.startswith('agent_otel_instrumentation_info{integration="openai-agents"') for line in series)


def test_a_framework_that_cannot_be_measured_is_told_without_any_call(
    environment: Callable[[str], Environment],
) -> None:
    """Of such a framework no call is seen, and AgentIntegrationUnmatched fires all the same."""
    series = _idle(environment("strands-0.2"), free_port(), "strands")

    assert 1 == sum(line.startswith("agent_otel_build_info{") for line in series)
    assert 'agent_otel_instrumentation_info{integration="strands",target="unmatched",version="0.2.1"} 1.0' in series


_FIRST_CALL = """
import agents.tool, json, sys, time, urllib.request
import agent_otel

def infos():
    text = urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/metrics", timeout=10).read().decode()
    return sorted(line for line in text.splitlines() if line.startswith("agent_otel_") and "_info{" in line)

before = infos()
with agent_otel.tool_call("search", {}) as call:
    call.result("x")
print(json.dumps([before, infos()]))
"""


def test_the_first_call_publishes_the_same_once(environment: Callable[[str], Environment]) -> None:
    port = str(free_port())
    env = {
        "AGENT_OTEL": "1",
        "AGENT_OTEL_LABELS": "team=search,tenant",
        "AGENT_OTEL_PROMETHEUS_PORT": port,
        "AGENT_OTEL_SCALES_TO_ZERO": "1",
    }
    child = environment("openai-agents").run(_FIRST_CALL, port, env=env, check=True)
    before, after = json.loads(child.stdout)

    assert before == after
    (build,) = (line for line in before if line.startswith("agent_otel_build_info{"))
    assert 'scales_to_zero="true",team="search",tenant=""' in build


_SUBINTERPRETER = """
import json, sys, urllib.request
from concurrent import interpreters
import agent_otel

CALL = '''
import agent_otel, sys
with agent_otel.execution("run"), agent_otel.tool_call(name, {}) as running:
    running.result("x" * 30)
from prometheus_client import REGISTRY
size = REGISTRY.get_sample_value("agent_otel_tool_result_size_bytes_sum", {"error_type": "", "gen_ai_tool_name": name})
errors = sys.modules["agent_otel._internal.errors"]
'''
inside = interpreters.create()
queue = interpreters.create_queue()
inside.prepare_main(name="inside", queue=queue)
inside.exec(CALL + "queue.put((size, dict(errors.errors), errors.warnings()))")
name = "outside"
exec(CALL)
url = f"http://127.0.0.1:{sys.argv[1]}/metrics"
scraped = urllib.request.urlopen(url, timeout=10).read().decode()
print(json.dumps([queue.get(), size, "outside" in scraped, "inside" in scraped]))
"""


def test_a_subinterpreter_measures_and_leaves_the_port_to_the_main_one(
    environment: Callable[[str], Environment],
) -> None:
    """It may start no daemon threads, and has a registry of its own."""
    bare, port = environment("bare-newest"), str(free_port())
    child = bare.run(_SUBINTERPRETER, port, env={"AGENT_OTEL": "1", "AGENT_OTEL_PROMETHEUS_PORT": port}, check=True)

    (inside, failures, (warning,)), outside, *scraped = json.loads(child.stdout)
    assert (inside, failures, outside, scraped) == (30.0, {}, 30.0, [True, False])
    assert warning.startswith(f"agent_otel cannot serve metrics on 127.0.0.1:{port}: RuntimeError")


_FORKED = """
import os, sys, time
import agent_otel

def call(name):
    with agent_otel.tool_call(name, {}) as running:
        running.result("x")

agent_otel.tool_call
if sys.argv[1] == "used":
    call("parent")
for _ in range(int(sys.argv[2])):
    child = os.fork()
    if not child:
        if sys.argv[1] == "idle":
            call("child")
        time.sleep(600)
print(child, flush=True)
time.sleep(600)
"""


def test_a_child_keeps_no_port(environment: Callable[[str], Environment]) -> None:
    bare = environment("bare")
    port = free_port()
    env = {"AGENT_OTEL": "1", "AGENT_OTEL_PROMETHEUS_PORT": str(port)}
    with bare.start(str(bare.python), "-c", _FORKED, "used", "1", env=env) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        _wait_for(lambda: 'gen_ai_tool_name="parent"' in _scraped(port))
        parent.kill()
        parent.wait()
        os.kill(child, 0)

        with socket.socket() as again:
            again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            again.bind(("127.0.0.1", port))
            again.listen()
        os.kill(child, signal.SIGKILL)


@pytest.mark.parametrize("workers", ["1", "3"])
def test_an_idle_parent_leaves_the_port_to_a_worker(environment: Callable[[str], Environment], workers: str) -> None:
    bare = environment("bare")
    port = free_port()
    env = {"AGENT_OTEL": "1", "AGENT_OTEL_PROMETHEUS_PORT": str(port)}
    with bare.start(str(bare.python), "-c", _FORKED, "idle", workers, env=env):
        _wait_for(lambda: 'gen_ai_tool_name="child"' in _scraped(port))


def test_another_worker_takes_the_port_over(environment: Callable[[str], Environment], tmp_path: Path) -> None:
    servers = environment("servers")
    port, path, folder = free_port(), tmp_path / "socket", tmp_path / "numbers"
    folder.mkdir()
    (tmp_path / "application.py").write_text(_TOOL + _WSGI)
    options = (option.format(socket=path) for option in _GUNICORN[2])
    command = (str(servers.program("gunicorn")), *options, "--max-requests", "4", "application:application")
    env = {
        "AGENT_OTEL": "1",
        "AGENT_OTEL_PROMETHEUS_PORT": str(port),
        "PROMETHEUS_MULTIPROC_DIR": str(folder),
        "PYTHONPATH": str(tmp_path),
    }
    labels = 'error_type="",gen_ai_agent_name="",gen_ai_tool_name="repeat",gen_ai_workflow_name=""'
    sample = f"agent_otel_tool_result_size_bytes_count{{{labels}}}"
    with servers.start(*command, env=env, cwd=tmp_path) as running:
        for number in range(1, 31):
            assert "x" * number == _get(path, f"/{number}", running)
        _wait_for(lambda: f"{sample} 30.0" in _scraped(port))
        running.terminate()
        _, stderr = running.communicate(timeout=_SECONDS)

    assert "Autorestarting worker" in stderr
    assert "Cannot serve" not in stderr
    assert "cannot serve" not in stderr


_RESET = """
import json, socket, struct, sys, time, urllib.request
import agent_otel

with agent_otel.tool_call("work") as call:
    call.result("x")
port = int(sys.argv[1])
for sent in (b"", b"GET /metrics HTTP/1.1\\r\\n"):
    with socket.create_connection(("127.0.0.1", port)) as probe:
        probe.sendall(sent)
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
time.sleep(1)  # until the server has read from both
print(urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").status)
"""


def test_a_client_that_resets_its_connection_prints_nothing(environment: Callable[[str], Environment]) -> None:
    """Load balancers probe a port so; standard error belongs to the program."""
    port = free_port()
    env = {"AGENT_OTEL": "1", "AGENT_OTEL_PROMETHEUS_PORT": str(port)}
    child = environment("bare").run(_RESET, str(port), env=env)
    assert ("200\n", "", 0) == (child.stdout, child.stderr, child.returncode)


_WITHOUT_HOOKS = """
import ctypes, os, sys, urllib.request
import agent_otel

@agent_otel.tool
def work(): return "x"

child = ctypes.PyDLL(None).fork()
if not child:
    work()
    sys.stderr.flush()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
work()
text = urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/metrics").read().decode()
print([line for line in text.splitlines() if line.startswith("agent_otel_tool_args_size_bytes_count")])
"""


def test_a_worker_that_is_forked_without_hooks_warns(environment: Callable[[str], Environment]) -> None:
    """Python does not notice how uWSGI forks: its master goes on serving, and that has counted none of the calls."""
    port = free_port()
    env = {"AGENT_OTEL": "1", "AGENT_OTEL_PROMETHEUS_PORT": str(port)}
    child = environment("bare").run(_WITHOUT_HOOKS, str(port), env=env, check=True)
    assert "['agent_otel_tool_args_size_bytes_count{gen_ai_tool_name=\"work\"} 1.0']\n" == child.stdout
    assert child.stderr.startswith(f"agent_otel cannot serve metrics on 127.0.0.1:{port}, ")
    assert 1 == len(child.stderr.splitlines())
