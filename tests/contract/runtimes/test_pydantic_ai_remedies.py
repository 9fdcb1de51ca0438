"""Remedies on agents of Pydantic AI that Temporal carries: their tools and requests to the model run in activities."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from agent_otel.testing.servers.openai import Json, OpenAIServer, Reply, ToolCall, call_once
from tests.system.engines import starting, temporal

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from tests.environments import Environment

HIDDEN = "not for the model"
POLICY = """
[[rules]]
tools = ["search", "dig", "fetch"]
inject = { token = { env = "TOKEN" } }

[[rules]]
tools = "ask_again"
"""
PAGE = 16 * 1024
LIMIT = {
    "error": "limit_reached",
    "limit": "tool_calls",
    "maximum": 3,
    "message": "This call was not run. Answer now with what you have; do not call any more tools.",
}


class Ran(NamedTuple):
    """What came of a run: the program's report, and the requests and results on the wire."""

    spans: dict[str, Json]
    metrics: list[Json]
    seen: dict[str, list[str]]
    wire: dict[str, str]
    requests: list[Json]
    text: str

    def sum(self, name: str, **labels: str) -> float:
        """Return the sum of a metric's points with these labels."""
        found = (metric for metric in self.metrics if metric["name"] == name)
        return float(sum(one["sum"] for one in found if labels.items() <= one["attributes"].items()))


def _run(
    environment: Callable[[str], Environment], request: pytest.FixtureRequest, decide: Any, **variables: str
) -> Ran:
    made = environment("pydantic-ai-temporal")
    with OpenAIServer(decide) as model, starting.or_skip(temporal.server()) as server:
        child = made.run(
            "from tests.contract.runtimes.programs.pydantic_ai_temporal import main; main()",
            server.address,
            HIDDEN,
            env={"AGENT_OTEL": "1", "MODEL_URL": model.base_url, "STREAMED": "1", **variables},
            cwd=request.config.rootpath,
            timeout=240,
            check=True,
        )
        requests, wire = model.requests, model.tool_results()
    said, _, case, _, errors, seen = json.loads(child.stdout.splitlines()[-1])
    assert ("done", {}) == (said, errors)
    spans = [span["attributes"] for span in case["spans"] if "tool.args_hash" in span["attributes"]]
    by_call = {span["gen_ai.tool.call.id"]: span for span in spans}
    assert len(by_call) == len(spans)  # each call once
    return Ran(by_call, case["metrics"], seen, wire, requests, child.stdout)


def test_the_ceiling_and_the_policy_act_in_activities(
    environment: Callable[[str], Environment], request: pytest.FixtureRequest, tmp_path: Any
) -> None:
    """Tools of the agent, of a toolset that a run builds and of an MCP server; the message of a tool that asks again.

    A tool whose activity is switched off runs in workflow code: there no remedy acts, and one warning says so. The
    ceiling acts on its result in the activity of the request.
    """
    (tmp_path / "policy.toml").write_text(POLICY)
    calls = {
        "call_1": ("search", 50_000),
        "call_2": ("dig", 2_001),
        "call_3": ("fetch", 300),
        "call_4": ("ask_again", 3_000),
        "call_5": ("flaky", 10),
        "call_6": ("inline", 4_000),
    }
    decide = call_once(tuple(ToolCall(key, name, {"n": n}) for key, (name, n) in calls.items()))
    variables = {
        "AGENT_OTEL_RESULT_CEILING_BYTES": "2000",
        "AGENT_OTEL_TOOL_POLICY": str(tmp_path / "policy.toml"),
        "TOKEN": HIDDEN,
    }

    ran = _run(environment, request, decide, **variables)

    for key, size in (("call_1", 50_000), ("call_2", 2_001)):
        answer = json.loads(ran.wire[key])
        assert ("result_too_large", size, 2_000) == (answer["error"], answer["size_bytes"], answer["limit_bytes"])
        assert size == ran.spans[key]["tool.result.bytes"]
        assert len(ran.wire[key]) == ran.spans[key]["tool.result.handed_back_bytes"]
        assert len(ran.wire[key]) == ran.sum("agent_otel.tool.result.delivered", **{"gen_ai.tool.name": calls[key][0]})
    assert "z" * 300 == ran.wire["call_3"]
    assert 3_000 == json.loads(json.loads(ran.wire["call_4"])["error"])["size_bytes"]
    assert "pydantic_ai.exceptions.ModelRetry" == ran.spans["call_4"]["error.type"]
    assert ("tool_denied", "flaky") == tuple(json.loads(ran.wire["call_5"])[key] for key in ("error", "tool"))
    assert "tool_denied" == ran.spans["call_5"]["error.type"]
    assert 3 == ran.sum("agent_otel.tool.results.truncated", layer="remedy", reason="ceiling")

    assert [HIDDEN] * 3 == ran.seen["tokens"]
    assert [] == ran.seen["leaked"]
    assert HIDDEN not in json.dumps(ran.requests)
    assert 3 == ran.text.count(HIDDEN)  # the tokens alone

    assert "call_6" not in ran.spans
    answer = json.loads(ran.wire["call_6"])
    assert ("result_too_large", 4_000, 2_000) == (answer["error"], answer["size_bytes"], answer["limit_bytes"])
    (said,) = (text for text in ran.seen["messages"] if "in the code of a durable workflow" in text)
    assert said.startswith("AGENT_OTEL_RESULT_CEILING_BYTES, AGENT_OTEL_TOOL_POLICY: without effect on tool calls")


def _one_at_a_time(request: Json) -> Reply:
    """Return the reply of a model that searches, reads on in what was stored, and calls other tools."""
    messages = request["messages"]
    made = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
    if request.get("tool_choice") == "none":
        return "done"
    if made == ["call_1"]:
        reference = re.findall(r'ref=\\*"(claim:[^"\\]+)', json.dumps(messages))[0]
        return [ToolCall("read_1", "get_tool_result", {"ref": reference})]
    number = 1 + sum(name.startswith("call_") for name in made)
    name, n = {1: ("search", 50_000), 2: ("fetch", 3_000), 3: ("dig", 300)}.get(number, ("search", 10))
    return [ToolCall(f"call_{number}", name, {"n": n})]


def test_the_claim_check_and_a_limit_act_on_a_run_that_is_streamed(
    environment: Callable[[str], Environment], request: pytest.FixtureRequest, tmp_path: Any
) -> None:
    """The model reads on in the activity of its request; the fourth call of the run is not made."""
    variables = {
        "AGENT_OTEL_CLAIM_CHECK": f"file://{tmp_path}/results",
        "AGENT_OTEL_CLAIM_CHECK_KEY": "the secret of this test",
        "AGENT_OTEL_CLAIM_CHECK_BYTES": "2000",
        "AGENT_OTEL_MAX_TOOL_CALLS": "3",
    }

    ran = _run(environment, request, _one_at_a_time, **variables)

    whole = {"call_1": ("search", 50_000), "call_2": ("fetch", 3_000), "call_3": ("dig", 300)}
    for key, (name, size) in whole.items():
        stored = size > 2_000
        shown = min(size, 2_000)
        assert shown == len(ran.wire[key])
        assert size == ran.spans[key]["tool.result.bytes"]
        assert ("claim_check" if stored else None) == ran.spans[key].get("tool.result.truncation.reason")
        assert stored == ("tool.result.ref" in ran.spans[key])
        assert shown == ran.sum("agent_otel.tool.result.delivered", **{"gen_ai.tool.name": name})
    assert 53_000 == ran.sum("agent_otel.claim_check.io", operation="put")
    page = json.loads(ran.wire["read_1"])
    assert ("x" * PAGE, 50_000, 0, PAGE) == (page["content"], page["size_bytes"], page["start"], page["end"])
    assert len(ran.wire["read_1"]) == ran.spans["read_1"]["tool.result.bytes"]
    # The page is in the request of that activity alone, and the run does not get it.
    assert [2] == [number for number, sent in enumerate(ran.requests) if "read_1" in json.dumps(sent)]
    assert LIMIT == json.loads(ran.wire["call_4"])
    assert "limit_reached" == ran.spans["call_4"]["error.type"]
    assert 1 == ran.sum("agent_otel.limits.hit", limit="tool_calls")
    # One for each of the four calls, one for the page, and the answer.
    assert {6} == {one["count"] for one in ran.metrics if one["name"] == "agent_otel.model.request.size"}
    assert 4 == ran.seen["events"].count("FunctionToolCallEvent") == ran.seen["events"].count("FunctionToolResultEvent")
    assert ["", "", ""] == ran.seen["tokens"]
