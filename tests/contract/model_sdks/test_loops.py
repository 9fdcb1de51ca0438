"""Agents that repeat themselves, in a hand-written loop over OpenAI's SDK: what counts, and since which turn."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from agent_otel.testing.servers.openai import OpenAIServer
from agent_otel.testing.servers.replies import ToolCall
from tests.contract.model_sdks.spans import IN_MEMORY

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.testing.servers.openai import Json, Reply
    from tests.environments import Environment

_PROGRAM = (
    IN_MEMORY
    + """
import openai

client = openai.OpenAI(base_url=sys.argv[1], api_key="scripted")

def run(case, name, arguments):
    if case == "alternates":
        return ["the door is open now", "the door is closed now"][arguments["try"] % 2]
    if case == "pages":
        return f"row {arguments['page']} of the table"
    if case == "batch":
        return "saved"
    if case == "same":
        return {"found": [], "hint": "the index is empty"}
    return f"nothing was found by {name}"

for case in sys.argv[2:]:
    messages = [{"role": "user", "content": case}]
    with agent_otel.execution(case):
        while True:
            said = client.chat.completions.create(model="m", messages=messages).choices[0].message
            messages.append(said.model_dump(exclude_none=True))
            if not said.tool_calls:
                break
            for asked in said.tool_calls:
                arguments = json.loads(asked.function.arguments)
                with agent_otel.tool_call(asked.function.name, arguments, call_id=asked.id) as call:
                    result = run(case, asked.function.name, arguments)
                    call.result(result)
                text = result if type(result) is str else json.dumps(result)
                messages.append({"role": "tool", "tool_call_id": asked.id, "content": text})
loops, counts = {}, {}
for span in spans.get_finished_spans():
    found = {key.removeprefix("agent_otel.loop."): value for key, value in span.attributes.items() if ".loop." in key}
    if found and not span.name.startswith("execute_tool"):
        loops[span.attributes["gen_ai.conversation.id"]] = found
for family in prometheus_client.REGISTRY.collect():
    for sample in family.samples:
        if sample.name == "agent_otel_tool_repeats_total" and sample.value:
            counts[f"{sample.labels['gen_ai_tool_name']} {sample.labels['by']}"] = sample.value
assert errors.errors == {}, errors.errors
print(json.dumps([loops, counts]))
"""
)
#: Case -> the calls of each turn. Every tool has one case, so that its series are those of the case.
TURNS: dict[str, list[tuple[str, Json]]] = {
    "counter": [("first", {}), *(("search", {"q": "x", "attempt": n}) for n in range(5))],
    "pair": [("ask" if n % 2 else "look", {"n": n}) for n in range(6)],
    "alternates": [("door", {"try": n}) for n in range(6)],
    "arguments": [("read", {"path": "/a"}), ("list", {}), ("read", {"path": "/a"}), ("read", {"path": "/a"})],
    "same": [("query", {"sql": f"select {word}"}) for word in "abcd"],
    "pages": [("page", {"page": n}) for n in range(6)],
    "batch": [("save", {"file": name, "text": name * 9}) for name in "abcdef"],
}


def test_calls_that_repeat_others_are_counted_and_dated(environment: Callable[[str], Environment]) -> None:
    def reply(request: Json) -> Reply:
        case = request["messages"][0]["content"]
        turn = sum(message["role"] == "tool" for message in request["messages"])
        if turn == len(TURNS[case]):
            return "Done."
        name, arguments = TURNS[case][turn]
        return [ToolCall(f"{case}-{turn}", name, arguments)]

    with OpenAIServer(reply) as model:
        done = environment("openai-agents").run(
            _PROGRAM, model.base_url, *TURNS, env={"AGENT_OTEL": "1", "AGENT_OTEL_METRICS": "prometheus"}, check=True
        )
    loops, counts = json.loads(done.stdout.splitlines()[-1])
    assert {
        "search result": 3,
        "look result": 1,
        "ask result": 1,
        "door result": 2,
        "read arguments": 2,
        "query result": 2,
    } == counts
    assert {
        "counter": {"tool": "search", "by": "result", "calls": 3, "since_turn": 2},
        "pair": {"tool": "look", "by": "result", "calls": 1, "since_turn": 1},
        "alternates": {"tool": "door", "by": "result", "calls": 2, "since_turn": 1},
        "arguments": {"tool": "read", "by": "arguments", "calls": 2, "since_turn": 1},
        "same": {"tool": "query", "by": "result", "calls": 2, "since_turn": 1},
    } == loops
