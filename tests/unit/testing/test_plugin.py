"""The plugin in pytest runs of its own: fresh state, no cost without the fixture, and messages that name what to do."""

from __future__ import annotations

import importlib.metadata
import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

#: A hand-written loop, and a state that grows by a result of 200,000 bytes in each turn.
AGENT = """
import agent_otel

def call(name, result, **arguments):
    with agent_otel.tool_call(name, arguments) as running:
        return running.result(result)

def carry(*sizes, runtime="mine"):
    for size in sizes:
        agent_otel.payload("x" * size, runtime=runtime, direction="state", workflow="triage")
"""
PLUGIN = ("-p", "no:cacheprovider", "-p", "agent_otel.testing.plugin")
ROW = '{"id": 1, "name": "a"}'


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Return a folder with an agent, where pytest runs in a process of its own."""
    for name in ("AGENT_OTEL", "PYTEST_ADDOPTS"):
        monkeypatch.delenv(name, raising=False)
    # Other plugins of this environment take two seconds to load.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(agent=AGENT)
    return pytester


def output(run: pytest.Pytester, tests: str, *options: str, passed: int = 0, failed: int = 0, errors: int = 0) -> str:
    """Return what a run of these tests prints, after its outcomes are as stated."""
    run.makepyfile(f"from agent import call, carry\n{tests}")
    done = run.runpytest_subprocess(*PLUGIN, *options)
    done.assert_outcomes(passed=passed, failed=failed, errors=errors)
    return done.stdout.str()


def test_pytest_finds_the_plugin() -> None:
    (entry,) = importlib.metadata.entry_points(group="pytest11", name="agent_otel")
    assert entry.value == "agent_otel.testing.plugin"


def test_figures_of_tools_and_fresh_state_in_each_test(run: pytest.Pytester) -> None:
    output(
        run,
        """
import concurrent.futures
import pytest

def test_figures(agent_run):
    call("search", "é" * 10, q="a")
    call("search", "x" * 100, q="b")
    call("fetch", "x" * 7, url="a")
    search = agent_run.tools["search"]
    assert (search.calls, search.bytes, search.max_result_bytes) == (2, 120, 100)
    assert (search.cuts, search.repeats) == ([], 0)
    agent_run.assert_no_cuts()
    agent_run.assert_no_repeats()
    agent_run.assert_within(100)
    agent_run.assert_within("1KiB")
    with pytest.raises(KeyError, match="no call of 'find' was recorded; called: fetch, search"):
        agent_run.tools["find"]

def test_nothing_of_the_test_before(agent_run):
    assert agent_run.tools == {}
    call("search", "x", q="a")
    assert agent_run.tools["search"].repeats == 0

def test_threads(agent_run):
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        pool.submit(call, "search", "x", q="a").result()
    call("search", "x", q="a")
    assert agent_run.tools["search"].repeats == 1

@pytest.fixture
def searched(agent_run):
    call("search", "x", q="a")
    return agent_run

def test_nested_fixtures(searched, agent_run):
    assert agent_run is searched
    assert agent_run.tools["search"].calls == 1

def test_a_recording_inside_a_recording(agent_run):
    from agent_otel import testing
    with testing.record() as inner:
        call("search", "x", q="a")
    call("search", "x", q="a")
    assert inner.tools["search"].calls == 1
    assert agent_run.tools["search"].calls == 2
""",
        passed=5,
    )


def test_nothing_is_loaded_or_measured_without_the_fixture(run: pytest.Pytester) -> None:
    run.makepyfile(
        test_a="""
import sys

def test_nothing_is_loaded():
    assert "agent_otel.testing.plugin" in sys.modules
    loaded = {name.partition(".")[0] for name in sys.modules}
    assert not {"opentelemetry", "prometheus_client", "wrapt"} & loaded
    assert not [name for name in sys.modules if name.startswith(("agent_otel._bootstrap", "agent_otel.core"))]
""",
        test_b="""
from agent import call

def test_one(agent_run):
    call("search", "x")
    assert agent_run.tools["search"].calls == 1

def test_unmeasured():
    import prometheus_client
    from agent_otel.telemetry import setup
    call("search", "x")
    assert setup.resolved is None
    assert "agent_otel" not in prometheus_client.generate_latest().decode()
""",
    )
    run.runpytest_subprocess(*PLUGIN).assert_outcomes(passed=3)


@pytest.mark.shows("001.evaluation")
def test_failures_name_the_tool_the_bytes_the_layer_and_what_to_do(run: pytest.Pytester) -> None:
    said = output(
        run,
        """
from agent_otel import testing

def test_nothing_was_called(agent_run):
    agent_run.assert_no_cuts()

def test_cut(agent_run):
    call("search", '{"rows": [1, 2' + ", 3" * 100)
    agent_run.assert_no_cuts()

def test_budget(agent_run):
    call("search", "x" * 20_000)
    agent_run.assert_within("16KiB")

def test_weakest_layer(agent_run):
    call("search", "x" * 20_000)
    agent_run.assert_within()

def test_repeat(agent_run):
    call("search", "x", q="a")
    call("search", "x", q="a")
    agent_run.assert_no_repeats()

def test_ignored(agent_run):
    call("search", '{"rows": [1, 2' + ", 3" * 100)
    agent_run.assert_paginated_after_cut()

def test_no_model(agent_run):
    call("search", "x")
    agent_run.assert_history_complete()
""",
        failed=7,
    )
    for line in (
        "AssertionError: The test has no tool call, so that nothing is tested:",
        "tool calls: none; model requests: 0; integrations in use: none",
        "search: a result of 314 bytes was cut by the layer 'tool' (cut_json); the tool itself cuts: let it return",
        "search: 20,000 bytes in the largest of 1 results, 16,384 are the budget",
        "search: 1 results above the budget of the layer 'default', the largest has 20,000 bytes",
        "search: 1 of 2 calls repeat an earlier one",
        "The agent did not ask for the rest of a result:",
        "The test has 0 model requests and needs 2:",
    ):
        assert line in said, line
    assert "agent_run.py" not in said  # the trace ends in the test


@pytest.mark.shows("000.single_turn_tests")
def test_turns_to_cap(run: pytest.Pytester) -> None:
    said = output(
        run,
        """
import pytest

def test_too_few_turns(agent_run):
    carry(200_000, 400_000)
    agent_run.assert_turns_to_cap(runtime="temporal", at_least=50)

def test_grows(agent_run):
    carry(200_000, 400_000, 600_000)
    agent_run.assert_turns_to_cap(runtime="temporal", at_least=7)
    agent_run.assert_turns_to_cap(runtime="temporal", at_least=50)

def test_the_history_is_full_before_a_payload_is(agent_run):
    carry(400_000, 400_100, 400_200)
    agent_run.assert_turns_to_cap(runtime="temporal", at_least=62)
    agent_run.assert_turns_to_cap(runtime="temporal", at_least=63)

def test_does_not_grow(agent_run):
    carry(4_000, 4_100, 4_050, 4_000)
    agent_run.assert_turns_to_cap(runtime="temporal", at_least=1_000)

def test_names(agent_run):
    carry(1, 2, 3)
    with pytest.raises(ValueError, match="no cap of 'temporl' is known; set AGENT_OTEL_CAPS=temporl.payload=2MiB"):
        agent_run.assert_turns_to_cap(runtime="temporl", at_least=1)
    with pytest.raises(ValueError, match="the caps of 'dbos' depend on its variant; name one: postgres, sqlite"):
        agent_run.assert_turns_to_cap(runtime="dbos", at_least=1)
    agent_run.assert_turns_to_cap(runtime="dbos", variant="postgres", at_least=1)
""",
        passed=2,
        failed=3,
    )
    for line in (
        "No state was seen in 3 turns:",
        "temporal has room for 7 more turns, 50 are wanted:",
        "mine triage state: 200,000 → 400,000 → 600,000 bytes in the last turns",
        "cap of activity_input: 2,097,152 bytes for one payload",
        "temporal has room for 62 more turns, 63 are wanted:",
        "cap of history: 52,428,800 bytes for all payloads of an execution together",
    ):
        assert line in said, line


def test_contract(run: pytest.Pytester) -> None:
    test = "def test_orders(agent_run):\n    call('orders', '{\"rows\": [%s], \"total\": 1}')\n    "
    test += "agent_run.assert_contract('orders')\n"
    assert "orders has no snapshot:" in output(run, test % ROW, failed=1)
    output(run, test % ROW, "--agent-otel-update", passed=1)
    file: Path = run.path / "agent_otel_contracts" / "orders.json"
    assert {
        "tool": "orders",
        "arguments": None,
        "result": {
            "$": {"always": ["rows", "total"], "sometimes": []},
            "rows[]": {"always": ["id", "name"], "sometimes": []},
        },
    } == json.loads(file.read_text())
    output(run, test % ROW, passed=1)
    said = output(run, test % '{"id": 1, "title": "a"}', failed=1)
    assert "orders is not as its snapshot:" in said
    assert "key 'rows[].name' is missing" in said
    assert "key 'rows[].title' is new" in said
    output(run, test % "", passed=1)  # an empty list shows no row


def test_providers_of_the_program(run: pytest.Pytester) -> None:
    output(
        run,
        """
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

def test_a_program_sets_its_own_providers(agent_run):
    spans, points = InMemorySpanExporter(), InMemoryMetricReader()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    trace.set_tracer_provider(provider)
    metrics.set_meter_provider(MeterProvider([points]))
    call("search", "x" * 5)
    assert [span.name for span in spans.get_finished_spans()] == ["execute_tool search"]
    assert "agent_otel.tool.result.size" in points.get_metrics_data().to_json()
    assert agent_run.tools["search"].bytes == 5
""",
        passed=1,
    )


def test_several_workers(run: pytest.Pytester) -> None:
    each = "def test_{0}(agent_run):\n    call('search', 'x', q='a')\n    assert agent_run.tools['search'].calls == 1\n"
    output(run, "".join(each.format(number) for number in range(4)), "-p", "xdist", "-n", "2", passed=4)


def test_switched_off(run: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_OTEL", "0")
    said = output(run, "def test_one(agent_run):\n    pass", errors=1)
    assert "RuntimeError: AGENT_OTEL switches agent_otel off: unset it for tests that use agent_run" in said
