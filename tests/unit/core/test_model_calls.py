"""Calls of a loop without a decorator are read from its requests: once each, and those that others have seen never."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_otel.testing.servers.anthropic import AnthropicServer
from agent_otel.testing.servers.openai import ToolCall
from tests.unit.core.test_delivery import counted, told

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

Json = dict[str, Any]

__all__ = ["told"]

# A support agent as its authors wrote it: a dictionary of handlers, and `str(result)[:N]` before the model.
LOOP = """
import json
import anthropic

ORDERS = [{"order": n, "status": "shipped", "note": "ä" * 20} for n in range(500)]

def get_customer_orders(customer):
    return json.dumps({"customer": customer, "orders": ORDERS}, ensure_ascii=False)

def search_tickets(query):
    return "x" * 41_000

def get_refund_policy():
    return "30 days"

TOOL_HANDLERS = {f.__name__: f for f in (get_customer_orders, search_tickets, get_refund_policy)}
LIMIT = {"get_customer_orders": 10 * 1024}

def run_tool(name, args):
    return str(TOOL_HANDLERS[name](**args))[: LIMIT.get(name)]

client = anthropic.Anthropic(base_url=%(base_url)r, api_key="scripted", max_retries=0)
tools = [{"name": name, "input_schema": {"type": "object"}} for name in TOOL_HANDLERS]
messages = [{"role": "user", "content": "Where are my orders?"}]
while True:
    response = client.messages.create(model="scripted", max_tokens=100, tools=tools, messages=messages)
    messages.append({"role": "assistant", "content": response.content})
    calls = [block for block in response.content if block.type == "tool_use"]
    if not calls:
        break
    results = [
        {"type": "tool_result", "tool_use_id": call.id, "content": run_tool(call.name, call.input)} for call in calls
    ]
    messages.append({"role": "user", "content": results})

import prometheus_client
print(prometheus_client.generate_latest().decode())
"""


@pytest.mark.shows("001.hand_written_loop", "001.cut_json")
def test_one_variable_finds_the_cut_json_of_a_hand_written_loop(environment: Callable[[str], Environment]) -> None:
    turns: list[list[ToolCall]] = [
        [
            ToolCall("toolu_1", "get_customer_orders", {"customer": "c-17"}),
            ToolCall("toolu_2", "get_refund_policy", {}),
        ],
        [ToolCall("toolu_3", "search_tickets", {"query": "late"})],
        [ToolCall("toolu_4", "get_refund_policy", {})],
    ]
    with AnthropicServer(lambda _: turns.pop(0) if turns else "All your orders have shipped.") as server:
        code = LOOP % {"base_url": server.base_url}
        said = environment("anthropic").run(code, env={"AGENT_OTEL": "1"}, check=True).stdout

    # 10 * 1024 characters, of which those that are "ä" have two bytes.
    (cut_text,) = [text for call, text in server.tool_results().items() if call == "toolu_1"]
    delivered = len(cut_text.encode())
    found = dict(line.rsplit(" ", 1) for line in said.splitlines() if line.startswith("agent_otel_"))
    counts = {name: float(value) for name, value in found.items()}
    for tool, number, size in (
        ("get_customer_orders", 1, delivered),
        ("search_tickets", 1, 41_000),
        ("get_refund_policy", 2, 14),
    ):
        assert number == counts[f'agent_otel_tool_result_size_bytes_count{{error_type="",gen_ai_tool_name="{tool}"}}']
        assert size == counts[f'agent_otel_tool_result_size_bytes_sum{{error_type="",gen_ai_tool_name="{tool}"}}']
        assert size == counts[f'agent_otel_tool_result_delivered_bytes_total{{gen_ai_tool_name="{tool}"}}']
    cuts = {name: n for name, n in counts.items() if n and name.startswith("agent_otel_tool_results_truncated_total")}
    labels = 'gen_ai_tool_name="get_customer_orders",layer="before_request",reason="cut_json"'
    assert {f"agent_otel_tool_results_truncated_total{{{labels}}}": 1} == cuts
    large = {name: n for name, n in counts.items() if n and name.startswith("agent_otel_tool_results_large_total")}
    assert {'agent_otel_tool_results_large_total{gen_ai_tool_name="search_tickets",threshold="warn"}': 1} == large
    repeats = {name: n for name, n in counts.items() if n and name.startswith("agent_otel_tool_repeats_total")}
    assert {'agent_otel_tool_repeats_total{by="arguments",gen_ai_tool_name="get_refund_policy"}': 1} == repeats
    assert [] == [name for name in found if "duration" in name and "_count" in name and counts[name]]


def sizes(report: Json) -> dict[str, tuple[int, int]]:
    """Count and sum of the sizes of results, by tool."""
    return {
        metric["attributes"]["gen_ai.tool.name"]: (metric["count"], metric["sum"])
        for metric in report["metrics"]
        if metric["name"] == "agent_otel.tool.result.size" and metric["count"]
    }


def spans(report: Json) -> list[Json]:
    """Attributes of the spans of tool calls."""
    return [span["attributes"] for span in report["spans"] if span["name"].startswith("execute_tool")]


RESUMED = """
history = [user("go")]
for n in range(100):
    history += [asks(f"old_{n}", name="fetch"), answers(f"old_{n}", "x" * n)]
"""


@pytest.mark.parametrize("within", ["", "with agent_otel.execution('run'):"])
def test_a_call_is_counted_in_the_request_that_delivers_it_first(told: Callable[..., Json], within: str) -> None:
    body = """
history = [user("go")]
for n in range(4):
    send(*history)
    history += [asks(f"call_{n}"), answers(f"call_{n}", "é" * 100 * n)]
    send(*history)
    send(*history)
    history += [says("so"), user("more")]
"""
    lines = "".join(f"    {line}\n" for line in body.splitlines()) if within else body
    report = told(f"{within}\n{lines}")

    assert {"search": (4, 1200)} == sizes(report)
    assert {"search": 1200} == counted(report, "tool.result.delivered")
    # With the same arguments each time; without an execution, each message of the user begins a run.
    assert ({"arguments search": 3} if within else {}) == counted(report, "tool.repeats")
    assert {} == counted(report, "tool.results.unmatched")
    assert {} == counted(report, "tool.results.cleared")
    (_, second, _, _) = spans(report)
    args_hash, conversation = second.pop("tool.args_hash"), second.pop("gen_ai.conversation.id")
    assert 12 == len(args_hash)
    assert conversation == "run" if within else len(conversation) == 32
    assert {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "search",
        "gen_ai.tool.call.id": "call_1",
        "gen_ai.tool.type": "function",
        "tool.name": "search",
        "tool.args.bytes": 2,
        "tool.result.bytes": 200,
        "tool.result.seen_at": "model_request",
        "tool.result.truncated": False,
        "tool.result.estimated_tokens": 25,
        "agent_otel.conversation.turn": 3,
    } == second


@pytest.mark.parametrize("within", ["", "with agent_otel.execution('run'):"])
def test_a_resumed_history_has_no_new_calls_but_those_that_it_delivers(told: Callable[..., Json], within: str) -> None:
    body = """
history += [says("so"), user("more")]
send(*history)
history += [asks("new"), answers("new", "x" * 700)]
send(*history)
"""
    lines = "".join(f"    {line}\n" for line in body.splitlines()) if within else body
    report = told(f"{RESUMED}\n{within}\n{lines}")

    assert {"search": (1, 700)} == sizes(report)
    assert {} == counted(report, "tool.results.unmatched")


@pytest.mark.parametrize("runtime", ["temporal", "langgraph"])
def test_the_first_request_of_a_step_shows_no_call_of_another_process(told: Callable[..., Json], runtime: str) -> None:
    report = told(
        f"""
from agent_otel.core import step_handler
from agent_otel.core.types import Step, StepOutcome, StepReader, Invocation

def step(function):
    reader = StepReader(lambda *_: Step("{runtime}", "a"), lambda *_: None, lambda *_: StepOutcome())
    with step_handler.enter_step(reader, Invocation(None, (), {{}})):
        function()

def answer():  # a step that runs the model alone
    send(user("go"), asks("call_1"), answers("call_1", "x" * 500))

def loop():
    send(user("do"))
    send(user("do"), asks("call_2"), answers("call_2", "y" * 700))

step(answer)
step(loop)
"""
    )

    assert {{"temporal": (1, 700), "langgraph": (2, 1200)}[runtime]} == set(sizes(report).values())


def test_a_history_that_ends_with_results_delivers_the_last_turn(told: Callable[..., Json]) -> None:
    report = told(f'{RESUMED}\nsend(*history, asks("a", "b"), answers("a", "x" * 5), answers("b", "x" * 6))')

    assert {"search": (2, 11)} == sizes(report)


def test_ids_that_each_turn_has_again_are_new_calls(told: Callable[..., Json]) -> None:
    report = told(
        """
for run in range(2):
    history = [user("go")]
    for size in (9000, 90, 4000, 40):
        history += [asks("call_0"), answers("call_0", "x" * size)]
        send(*history)
"""
    )
    assert {"search": (8, 26_260)} == sizes(report)
    assert {} == counted(report, "tool.results.cleared")


def test_pairs_of_the_responses_api_are_one_turn_or_several(told: Callable[..., Json]) -> None:
    body = """
def call(n): return [
    {"type": "function_call", "call_id": f"call_{n}", "name": "search", "arguments": "{}"},
    {"type": "function_call_output", "call_id": f"call_{n}", "output": "x" * 10},
]
def respond(*items): client.responses.create(model="scripted", input=list(items))
history = [user("go")]
respond(*history)
history += [*call(1), *call(2), *call(3)]
respond(*history)
history += call(4)
respond(*history)
respond(user("another"), *call(5), *call(6), *call(7))
"""
    report = told(body)

    # Of the history that this process did not see begin, the last result is delivered, and the others may be older.
    assert {"search": (5, 50)} == sizes(report)
    assert ["call_1", "call_2", "call_3", "call_4", "call_7"] == [one["gen_ai.tool.call.id"] for one in spans(report)]


@pytest.mark.parametrize(
    "call",
    [
        'tool("call_1", "x" * 900)',
        'tool(None, "x" * 900)',
        'agent_otel.tool(name="search")(lambda: "x" * 900)()',
        'tool(None, "x" * 900, name="search")',
    ],
)
@pytest.mark.parametrize("within", ["if True:", "with agent_otel.execution('run'):"])
def test_a_call_that_an_adapter_has_seen_is_none(told: Callable[..., Json], call: str, within: str) -> None:
    report = told(
        f"""
{within}
    text = {call}
    send(user("go"), asks("call_1"), answers("call_1", "Result: " + text))
    send(user("go"), asks("call_1", name="mcp__web__search"), answers("call_1", "Result: " + text))
"""
    )
    assert {"search": (1, 900)} == sizes(report)
    assert 1 == len(spans(report))


def test_a_call_that_raised_counts_once_with_its_own_text(told: Callable[..., Json]) -> None:
    report = told(
        """
try:
    with agent_otel.tool_call("search", {}, call_id="call_1"):
        raise ValueError
except ValueError:
    send(user("go"), asks("call_1"), answers("call_1", "ValueError"))
"""
    )
    assert {"search": (1, 0)} == sizes(report)
    assert 1 == len(spans(report))


def test_a_tool_that_the_model_made_up_is_no_call(told: Callable[..., Json]) -> None:
    report = told(
        """
tools = [{"type": "function", "function": {"name": "search", "parameters": {}}}]
send(user("go"), asks("call_1", name="secret of mine"), answers("call_1", "no such tool"), tools=tools)
"""
    )
    assert {} == sizes(report)
    assert [] == spans(report)


def test_the_span_is_below_that_of_the_request_and_has_content_when_it_is_captured(told: Callable[..., Json]) -> None:
    body = """
with trace.get_tracer("app").start_as_current_span("chat"):
    send(user("go"), asks("call_1"), answers("call_1", "x" * 60 + "... [5000 characters truncated]"))
"""
    report = told(body, OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT="true")
    (span,) = [span for span in report["spans"] if span["name"] == "execute_tool search"]

    assert "chat" == span["parent"]
    assert "{}" == span["attributes"]["gen_ai.tool.call.arguments"]
    assert span["attributes"]["gen_ai.tool.call.result"].startswith("xxx")
    assert ("before_request", "marker") == (
        span["attributes"]["tool.result.truncation.layer"],
        span["attributes"]["tool.result.truncation.reason"],
    )
    assert {"search before_request marker": 1} == counted(report, "tool.results.truncated")
    assert {"search marker": 1} == counted(report, "answers.incomplete")
    assert [] == [one for one in told(body, AGENT_OTEL_SPANS="off")["spans"] if one["name"] != "chat"]
