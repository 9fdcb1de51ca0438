"""Requests that several layers see, LangChain and a provider's SDK: counted once, and whose they are is known."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel.testing.servers.openai import OllamaServer, OpenAIServer, ToolCall, chat_completion, tool_results
from agent_otel.testing.servers.scripted import Answer
from tests.unit.core.test_delivery import counted, cuts

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.testing.servers.openai import Json, Reply
    from agent_otel.testing.servers.scripted import Endpoint
    from tests.forks import Forks

    Told = Callable[..., Json]

#: What each program begins with; a fork of its own runs each.
BEGIN = """
import asyncio
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool

def openai(**more):
    from langchain_openai import ChatOpenAI
    return ChatOpenAI(model="scripted", base_url=base_url, api_key="scripted", max_retries=0, **more)

def ollama():
    from langchain_ollama import ChatOllama
    return ChatOllama(model="scripted", base_url=base_url)

class Fake(GenericFakeChatModel):
    def bind_tools(self, tools, **more):
        return self.bind(tools=[{"name": each.name} for each in tools], **more)

def fake(*answers):
    return Fake(messages=iter(answers))

def asks(*calls, name="big"):
    return AIMessage("", tool_calls=[{"id": i, "name": name, "args": {"n": n}} for i, n in calls])

@tool
def big(n: int) -> str:
    "Return so many letters."
    return "x" * n

def thread(name):
    return {"configurable": {"thread_id": name}}
"""

PROGRAM = """
base_url = {base_url!r}
# One loop, because model clients keep their connections.
run = asyncio.new_event_loop().run_until_complete

{body}
"""


@pytest.fixture
def told(forks: Forks) -> Told:
    """Return a function from a program to what it emitted, and what the model was sent meanwhile."""

    def run(
        body: str,
        row: str = "langchain",
        model: type[Any] = OpenAIServer,
        decide: Callable[[Json], Reply] | None = None,
    ) -> Json:
        with model(decide or (lambda _: "done")) as server:
            program = PROGRAM.format(base_url=server.base_url, body=textwrap.dedent(body))
            begin = f"{BEGIN}\nimport langchain_openai" if "openai()" in body else BEGIN  # others must not load the SDK
            report: Json = forks.measure(row, begin, program, {"LANGSMITH_TRACING": "false"})
        assert report["errors"] == {}
        assert report["messages"] == []
        report["requests"] = server.requests
        return report

    return run


def one_by_one(*sizes: int) -> Callable[[Json], Reply]:
    """Ask for a call in each turn, until there are no more."""

    def decide(request: Json) -> Reply:
        answered = len(tool_results(request))
        if answered == len(sizes):
            return "done"
        return [ToolCall(f"call_{answered}", "big", {"n": sizes[answered]})]

    return decide


def requests(report: Json) -> dict[str, tuple[int, float]]:
    """How many requests there were, and their bytes, by part."""
    return {
        metric["attributes"]["part"]: (metric["count"], metric["sum"])
        for metric in report["metrics"]
        if metric["name"] == "agent_otel.model.request.size"
    }


STYLES = """
    model.invoke("go")
    run(model.ainvoke("go"))
    list(model.stream("go"))
    for _ in model.stream([("user", "go")]):
        break
    model.batch(["go", "go"])

    async def streamed():
        async for _ in model.astream("go"):
            pass
        async for _ in model.astream_events("go", version="v2"):
            pass
    run(streamed())
"""


@pytest.mark.parametrize("row", ["langchain", "langchain-oldest"])
def test_each_style_over_an_sdk_is_one_request(told: Told, row: str) -> None:
    report = told("model = openai()" + textwrap.dedent(STYLES), row=row)
    assert len(report["requests"]) == 8
    assert requests(report)["user"] == (8, 16)


@pytest.mark.parametrize("row", ["langchain", "langchain-oldest"])
def test_each_style_of_a_model_that_no_adapter_knows_is_one_request(told: Told, row: str) -> None:
    report = told("model = fake(*['done'] * 8)" + textwrap.dedent(STYLES), row=row)
    assert requests(report)["user"] == (8, 16)


def test_a_stream_of_events_is_one_request(told: Told) -> None:
    report = told(
        """
        for model in (openai(), fake("done", "done")):
            for _ in model.stream_events("go", version="v3"):
                pass
            async def streamed():
                async for _ in await model.astream_events("go", version="v3"):
                    pass
            run(streamed())
        """
    )
    assert len(report["requests"]) == 2
    assert requests(report)["user"] == (4, 8)


@pytest.mark.parametrize("row", ["langchain", "langchain-oldest"])
def test_an_answer_out_of_a_cache_is_no_request(told: Told, row: str) -> None:
    report = told(
        """
        from langchain_core.caches import InMemoryCache
        for model in (openai(), fake("done", "done")):
            model.cache = InMemoryCache()
            for turn in range(3):
                model.invoke("go")
                run(model.ainvoke("go"))
        """,
        row=row,
    )
    assert len(report["requests"]) == 1
    assert requests(report)["user"] == (2, 4)


def test_the_parts_of_langchain_s_messages(told: Told) -> None:
    report = told(
        """
        call = {"id": "call_1", "name": "big", "args": {"n": 1}}
        block = {"type": "tool_use", "id": "call_2", "name": "big", "input": {"n": 2}}
        fake("done").bind_tools([big]).invoke([
            SystemMessage("s" * 10),
            HumanMessage([{"type": "text", "text": "u" * 20}]),
            AIMessage("a" * 30, tool_calls=[call]),
            ToolMessage("t" * 40, tool_call_id="call_1", artifact="x" * 500),
            AIMessage([{"type": "text", "text": "b" * 50}, block], tool_calls=[{**call, "id": "call_2"}]),
            ToolMessage([{"type": "text", "text": "t" * 60}], tool_call_id="call_2"),
        ])
        """
    )
    # {"n":1} twice, and [{"name":"big"}]
    assert requests(report) == {
        "system": (1, 10),
        "user": (1, 20),
        "assistant": (1, 80),
        "tool_arguments": (1, 14),
        "tool_results": (1, 100),
        "tools": (1, 16),
    }


GRAPH = """
    from langchain.agents import create_agent
    agent = create_agent({model}, [big], name="clerk", system_prompt="Be kind.")
    for turn, name in enumerate({threads}):
        call = {{"id": f"call_{{turn}}", "name": "big", "args": {{"n": turn}}}}
        said = [HumanMessage("go"), AIMessage("", tool_calls=[call]), ToolMessage("found", tool_call_id=call["id"])]
        agent.invoke({{"messages": said}}, thread(name)) if {sync} else run(
            agent.ainvoke({{"messages": said}}, thread(name)))
"""


@pytest.mark.parametrize("sync", [True, False])
@pytest.mark.parametrize("model", ["openai()", "fake('done', 'done')"])
def test_a_graph_s_thread_and_its_agent_reach_the_request(told: Told, model: str, *, sync: bool) -> None:
    """The call that a request shows has the names of the run, and the number of the thread's request before it.

    That request showed the model's call of turn 1, and so was itself the second.
    """
    names = ("gen_ai.agent.name", "gen_ai.conversation.id", "agent_otel.conversation.turn")
    for threads, turns in ((("t-1", "t-1"), (None, 2)), (("t-1", "t-2"), (None, None))):
        report = told(textwrap.dedent(GRAPH).format(model=model, threads=threads, sync=sync))
        calls = [span["attributes"] for span in report["spans"] if span["name"] == "execute_tool big"]
        found = [tuple(call.get(name) for name in names) for call in calls]
        assert found == [("clerk", thread, turn) for thread, turn in zip(threads, turns, strict=True)]


def test_calls_that_are_numbered_anew_in_each_thread_are_told_apart(told: Told) -> None:
    report = told(
        """
        from langgraph.prebuilt import create_react_agent
        from langchain.agents import create_agent
        agents = [create_agent(fake(asks(("call_1", n)), "done"), [big]) for n in (9000, 90)]
        async def both():
            turns = [agent.ainvoke({"messages": [("user", "go")]}, thread(str(number)))
                     for number, agent in enumerate(agents)]
            await asyncio.gather(*turns)
        run(both())
        """
    )
    assert counted(report, "tool.result.delivered") == {"big": 9090}
    assert counted(report, "tool.results.truncated") == {}


@pytest.mark.parametrize("model", ["openai()", "fake('done')"])
@pytest.mark.parametrize(
    ("history", "doubled"),
    [
        ("HumanMessage('a', id='1'), AIMessage('b', id='2'), HumanMessage('a', id='1'), HumanMessage('c')", True),
        ("HumanMessage('a'), AIMessage('b'), HumanMessage('a'), HumanMessage('c')", False),
        ("HumanMessage('a', id='1'), asks(('call_1', 1), ('call_2', 2)).model_copy(update={'id': '2'})", False),
    ],
)
def test_messages_that_stand_in_a_request_twice(told: Told, model: str, history: str, *, doubled: bool) -> None:
    report = told(
        f"""
        import agent_otel
        with agent_otel.execution("run", agent="clerk"):
            {model}.invoke([{history}])
        """
    )
    assert counted(report, "model.history.doubled") == ({"clerk": 1} if doubled else {})


@pytest.mark.parametrize("call", ["invoke(history)", "stream(history)"])
def test_a_cut_before_a_model_that_no_adapter_knows_is_found(told: Told, call: str) -> None:
    report = told(
        f"""
        import agent_otel
        with agent_otel.execution("run"):
            answer = asks(("call_1", 5000), ("call_2", 700))
            results = [big.invoke({{**call, "type": "tool_call"}}) for call in answer.tool_calls]
            results[0].content = results[0].content[:1000]
            history = [HumanMessage("go"), answer, *results]
            list(fake("done").{call})
        """
    )
    assert cuts(report) == [("execute_tool big", 5000, 1000, "model_request", "shrunk")]
    assert counted(report, "tool.result.delivered") == {"big": 1700}


def test_what_a_middleware_clears_in_the_request_alone_is_no_cut_on_delivery(told: Told) -> None:
    """LangChain's context editing leaves the state as it is, so that only the request shows it."""
    report = told(
        """
        from langchain.agents import create_agent
        from langchain.agents.middleware import ClearToolUsesEdit, ContextEditingMiddleware
        editing = ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=2000, keep=1)])
        agent = create_agent(openai(), [big], middleware=[editing])
        state = agent.invoke({"messages": [("user", "go")]}, thread("t-1"))
        kept = [len(message.content) for message in state["messages"] if message.type == "tool"]
        assert kept == [9000, 8000, 7000], kept
        """,
        decide=one_by_one(9000, 8000, 7000),
    )
    last = tool_results(report["requests"][-1])
    assert [len(text) for text in last.values()] == [9, 9, 7000]  # [cleared]
    assert counted(report, "tool.result.delivered") == {"big": 24_000}
    assert counted(report, "tool.results.truncated") == {}
    assert counted(report, "tool.results.cleared") == {"big": 2}
    assert cuts(report) == []


def test_deepagents_moves_a_large_result_to_a_file_by_default(told: Told) -> None:
    report = told(
        """
        from deepagents import create_deep_agent
        agent = create_deep_agent(openai(), [big])
        agent.invoke({"messages": [("user", "go")]}, thread("t-1"))
        """,
        row="deepagents",
        decide=one_by_one(400_000, 51_234),
    )
    sent = {call: len(text.encode()) for call, text in tool_results(report["requests"][-1]).items()}
    assert sent["call_0"] < 2000
    assert sent["call_1"] == 51_234
    ((parent, produced, delivered, layer, reason),) = cuts(report)
    assert (parent, produced, delivered) == ("execute_tool big", 400_000, None)
    assert (layer, reason) == ("framework", "offloaded")
    handed_back = [span["attributes"].get("tool.result.handed_back_bytes") for span in report["spans"]]
    assert sent["call_0"] in handed_back
    assert counted(report, "tool.results.truncated") == {"big framework offloaded": 1}
    over = {labels: count for labels, count in counted(report, "tool.results.over_budget").items() if count}
    assert over == {"big framework": 1}
    assert counted(report, "tool.result.delivered") == {"big": sum(sent.values())}


def test_without_ids_on_the_wire_results_are_known_by_the_order_of_the_calls(told: Told) -> None:
    """LangChain's client of Ollama sends neither ids nor the tools' names."""
    report = told(
        """
        from langgraph.prebuilt import create_react_agent
        agent = create_react_agent(ollama(), [big])
        agent.invoke({"messages": [("user", "go")]}, thread("t-1"))
        """,
        row="ollama",
        model=OllamaServer,
        decide=one_by_one(300, 9000, 600, 20),
    )
    assert all("tool_name" not in message for message in report["requests"][-1]["messages"])
    assert counted(report, "tool.result.delivered") == {"big": 9920}
    assert counted(report, "tool.results.truncated") == {}


def test_tokens_that_the_provider_had_cached_are_counted_once(told: Told) -> None:
    """LangChain's client of OpenAI gets raw answers from the SDK and reads them itself; another may read them, too."""
    report = told(
        """
        from langchain_core.language_models import SimpleChatModel
        from langchain_core.outputs import ChatGeneration, ChatResult
        cached = {"input_tokens": 50, "output_tokens": 1, "total_tokens": 51, "input_token_details": {"cache_read": 40}}

        class Own(SimpleChatModel):
            _llm_type = "own"

            def _call(self, *_, **__):
                raise NotImplementedError

            def _generate(self, *_, **__):
                openai().root_client.chat.completions.create(model="scripted", messages=[])
                return ChatResult(generations=[ChatGeneration(message=AIMessage("done", usage_metadata=cached))])

        fake(AIMessage("done", usage_metadata=cached)).invoke("go")
        openai().invoke("go")
        Own().invoke("go")
        """,
        model=CachingServer,
    )
    assert counted(report, "model.cached_tokens") == {"": 40 + 2 * 1024}


class CachingServer(OpenAIServer):
    """Says that it had 1,024 tokens of the prompt cached."""

    def endpoints(self) -> dict[str, Endpoint]:
        """Return chat completions with cached tokens."""

        def cached(request: Json, reply: Reply) -> Answer:
            completion = chat_completion(request, reply)
            completion["usage"]["prompt_tokens_details"] = {"cached_tokens": 1024}
            return Answer(json.dumps(completion).encode())

        return {"/v1/chat/completions": cached}
