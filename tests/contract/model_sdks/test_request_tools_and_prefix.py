"""What a request offers and repeats: definitions of tools, those never called, the changed beginning, and retries."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from agent_otel.testing.servers.openai import OpenAIServer
from agent_otel.testing.servers.replies import usage
from tests.contract.model_sdks.spans import IN_MEMORY

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.testing.servers.openai import Json, Reply
    from tests.environments import Environment

ANSWER = "Fine."
OFFERED = 41
_PROGRAM = (
    IN_MEMORY
    + """
import openai

client = openai.OpenAI(base_url=sys.argv[1], api_key="scripted", max_retries=0)
def definition(name, text="Look it up."):
    schema = {"type": "object", "properties": {"query": {"type": "string"}}}
    return {"type": "function", "function": {"name": name, "description": text, "parameters": schema}}
tools = [definition("search"), definition("fetch"), definition("manual", "x" * 3000)]
tools += [definition(f"tool_{number}") for number in range(38)]
def asked(call_id, name):
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}
def result(call_id, text):
    return {"role": "tool", "tool_call_id": call_id, "content": text}
row = "row 1 of the table; " * 100
messages = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Find it."}]
tracer = trace.get_tracer("program")
def ask(offered=tools):
    with tracer.start_as_current_span("chat"):
        client.chat.completions.create(model="scripted", messages=messages, tools=offered)

with agent_otel.execution("run", workflow="answer"):
    with agent_otel.tool_call("search", {}, call_id="call-1") as call:
        call.result(row)
    messages += [asked("call-1", "search"), result("call-1", row)]
    ask()
    ask()  # a retry
    with agent_otel.tool_call("fetch", {}, call_id="call-2") as call:
        call.result(row)
    messages += [asked("call-2", "fetch"), result("call-2", row)]
    ask()
    messages[3] = result("call-1", "row 1 …")
    ask()
    messages[0] = {"role": "system", "content": "Be very kind."}
    ask()
    ask([*tools, definition("late")])
    messages.append({"role": "user", "content": "And more?"})
    ask([*tools, definition("late")])
found = {}
for family in prometheus_client.REGISTRY.collect():
    for sample in family.samples:
        if not sample.name.endswith(("_bucket", "_created")):
            found.setdefault(sample.name, []).append([sample.labels, sample.value])
shown = [dict(span.attributes) for span in spans.get_finished_spans() if span.name == "chat"]
[run] = [dict(span.attributes) for span in spans.get_finished_spans() if span.name.startswith("invoke_workflow")]
assert errors.errors == {}, errors.errors
print(json.dumps([shown, run, found]))
"""
)


@pytest.mark.shows("000.model_retries")
def test_a_request_shows_its_tools_and_what_changed(environment: Callable[[str], Environment]) -> None:
    def reply(_: Json) -> Reply:
        return ANSWER

    with OpenAIServer(reply) as model:
        done = environment("openai-agents").run(
            _PROGRAM, model.base_url, env={"AGENT_OTEL": "1", "AGENT_OTEL_METRICS": "prometheus"}, check=True
        )
        counted = [usage(request, ANSWER) for request in model.requests]
    shown, run, found = json.loads(done.stdout.splitlines()[-1])

    def of(number: int, name: str) -> object:
        return shown[number].get(f"agent_otel.context.{name}")

    assert [of(number, "tools") for number in range(7)] == [OFFERED] * 5 + [OFFERED + 1] * 2
    assert [of(number, "uncalled_tools") for number in range(7)] == [40, 40, 39, 39, 39, 40, 40]
    assert {of(number, "largest_definition") for number in range(7)} == {"manual"}
    definitions = len(json.dumps(model.requests[0]["tools"], separators=(",", ":")))
    assert of(0, "tools_bytes") == definitions
    assert of(0, "tools_tokens") > 0.6 * counted[0][0]  # type: ignore[operator]
    assert 0 < of(2, "uncalled_tools_tokens") < of(2, "tools_tokens")  # type: ignore[operator]

    assert [of(number, "duplicate_bytes") for number in range(4)] == [None, None, 2000, None]
    changes = [of(number, "changed_part") for number in range(7)]
    assert changes == [None, None, None, "tool_results", "system", "tools", None]
    assert (of(3, "changed_message"), of(3, "changed_tool"), of(5, "changed_tool")) == (3, "search", "late")
    labels = {"gen_ai_workflow_name": "answer", "gen_ai_agent_name": "answer"}
    assert found["agent_otel_model_prefix_changes_total"] == [
        [{"part": part, "change": change, **labels}, 1.0]
        for part, change in (("tool_results", "content"), ("system", "content"), ("tools", "added"))
    ]

    assert run["agent_otel.execution.model_requests"] == 7
    assert run["agent_otel.execution.model_retries"] == 1
    assert run["agent_otel.execution.tool_calls"] == 2
    assert found["agent_otel_execution_model_requests_sum"] == [[labels, 7]]
    assert found["agent_otel_execution_model_retries_sum"] == [[labels, 1]]
    assert found["agent_otel_execution_cached_tokens_sum"] == [[labels, 0]]

    offered = {row["gen_ai_tool_name"]: value for row, value in found["agent_otel_tool_offered_total"]}
    assert (len(offered), offered["search"], offered["late"]) == (OFFERED + 1, 7, 2)
    sent = [value for _, value in found["agent_otel_tool_definition_sent_bytes_total"]]
    sizes = [len(json.dumps(request["tools"], separators=(",", ":"))) for request in model.requests]
    assert sum(sent) == sum(sizes)
    tokens = [value for _, value in found["agent_otel_tool_definition_tokens_total"]]
    of_tools = [value for row, value in found["agent_otel_tool_context_tokens_total"] if row["part"] == "tools"]
    assert sum(tokens) == sum(of_tools)


_REMEDIES = """
import json, sys
import openai, prometheus_client
import agent_otel
from agent_otel._internal import errors

client = openai.OpenAI(base_url=sys.argv[1], api_key="scripted", max_retries=0)
messages = [{"role": "user", "content": "Find it."}]
def use(number, text):
    call_id = f"call-{number}"
    arguments = {"page": number, "text": "words " * 1000}
    with agent_otel.tool_call("search", arguments, call_id=call_id) as call:
        kept = call.result(text)
    function = {"name": "search", "arguments": json.dumps(arguments)}
    calls = [{"id": call_id, "type": "function", "function": function}]
    messages.extend([{"role": "assistant", "content": None, "tool_calls": calls},
                     {"role": "tool", "tool_call_id": call_id, "content": kept}])
with agent_otel.execution("run", workflow="answer"):
    use(0, "x" * 20_000)
    for number in range(1, 4):
        use(number, "row of the table; " * 100)
        client.chat.completions.create(model="gpt-4o", messages=messages)
found = {}
for family in prometheus_client.REGISTRY.collect():
    for sample in family.samples:
        is_ours = sample.name.startswith(("agent_otel_context_sav", "agent_otel_context_removed"))
        if is_ours and "created" not in sample.name:
            found.setdefault(sample.name, {})[sample.labels["strategy"]] = sample.value
        if sample.name == "agent_otel_model_request_size_bytes_sum":
            found["sent"] = found.get("sent", 0) + sample.value
        if sample.name == "agent_otel_tool_context_tokens_total":
            found["tokens"] = found.get("tokens", 0) + sample.value
assert errors.errors == {}, errors.errors
print(json.dumps(found))
"""


def test_a_remedy_saves_in_each_request_that_lacks_what_it_removed(environment: Callable[[str], Environment]) -> None:
    with OpenAIServer(lambda _: ANSWER) as model:
        done = environment("openai-agents").run(
            _REMEDIES,
            model.base_url,
            env={
                "AGENT_OTEL": "1",
                "AGENT_OTEL_METRICS": "prometheus",
                "AGENT_OTEL_RESULT_CEILING_BYTES": "4000",
                "AGENT_OTEL_TRIM_RESULTS": "1",
                "AGENT_OTEL_KEEP_TURNS": "2",
                "AGENT_OTEL_TRIM_STEP_TURNS": "1",
            },
            check=True,
        )
    found = json.loads(done.stdout.splitlines()[-1])
    removed, saved = found["agent_otel_context_removed_bytes_total"], found["agent_otel_context_saved_tokens_total"]
    assert set(removed) == set(saved) == {"ceiling", "trim"}
    mean = found["tokens"] / found["sent"]  # of a byte; it differs a little between the requests
    assert saved["ceiling"] == pytest.approx(3 * removed["ceiling"] * mean, rel=0.2)
    assert saved["trim"] == pytest.approx(removed["trim"] * mean, rel=0.2)
    assert "agent_otel_context_saved_cost_total" not in found
    # The remedy that is off: 6,000 bytes of each call, in requests with 2, 3 and 4 calls.
    savable = found["agent_otel_context_savable_tokens_total"]
    assert set(savable) == {"compact"}
    assert savable["compact"] == pytest.approx((2 + 3 + 4) * 6000 * mean, rel=0.2)
