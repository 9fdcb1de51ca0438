"""The first tool call: all that it needs is loaded by then, so that it holds up nobody."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.servers.otlp import OtlpReceiver

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.environments import Environment

_CALL = """
import json, sys, threading
import agent_otel

def call():
    with agent_otel.execution("run"), agent_otel.tool_call("search", {"a": 1}) as running:
        running.result("x" * 50)

agent_otel.tool_call, agent_otel.execution
before, threads = set(sys.modules), threading.active_count()
call()
call()
print(json.dumps([threads, sorted(set(sys.modules) - before)]))
"""
_CLAIM = {"AGENT_OTEL_CLAIM_CHECK_BYTES": "10", "AGENT_OTEL_CLAIM_CHECK_KEY": "0123456789abcdef0123456789abcdef"}
_CASES = {
    "prometheus": {},
    "off": {"AGENT_OTEL_METRICS": "off"},
    "multiprocess": {"PROMETHEUS_MULTIPROC_DIR": "{folder}"},
    "otel": {"OTEL_METRICS_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_ENDPOINT": "{endpoint}"},
    "both": {"AGENT_OTEL_METRICS": "both", "OTEL_EXPORTER_OTLP_ENDPOINT": "{endpoint}"},
    "console": {"OTEL_TRACES_EXPORTER": "console"},
    "memory": {"AGENT_OTEL_CLAIM_CHECK": "memory:", **_CLAIM},
    "file": {"AGENT_OTEL_CLAIM_CHECK": "file://{folder}", **_CLAIM},
    "redis": {"AGENT_OTEL_CLAIM_CHECK": "redis://127.0.0.1:1/0", **_CLAIM},
    "limits": {"AGENT_OTEL_RESULT_CEILING_BYTES": "10", "AGENT_OTEL_MAX_TOOL_CALLS": "10"},
}


@pytest.mark.parametrize(
    ("name", "case", "protocol"),
    [
        *(("langchain", case, "http/protobuf") for case in _CASES),
        ("langchain", "otel", "grpc"),
        ("oldest", "both", "http/protobuf"),
        ("oldest", "both", "grpc"),
        ("bare-newest", "both", "http/protobuf"),
        ("bare-newest", "both", "grpc"),
    ],
)
def test_the_first_call_imports_nothing(
    environment: Callable[[str], Environment], tmp_path: Path, name: str, case: str, protocol: str
) -> None:
    with OtlpReceiver() as receiver:
        endpoint = receiver.grpc_endpoint if protocol == "grpc" else receiver.http_endpoint
        env = {key: value.format(folder=tmp_path, endpoint=endpoint) for key, value in _CASES[case].items()}
        env |= {"AGENT_OTEL": "1", "OTEL_EXPORTER_OTLP_PROTOCOL": protocol}
        child = environment(name).run(_CALL, env=env, check=True)

    assert [1, []] == json.loads(next(line for line in child.stdout.splitlines() if line.startswith("[1,")))


_IN_A_FRAMEWORK = """
import sys
import agents.tool
awaited = ("prometheus_client", "opentelemetry.sdk.trace", "opentelemetry.metrics", "agent_otel.core.handler")
print(*[name for name in awaited if name in sys.modules])
from opentelemetry import metrics, trace
print(trace._TRACER_PROVIDER, "agent_otel.telemetry.sinks.otel" in sys.modules)
"""


@pytest.mark.parametrize(
    ("exporter", "loaded", "is_pushed"),
    [
        # Neither the client of a registry that the program cannot read, nor the API of a provider that it has not set.
        ({}, "", True),
        ({"AGENT_OTEL_METRICS": "prometheus"}, "prometheus_client ", False),
        ({"AGENT_OTEL_METRICS": "otel"}, "opentelemetry.metrics ", True),
        ({"OTEL_TRACES_EXPORTER": "console"}, "opentelemetry.sdk.trace opentelemetry.metrics ", True),
    ],
)
def test_a_framework_brings_the_modules_and_no_provider(
    environment: Callable[[str], Environment], exporter: dict[str, str], loaded: str, *, is_pushed: bool
) -> None:
    child = environment("openai-agents").run(_IN_A_FRAMEWORK, env={"AGENT_OTEL": "1", **exporter}, check=True)

    assert [f"{loaded}agent_otel.core.handler", f"None {is_pushed}"] == child.stdout.splitlines()


@pytest.mark.parametrize(
    ("statement", "is_loaded"),
    [("from langchain_core.tools import tool", False), ("import langgraph.checkpoint.base", True)],
)
def test_a_durable_runtime_brings_the_analysis_of_payloads(
    environment: Callable[[str], Environment], statement: str, *, is_loaded: bool
) -> None:
    program = f"import sys\n{statement}\nprint('agent_otel.core.payload' in sys.modules)"
    child = environment("langchain").run(program, env={"AGENT_OTEL": "1"}, check=True)

    assert f"{is_loaded}\n" == child.stdout


_LATER = """
import sys
import agent_otel

def call():
    with agent_otel.tool_call("search", {"a": 1}) as running:
        running.result("x" * 50)

call()
print("prometheus_client" in sys.modules)
import prometheus_client

def sizes():
    for line in prometheus_client.generate_latest().decode().splitlines():
        if line.startswith("agent_otel_tool_result_size_bytes_sum"):
            print(line)

sizes()
call()
sizes()
"""


def test_the_registry_has_all_when_the_program_imports_its_client_after_the_first_call(
    environment: Callable[[str], Environment],
) -> None:
    child = environment("bare").run(_LATER, env={"AGENT_OTEL": "1"}, check=True)

    series = 'agent_otel_tool_result_size_bytes_sum{error_type="",gen_ai_tool_name="search"}'
    assert ["False", f"{series} 50.0", f"{series} 100.0"] == child.stdout.splitlines()


_OWN_STORE = """
import agent_otel
from agent_otel.remedies.claim_check.stores.base import MemoryStore

agent_otel.tool_call  # the remedies are built with it, as with a framework

class Own(MemoryStore):
    puts = 0

    def put(self, *more):
        self.puts += 1
        super().put(*more)

own = Own()
agent_otel.remedies.use_store(own)
with agent_otel.execution("run"), agent_otel.tool_call("search", {}) as running:
    print("claim:" in running.result("x" * 500), own.puts)
"""


def test_a_store_of_the_program_comes_in_time(environment: Callable[[str], Environment]) -> None:
    env = {"AGENT_OTEL": "1", "AGENT_OTEL_CLAIM_CHECK": "memory:", **_CLAIM}
    child = environment("bare").run(_OWN_STORE, env=env, check=True)

    assert "True 1\n" == child.stdout
