"""Where metrics go: the program's own provider, the exporters it names, its Prometheus registry, or nowhere."""

from __future__ import annotations

import json
import re
import textwrap
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.telemetry import wire
from tests.unit.telemetry.conftest import CALL
from tests.unit.telemetry.wire import key

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.environments import Environment
    from tests.servers.otlp import OtlpReceiver

#: A provider of the program's own, and what it has collected as metric name -> sum of values or counts.
PROVIDER = """
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

reader = InMemoryMetricReader()

def provide():
    metrics.set_meter_provider(MeterProvider([reader]))

def collected():
    if metrics.get_meter_provider().__class__ is not MeterProvider:
        return {}
    data = reader.get_metrics_data()
    found = [m for r in (data.resource_metrics if data else ()) for s in r.scope_metrics for m in s.metrics]
    return {m.name: sum(getattr(p, "count", getattr(p, "value", 0)) for p in m.data.data_points) for m in found}
"""
_REGISTRY = """
def exposed():
    import prometheus_client  # in a module, it would be a sign that the program serves the registry
    return prometheus_client.generate_latest().decode()
"""
_SIZE = "agent_otel.tool.result.size"
_COUNT = key("agent_otel_tool_result_size_bytes_count", gen_ai_tool_name="search")


def _run(environment: Environment, program: str, env: dict[str, str]) -> Any:
    """Run a program that prints one JSON value and says nothing else."""
    child = environment.run(CALL + PROVIDER + _REGISTRY + textwrap.dedent(program), env={"AGENT_OTEL": "1", **env})
    assert ("", 0) == (child.stderr, child.returncode)
    return json.loads(child.stdout)


_ONE_CALL = """
import json
if {provide}:
    provide()
call("search", "x")
print(json.dumps([collected(), exposed()]))
"""


@pytest.mark.parametrize(
    ("setting", "provide", "in_otel", "in_prometheus"),
    [
        ("auto", True, True, False),
        ("auto", False, False, True),
        ("both", True, True, True),
        ("otel", True, True, False),
        ("prometheus", True, False, True),
        ("off", True, False, False),
    ],
)
def test_the_programs_own_provider_and_registry(
    both_ends: Environment, setting: str, *, provide: bool, in_otel: bool, in_prometheus: bool
) -> None:
    program = _ONE_CALL.format(provide=provide)
    collected, exposed = _run(both_ends, program, {"AGENT_OTEL_METRICS": setting})

    assert (1 if in_otel else None) == collected.get(_SIZE)
    assert (1 if in_prometheus else None) == wire.scraped(exposed).get(_COUNT)
    assert in_prometheus == ("agent_otel" in exposed)


@pytest.mark.parametrize("variables", ["exporter", "endpoint", "metrics endpoint"])
def test_exporters_named_by_the_environment(
    environment: Callable[[str], Environment], receiver: OtlpReceiver, variables: str
) -> None:
    endpoint = receiver.http_endpoint
    env = {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"} | {
        "exporter": {"OTEL_METRICS_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint},
        "endpoint": {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint},
        "metrics endpoint": {"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": f"{endpoint}/v1/metrics"},
    }[variables]
    exposed = _run(environment("bare"), 'import json; call("search", "x"); print(json.dumps(exposed()))', env)

    assert [1] == [point.count for point in receiver.latest(_SIZE)]
    assert "agent_otel" not in exposed
    assert (0 if variables == "metrics endpoint" else 1) == len(receiver.spans), "a common endpoint is for spans too"


_SERVED = {
    "server": "import prometheus_client; prometheus_client.start_http_server(0, '127.0.0.1')",
    "asgi": "import prometheus_client; served = [prometheus_client.make_asgi_app()]",
    "wsgi": "from prometheus_client import make_wsgi_app as make; served = {'/metrics': make()}",
    "handler": "from prometheus_client import generate_latest",
    "function": "import prometheus_client\ndef metrics(_): return prometheus_client.generate_latest()",
    "method": "import prometheus_client\nclass View:\n    def get(self): return prometheus_client.generate_latest()",
    "inner function": (
        "import prometheus_client\ndef make(app):\n    def metrics(): return prometheus_client.generate_latest()"
    ),
    "encoder": "from prometheus_client.exposition import choose_encoder",
    # Nothing of ours would be in it.
    "a registry of its own": "import prometheus_client as p; served = p.make_asgi_app(p.CollectorRegistry())",
}
_SAYS = """
import json, logging, sys
logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(message)s")
call("search", "x")
call("search", "x")
print(json.dumps(exposed()))
"""
_KEPT = "Metrics stay in prometheus_client's registry, because {}. OTEL_METRICS_EXPORTER=otlp pushes them instead, "
_PUSHED = "Metrics are pushed by the exporter that the OTEL_* variables name."


def _says(environment: Environment, program: str, env: dict[str, str]) -> tuple[str, Any]:
    """Return what the program logs, and what its registry exposes."""
    child = environment.run(CALL + program + _REGISTRY + _SAYS, env={"AGENT_OTEL": "1", **env}, check=True)
    *said, exposed = child.stdout.splitlines()
    assert "" == child.stderr
    (line,) = (line for line in said if line.startswith("agent_otel "))
    return "Metrics " + line.partition(" Metrics ")[2], wire.scraped(json.loads(exposed))


@pytest.mark.parametrize("served", _SERVED)
def test_a_registry_that_is_served_keeps_the_metrics_from_an_endpoint(
    environment: Callable[[str], Environment], receiver: OtlpReceiver, served: str
) -> None:
    """The endpoint is for traces then; metrics would vanish from ``/metrics``, or be there and in the collector."""
    env = {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf", "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.http_endpoint}
    said, exposed = _says(environment("bare"), _SERVED[served] + "\n", env)

    kept = "own" not in served
    assert said == (_KEPT.format("the program exposes it") + "AGENT_OTEL_METRICS=both does both." if kept else _PUSHED)
    assert (2 if kept else None) == exposed.get(_COUNT)
    assert ([] if kept else [2]) == [point.count for point in receiver.latest(_SIZE)]
    assert 2 == len(receiver.spans)


def test_an_exporter_of_traces_is_none_of_metrics(
    environment: Callable[[str], Environment], receiver: OtlpReceiver
) -> None:
    said, exposed = _says(environment("bare"), "", receiver.environment())

    assert said.startswith(_KEPT.format("only OTEL_TRACES_EXPORTER names an exporter"))
    assert 2 == exposed[_COUNT]
    assert ([], 2) == (receiver.points, len(receiver.spans))


def test_an_exporter_of_metrics_that_is_named_is_used(
    environment: Callable[[str], Environment], receiver: OtlpReceiver
) -> None:
    env = {**receiver.environment(), "OTEL_METRICS_EXPORTER": "otlp"}
    said, exposed = _says(environment("bare"), _SERVED["asgi"] + "\n", env)

    assert _PUSHED == said
    assert _COUNT not in exposed
    assert [2] == [point.count for point in receiver.latest(_SIZE)]


def test_none_is_no_exporter(environment: Callable[[str], Environment], receiver: OtlpReceiver) -> None:
    env = {**receiver.environment(), "OTEL_METRICS_EXPORTER": "none"}
    exposed = _run(environment("bare"), 'import json; call("search", "x"); print(json.dumps(exposed()))', env)

    assert 1 == wire.scraped(exposed)[_COUNT]
    assert ([], 1) == (receiver.points, len(receiver.spans))


def test_the_console(environment: Callable[[str], Environment]) -> None:
    env = {"AGENT_OTEL": "1", "OTEL_METRICS_EXPORTER": "console", "OTEL_TRACES_EXPORTER": "console"}
    child = environment("bare").run(CALL + 'call("search", "x")', env=env, check=True)

    assert 1 == child.stdout.count('"name": "execute_tool search"')
    assert 1 == child.stdout.count(f'"name": "{_SIZE}"')


def test_a_provider_that_is_set_late(both_ends: Environment) -> None:
    """With ``otel`` the sink waits for the program's provider; what is told once, such as versions, is not lost."""
    program = """
    import json, logging
    logging.getLogger("agent_otel").setLevel(logging.ERROR)  # one warning, that there is none yet
    call("search", "x")
    provide()
    call("search", "x")
    first, second = collected(), collected()
    print(json.dumps([first, second]))
    """
    first, second = _run(both_ends, program, {"AGENT_OTEL_METRICS": "otel"})

    assert 1 == first[_SIZE]
    assert (1, 1) == (first["agent_otel.build_info"], second["agent_otel.build_info"])


def test_alerting_counters_begin_at_zero(environment: Callable[[str], Environment]) -> None:
    expected = {
        key("agent_otel_tool_results_large_total", gen_ai_tool_name="search", threshold="warn"),
        *(key("agent_otel_tool_repeats_total", gen_ai_tool_name="search", by=by) for by in ("arguments", "result")),
        key("agent_otel_tool_results_suspected_total", gen_ai_tool_name="search"),
        key("agent_otel_tool_results_cleared_total", gen_ai_tool_name="search"),
        *(
            key("agent_otel_tool_results_truncated_total", gen_ai_tool_name="search", layer=layer, reason=reason)
            for layer, reason in (
                ("tool", "marker"),
                ("tool", "cut_json"),
                ("tool", "offloaded"),
                ("framework", "marker"),
                ("framework", "offloaded"),
                ("framework", "shrunk"),
            )
        ),
    }
    exposed = _run(environment("bare"), 'import json; call("search", "x"); print(json.dumps(exposed()))', {})

    counters = {series: value for series, value in wire.scraped(exposed).items() if series in expected}
    assert dict.fromkeys(expected, 0) == counters


def test_the_sdk_disabled(environment: Callable[[str], Environment], receiver: OtlpReceiver) -> None:
    """``OTEL_SDK_DISABLED`` is about OpenTelemetry: the program's Prometheus registry is not."""
    env = {**receiver.environment(), "OTEL_METRICS_EXPORTER": "otlp", "OTEL_SDK_DISABLED": "true"}
    program = """
    import json, sys
    call("search", "x")
    print(json.dumps([exposed(), "opentelemetry.exporter.otlp" in sys.modules]))
    """
    exposed, exporter_loaded = _run(environment("bare"), program, env)

    assert 1 == wire.scraped(exposed)[_COUNT]
    assert ([], [], False) == (receiver.spans, receiver.points, exporter_loaded)


def test_multiprocess_mode_sums_processes(both_ends: Environment, tmp_path: Path, free_port: int) -> None:
    env = {"AGENT_OTEL": "1", "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    before, first = time.time(), 0.0
    for result in ("x", "x" * 20_000):
        both_ends.run(CALL + f'call("search", {result!r})', env=env, check=True)
        first = first or time.time()
    program = """
    import json
    import urllib.request
    from prometheus_client import CollectorRegistry, generate_latest, multiprocess
    call("search", "xx")
    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry)
    served = urllib.request.urlopen("http://127.0.0.1:%d/metrics" % PORT).read().decode()
    print(json.dumps([generate_latest(registry).decode(), served]))
    """.replace("PORT", str(free_port))
    summed, served = _run(both_ends, program, {**env, "AGENT_OTEL_PROMETHEUS_PORT": str(free_port)})

    for exposition in map(wire.scraped, (summed, served)):
        assert 3 == exposition[_COUNT]
        assert 20_003 == exposition[key("agent_otel_tool_result_size_bytes_sum", gen_ai_tool_name="search")]
        assert 1 == exposition[key("agent_otel_tool_results_large_total", gen_ai_tool_name="search", threshold="warn")]
        assert [1.0] == [value for (name, _), value in exposition.items() if name == "agent_otel_build_info"]
        (began,) = (value for (name, _), value in exposition.items() if name == "agent_otel_process_start_time_seconds")
        assert before <= began <= first  # the counters' first process, which has ended


_STARTS = """
import json, os, time
from prometheus_client import CollectorRegistry, Counter, generate_latest, multiprocess

def summed():
    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry)
    return generate_latest(registry).decode()

def in_a_child(work):
    if not os.fork():
        work()
        os._exit(0)
    assert os.wait()[1] == 0

own = Counter("own", "Of the program.")
call("search", "x")
seen = [summed()]
in_a_child(own.inc)
in_a_child(lambda: call("search", "x"))
print(json.dumps([*seen, summed()]))
"""


@pytest.mark.parametrize("labels", ["", "team=search,tenant"])
def test_forks_and_later_processes_leave_the_start_time_in_multiprocess_mode(
    both_ends: Environment, tmp_path: Path, labels: str
) -> None:
    """The client begins the gauges of a forked child at 0 as soon as it writes any metric, and 0 is the smallest."""
    before = time.time()
    env = {"AGENT_OTEL": "1", "PROMETHEUS_MULTIPROC_DIR": str(tmp_path), "AGENT_OTEL_LABELS": labels}
    expositions = [wire.scraped(text) for _ in range(2) for text in _run(both_ends, _STARTS, env)]
    starts, calls = (
        [value for series in expositions for (metric, _), value in series.items() if metric == name]
        for name in ("agent_otel_process_start_time_seconds", _COUNT[0])
    )
    assert (starts[:1] * 4, [1, 2, 3, 4]) == (starts, calls)
    assert before <= starts[0] <= time.time()


@pytest.mark.parametrize(
    ("program", "env", "line"),
    [
        (
            "",
            {},
            (
                "measures calls that the program hands to it. Spans are exported once the program sets a "
                "TracerProvider. Metrics are in prometheus_client's registry: no provider and no exporter is there for "
                "them."
            ),
        ),
        (
            (
                "from opentelemetry import trace\nfrom opentelemetry.sdk.trace import TracerProvider\n"
                "trace.set_tracer_provider(TracerProvider())\n"
            ),
            {"AGENT_OTEL_METRICS": "prometheus", "AGENT_OTEL_PROMETHEUS_PORT": "PORT"},
            (
                "measures calls that the program hands to it. Spans go to the program's own TracerProvider. Metrics "
                "are in prometheus_client's registry. /metrics is on port PORT."
            ),
        ),
        (
            "import openai\n",
            {"AGENT_OTEL_METRICS": "off", "AGENT_OTEL_SPANS": "off"},
            "measures openai VERSION. Spans are off. Metrics are off.",
        ),
    ],
)
def test_the_first_use_is_one_line(
    environment: Callable[[str], Environment], free_port: int, program: str, env: dict[str, str], line: str
) -> None:
    name = "langchain" if "openai" in program else "bare"
    env = {variable: value.replace("PORT", str(free_port)) for variable, value in env.items()}
    child = environment(name).run(CALL + program + _REGISTRY + _SAYS, env={"AGENT_OTEL": "1", **env}, check=True)

    ours = [said for said in child.stdout.splitlines() if said.startswith("agent_otel ")]
    version = re.sub(r"openai \d+\.\d+\.\d+", "openai VERSION", ours[0])
    assert [f"agent_otel 0.1.0 {line.replace('PORT', str(free_port))}"] == [version, *ours[1:]]


_READ = """
import json
import agent_otel
import prometheus_client
from opentelemetry import metrics
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider

metrics.set_meter_provider(MeterProvider([PrometheusMetricReader()]))
call("search", "x")
print(json.dumps(prometheus_client.generate_latest().decode()))
"""


@pytest.mark.parametrize("env", [{"AGENT_OTEL_METRICS": "both"}, {"AGENT_OTEL_PROMETHEUS_PORT": "PORT"}])
def test_a_registry_that_opentelemetry_fills_has_each_metric_once(
    environment: Callable[[str], Environment], free_port: int, env: dict[str, str]
) -> None:
    env = {name: value.replace("PORT", str(free_port)) for name, value in env.items()}
    exposed = _run(environment("servers"), _READ, {"AGENT_OTEL": "1", **env})

    series = [(name, value) for (name, _), value in wire.scraped(exposed).items() if name == _COUNT[0]]
    assert [(_COUNT[0], 1)] == series
