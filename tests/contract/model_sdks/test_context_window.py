"""The context window through an SDK: its use, the requests that still fit, estimates of streams, and rejections."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from agent_otel.testing.servers.openai import OpenAIServer
from agent_otel.testing.servers.replies import usage
from tests.contract.model_sdks.spans import IN_MEMORY

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.testing.servers.openai import Json, Reply
    from tests.environments import Environment

ANSWER = "Fine."
WINDOW = 4000
_PROGRAM = (
    IN_MEMORY
    + """
import openai

client = openai.OpenAI(base_url=sys.argv[1], api_key="scripted", max_retries=0)
call = {"id": "call-1", "type": "function", "function": {"name": "search", "arguments": "{}"}}
messages = [
    {"role": "user", "content": "Find it."},
    {"role": "assistant", "content": None, "tool_calls": [call]},
    {"role": "tool", "tool_call_id": "call-1", "content": "row " * 500},
]
tracer = trace.get_tracer("program")
def ask(**more):
    with tracer.start_as_current_span("chat"):
        try:
            response = client.chat.completions.create(model="scripted", messages=messages, **more)
            if more:
                list(response)
        except openai.BadRequestError:
            pass

with agent_otel.execution("run"):
    for turn in range(5):
        ask()
        messages += [{"role": "assistant", "content": "ok"}, {"role": "user", "content": "more " * 200}]
    with agent_otel.tool_call("look", {}, call_id="call-2") as call:
        call.result("row")
with agent_otel.execution("stream"):
    ask(stream=True)
messages.append({"role": "user", "content": "refuse"})
ask()
series = {}
for family in prometheus_client.REGISTRY.collect():
    for sample in family.samples:
        is_shown = "model_context" in sample.name or "requests_rejected" in sample.name
        if is_shown and sample.value and not sample.name.endswith(("_bucket", "_created")):
            series[sample.name] = [sample.labels, sample.value]
        if sample.name == "agent_otel_execution_tokens_bucket" and sample.exemplar is not None:
            series.setdefault("traces", []).append(sample.exemplar.labels["trace_id"])
        if "resent" in sample.name and not sample.name.endswith("_created"):
            series[sample.name] = [sample.labels, sample.value]
shown = [dict(span.attributes) for span in spans.get_finished_spans() if span.name == "chat"]
runs = [format(span.context.trace_id, "032x") for span in spans.get_finished_spans() if "invoke" in span.name]
shown += [dict(span.attributes) for span in spans.get_finished_spans() if span.name == "execute_tool look"]
assert errors.errors == {}, errors.errors
print(json.dumps([shown, series, runs]))
"""
)


def test_a_growing_conversation_meets_its_window(environment: Callable[[str], Environment]) -> None:
    def reply(request: Json) -> Reply:
        if request["messages"][-1]["content"] == "refuse":
            raise ValueError("This model's maximum context length is 4000 tokens.")
        return ANSWER

    with OpenAIServer(reply) as model:
        done = environment("openai-agents").run(
            _PROGRAM,
            model.base_url,
            env={
                "AGENT_OTEL": "1",
                "AGENT_OTEL_CONTEXT_WINDOWS": f"scripted={WINDOW}",
                "AGENT_OTEL_METRICS": "prometheus",
            },
            check=True,
        )
        counted = [usage(request, ANSWER)[0] for request in model.requests]
    shown, series, runs = json.loads(done.stdout.splitlines()[-1])
    *turns, streamed, refused, tool = shown
    for name in ("tokens", "window", "turns_to_limit"):  # a tool span of the run has those of its last request
        assert tool[f"agent_otel.context.{name}"] == turns[4][f"agent_otel.context.{name}"]
    assert [each["agent_otel.context.tokens"] for each in turns] == counted[:5]
    assert {each["agent_otel.context.window"] for each in turns} == {WINDOW}
    assert {each["agent_otel.context.largest_part"] for each in turns[:2]} == {"tool_results"}
    assert {each["agent_otel.context.largest_tool"] for each in turns} == {"search"}
    assert {each["agent_otel.context.largest_tool_bytes"] for each in turns} == {2000}
    step = counted[4] - counted[3]
    assert [each.get("agent_otel.context.turns_to_limit") for each in turns[:2]] == [None, None]
    left = [(WINDOW - tokens) // step for tokens in counted[2:5]]
    found = [each["agent_otel.context.turns_to_limit"] for each in turns[2:]]
    assert all(abs(forecast - real) <= 1 for forecast, real in zip(found, left, strict=True)), (found, left)
    assert streamed["agent_otel.context.estimated"] is True
    assert {"context", "search", "call-1"} == {
        refused[f"agent_otel.rejected.{name}"] for name in ("reason", "tool", "call_id")
    }
    assert 2000 == refused["agent_otel.context.largest_tool_bytes"]
    assert set(series["traces"]) == {runs[0]}  # the provider has reported no tokens of the second
    label = {"gen_ai_request_model": "scripted"}
    assert series["agent_otel_model_context_utilization_count"] == [label, 6]
    assert series["agent_otel_model_requests_rejected_total"] == [{**label, "reason": "context"}, 1]
    assert series["agent_otel_tool_result_resent_bytes_total"] == [{"gen_ai_tool_name": "search"}, 2000 * 6]
