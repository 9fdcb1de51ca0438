"""Keys that are data, in states, results and arguments of a real agent: no byte of them leaves the process."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agent_otel.testing.servers.openai import OpenAIServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment
    from tests.servers.otlp import OtlpReceiver

CANARIES = (
    *("Jane_Doe", "jane_doe", "janedoe", "Müller", "jane@bank", "HIV_positive", "hunter2", "P@ssw0rd", "sk-proj-abc"),
    *("ghp_AbCdEfGhIjKlMnOpQrStUvWx", "JANE", "DE89370400440532013000"),
)

_AGENT = """
import json, sys
from typing import TypedDict

import agent_otel
from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import StateGraph
from langgraph.prebuilt import ToolNode

canaries = json.loads(sys.argv[1])
turn = 0


@tool
def look_up(filters: dict) -> dict:
    '''Look up.'''
    return {"rows": [{key: "x" * 400, "name": turn} for key in canaries], "one": {canaries[turn % len(canaries)]: turn}}


State = TypedDict("State", {"messages": list, "people": dict, **dict.fromkeys(canaries, str)})


def ask(state):
    call = {"name": "look_up", "args": {"filters": dict.fromkeys(canaries, 1)}, "id": f"call-{turn}"}
    return {"messages": [AIMessage("", tool_calls=[call])], "people": {canaries[0]: {"notes": "y" * 3000}}, **{
        key: "z" * 2000 for key in canaries
    }}


graph = StateGraph(State)
graph.add_node("ask", ask)
graph.add_node("tools", ToolNode([look_up]))
graph.add_edge("__start__", "ask")
graph.add_edge("ask", "tools")
agent = graph.compile(checkpointer=InMemorySaver())

for turn in range(20):
    agent.invoke({"messages": []}, {"configurable": {"thread_id": f"thread-{turn % 10}"}})
    with agent_otel.execution(f"run-{turn}", workflow="by_hand"):
        with agent_otel.tool_call("search", dict.fromkeys(canaries, turn), call_id=f"c-{turn}") as call:
            more = {canaries[turn % len(canaries)]: "w"} if turn > 10 else {}
            result = call.result({"found": dict.fromkeys(canaries, "v" * 900), **more})
        # A map, and each canary alone among fields.
        state = {"messages": [{"role": "tool", "tool_call_id": f"c-{turn}", "content": result}], "copy": result}
        for key in canaries:
            alone = {**state, key: [{"text": "u" * 30_000}]}
            agent_otel.payload(json.dumps(alone), runtime="mine", activity="text", direction="output")
            agent_otel.payload(alone, runtime="mine", activity="object", direction="output", execution=f"{turn}")

from prometheus_client import REGISTRY
from prometheus_client.openmetrics.exposition import generate_latest
print(generate_latest(REGISTRY).decode())
"""


def test_keys_that_are_data_stay_inside(environment: Callable[[str], Environment], receiver: OtlpReceiver) -> None:
    env = {
        "AGENT_OTEL": "1",
        "AGENT_OTEL_METRICS": "both",
        "AGENT_OTEL_CAPS": "mine.payload=40KiB,langgraph.payload=20KiB",
        "OTEL_BSP_MAX_QUEUE_SIZE": "100000",
        **receiver.environment(),
    }
    child = environment("langchain").run(_AGENT, json.dumps(CANARIES), env=env, timeout=100, check=True)

    receiver.wait_for_metric("agent_otel.workflow.payload.component", 60)
    spans = list(receiver.spans)
    sent = repr(spans) + repr(receiver.points) + child.stdout + child.stderr
    assert [] == [canary for canary in CANARIES if canary in sent or repr(canary)[1:-1] in sent]
    # The paths are there, with a star in the place of the keys.
    paths = {span.attributes.get("workflow.payload.largest_path") for span in spans}
    assert "*[].text" in paths
    assert {"*", "people.*.notes"} & {
        point.attributes["component"] for point in receiver.latest("agent_otel.workflow.payload.component")
    }
    events: list[dict[str, Any]] = [event.attributes for span in spans for event in span.events]
    changes = [event for event in events if "keys.added" in event]
    assert changes
    assert {"*", "one.*"} >= {key for event in changes for keys in event.values() for key in keys}


_NAMES = ("Jane Doe", "Erika Mustermann", "hunter2", "Max Moritz", "Lieschen Müller", "never_a_tool")

_RECORDS = """
import json, sys
from openai import OpenAI

import agent_otel

jane, erika, hunter, max_, lieschen, never = json.loads(sys.argv[1])
client = OpenAI(base_url=sys.argv[2], api_key="none")
client.chat.completions.create(
    model="scripted",
    messages=[{"role": "user", "content": "go"}],
    tools=[{"type": "function", "function": {"name": "offered", "parameters": {"type": "object", "properties": {}}}}],
)
for turn in range(6):
    with agent_otel.execution(f"run-{turn}", workflow="by_hand"):
        with agent_otel.tool_call("search", {}, call_id=f"c-{turn}") as call:
            result = call.result("found " * 2000)
        for number, state in enumerate((
            {"patients": [{"id": "p-1", "name": jane, "result": "v" * 30_000}]},
            {"patients": [{"id": "p-2", "tool": erika, "output": "w" * 30_000}]},
            {"centre": [{"call_id": "k-1", "name": hunter, "content": "x" * 30_000}]},
            {"messages": [{"role": "tool", "tool_call_id": "t-1", "name": never, "content": "y" * 30_000}]},
            {"asked": [{"id": "t-2", "name": max_, "args": {}}], "said": [{"id": "t-2", "result": "z" * 30_000}]},
            {"parts": [{"functionResponse": {"id": "t-3", "name": lieschen, "response": {"result": "q" * 30_000}}}]},
            {"messages": [{"role": "tool", "tool_call_id": "t-4", "name": "search", "content": result}]},
            {"messages": [{"role": "tool", "tool_call_id": "t-5", "name": "offered", "content": "u" * 30_000}]},
        )):
            run = f"{turn}-{number}"
            agent_otel.payload(state, runtime="mine", activity="object", direction="output", execution=f"object-{run}")
            text = json.dumps(state)
            agent_otel.payload(text, runtime="mine", activity="text", direction="output", execution=f"text-{run}")

from prometheus_client import REGISTRY
from prometheus_client.openmetrics.exposition import generate_latest
print(generate_latest(REGISTRY).decode())
"""


def test_a_name_in_a_payload_leaves_only_if_it_is_a_tool_s(
    environment: Callable[[str], Environment], receiver: OtlpReceiver
) -> None:
    env = {
        "AGENT_OTEL": "1",
        "AGENT_OTEL_METRICS": "both",
        "AGENT_OTEL_CAPS": "mine.payload=10KiB",
        "OTEL_BSP_MAX_QUEUE_SIZE": "100000",
        **receiver.environment(),
    }
    with OpenAIServer(lambda _: "done") as server:
        run = environment("openai-agents").run
        child = run(_RECORDS, json.dumps(_NAMES), server.base_url, env=env, timeout=100, check=True)

    receiver.wait_for_metric("agent_otel.workflow.payload.by_tool", 60)
    spans = list(receiver.spans)
    sent = repr(spans) + repr(receiver.points) + child.stdout + child.stderr
    assert [] == [name for name in _NAMES if name in sent or repr(name)[1:-1] in sent]
    tools = {span.attributes.get("workflow.payload.largest_tool") for span in spans}
    assert {"search", "offered", "_other"} == tools - {None}
    points = receiver.latest("agent_otel.workflow.payload.by_tool")
    assert {"search", "offered", "_other"} == {point.attributes["gen_ai.tool.name"] for point in points}
