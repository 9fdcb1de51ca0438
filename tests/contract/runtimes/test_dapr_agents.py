"""Dapr Agents: a real agent with a scripted model, the SDK's own worker and stand-ins for daprd.

Its tool calls, its activities and its state entry, which no one activity's payload shows.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel.remedies.history.request_rewriter import NOTE
from tests import interpreters
from tests.contract.runtimes.steps import produce
from tests.rows import each_row

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.environments import Environment

Json = dict[str, Any]

WORKFLOW = "dapr.agents.clerk.workflow"
ACTIVITY = "dapr.agents.clerk."
integrations = {
    "dapr": ["dapr.ext.workflow._durabletask.worker:_ActivityExecutor.execute"],
    "dapr-agents": [
        "dapr_agents.agents.durable:DurableAgent.run_tool",
        "dapr_agents.storage.daprstores.statestore:DaprStateStore.save_state",
        "dapr_agents.tool.executor:AgentToolExecutor.run_tool",
    ],
}
ENVIRONMENT = "dapr-agents"
LARGE = 300_000

#: Tool calls by turn: call id, tool and letters.
TURNS: dict[str, list[list[tuple[str, str, int]]]] = {
    "one": [[("call_1", "search", 1000)]],
    "turns": [[("call_2", "search", 1001), ("call_3", "search_later", 2000)], [("call_4", "broken", 3)]],
    "large": [[(f"call_1{number}", "search" if number else "search_later", LARGE + number) for number in range(4)]],
    # Three times in the state entry, which the store's side does not take; twice in the history, which fits.
    "too large": [[("call_20", "search", 1_500_000)]],
}


@pytest.fixture(scope="module")
def runs(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    environment: Callable[[str], Environment],
) -> dict[str, Json]:
    """What the agent did with the switch on and off, run once for all workers of the test run."""
    mine = tmp_path_factory.getbasetemp()
    folder = (mine.parent if hasattr(request.config, "workerinput") else mine) / "dapr_agents"
    folder.mkdir(parents=True, exist_ok=True)
    with interpreters.lock(folder / "lock"):
        kept = folder / "runs.json"
        if not kept.exists():
            agents = environment(ENVIRONMENT)
            kept.write_text(json.dumps({mode: _run(agents, mode, folder) for mode in ("off", "on")}))
        found: dict[str, Json] = json.loads(kept.read_text())
        return found


def _run(agents: Environment, mode: str, folder: Path) -> Json:
    cases = {name: {"workflow": WORKFLOW, "given": {"turns": turns}} for name, turns in TURNS.items()}
    plan = folder / f"{mode}.json"
    plan.write_text(json.dumps({"engine": {}, "cases": cases}))
    done = agents.run(
        "import runpy; runpy.run_module('tests.contract.runtimes.child', run_name='__main__')",
        mode,
        "dapr_agents",
        str(plan),
        env={"AGENT_OTEL": "" if mode == "off" else "1"},
        timeout=110,
        check=True,
    )
    report: Json = json.loads(done.stdout.splitlines()[-1])
    return report


def metrics(runs: dict[str, Json], case: str, name: str) -> dict[tuple[str, str], Json]:
    """Points of a metric of payloads, by activity and direction."""
    found = {}
    for metric in runs["on"]["cases"][case]["metrics"]:
        if metric["name"] == f"agent_otel.workflow.payload.{name}":
            labels = metric["attributes"]
            activity = labels.get("workflow.activity", "").removeprefix(ACTIVITY)
            found[activity, labels.get("direction") or labels.get("gen_ai.tool.name", "")] = metric
    return found


def spans(runs: dict[str, Json], case: str, prefix: str) -> list[Json]:
    """Spans whose name begins so."""
    return [span for span in runs["on"]["cases"][case]["spans"] if span["name"].startswith(prefix)]


@each_row(("case", "said"), [("one", "1000"), ("turns", None), ("large", str(4 * LARGE + 6)), ("too large", "lost")])
def test_the_agent_says_what_it_says_without_us(runs: dict[str, Json], case: str, said: str | None) -> None:
    with_us, without = (runs[mode]["cases"][case] for mode in ("on", "off"))
    assert with_us["error"] == without["error"] is None
    assert with_us["said"]["said"] == without["said"]["said"]
    assert said in (None, with_us["said"]["said"])


def test_what_was_wrapped_is_told(runs: dict[str, Json]) -> None:
    for name, targets in integrations.items():
        assert set(targets) <= set(runs["on"]["integrations"][name])


def test_nothing_is_said_or_swallowed(runs: dict[str, Json]) -> None:
    assert runs["on"]["errors"] == {}
    assert [case["messages"] for case in runs["on"]["cases"].values()] == [[]] * len(TURNS)


def test_each_activity_is_a_step(runs: dict[str, Json]) -> None:
    found = Counter(span["name"] for span in spans(runs, "turns", "activity: "))
    assert found == {
        f"activity: {ACTIVITY}{name}": count
        for name, count in {
            "record_initial_entry": 1,
            "call_llm": 3,
            "run_tool": 3,
            "save_tool_results": 2,
            "summarize": 1,
            "finalize_workflow": 1,
        }.items()
    }
    assert {span["attributes"]["gen_ai.workflow.name"] for span in spans(runs, "turns", "activity: ")} == {WORKFLOW}


def test_each_payload_is_counted_once(runs: dict[str, Json]) -> None:
    sizes = metrics(runs, "one", "size")
    message = {"content": produce(1000), "role": "tool", "name": "search", "tool_call_id": "call_1"}
    assert (sizes["run_tool", "output"]["count"], sizes["run_tool", "output"]["sum"]) == (1, len(json.dumps(message)))
    assert sizes["save_tool_results", "input"]["count"] == 1
    assert len(json.dumps(message)) < sizes["save_tool_results", "input"]["sum"] < len(json.dumps(message)) + 400
    assert sizes["call_llm", "input"]["count"] == sizes["call_llm", "output"]["count"] == 2


def test_the_state_entry_is_measured_as_it_is_stored(runs: dict[str, Json]) -> None:
    for case in ("one", "turns", "large"):
        written = metrics(runs, case, "size")["finalize_workflow", "state"]
        assert (written["count"], written["sum"]) == (1, runs["on"]["cases"][case]["said"]["entry"])


def test_tools_are_calls_of_the_workflow(runs: dict[str, Json]) -> None:
    (execution,) = {span["attributes"]["workflow.execution.id"] for span in spans(runs, "turns", "activity: ")}
    calls = {span["attributes"]["gen_ai.tool.call.id"]: span for span in spans(runs, "turns", "execute_tool ")}
    read = {
        call: (span["name"], span["attributes"].get("tool.result.bytes"), span["attributes"].get("error.type"))
        for call, span in calls.items()
    }
    assert read == {
        "call_2": ("execute_tool search", 1001, None),
        "call_3": ("execute_tool search_later", 2000, None),
        "call_4": ("execute_tool broken", None, "tests.contract.runtimes.steps.BrokenError"),
    }
    for span in calls.values():
        assert span["parent"] == f"activity: {ACTIVITY}run_tool"
        assert span["attributes"]["agent_otel.sub_agent"] == "clerk"
        assert span["attributes"]["gen_ai.conversation.id"] == execution


def test_a_large_payload_is_attributed_to_its_tools(runs: dict[str, Json]) -> None:
    """The entry holds each result twice, and the last of them once more."""
    (explained,) = spans(runs, "large", f"workflow_payload {ACTIVITY}save_tool_results")
    attributes = explained["attributes"]
    found = [LARGE + number + 2 for number in range(4)]  # with their quotes
    assert attributes["workflow.payload.direction"] == "state"
    assert attributes["workflow.payload.largest_path"] == "messages[].content"
    assert attributes["workflow.payload.duplicate_paths"] == ["messages[].content", "tool_history[].execution_result"]
    assert attributes["workflow.payload.largest_tool"] == "search"
    assert attributes["workflow.payload.largest_tool_bytes"] == 2 * sum(found[1:]) + found[3]
    assert attributes["workflow.payload.duplicate_bytes"] == sum(found) + found[3]
    assert attributes["workflow.payload.amplification"] == pytest.approx(2.25, abs=0.01)
    by_tool = {tool: metric["sum"] for (_, tool), metric in metrics(runs, "large", "by_tool").items()}
    assert by_tool["search_later"] == 2 * found[0]
    assert sum(by_tool.values()) == attributes["workflow.payload.bytes"]


def test_a_state_entry_that_is_refused_over_and_over_is_told(runs: dict[str, Json]) -> None:
    """The framework tries ten times, says so in its log and goes on; the model is asked without the result."""
    where = ("save_tool_results", "state")
    assert metrics(runs, "too large", "size")[where]["count"] == 1
    assert metrics(runs, "too large", "over_cap")[where]["sum"] == 1
    assert metrics(runs, "too large", "rejected")[where]["sum"] == 10
    assert metrics(runs, "too large", "stuck_retries")[where]["sum"] == 9
    (step,) = spans(runs, "too large", f"activity: {ACTIVITY}save_tool_results")
    assert step["attributes"]["workflow.payload.rejected"] is True


_LIMITED = """
import json
from agent_otel.testing.servers.openai import ToolCall
from tests.contract.child import Messages
from tests.contract.runtimes.programs import dapr_agents

messages, requests = Messages(), []

def decide(request):
    if "response_format" in request:
        return json.dumps({"summary": "Letters were found."})
    requests.append(request)
    number = len(requests)
    if not request.get("tools") or request.get("tool_choice") == "none" or number > 9:
        return "done"
    return [ToolCall(f"call_{number}{letter}", "search", {"n": 10}) for letter in ("a" if number == 1 else "abcd")]

dapr_agents.decide = decide
with dapr_agents.running({}) as start:
    said = start("", {"turns": []})["said"]
print(json.dumps([said, requests, messages.take()]))
"""


@pytest.mark.shows("002.final_answer")
def test_one_more_request_follows_the_limit_and_it_is_the_last(environment: Callable[[str], Environment]) -> None:
    done = environment(ENVIRONMENT).run(
        _LIMITED, env={"AGENT_OTEL": "1", "AGENT_OTEL_MAX_TOOL_CALLS": "3"}, timeout=110, check=True
    )
    said, requests, messages = json.loads(done.stdout.splitlines()[-1])
    assert (said, messages) == ("done", [])
    assert [request.get("tool_choice") == "none" for request in requests] == [False, False, True]
    assert [NOTE in json.dumps(request) for request in requests] == [False, False, True]
    assert json.dumps(requests[-1]).count("limit_reached") == 2


_SHORT = r"""
import json
from agent_otel.testing.servers.openai import ToolCall
from tests.contract.child import Messages
from tests.contract.runtimes.programs import dapr_agents

messages, requests = Messages(), []

def decide(request):
    if "response_format" in request:
        return json.dumps({"summary": "Letters were found."})
    requests.append(request)
    if "Summarise this transcript" in json.dumps(request):
        return "so far"
    number = len([each for each in requests if each.get("tools")])
    if number < 5:
        return [ToolCall(f"call_{number}", "search", {"n": 600 if number < 4 else 200_000})]
    if "read_1" not in json.dumps(request):
        return [ToolCall("read_1", "get_tool_result", {"ref": "call_3", "grep": "nothing"})]
    return "done"

dapr_agents.decide = decide
with dapr_agents.running({}) as start:
    said = start("", {"turns": []})["said"]
from agent_otel._internal import errors
print(json.dumps([said, requests, messages.take(), dict(errors.errors)]))
"""


def test_views_summaries_and_reading_on_work_as_in_openais_sdk(environment: Callable[[str], Environment]) -> None:
    remedies = {
        "AGENT_OTEL_TRIM_RESULTS": "1",
        "AGENT_OTEL_TRIM_STEP_TURNS": "1",
        "AGENT_OTEL_CLAIM_CHECK": "memory:",
        "AGENT_OTEL_SUMMARIZE_ABOVE_TOKENS": "9000",
        "AGENT_OTEL_SUMMARIZE_TARGET_TOKENS": "4000",
    }
    done = environment(ENVIRONMENT).run(_SHORT, env={"AGENT_OTEL": "1", **remedies}, timeout=110, check=True)
    said, requests, messages, errors = json.loads(done.stdout.splitlines()[-1])
    assert (said, errors) == ("done", {})
    # Of the framework's own summary, which it makes of one text at the end.
    assert [message.partition(":")[0] for message in messages] == ["AGENT_OTEL_SUMMARIZE_TARGET_TOKENS cannot be met"]
    results = [[said["content"] for said in each["messages"] if said["role"] == "tool"] for each in requests]
    *_, trimmed, asking, summarised, read = results
    assert (trimmed[0][:28], [len(text) for text in trimmed[1:]]) == ("[trimmed 600 bytes] search: ", [600, 600])
    assert asking == []
    assert summarised[0].startswith("so far")
    for number in (1, 2, 3):
        assert f"SUMMARIZED executionId:'call_{number}' search\n" in summarised[0]
    # The model has not seen the last result yet: the view stays.
    assert [len(text) for text in summarised[1:]] == [32_768]
    assert read[:2] == summarised
    assert json.loads(read[2])["size_bytes"] == 0
    offered = [[tool["function"]["name"] for tool in each.get("tools", [])] for each in requests]
    assert ["get_tool_result" in names for names in offered] == [False] * 5 + [True] * 2
