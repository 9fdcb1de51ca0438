"""Children of all kinds: what they measure arrives, once, however they end."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.patience import wait
from tests.servers.otlp import OtlpReceiver

if TYPE_CHECKING:
    from collections.abc import Callable

    from examples.local_servers.otlp import Span
    from tests.environments import Environment

_PROGRAM = Path(__file__).parent / "children_program.py"
_FORKS = Path(__file__).parent / "forks_program.py"
_KINDS = {"Process": 1, "Pool": 1, "ProcessPoolExecutor": 1}
#: So long that nothing is sent but at an end.
_LONG = {"OTEL_BSP_SCHEDULE_DELAY": "60000"}


def _spans(receiver: OtlpReceiver) -> Counter[str]:
    return Counter(span.attributes["tool.name"] for span in _calls(receiver))


def _calls(receiver: OtlpReceiver) -> list[Span]:
    """Return the spans of calls, without those around executions."""
    return [span for span in receiver.spans if "tool.name" in span.attributes]


@pytest.mark.parametrize("first", [(), ("first",)], ids=["children only", "parent first"])
@pytest.mark.parametrize(
    ("name", "method", "protocol"),
    [
        ("bare", "fork", "http/protobuf"),
        ("bare", "fork", "grpc"),
        ("bare", "spawn", "http/protobuf"),
        ("bare", "os.fork", "http/protobuf"),
        ("bare", "os.fork", "grpc"),
        ("servers-newest", "fork", "http/protobuf"),
        ("servers-newest", "fork", "grpc"),
        ("servers-newest", "forkserver", "http/protobuf"),
        ("servers-newest", "os.fork", "http/protobuf"),
    ],
)
def test_children(
    environment: Callable[[str], Environment], name: str, method: str, protocol: str, first: tuple[str, ...]
) -> None:
    with OtlpReceiver() as receiver:
        env = {"AGENT_OTEL": "1", **receiver.environment(protocol), **_LONG}
        # A fork beside threads is worth a warning from Python 3.12 on; before the first use there are no threads.
        options = () if first else ("-W", "error")
        child = environment(name).run(_PROGRAM, method, *first, env=env, options=options, check=True)

    expected = Counter({"os.fork": 1} if method == "os.fork" else _KINDS) + Counter({"parent": 1} if first else {})
    assert expected == _spans(receiver)
    assert all(span.attributes["tool.result.bytes"] == 30 for span in _calls(receiver))
    if not first:
        assert "" == child.stderr


_OTLP = {"OTEL_METRICS_EXPORTER": "otlp"}
_SINKS = {
    "prometheus": {"AGENT_OTEL_METRICS": "prometheus"},
    "otel": {"AGENT_OTEL_METRICS": "otel"},
    "both": {"AGENT_OTEL_METRICS": "both"},
    "off": {"AGENT_OTEL_METRICS": "off"},
    "multiprocess": {"AGENT_OTEL_METRICS": "prometheus", "PROMETHEUS_MULTIPROC_DIR": "{folder}"},
}


#: What one sink locks is locked with both as well.
_SINGLE = [pytest.param(sink, marks=pytest.mark.weekly) for sink in ("prometheus", "otel")]


@pytest.mark.timeout(700)
@pytest.mark.parametrize(("when", "forks"), [("later", "200"), ("first", "30")])
@pytest.mark.parametrize("sink", ["both", "off", "multiprocess", *_SINGLE])
def test_forks_amid_calls_do_not_hang(
    environment: Callable[[str], Environment], tmp_path: Path, sink: str, when: str, forks: str
) -> None:
    """A lock that another thread of the parent holds when it forks is never free in the child, unless renewed."""
    with OtlpReceiver() as receiver:
        env = {variable: value.format(folder=tmp_path) for variable, value in _SINKS[sink].items()}
        env = {"AGENT_OTEL": "1", **receiver.environment(), **_OTLP, **env}
        child = environment("bare").run(_FORKS, forks, when, env=env, check=True, timeout=600)

    assert "0\n" == child.stdout
    assert 1 == _spans(receiver)["last child"]
    if sink in {"otel", "both"}:
        recorded = [point for point in receiver.points if "last child" == point.attributes.get("gen_ai.tool.name")]
        assert {1} == {point.count for point in recorded if point.name == "gen_ai.execute_tool.duration"}


_CLAIM = {
    "AGENT_OTEL_CLAIM_CHECK": "memory:",
    "AGENT_OTEL_CLAIM_CHECK_BYTES": "10",
    "AGENT_OTEL_CLAIM_CHECK_KEY": "0123456789abcdef0123456789abcdef",
}


def test_forks_amid_the_first_call_with_a_claim_check(environment: Callable[[str], Environment]) -> None:
    child = environment("bare").run(_FORKS, "30", "first", env={"AGENT_OTEL": "1", **_CLAIM}, check=True, timeout=100)

    assert "0\n" == child.stdout


_POOL = """
import threading, time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
import agent_otel

def call(name):
    with agent_otel.execution("run"), agent_otel.tool_call(name, {}) as running:
        return running.result("x")

def work():
    while not stop:
        call("parent")
        time.sleep(0.001)

stop = []
threads = [threading.Thread(target=work, daemon=True) for _ in range(4)]
for thread in threads:
    thread.start()
with ProcessPoolExecutor(4, mp_context=get_context("fork")) as pool:
    print(*pool.map(call, ["child"] * 8, timeout=60))
stop.append(True)
"""


@pytest.mark.parametrize("more", [{}, _CLAIM], ids=["plain", "claim check"])
def test_a_pool_beside_threads_that_call_first(environment: Callable[[str], Environment], more: dict[str, str]) -> None:
    with OtlpReceiver() as receiver:
        env = {"AGENT_OTEL": "1", **receiver.environment(), **_OTLP, **more}
        child = environment("bare").run(_POOL, env=env, check=True, timeout=100)

    assert " ".join("x" * 8) == child.stdout.strip()
    assert 8 == _spans(receiver)["child"]


_ENDS = """
import os, signal, sys, time
import agent_otel

with agent_otel.tool_call("search", {}) as running:
    running.result("x")
print("called", flush=True)
end = sys.argv[1]
if end == "raise":
    raise KeyError("no")
if end == "exit":
    sys.exit(3)
if end == "_exit":
    os._exit(4)
time.sleep(60)
"""


@pytest.mark.parametrize(
    ("end", "option", "delay", "status", "delivered"),
    [
        ("raise", "0", "60000", 1, 1),
        ("exit", "0", "60000", 3, 1),
        ("_exit", "0", "60000", 4, 0),
        ("sigterm", "1", "60000", -15, 1),
        ("sigterm", "0", "60000", -15, 0),
        ("sigterm", "0", "", -15, 1),
    ],
)
def test_ends(  # noqa: PLR0913, PLR0917 - the columns of a table
    environment: Callable[[str], Environment], end: str, option: str, delay: str, status: int, delivered: int
) -> None:
    """By default SIGTERM loses what is younger than the batch delay, which is a second unless set."""
    bare = environment("bare")
    with OtlpReceiver() as receiver:
        env = {"AGENT_OTEL": "1", "AGENT_OTEL_FLUSH_ON_SIGTERM": option, **receiver.environment()}
        env |= {"OTEL_BSP_SCHEDULE_DELAY": delay} if delay else {}
        with bare.start(str(bare.python), "-c", _ENDS, end, env=env) as child:
            assert child.stdout is not None
            assert "called\n" == child.stdout.readline()
            if end == "sigterm":
                if not delay:
                    receiver.wait_for_spans(1)
                child.terminate()
            assert status == wait(child, 30)

    assert delivered == len(receiver.spans)


_DURING_IMPORT = """
import os, signal, sys, time
sys.modules["agent_otel.telemetry.setup"] = type(sys)("half imported")
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(30)
"""


def test_sigterm_before_there_is_anything_to_flush(environment: Callable[[str], Environment]) -> None:
    env = {"AGENT_OTEL": "1", "AGENT_OTEL_FLUSH_ON_SIGTERM": "1"}
    for program in (_DURING_IMPORT, _DURING_IMPORT.replace('sys.modules["agent_otel.telemetry.setup"]', "_")):
        child = environment("bare").run(program, env=env)
        assert (-15, "") == (child.returncode, child.stderr)


def test_sigterm_and_a_hanging_exporter(environment: Callable[[str], Environment]) -> None:
    bare = environment("bare")
    with OtlpReceiver(hang=True) as receiver:
        env = {"AGENT_OTEL": "1", "AGENT_OTEL_FLUSH_ON_SIGTERM": "1", **receiver.environment()}
        with bare.start(str(bare.python), "-c", _ENDS, "sigterm", env=env) as child:
            assert child.stdout is not None
            assert "called\n" == child.stdout.readline()
            child.terminate()
            assert -15 == wait(child, 12)
