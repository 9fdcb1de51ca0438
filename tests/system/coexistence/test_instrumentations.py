"""Beside another instrumentation of the same framework: one set of our numbers per call, and no span too many."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.environments import ROOT
from tests.patience import communicate
from tests.servers.otlp import OtlpReceiver
from tests.system.coexistence.conftest import BYTES, HASH, OURS, report

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.environments import Environment

# What langchain_program.py calls: sync, sync in async, in a graph; async, in an async graph, three at once; failing.
_CALLS = {"sync_tool": 3, "async_tool": 5, "failing_tool": 1}
_RESULTS = {"sync_tool": 3, "async_tool": 5}
_GENAI = "opentelemetry.instrumentation.genai.langchain"


def _environ(order: str, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """With the switch ours comes first, without it when the program asks."""
    return {**({"AGENT_OTEL": "1"} if order == "after" else {}), **(more or {})}


@pytest.mark.parametrize("order", ["before", "after"])
@pytest.mark.parametrize(
    ("name", "instrumentor"),
    [
        ("peers-openllmetry", "opentelemetry.instrumentation.langchain:LangchainInstrumentor"),
        ("peers-genai", f"{_GENAI}:LangChainInstrumentor"),
        # Its span is never current, and what tools open nests under it nevertheless.
        ("peers-openinference", "openinference.instrumentation.langchain:LangChainInstrumentor"),
    ],
)
def test_langchain(environment: Callable[[str], Environment], name: str, instrumentor: str, order: str) -> None:
    found = report(environment(name), "langchain_program", instrumentor, order, env=_environ(order))

    assert _CALLS == found.numbered(HASH)
    assert _RESULTS == found.numbered(BYTES)
    assert {} == found.own()
    for tool, count in _RESULTS.items():
        assert [(tool, 30)] * count == [
            (parent["attributes"].get("tool.name"), parent["attributes"].get(BYTES))
            for parent in found.parents(f"body of {tool}")
        ]
    # The model reads a failure as well: it has a size.
    for metric in ("agent_otel.tool.args.size", "agent_otel.tool.result.size"):
        assert {(tool, OURS): count for tool, count in _CALLS.items()} == found.counts(metric)
    timed_by = _GENAI if name == "peers-genai" else OURS
    assert {(tool, timed_by): count for tool, count in _CALLS.items()} == found.counts("gen_ai.execute_tool.duration")


@pytest.mark.parametrize(
    ("name", "instrumentor"),
    [
        ("peers-openllmetry", "opentelemetry.instrumentation.langchain:LangchainInstrumentor"),
        ("peers-openinference", "openinference.instrumentation.langchain:LangChainInstrumentor"),
    ],
)
def test_a_remedy_acts_on_a_result_that_is_read_before_its_function_returns(
    environment: Callable[[str], Environment], name: str, instrumentor: str
) -> None:
    """Its span ends before ``BaseTool.run`` returns: the result is measured earlier, and a child span has the cut."""
    module, _, attribute = instrumentor.partition(":")
    program = f"""
        import json, sys
        sys.path.insert(0, {str(ROOT)!r})
        from tests.contract.child import Telemetry
        telemetry = Telemetry()
        from langchain_core.tools import tool
        from {module} import {attribute}

        {attribute}().instrument()

        @tool
        def big(n: int) -> str:
            "Return so many letters."
            return "x" * n

        said = big.invoke({{"n": 5000}})
        print(json.dumps([said, telemetry.spans(), telemetry.metrics()]))
    """
    done = environment(name).run(
        program, env={"AGENT_OTEL": "1", "AGENT_OTEL_RESULT_CEILING_BYTES": "1000"}, check=True
    )

    said, spans, metrics = json.loads(done.stdout)
    assert json.loads(said)["error"] == "result_too_large"
    (call,) = (span["attributes"] for span in spans if HASH in span["attributes"])
    assert 5000 == call[BYTES]
    (cut,) = (span for span in spans if span["name"] == "tool_result_truncated big")
    assert cut["parent"] == next(span["name"] for span in spans if HASH in span["attributes"])
    assert cut["attributes"] == {
        "tool.name": "big",
        BYTES: 5000,
        "tool.result.handed_back_bytes": len(said),
        "tool.result.truncated": True,
        "tool.result.truncation.layer": "remedy",
        "tool.result.truncation.reason": "ceiling",
    }
    counted = [metric for metric in metrics if metric["name"] == "agent_otel.tool.results.truncated" and metric["sum"]]
    assert [("ceiling", 1)] == [(metric["attributes"]["reason"], metric["sum"]) for metric in counted]


@pytest.mark.parametrize("order", ["before", "after"])
def test_langfuse(environment: Callable[[str], Environment], order: str) -> None:
    """Its handler's own spans have the numbers, at Langfuse's end of the wire, too."""
    everywhere = "tests.system.coexistence.langfuse_everywhere:Everywhere"
    with OtlpReceiver() as receiver:
        env = {
            "LANGFUSE_BASE_URL": receiver.http_endpoint,
            "LANGFUSE_OTEL_TRACES_EXPORT_PATH": "v1/traces",
            "LANGFUSE_PUBLIC_KEY": "pk-lf-1",
            "LANGFUSE_SECRET_KEY": "sk-lf-1",
        }
        found = report(environment("langfuse"), "langchain_program", everywhere, order, env=_environ(order, env))

    assert (_CALLS, _RESULTS, {}) == (found.numbered(HASH), found.numbered(BYTES), found.own())
    for tool, count in _RESULTS.items():
        assert [(tool, 30)] * count == [
            (parent["attributes"].get("tool.name"), parent["attributes"].get(BYTES))
            for parent in found.parents(f"body of {tool}")
        ]
    assert {(tool, OURS): count for tool, count in _CALLS.items()} == found.counts("agent_otel.tool.args.size")
    sent = [span for span in receiver.spans if span.attributes.get("langfuse.observation.type") == "tool"]
    assert _CALLS == Counter(span.name for span in sent) == Counter(span.attributes["tool.name"] for span in sent)


@pytest.mark.parametrize(
    ("kind", "carrier"),
    [
        ("fastmcp", "fastmcp"),
        # mcp's client opens its span for each request that a call takes, all of them within ours.
        ("memory", OURS),
        ("stdio", OURS),
    ],
)
def test_mcp_traces_itself(environment: Callable[[str], Environment], kind: str, carrier: str) -> None:
    found = report(environment("mcp-2"), "mcp_program", kind, env={"AGENT_OTEL": "1"})

    assert ({"repeat": 2}, {"repeat": 2}) == (found.numbered(HASH), found.numbered(BYTES))
    assert [carrier] * 2 == [span["scope"] for span in found.spans if HASH in span["attributes"]]
    assert ({"execute_tool repeat": 2} if carrier == OURS else {}) == found.own()
    theirs = "tools/call repeat" if kind == "memory" else "MCP send tools/call repeat"
    assert [carrier] * 2 == [parent["scope"] for parent in found.parents(theirs) if HASH in parent["attributes"]]
    assert {("repeat", OURS): 2} == found.counts("agent_otel.tool.result.size")


_AGENT = """
from langchain_core.tools import tool

@tool
def shout(text: str) -> str:
    "Say it louder."
    return text.upper()

assert "HI" == shout.invoke({"text": "hi"})
"""


def test_a_neighbour_that_raises_at_start_up(environment: Callable[[str], Environment]) -> None:
    """OpenLLMetry's instrumentor of mcp raises on mcp 2, which stops all that ``opentelemetry-instrument`` loads."""
    peers = environment("peers-openllmetry")
    command = (str(peers.program("opentelemetry-instrument")), str(peers.python), "-c", _AGENT)
    with OtlpReceiver() as receiver:
        env = {
            **receiver.environment(),
            "AGENT_OTEL": "1",
            "OTEL_METRICS_EXPORTER": "none",
            "OTEL_LOGS_EXPORTER": "none",
        }
        with peers.start(*command, env=env) as child:
            _, stderr = communicate(child, 100)
        spans = receiver.wait_for_spans(1)

    assert ("Failed to auto initialize OpenTelemetry" in stderr, 0) == (True, child.returncode)
    assert [2] == [span.attributes[BYTES] for span in spans if BYTES in span.attributes]
