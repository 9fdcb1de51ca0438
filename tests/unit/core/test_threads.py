"""Hand-written loops: the thread of their requests is the conversation, and each message of the user begins a run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel.testing.servers.openai import OpenAIServer, ToolCall
from tests.unit.core.test_delivery import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.testing.servers.openai import Reply
    from tests.environments import Environment
    from tests.forks import Forks

Json = dict[str, Any]

BEGIN = """
import contextvars, json, threading
import openai

client = openai.OpenAI(base_url="http://localhost", api_key="scripted", max_retries=0)
client.chat.completions  # loads what it needs
tools = [{"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}]
TEXT = "".join(f"line {n} of the whole result\\n" for n in range(2_000))

@agent_otel.tool
def search(query: str) -> str:
    return TEXT

def ask(history, model="call"):
    answer = client.chat.completions.create(model=model, messages=history, tools=tools).choices[0].message
    history.append(answer.model_dump(exclude_none=True))
    return answer.tool_calls or []

def turn(history, question, calls=2, most=None):
    history.append({"role": "user", "content": question})
    for _ in range(calls):
        for call in ask(history):
            text = search(**json.loads(call.function.arguments))
            history.append({"role": "tool", "tool_call_id": call.id, "content": text[:most]})
    ask(history, "say")
"""


@pytest.fixture
def told(forks: Forks) -> Callable[..., Json]:
    """Return a function from a program to what it emitted; the model calls a tool or answers, as its name says."""

    def run(body: str, **env: str) -> Json:
        numbers = iter(range(10_000))

        def decide(request: Json) -> Reply:
            if request["model"] == "say":
                return "done"
            number = next(numbers)
            return [ToolCall(f"call_{number}", "search", {"query": f"lamps {number}"})]

        with OpenAIServer(decide) as server:
            program = f"client.base_url = {server.base_url!r}\n{body}"
            report: Json = forks.measure("openai-agents", BEGIN, program, env)
        assert report["errors"] == {}
        return report

    return run


def runs(report: Json) -> list[tuple[int, int, int]]:
    """Return for each call the number of its trace and of its conversation, in their order, and its turn."""
    calls = [span for span in report["spans"] if span["name"] == "execute_tool search"]
    traces = list(dict.fromkeys(span["trace"] for span in calls))
    conversations = list(dict.fromkeys(span["attributes"]["gen_ai.conversation.id"] for span in calls))
    return [
        (
            traces.index(span["trace"]),
            conversations.index(span["attributes"]["gen_ai.conversation.id"]),
            span["attributes"]["agent_otel.conversation.turn"],
        )
        for span in calls
    ]


def test_a_message_of_the_user_begins_a_run_and_a_trace(told: Callable[..., Json]) -> None:
    report = told(
        """
history = []
turn(history, "Which lamp sells best?")
turn(history, "And in Hamburg?")
"""
    )
    # The third request of each run is the answer.
    assert runs(report) == [(0, 0, 1), (0, 0, 2), (1, 0, 4), (1, 0, 5)]
    # The first request of each run is the root.
    assert [span["parent"] for span in report["spans"]] == ["chat call"] * 4


def test_what_the_loop_cuts_is_found_without_an_id(told: Callable[..., Json]) -> None:
    report = told('turn([], "Which lamp sells best?", calls=3, most=1000)')
    assert counted(report, "tool.result.delivered") == {"search": 3_000}
    assert counted(report, "tool.results.truncated") == {"search model_request shrunk": 3}
    # The second request after the first holds one earlier result, the third two.
    assert counted(report, "tool.result.resent") == {"search": 3_000}
    assert counted(report, "answers.incomplete") == {"search shrunk": 3}  # one for each result
    assert counted(report, "tool.results.unmatched") == {}


def test_conversations_that_begin_alike_are_separate(told: Callable[..., Json]) -> None:
    """One after the other, and at the same time in two threads."""
    report = told(
        """
def converse():
    history = []
    turn(history, "Which lamp sells best?")
    turn(history, "And in Hamburg?", calls=1)
for _ in range(2):
    contextvars.copy_context().run(converse)
threads = [threading.Thread(target=converse) for _ in range(2)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
""",
    )
    found = runs(report)
    assert len(found) == 12
    assert len({trace for trace, _, _ in found}) == 8
    assert len({conversation for _, conversation, _ in found}) == 4
    for number in range(4):
        assert [turn for _, conversation, turn in found if conversation == number] == [1, 2, 4]
    assert counted(report, "model.history.lost") == {}


def test_tools_in_a_pool_of_threads_are_matched_by_their_arguments(told: Callable[..., Json]) -> None:
    """The threads have no context of the loop."""
    report = told(
        """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(2) as pool:
    history = [{"role": "user", "content": "Which lamp sells best?"}]
    for _ in range(3):
        for call in ask(history):
            text = pool.submit(search, **json.loads(call.function.arguments)).result()
            history.append({"role": "tool", "tool_call_id": call.id, "content": text[:1000]})
    ask(history, "say")
"""
    )
    assert counted(report, "tool.result.delivered") == {"search": 3_000}
    assert counted(report, "tool.results.truncated") == {"search model_request shrunk": 3}
    assert counted(report, "tool.results.unmatched") == {}


def test_limits_hold_for_each_run(told: Callable[..., Json]) -> None:
    report = told(
        """
history = []
turn(history, "Which lamp sells best?", calls=3)
turn(history, "And in Hamburg?", calls=3)
""",
        AGENT_OTEL_MAX_TOOL_CALLS="2",
    )
    assert counted(report, "limits.hit") == {"tool_calls": 2}
    assert counted(report, "tool.results.unmatched") == {}


_COMMAND = """
import json, sys
from typing import Annotated
from tests.contract.child import Telemetry
telemetry = Telemetry()
from langchain_core.messages import ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.types import Command
from langgraph.prebuilt import ToolNode
from langgraph.graph import START, MessagesState, StateGraph
from langchain_core.messages import AIMessage

class State(MessagesState):
    documents: str

@tool
def search(query: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command:
    "Search."
    found = ToolMessage("12 are found", tool_call_id=tool_call_id)
    return Command(update={"documents": "a" * 100_000, "messages": [found]})

graph = StateGraph(State)
graph.add_node("tools", ToolNode([search]))
graph.add_edge(START, "tools")
call = {"name": "search", "args": {"query": "lamps"}, "id": "call_1", "type": "tool_call"}
graph.compile().invoke({"messages": [AIMessage("", tool_calls=[call])], "documents": ""})
(span,) = [one for one in telemetry.spans() if one["name"] == "execute_tool search"]
print(json.dumps(span["attributes"]))
"""


def test_the_message_of_a_command_is_the_result(environment: Callable[[str], Environment]) -> None:
    """LangGraph's Command also updates other channels of the state, which no model reads."""
    done = environment("langchain").run(_COMMAND, env={"AGENT_OTEL": "1"}, check=True)
    span = json.loads(done.stdout.splitlines()[-1])
    assert (span["tool.result.bytes"], span["tool.result.truncated"]) == (12, False)
    # {"documents":"aaa..."}: 16 bytes around the text.
    assert span["tool.result.structured_bytes"] == 100_016


@pytest.mark.parametrize("system", [[], [{"role": "system", "content": "You are kind and know our lamps."}]])
@pytest.mark.parametrize(
    ("questions", "runs_told"),
    [
        (("Which lamp sells best?", "Who bought this table?"), [(n, n, turn) for turn in (1, 2, 3) for n in (0, 1)]),
        (("Read page one of it.", "Read page two of it."), None),  # may be one conversation that begins anew
    ],
)
def test_conversations_in_lock_step_lose_nothing(
    told: Callable[..., Json], system: list[Json], questions: tuple[str, str], runs_told: object
) -> None:
    report = told(
        f"""
histories = [[*{system!r}, {{"role": "user", "content": each}}] for each in {questions!r}]
for number in range(4):
    for history in histories:
        for call in ask(history, "call" if number < 3 else "say"):
            text = search(**json.loads(call.function.arguments))
            history.append({{"role": "tool", "tool_call_id": call.id, "content": text}})
"""
    )
    assert counted(report, "model.history.lost") == {}
    assert counted(report, "answers.incomplete") == {}
    assert runs_told is None or runs(report) == runs_told
