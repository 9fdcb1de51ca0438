"""The payload door: what is counted, told and looked into, through ``agent_otel.payload`` in a process of its own."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

PROGRAM = """
import base64, json, os, pickle, sys, zlib
sys.path.insert(0, {root!r})
from tests.contract.child import Messages, Telemetry
messages, telemetry = Messages(), Telemetry()
import agent_otel

{body}

from agent_otel._internal import errors
from agent_otel.core import payload as payloads
payloads._analyst.drain()
print(json.dumps({{
    "spans": [span for span in telemetry.spans() if not span["name"].startswith("invoke_workflow")],
    "metrics": telemetry.metrics(), "messages": messages.take(),
    "errors": dict(errors.errors),
}}))
"""

Json = dict[str, Any]


@pytest.fixture
def told(environment: Callable[[str], Environment], request: pytest.FixtureRequest) -> Callable[..., Json]:
    """Return a function from a program to what it emitted."""

    def run(body: str, caps: str = "mine.payload=1000", **env: str) -> Json:
        code = PROGRAM.format(root=str(request.config.rootpath), body=textwrap.dedent(body))
        done = environment("bare").run(code, env={"AGENT_OTEL": "1", "AGENT_OTEL_CAPS": caps, **env}, check=True)
        report: Json = json.loads(done.stdout)
        return report

    return run


def counted(report: Json, name: str) -> dict[str, float]:
    """What a metric counted, by direction or component where it has such a label."""
    found: dict[str, float] = {}
    for metric in report["metrics"]:
        if metric["name"] == name:
            labels = metric["attributes"]
            key = labels.get("direction") or labels.get("component") or labels.get("gen_ai.tool.name") or ""
            found[key] = found.get(key, 0) + (metric["sum"] or 0)
    return {key: value for key, value in found.items() if value}


def test_a_payload_is_held_against_its_cap(told: Callable[..., Json]) -> None:
    report = told(
        """
        for n in (100, 799, 800, 1000, 1001):
            agent_otel.payload(b"x" * n, runtime="mine", workflow="w", activity="a", direction="output")
        """
    )
    assert counted(report, "agent_otel.workflow.payload.size") == {"output": 3700}
    assert counted(report, "agent_otel.workflow.payload.near_cap") == {"output": 2}
    assert counted(report, "agent_otel.workflow.payload.over_cap") == {"output": 1}
    assert counted(report, "agent_otel.workflow.payload.cap") == {"output": 1000}
    # Three are from the warn ratio of 0.5 up, and one more is over the cap.
    spans = sorted(report["spans"], key=lambda span: span["attributes"]["workflow.payload.bytes"])
    assert [span["attributes"]["workflow.payload.bytes"] for span in spans] == [799, 800, 1000, 1001]
    first = spans[0]
    assert first["name"] == "workflow_payload a"
    assert first["attributes"] == {
        "workflow.runtime": "mine",
        "gen_ai.agent.name": "w",
        "gen_ai.workflow.name": "w",
        "workflow.activity": "a",
        "workflow.payload.bytes": 799,
        "workflow.payload.direction": "output",
        "workflow.payload.cap_bytes": 1000,
        "workflow.payload.utilization": 0.799,
        "workflow.payload.cap_source": "configured",
    }


def test_a_runtime_without_a_cap_has_sizes_only(told: Callable[..., Json]) -> None:
    report = told("agent_otel.payload('größe', runtime='other', workflow='w', direction='state')")
    assert counted(report, "agent_otel.workflow.payload.size") == {"state": 7}
    assert counted(report, "agent_otel.workflow.payload.utilization") == {}
    assert report["spans"] == []


def test_few_turns_left_are_told_once_for_an_execution(told: Callable[..., Json]) -> None:
    report = told(
        """
        for run in ("one", "two"):
            with agent_otel.execution(run, workflow="w"):
                for n in (500, 600, 700, 800, 900):
                    agent_otel.payload(b"x" * n, runtime="mine", activity="a", direction="input")
        """
    )
    # A span whose payload is looked into ends a little later than those that are not.
    seen = [(span["attributes"]["workflow.execution.id"], span["attributes"]) for span in report["spans"]]
    seen.sort(key=lambda item: (item[0], item[1]["workflow.payload.bytes"]))
    left = [attributes.get("workflow.payload.turns_to_cap") for _, attributes in seen]
    assert left == [None, None, 3, 2, 1] * 2
    assert counted(report, "agent_otel.workflow.payload.few_turns_left") == {"": 2}
    assert counted(report, "agent_otel.workflow.payload.growth") == {"": 800}
    assert counted(report, "agent_otel.execution.payload.size") == {"": 1800}


def test_a_tool_s_span_says_what_its_execution_carries(told: Callable[..., Json]) -> None:
    report = told(
        """
        with agent_otel.execution("run", workflow="w"):
            agent_otel.payload(b"x" * 400, runtime="mine", activity="a", direction="input")
            with agent_otel.tool_call("search", {"q": 1}) as call:
                call.result("y" * 10)
        """
    )
    (span,) = report["spans"]
    assert span["name"] == "execute_tool search"
    assert span["attributes"]["workflow.payload.bytes"] == 400
    assert span["attributes"]["workflow.payload.utilization"] == 0.4


def test_it_tells_whose_bytes_they_are(told: Callable[..., Json]) -> None:
    # A name in the payload would do; here only the ledger knows which tool was asked.
    report = told(
        """
        with agent_otel.execution("run", workflow="w"):
            for number, name in enumerate(("search", "fetch")):
                with agent_otel.tool_call(name, {"q": number}, call_id=f"call_{number}") as call:
                    call.result("ab"[number] * 300 * (number + 1))
            state = {"messages": [
                {"role": "tool", "tool_call_id": "call_0", "content": "a" * 300},
                {"role": "tool", "tool_call_id": "call_1", "content": "b" * 600},
            ], "raw": [{"id": "call_1", "result": "b" * 600}]}
            text = json.dumps(state)
            agent_otel.payload(text, runtime="mine", activity="a", direction="input")
        """,
        caps="mine.payload=3000",
    )
    by_tool = counted(report, "agent_otel.workflow.payload.by_tool")
    assert 300 <= by_tool["search"] < 320
    assert 1200 <= by_tool["fetch"] < 1240
    attributes = report["spans"][-1]["attributes"]
    assert attributes["workflow.payload.largest_tool"] == "fetch"
    assert sorted(attributes["workflow.payload.duplicate_paths"]) == ["messages[].content", "raw[].result"]
    assert 600 <= attributes["workflow.payload.duplicate_bytes"] <= 602
    # What was produced is 300 + 600 bytes.
    size = attributes["workflow.payload.bytes"]
    assert attributes["workflow.payload.amplification"] == round(size / 900, 3)


@pytest.mark.parametrize(
    "data",
    [
        "pickle.dumps({'messages': ['x' * 900]})",
        "base64.b64encode(os.urandom(700))",
        "zlib.compress(os.urandom(900))",
        "os.urandom(950)",
        "b'\\xff\\xfe' * 450",
    ],
)
def test_what_is_not_json_has_its_size_and_no_breakdown(told: Callable[..., Json], data: str) -> None:
    report = told(
        f"""
        data = {data}
        with agent_otel.execution("run", workflow="w"):
            for n in range(20):
                agent_otel.payload(data, runtime="mine", activity="a", direction="output")
        assert len(data) > 500
        """
    )
    assert len(report["spans"]) == 20
    assert all("workflow.payload.largest_path" not in span["attributes"] for span in report["spans"])
    assert counted(report, "agent_otel.workflow.payload.component") == {}
    assert report["messages"] == []
    assert report["errors"] == {}


@pytest.mark.parametrize(
    "text",
    [
        "'[' * 100_000",
        "'[' * 100_000 + ']' * 100_000",
        "'{' + ','.join(f'\"k{n}\":{n}' for n in range(100_000)) + '}'",
        "'{' + ','.join('\"same\":1' for n in range(100_000)) + '}'",
        "json.dumps({'messages': ['x' * 1_000_000]})[:-100]",
        "b'{\"a\": \"' + b'\\xff' * 1000 + b'\"}'",
        "'\\udc80' * 1000",
    ],
)
def test_hostile_text_is_no_failure(told: Callable[..., Json], text: str) -> None:
    report = told(f"agent_otel.payload({text}, runtime='mine', activity='a', direction='output')")
    assert len(report["spans"]) == 1
    assert report["messages"] == []
    assert report["errors"] == {}


@pytest.mark.parametrize("cap", ["0", "-5", "1e400", "999999999999999999", "many", ""])
def test_an_impossible_cap_is_one_warning_and_the_default(told: Callable[..., Json], cap: str) -> None:
    report = told(
        """
        for n in range(3):
            agent_otel.payload(b"x" * 5, runtime="temporal", activity="a", direction="output")
        """,
        caps=f"temporal.payload={cap}",
    )
    assert counted(report, "agent_otel.workflow.payload.cap") == {"output": 2097152}
    assert len(report["messages"]) == 1
    assert "AGENT_OTEL_CAPS" in report["messages"][0]


def test_an_object_is_measured_as_compact_json(told: Callable[..., Json]) -> None:
    report = told("agent_otel.payload({'a': 'xy', 'n': [1, 2]}, runtime='mine', activity='a', direction='input')")
    assert counted(report, "agent_otel.workflow.payload.size") == {"input": 20}


def test_off_is_off(environment: Callable[[str], Environment]) -> None:
    done = environment("bare").run(
        """
        import sys, agent_otel
        assert agent_otel.payload(b"x", runtime="mine", direction="input") is None
        print([name for name in sys.modules if name.split(".")[0] in ("wrapt", "opentelemetry", "prometheus_client")])
        """,
        check=True,
    )
    assert done.stdout == "[]\n"


def test_retries_of_a_refused_payload_are_no_growth(told: Callable[..., Json]) -> None:
    report = told(
        """
        from agent_otel.core import step_handler
        from agent_otel.core.types import Payload, Step
        step = Step("mine", "agent", "w", "run-1")
        step_handler.payload(step, Payload("state", 100_000))
        step_handler.payload(step, Payload("state", 300_000))
        for _ in range(5):
            step_handler.payload(step, Payload("state", 500_000), refused="too large")
        """
    )
    assert counted(report, "agent_otel.workflow.payload.growth") == {"": 400_000}


def test_a_tool_shows_the_nearest_of_the_last_payloads_and_none_from_before_a_compaction(
    told: Callable[..., Json],
) -> None:
    report = told(
        """
        look = agent_otel.tool(name="look")(lambda: "seen")
        with agent_otel.execution("run", workflow="w"):
            agent_otel.payload("x" * 250_000, runtime="mine", direction="output", activity="fetch")
            for letters in (300_000, 600_000, 900_000, 50_000, 260_000):
                agent_otel.payload("x" * letters, runtime="mine", direction="state")
                look()
        """,
        caps="mine.payload=1000000",
    )
    looks = [span["attributes"] for span in report["spans"] if span["name"] == "execute_tool look"]
    sizes = [look["workflow.payload.bytes"] for look in looks]
    # After the compaction, what the tool wrote before is nearer to its cap than the state.
    assert sizes == [300_000, 600_000, 900_000, 250_000, 260_000]
    assert [look["workflow.payload.utilization"] for look in looks] == [0.3, 0.6, 0.9, 0.25, 0.26]
    assert [look.get("workflow.payload.turns_to_cap") for look in looks] == [None, None, 0, None, None]


@pytest.mark.parametrize("activities", [(None, "step"), ("step", None)])
def test_the_gauge_has_the_smallest_cap_of_a_direction(told: Callable[..., Json], activities: Any) -> None:
    """Of AWS's durable functions a step's result has another cap than a workflow's, 6,291,406 bytes."""
    report = told(
        f"""
        for activity in {activities!r}:
            agent_otel.payload("x", runtime="aws-durable", workflow="w", activity=activity, direction="output")
        """,
        caps="",
    )
    assert counted(report, "agent_otel.workflow.payload.cap") == {"output": 262_144}
