"""Calls that responses ask for: a tool call takes one over, and has its thread, turn, run, agent and id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_otel.testing.servers.anthropic import AnthropicServer
from agent_otel.testing.servers.openai import OpenAIServer, ToolCall
from tests.unit.core.test_delivery import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.testing.servers.openai import Reply
    from tests.forks import Forks

Json = dict[str, Any]
CALL_ID = "gen_ai.tool.call.id"

TOOL = """
pool = ThreadPoolExecutor(4)

@agent_otel.tool
def search(query: str = "") -> str:
    return text_of(query)

def text_of(query, lines=200):
    return "".join(f"row {n} about {query} of all the lamps\\n" for n in range(lines))

def user(text):
    return {"role": "user", "content": text}
"""
BEGIN = (
    """
import asyncio, contextvars, json
from concurrent.futures import ThreadPoolExecutor
import openai

client = openai.OpenAI(base_url="http://localhost", api_key="scripted", max_retries=0)
client.chat.completions, client.responses  # loads what they need
tools = [{"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}]
def ask(history, *calls, **more):
    # The server calls what the last message lists.
    answer = client.chat.completions.create(model=json.dumps(calls), messages=history, tools=tools, **more)
    if more.get("stream"):
        return answer
    message = answer.choices[0].message
    history.append(message.model_dump(exclude_none=True))
    return message.tool_calls or []

def result(history, call, text):
    history.append({"role": "tool", "tool_call_id": call.id, "content": text})

def perform(call):
    return search(**json.loads(call.function.arguments))
"""
    + TOOL
)


@pytest.fixture
def told(forks: Forks) -> Callable[..., Json]:
    """Return a function that runs a program and returns its telemetry. The model asks for the calls in the name."""

    def run(body: str, **env: str) -> Json:
        import json

        def decide(request: Json) -> Reply:
            return [ToolCall(*call) for call in json.loads(request["model"])] or "done"

        with OpenAIServer(decide) as server:
            report: Json = forks.measure("openai-agents", BEGIN, f"client.base_url = {server.base_url!r}\n{body}", env)
        assert report["errors"] == {}
        return report

    return run


def calls_of(report: Json) -> list[Json]:
    """Return the attributes of the spans of tool calls, with the number of their trace, in the order of their ids."""
    spans = [span for span in report["spans"] if span["name"].startswith("execute_tool")]
    traces = list(dict.fromkeys(span["trace"] for span in spans))
    found = [{**span["attributes"], "trace": traces.index(span["trace"])} for span in spans]
    return sorted(found, key=lambda each: str(each.get(CALL_ID)))


#: Ways to run the tools of a response that leave its context.
ELSEWHERE = {
    "pool": "texts = [pool.submit(perform, call).result() for call in calls]",
    "pool, all at once": "texts = list(pool.map(perform, calls))",
    "task": "texts = [contextvars.Context().run(perform, call) for call in calls]",
    "to_thread": """
async def both():
    return await asyncio.gather(*(asyncio.to_thread(contextvars.Context().run, perform, call) for call in calls))
texts = asyncio.run(both())""",
}


@pytest.mark.parametrize("way", ELSEWHERE)
def test_tools_that_run_elsewhere_are_in_the_trace_of_their_loop(told: Callable[..., Json], way: str) -> None:
    steps = ELSEWHERE[way].replace("\n", "\n    ")
    report = told(
        f"""
history = [user("Which lamp sells best?")]
for turn in range(2):
    calls = ask(history, *(("call_%d_%d" % (turn, n), "search", {{"query": f"lamp {{n}}"}}) for n in range(2)))
    {steps}
    for call, text in zip(calls, texts):
        result(history, call, text[:1000])
ask(history)
"""
    )
    found = calls_of(report)
    assert [each[CALL_ID] for each in found] == ["call_0_0", "call_0_1", "call_1_0", "call_1_1"]
    assert [each["agent_otel.conversation.turn"] for each in found] == [1, 1, 2, 2]
    assert {each["trace"] for each in found} == {0}
    assert len({each["gen_ai.conversation.id"] for each in found}) == 1
    assert counted(report, "tool.results.truncated") == {"search model_request shrunk": 4}
    assert counted(report, "tool.result.delivered") == {"search": 4_000}
    assert counted(report, "model.history.lost") == {}


def test_the_ids_of_conversations_may_be_equal(told: Callable[..., Json]) -> None:
    """Two conversations at a time; each numbers its calls from 0, and each request comes in a new context."""
    report = told(
        """
histories = [[user(f"Which lamp sells best in {town}?")] for town in ("Berlin", "Bonn")]
for turn in range(2):
    asked = [
        contextvars.Context().run(ask, history, (f"functions.search:{turn}", "search", {"query": f"{at} {turn}"}))
        for at, history in enumerate(histories)
    ]
    for at in (1, 0):
        text = contextvars.Context().run(perform, asked[at][0])
        result(histories[at], asked[at][0], text[: 1000 if at else None])
for history in histories:
    contextvars.Context().run(ask, history)
"""
    )
    found = calls_of(report)
    assert [each[CALL_ID] for each in found] == ["functions.search:0"] * 2 + ["functions.search:1"] * 2
    assert sorted(each["trace"] for each in found) == [0, 0, 1, 1]
    whole = len("".join(f"row {n} about 0 0 of all the lamps\n" for n in range(200)))
    assert counted(report, "tool.results.truncated") == {"search model_request shrunk": 2}
    assert counted(report, "tool.result.delivered") == {"search": 2 * whole + 2_000}
    assert counted(report, "tool.results.unmatched") == {}


def test_equal_calls_of_one_response_are_told_apart(told: Callable[..., Json]) -> None:
    report = told(
        """
numbers = iter((400, 20))
def text_of(query):
    return "".join(f"row {n} of all the lamps\\n" for n in range(next(numbers)))
history = [user("Which lamp sells best?")]
calls = ask(history, ("call_0", "search", {"query": "a"}), ("call_1", "search", {"query": "a"}))
for call in calls:
    result(history, call, pool.submit(perform, call).result())
ask(history)
"""
    )
    assert [each[CALL_ID] for each in calls_of(report)] == ["call_0", "call_1"]
    assert counted(report, "tool.results.truncated") == {}
    assert counted(report, "tool.repeats") == {"arguments search": 1}


def test_a_call_by_a_tool_s_own_code_is_inside_it(told: Callable[..., Json]) -> None:
    """Also where a response has asked for an equal call; a call that a request inside has asked for is not."""
    report = told(
        """
@agent_otel.tool
def describe(query: str) -> str:
    search(query="a")
    inner = [user("Look for b.")]
    (call,) = ask(inner, ("call_9", "search", {"query": "b"}))
    result(inner, call, perform(call))
    ask(inner)
    return text_of("it")

history = [user("Which lamp sells best?")]
calls = ask(history, ("call_0", "describe", {"query": "x"}), ("call_1", "search", {"query": "a"}))
result(history, calls[0], describe(**json.loads(calls[0].function.arguments)))
result(history, calls[1], perform(calls[1]))
ask(history)
"""
    )
    found = calls_of(report)
    assert [(each[CALL_ID], each["gen_ai.tool.name"]) for each in found] == [
        ("call_0", "describe"),
        ("call_1", "search"),
        ("call_9", "search"),
    ]
    assert {each["trace"] for each in found} == {0}
    assert counted(report, "tool.results.truncated") == {}
    assert counted(report, "model.history.lost") == {}


def test_a_further_attempt_is_the_same_call(told: Callable[..., Json]) -> None:
    report = told(
        """
attempts = iter((ValueError("no lamps"), "whole"))
def text_of(query):
    if isinstance(error := next(attempts), Exception):
        raise error
    return "three lamps are found in the stores\\n" * 100
history = [user("Which lamp sells best?")]
ask(history[:], ("call_0", "search", {"query": "a"}))  # sent again: nobody has run this call
(call,) = ask(history, ("call_1", "search", {"query": "a"}))
try:
    perform(call)
except ValueError:
    result(history, call, perform(call)[:1000])
ask(history)
"""
    )
    assert [each[CALL_ID] for each in calls_of(report)] == ["call_1", "call_1"]
    assert counted(report, "tool.repeats") == {}
    assert counted(report, "tool.results.truncated") == {"search model_request shrunk": 1}


#: Calls that a model asks for, and results: the calls' ids, and the text in the request.
BAD = {
    "an invented tool": ('[("call_0", "invented", {})]', "'There is no such tool.'", {}),
    "an id that is the name": ('[("search", "search", {"query": "a"})]', "perform(call)", {"search": 6_490}),
    "nothing": ('[("call_0", "search", {"query": "a"})]', "''", {}),
    "arguments that are no JSON": ('[("call_0", "search", "{")]', "search('a')", {"search": 6_490}),
}


@pytest.mark.parametrize("kind", BAD)
def test_calls_that_are_not_as_they_should_be(told: Callable[..., Json], kind: str) -> None:
    calls, text, delivered = BAD[kind]
    report = told(
        f"""
history = [user("Which lamp sells best?")]
for call in ask(history, *{calls}):
    result(history, call, {text})
ask(history)
"""
    )
    assert counted(report, "tool.results.truncated") == {}
    assert counted(report, "model.history.lost") == {}
    assert counted(report, "tool.results.unmatched") == {}
    if delivered:
        assert counted(report, "tool.result.delivered") == delivered


def test_the_calls_of_a_stream_are_known_at_its_end(told: Callable[..., Json]) -> None:
    """Read to its end, left at its last chunk, and abandoned after the calls."""
    report = told(
        """
def streamed(history, stop, *calls):
    for chunk in ask(history, *calls, stream=True):
        if stop(chunk):
            break
stops = [lambda chunk: False, lambda chunk: chunk.choices and chunk.choices[0].finish_reason]
for at, stop in enumerate(stops):
    history = [user(f"Which lamp sells best {at}?")]
    contextvars.Context().run(streamed, history, stop, (f"call_{at}", "search", {"query": f"lamp {at}"}))
    pool.submit(search, query=f"lamp {at}").result()
"""
    )
    assert [each.get(CALL_ID) for each in calls_of(report)] == ["call_0", "call_1"]


#: Results of every kind, as Python; the loop has no ids and sends the first 1,000 characters.
RESULTS = {
    "base64": "base64.b64encode(bytes(range(256)) * 40).decode()",
    "Chinese": "'我们的灯在柏林的商店里卖得最好。因为它们又便宜又亮、人人都喜欢。' * 200",
    "without a word": "'=-' * 20_000",
    "binary": "(bytes(range(256)) * 40).decode('latin-1')",
    "50 MB": "'x' * 50_000_000",
    "the system prompt": "SYSTEM",
    "quotes the result before": "'I have read this: ' + TEXTS[-1] if TEXTS else 'three lamps are found\\n' * 900",
    "no character": "''",
    "two words": "'it works'",
}


@pytest.mark.parametrize("kind", RESULTS)
def test_results_of_every_kind(told: Callable[..., Json], kind: str) -> None:
    report = told(
        f"""
import base64
SYSTEM, TEXTS = "You help with all the lamps in the stores of Berlin. " * 40, []
def text_of(query):
    TEXTS.append({RESULTS[kind]})
    return TEXTS[-1]
history = [{{"role": "system", "content": SYSTEM}}, user("Which lamp sells best?")]
for n in range(3):
    for call in ask(history, (f"call_{{n}}", "search", {{"query": str(n)}})):
        result(history, call, pool.submit(perform, call).result()[:1000])
ask(history)
report = [(len(text.encode()), len(text[:1000].encode())) for text in TEXTS]
"""
    )
    produced, delivered = (sum(sizes) for sizes in zip(*report["report"], strict=True))
    assert counted(report, "tool.result.size").get("search", 0) == produced
    assert counted(report, "tool.result.delivered").get("search", 0) == delivered
    assert sum(counted(report, "tool.results.truncated").values()) == (3 if produced > delivered else 0)
    assert counted(report, "model.history.lost") == {}
    assert counted(report, "tool.results.unmatched") == {}


def test_a_process_takes_a_conversation_over(told: Callable[..., Json]) -> None:
    """Another process has asked for the call, which runs here, with and without its id."""
    report = told(
        """
history = [user("Which lamp sells best?")]
for n in range(2):
    function = {"name": "search", "arguments": json.dumps({"query": str(n)})}
    history.append({"role": "assistant", "tool_calls": [{"id": f"call_{n}", "type": "function", "function": function}]})
    with agent_otel.tool_call("search", {"query": str(n)}, call_id=None if n else "call_0") as call:
        text = call.result(text_of(n))
    history.append({"role": "tool", "tool_call_id": f"call_{n}", "content": text[:1000]})
    ask(history)
"""
    )
    assert counted(report, "tool.result.delivered") == {"search": 2_000}
    assert counted(report, "tool.results.truncated") == {"search model_request shrunk": 2}
    assert counted(report, "tool.results.unmatched") == {}


def test_a_loop_over_an_mcp_client_has_one_trace(told: Callable[..., Json]) -> None:
    """The server runs in this process. Its handler takes no call over."""
    report = told(
        """
from mcp import Client
from mcp.server.mcpserver import MCPServer
server = MCPServer("lamps")

@server.tool(name="search")
def found(query: str) -> str:
    return text_of(query)

async def loop():
    history = [user("Which lamp sells best?")]
    ask(history)
    async with Client(server) as session:
        for turn in range(2):
            calls = ask(history, *((f"call_{turn}_{n}", "search", {"query": f"lamp {n}"}) for n in range(2)))
            for call in calls:
                answer = await session.call_tool(call.function.name, json.loads(call.function.arguments))
                result(history, call, answer.content[0].text[:1000])
        ask(history)
asyncio.run(loop())
"""
    )
    clients = [each for each in calls_of(report) if CALL_ID in each]
    assert [each[CALL_ID] for each in clients] == ["call_0_0", "call_0_1", "call_1_0", "call_1_1"]
    assert {each["trace"] for each in clients} == {0}
    assert [each["agent_otel.conversation.turn"] for each in clients] == [2, 2, 3, 3]
    assert counted(report, "tool.results.truncated") == {"search model_request shrunk": 4}
    assert counted(report, "tool.result.delivered") == {"search": 4_000}
    assert counted(report, "tool.results.unmatched") == {}


#: Programs that ask over an SDK and return the texts of results; each leaves the context of the request.
STREAMED = {
    "openai chat": """
async def ask():
    client = openai.AsyncOpenAI(base_url=URL, api_key="scripted", max_retries=0)
    stream = await client.chat.completions.create(model="call", messages=[user("go")], tools=tools, stream=True)
    return [chunk async for chunk in stream]
asyncio.run(ask())""",
    "openai responses": """
client = openai.OpenAI(base_url=URL, api_key="scripted", max_retries=0)
given = [{"type": "function", "name": "search", "parameters": {"type": "object"}}]
for event in client.responses.create(model="call", input="go", tools=given, stream=True):
    if event.type == "response.output_item.done" and event.output_index == 1:
        break""",
    "anthropic": """
import anthropic
client = anthropic.Anthropic(base_url=URL, api_key="scripted", max_retries=0)
given = [{"name": "search", "input_schema": {"type": "object"}}]
with client.messages.stream(model="call", max_tokens=9, messages=[user("go")], tools=given) as stream:
    list(stream)""",
}


@pytest.mark.parametrize("way", STREAMED)
def test_the_calls_of_each_format_are_joined_from_their_pieces(forks: Forks, way: str) -> None:
    """The tool has no id: its arguments tell which call it is."""
    server = AnthropicServer if way == "anthropic" else OpenAIServer
    asked = [ToolCall(f"call_{n}", "search", {"query": f"lamp {n}"}) for n in range(2)]
    with server(lambda _: asked) as running:
        program = f"""
URL = {running.base_url!r}
contextvars.copy_context().run(exec, {STREAMED[way]!r}, globals())
for n in (1, 0):
    pool.submit(search, query=f"lamp {{n}}").result()
"""
        begin = BEGIN if way != "anthropic" else BEGIN.partition("import openai")[0] + TOOL
        report = forks.measure("anthropic" if way == "anthropic" else "openai-agents", begin, program, {})
    assert report["errors"] == {}
    found = {each["agent_otel.conversation.turn"]: each for each in calls_of(report)}
    assert [(each[CALL_ID], each["tool.args.bytes"]) for each in calls_of(report)] == [("call_0", 18), ("call_1", 18)]
    assert found.keys() == {1}
