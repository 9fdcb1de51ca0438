"""The end of a run at its limit: one more request, without usable tools, and the answer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from agent_otel.remedies.history.request_rewriter import NOTE
from agent_otel.testing.servers.anthropic import AnthropicServer, BedrockServer
from agent_otel.testing.servers.openai import CohereServer, OllamaServer, OpenAIServer, ToolCall
from agent_otel.testing.servers.providers import GeminiServer, GeminiServerWithIds
from tests.contract import script
from tests.contract.suite import QUIET
from tests.forks import agents
from tests.servers.mistral import MistralServer

if TYPE_CHECKING:
    from collections.abc import Callable
    from subprocess import CompletedProcess

    from agent_otel.testing.servers.openai import Reply
    from agent_otel.testing.servers.scripted import ScriptedServer
    from tests.contract.cases import Json
    from tests.environments import Environment
    from tests.forks import Forks

MOST = 3
_CONVERSATION = """
import sys
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import MemorySaver

ran = []

def fetch(key: str) -> str:
    'Fetch a record.'
    ran.append(key)
    return "found"

model = ChatOpenAI(model="scripted", base_url=sys.argv[1], api_key="scripted", max_retries=0)
agent = create_agent(model, [fetch], checkpointer=MemorySaver())
for question in ("first", "second"):
    result = agent.invoke(
        {"messages": [{"role": "user", "content": question}]}, {"configurable": {"thread_id": "thread-1"}}
    )
    print(question, len(ran), result["messages"][-1].content)
"""
_OUTPUT_TOOL = """
import sys
from openai import AsyncOpenAI
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

class City(BaseModel):
    name: str

def fetch(key: str) -> str:
    'Fetch a record.'
    return "found"

client = AsyncOpenAI(base_url=sys.argv[1], api_key="scripted", max_retries=0)
model = OpenAIChatModel("scripted", provider=OpenAIProvider(openai_client=client))
print(Agent(model, tools=[fetch], output_type=City).run_sync("go", conversation_id="thread-1").output)
"""


def _fields(**values: str) -> str:
    """Return what a model of DSPy writes."""
    return "\n\n".join(f"[[ ## {name} ## ]]\n{value}" for name, value in {**values, "completed": ""}.items())


class Carrier(NamedTuple):
    """A framework, its environment and the provider's server; how it is run.

    The program names an execution only where the framework has no run of its own.
    """

    agent: str
    environment: str
    server: type[OpenAIServer | ScriptedServer] = OpenAIServer
    mode: str = "async"
    setting: str = ""
    execution: str = ""


CARRIERS = {
    "langgraph": Carrier("langgraph", "langchain"),
    "langgraph, sync": Carrier("langgraph", "langchain", mode="sync"),
    "openai-agents": Carrier("openai_agents", "openai-agents"),
    "pydantic-ai": Carrier("pydantic_ai", "pydantic-ai"),
    "pydantic-ai, responses": Carrier("pydantic_ai", "pydantic-ai", setting="responses"),
    "anthropic's tool runner": Carrier("anthropic_runner", "anthropic", AnthropicServer, execution="r-1"),
    "anthropic": Carrier("anthropic_client", "anthropic", AnthropicServer, execution="r-1"),
    "google-genai": Carrier("google_functions", "google-genai", GeminiServer, execution="r-1"),
    "google-adk": Carrier("google_adk", "google-adk", GeminiServerWithIds),
    "bedrock": Carrier("bedrock_client", "bedrock", BedrockServer, mode="sync", execution="r-1"),
    "strands": Carrier("strands", "strands"),
    "strands, bedrock": Carrier("strands", "strands", BedrockServer, setting="bedrock"),
    "smolagents": Carrier("smolagents", "smolagents", mode="sync"),
    "agentscope": Carrier("agentscope", "agentscope"),
    "agno": Carrier("agno", "agno"),
    "camel": Carrier("camel", "camel-ai"),
    "fireworks, messages": Carrier("fireworks_messages", "fireworks", AnthropicServer, execution="r-1"),
    "huggingface": Carrier("huggingface_client", "huggingface", mode="sync", execution="r-1"),
    "azure-ai-inference": Carrier("azure_client", "azure-inference", execution="r-1"),
    "xai-sdk": Carrier("xai_client", "xai", execution="r-1"),
    "cohere": Carrier("cohere_client", "cohere", CohereServer, mode="sync", execution="r-1"),
    "mistral": Carrier("mistral_client", "mistralai", MistralServer, mode="sync", execution="r-1"),
    "haystack": Carrier("haystack", "haystack", mode="sync"),
    "llama-index": Carrier("llama_index", "llama-index"),
    "semantic-kernel": Carrier("semantic_kernel", "semantic-kernel"),
    "litellm": Carrier("litellm_client", "litellm", mode="sync", execution="r-1"),
    "openai": Carrier("openai_client", "openai-agents", execution="r-1"),
    "openai's tool runner": Carrier("openai_runner", "openai-agents", execution="r-1"),
    "groq": Carrier("groq_client", "groq", mode="sync", execution="r-1"),
    "together": Carrier("together_client", "together", mode="sync", execution="r-1"),
    "fireworks": Carrier("fireworks_client", "fireworks", mode="sync", execution="r-1"),
    "agent-framework": Carrier("agent_framework", "agent-framework"),
    "ag2": Carrier("ag2", "ag2"),
    "autogen": Carrier("autogen", "autogen"),
    "deepagents": Carrier("deepagents", "deepagents"),
    "crewai": Carrier("crewai", "crewai"),
    "ollama": Carrier("ollama_client", "ollama", OllamaServer, mode="sync", execution="r-1"),
    "langgraph, streamed": Carrier("langgraph", "langchain", mode="stream"),
    "openai-agents, streamed": Carrier("openai_agents", "openai-agents", mode="stream"),
    "openai-agents, responses, streamed": Carrier("openai_agents", "openai-agents", mode="stream", setting="responses"),
    "pydantic-ai, streamed": Carrier("pydantic_ai", "pydantic-ai", mode="stream"),
    "anthropic's tool runner, streamed": Carrier(
        "anthropic_runner", "anthropic", AnthropicServer, "stream", execution="r-1"
    ),
    "anthropic's tool runner, eager": Carrier(
        "anthropic_runner", "anthropic", AnthropicServer, "stream", "eager", "r-1"
    ),
    "google-adk, streamed": Carrier("google_adk", "google-adk", GeminiServerWithIds, mode="stream"),
    "strands, streamed": Carrier("strands", "strands", mode="stream"),
}


#: Agents whose calls are texts of the model: what the last request has alone, and what the model writes for a call and
#: for the answer. The last request of `ReAct` is the framework's own, in which no tool is named.
IN_TEXT = {
    "crewai": (
        Carrier("crewai", "crewai", setting="text"),
        NOTE,
        "Thought: so\nAction: fetch\nAction Input: {arguments}",
        "Thought: I know.\nFinal Answer: done",
    ),
    "dspy": (
        Carrier("dspy", "dspy", mode="sync"),
        'Given the fields `question`, produce the fields `answer`."',
        _fields(next_thought="so", next_tool_name="fetch", next_tool_args="{arguments}"),
        _fields(reasoning="so", answer="done"),
    ),
    "dspy, async": (
        Carrier("dspy", "dspy"),
        'Given the fields `question`, produce the fields `answer`."',
        _fields(next_thought="so", next_tool_name="fetch", next_tool_args="{arguments}"),
        _fields(reasoning="so", answer="done"),
    ),
    "dspy, v2": (
        Carrier("dspy", "dspy", setting="v2"),
        NOTE,
        _fields(next_thought="so", tool_calls='{"tool_calls": [{"name": "fetch", "args": {arguments}}]}'),
        _fields(next_thought="so", tool_calls='{"tool_calls": [{"name": "submit", "args": {"answer": "done"}}]}'),
    ),
}


def usable(request: Json) -> bool:
    """Return whether a request lets the model call the tools in it, by the rules of its provider."""
    config = request.get("toolConfig", {})
    choice = request.get("tool_choice") or config.get("functionCallingConfig")
    none = choice in ("none", "NONE", {"type": "none"}, {"mode": "NONE"})
    offered = json.dumps([request.get("tools"), config])
    tools = any(name in offered for name in ("fetch", "lookup")) or request.get("thread", {}).get("type") == "continue"
    return tools and not none


def run(carrier: Carrier, forks: Forks) -> tuple[list[Json], Json]:
    """Run an agent whose model calls a tool as long as it may, first once and then four times at once.

    Return its requests, and what the child reported.
    """

    def decide(_: Json) -> Reply:
        number = len(server.requests)
        if not usable(server.requests[-1]) or number > 3 * MOST:
            is_tool = "final_answer" in json.dumps(server.requests[-1].get("tools"))
            return [ToolCall("call_last", "final_answer", '{"answer": "done"}')] if is_tool else "done"
        keys = [f"k{number}{letter}" for letter in ("a" if number == 1 else "abcd")]
        return [ToolCall(f"call_{key}", "fetch", json.dumps({"key": key})) for key in keys]

    with carrier.server(decide) as server:
        return server.requests, _ran(carrier, forks, server.base_url)


def _ran(carrier: Carrier, forks: Forks, base_url: str) -> Json:
    """Run an agent; return what the child reported."""
    prompt = script.prompt(("call_1", "fetch", {"key": "k1"}))
    return _ran_cases(carrier, forks, base_url, {"it": _case(carrier, prompt)})


def _case(carrier: Carrier, prompt: str, *tools: str) -> Json:
    return {
        "tools": ["fetch", *tools],
        "prompt": prompt,
        "mode": carrier.mode,
        "setting": carrier.setting,
        "execution": carrier.execution,
    }


def _ran_cases(carrier: Carrier, forks: Forks, base_url: str, cases: Json) -> Json:
    """Run agents; return what the child reported."""
    done = ran_in_fork(carrier, forks, base_url, cases, {"AGENT_OTEL_MAX_TOOL_CALLS": str(MOST)})
    report: Json = json.loads(done.stdout.splitlines()[-1])
    return report


def ran_in_fork(
    carrier: Carrier, forks: Forks, base_url: str, cases: Json, variables: dict[str, str]
) -> CompletedProcess[str]:
    """Run the cases of the remedies' contract in a fork of the child that has imported the framework."""
    begin = f"import json\nfrom tests.contract.remedies import child\n{agents(carrier.environment, carrier.agent)}"
    given = (f"tests.contract.agents.{carrier.agent}", base_url, {"cases": cases, "hints": {}})
    settings = {**QUIET, "AGENT_OTEL": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True", **variables}
    return forks.run(carrier.environment, begin, f"print(json.dumps(child.main(*{given!r})))", settings)


@pytest.mark.parametrize("name", CARRIERS)
@pytest.mark.shows("002.final_answer")
def test_one_more_request_follows_the_limit_and_it_is_the_last(forks: Forks, name: str) -> None:
    requests, report = run(CARRIERS[name], forks)
    case: Any = report["cases"]["it"]
    assert "done" in case["said"]
    assert len(case["ran"]) == MOST
    assert [usable(request) for request in requests] == [True, True, False]
    assert [NOTE in json.dumps(request) for request in requests] == [False, False, True]
    assert report["errors"] == {}
    assert case["messages"] == []
    skipped = [event for span in case["spans"] for event in span["events"] if event["name"] == "tool_call"]
    assert [event["attributes"] for event in skipped] == [{"phase": "skipped", "limit": "tool_calls"}] * 2


#: Frameworks that answer the call of a tool which they do not have, and go on. The others end the run themselves:
#: openai-agents at once, Pydantic AI after a retry, smolagents after `max_steps`, Agent Framework after three errors.
ANSWERING = (
    *("langgraph", "anthropic's tool runner", "anthropic's tool runner, streamed", "google-adk", "strands"),
    *("strands, bedrock", "agentscope", "agno", "camel", "haystack", "llama-index", "semantic-kernel", "ag2"),
    *("autogen", "deepagents", "crewai"),
)


@pytest.mark.parametrize("name", ANSWERING)
@pytest.mark.shows("002.max_tool_calls")
def test_calls_of_a_tool_that_the_framework_does_not_have_count_in_the_limit(forks: Forks, name: str) -> None:
    carrier = CARRIERS[name]

    def decide(_: Json) -> Reply:
        number = len(server.requests)
        if not usable(server.requests[-1]) or number > 3 * MOST:
            return "done"
        # The first call runs; the framework answers the others, the last of which is above the limit.
        tool = "fetch" if number == 1 else "imagined"
        return [ToolCall(f"call_{number}", tool, json.dumps({"key": f"k{number}"}))]

    with carrier.server(decide) as server:
        report = _ran(carrier, forks, server.base_url)
    case: Any = report["cases"]["it"]
    assert [usable(request) for request in server.requests] == [True] * (MOST + 1) + [False]
    assert [NOTE in json.dumps(request) for request in server.requests] == [False] * (MOST + 1) + [True]
    assert "done" in case["said"]
    assert len(case["ran"]) == 1
    hits = [point for point in case["metrics"] if point["name"] == "agent_otel.limits.hit" and point["sum"]]
    assert [(point["attributes"]["limit"], point["sum"]) for point in hits] == [("tool_calls", 1)]
    assert (report["errors"], case["messages"]) == ({}, [])


#: Loops of the program's own, in which nothing but the requests shows the calls.
_OWN_LOOP = """
import contextlib, json, sys
import agent_otel
from openai import OpenAI

tools = [{"type": "function", "function": {"name": "fetch", "parameters": {"type": "object", "properties": {}}}}]
client = OpenAI(base_url=sys.argv[1], api_key="scripted", max_retries=0)
ran = 0
with agent_otel.execution("run-1") if sys.argv[2] == "named" else contextlib.nullcontext():
    for question in ("first", "second"):
        messages = [{"role": "user", "content": question}]
        while True:
            said = client.chat.completions.create(model="scripted", messages=messages, tools=tools).choices[0].message
            messages.append(said)
            if not said.tool_calls:
                break
            for call in said.tool_calls:
                ran += 1
                messages.append({"role": "tool", "tool_call_id": call.id, "content": "found"})
        print(question, ran, said.content)
"""


@pytest.mark.parametrize("named", ["named", "without a name"])
def test_a_loop_of_the_programs_own_ends_at_the_limit_of_a_named_execution(
    environment: Callable[[str], Environment], named: str
) -> None:
    def decide(request: Json) -> Reply:
        number = len(server.requests)
        if not usable(request) or (number > 5 and named != "named"):
            return "done"
        return [ToolCall(f"call_{number}", "fetch", "{}")]

    with OpenAIServer(decide) as server:
        done = environment("openai-agents").run(
            _OWN_LOOP, server.base_url, named, env={"AGENT_OTEL": "1", "AGENT_OTEL_MAX_TOOL_CALLS": "3"}, check=True
        )
    said = "do not hold for a call that belongs to no execution" in done.stderr
    if named == "named":  # the fourth call has run before its result is seen; so has the first of the next question
        assert done.stdout.splitlines() == ["first 4 done", "second 5 done"]
        assert [usable(request) for request in server.requests] == [True] * 4 + [False, True, False]
    else:
        assert done.stdout.splitlines() == ["first 4 done", "second 4 done"]  # each question is a run
    assert not said


#: What the model calls in the first turn of an agent whose tool `delegate` is another agent.
FIRST = {"one": ["delegate"], "both": ["delegate", "delegate", "fetch"]}
NESTED = {
    "langgraph": CARRIERS["langgraph"],
    "openai-agents": CARRIERS["openai-agents"],
    "pydantic-ai": CARRIERS["pydantic-ai"],
    "anthropic's tool runner": CARRIERS["anthropic's tool runner"],
    "google-adk": CARRIERS["google-adk"],
    "strands": CARRIERS["strands"],
}


@pytest.mark.parametrize("name", NESTED)
def test_an_agent_in_a_tool_ends_at_the_limit_of_the_whole_run(forks: Forks, name: str) -> None:
    seen: list[tuple[str, str, bool, bool]] = []

    def decide(_: Json) -> Reply:
        request = server.requests[-1]
        number, text = len(server.requests), json.dumps(request)
        case = "streamed" if "streamed" in text else "both" if "both" in text else "one"
        agent = "outer" if "outer" in text else "inner"
        first = not any(known[:2] == (case, agent) for known in seen)
        seen.append((case, agent, usable(request), NOTE in text))
        if not usable(request) or number > 60:
            return "done"
        if agent == "inner":
            letters = "a" if first and case == "one" else "abcd"
            return [ToolCall(f"inner_{case}_{number}{each}", "lookup", '{"key": "k"}') for each in letters]
        names = FIRST["one" if case == "one" else "both"] if first else ["fetch", "fetch"]
        given = {"delegate": {"input": f"inner {case}"}, "fetch": {"key": "k"}}
        return [
            ToolCall(f"outer_{case}_{number}{place}", each, json.dumps(given[each])) for place, each in enumerate(names)
        ]

    carrier = NESTED[name]
    with carrier.server(decide) as server:
        cases = {case: _case(carrier, f"outer {case}", "delegate") for case in ("one", "both", "streamed")}
        cases["streamed"]["mode"] = "stream"
        for case, plan in cases.items():
            plan["execution"] = carrier.execution and case
        report = _ran_cases(carrier, forks, server.base_url, cases)
    asked = {case: [known[1:] for known in seen if known[0] == case] for case in cases}
    usual, last = (True, False), (False, True)
    assert asked["one"] == [
        *(("outer", *usual), ("inner", *usual), ("inner", *usual), ("inner", *last)),
        *(("outer", *usual), ("outer", *last)),
    ]
    in_turn = name == "anthropic's tool runner"  # so that the first inner run uses the calls of the others
    for case in ("both", "streamed"):
        if in_turn:
            assert asked[case] == [("outer", *usual), ("inner", *usual), ("inner", *last), ("outer", *last)]
        else:
            assert sorted(asked[case][1:5]) == [("inner", *last)] * 2 + [("inner", *usual)] * 2
            assert [asked[case][0], *asked[case][5:]] == [("outer", *usual), ("outer", *usual), ("outer", *last)]
    skipped = {
        case: [event["attributes"] for span in one["spans"] for event in span["events"] if event["name"] == "tool_call"]
        for case, one in report["cases"].items()
    }
    attributes = {"phase": "skipped", "limit": "tool_calls"}
    both = [attributes] * (4 if in_turn else 10)
    assert skipped == {"one": [attributes] * 5, "both": both, "streamed": both}
    assert [(one["said"], one["messages"]) for one in report["cases"].values()] == [("done", [])] * 3
    assert report["errors"] == {}


@pytest.mark.parametrize("name", IN_TEXT)
def test_one_more_request_follows_the_limit_where_calls_are_texts(forks: Forks, name: str) -> None:
    carrier, last, calls, answers = IN_TEXT[name]

    def decide(request: Json) -> Reply:
        number = len(server.requests)
        is_last = last in json.dumps(request) or number > 3 * MOST
        return answers if is_last else calls.replace("{arguments}", json.dumps({"key": f"k{number}"}))

    with OpenAIServer(decide) as server:
        report = _ran(carrier, forks, server.base_url)
    case: Any = report["cases"]["it"]
    assert "done" in case["said"]
    assert len(case["ran"]) == MOST
    for text in ("limit_reached", last):
        assert [text in json.dumps(request) for request in server.requests] == [False] * (MOST + 1) + [True]
    assert (report["errors"], case["messages"]) == ({}, [])


def test_the_next_message_of_a_conversation_begins_afresh_below_the_conversations_own_limit(
    environment: Callable[[str], Environment],
) -> None:
    def decide(request: Json) -> Reply:
        number = len(server.requests)
        if not usable(request) or number > 3 * MOST:
            return "done"
        return [ToolCall(f"call_{number}", "fetch", json.dumps({"key": f"k{number}"}))]

    limits = {"AGENT_OTEL_MAX_TOOL_CALLS": "3", "AGENT_OTEL_MAX_TOOL_CALLS_PER_CONVERSATION": "4"}
    with OpenAIServer(decide) as server:
        done = environment("langchain").run(
            _CONVERSATION, server.base_url, env={**QUIET, "AGENT_OTEL": "1", **limits}, check=True
        )
    assert done.stdout.splitlines() == ["first 3 done", "second 4 done"]
    assert [usable(request) for request in server.requests] == [True] * 4 + [False] + [True] * 2 + [False]
    answers = [json.loads(text)["limit"] for text in server.tool_results().values() if "limit_reached" in text]
    assert answers == ["tool_calls", "conversation_tool_calls"]


def test_an_output_tool_still_carries_the_answer(environment: Callable[[str], Environment]) -> None:
    def decide(request: Json) -> Reply:
        number = len(server.requests)
        if not usable(request) or number > 3 * MOST:
            return [ToolCall("call_last", "final_result", '{"name": "Rome"}')]
        return [ToolCall(f"call_{number}", "fetch", json.dumps({"key": f"k{number}"}))]

    with OpenAIServer(decide) as server:
        done = environment("pydantic-ai").run(
            _OUTPUT_TOOL,
            server.base_url,
            env={**QUIET, "AGENT_OTEL": "1", "AGENT_OTEL_MAX_TOOL_CALLS": str(MOST)},
            check=True,
        )
    assert done.stdout.splitlines() == ["name='Rome'"]
    offered = [[tool["function"]["name"] for tool in request["tools"]] for request in server.requests]
    assert offered == [["fetch", "final_result"]] * (MOST + 1) + [["final_result"]]
    assert {request["tool_choice"] for request in server.requests} == {"required"}
