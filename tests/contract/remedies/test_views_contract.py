"""Views of the history: what leaves for the model, in each SDK's own shape, and what the program keeps."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from agent_otel.testing.servers.anthropic import AnthropicServer, BedrockServer
from agent_otel.testing.servers.openai import OllamaServer, OpenAIServer, ToolCall
from agent_otel.testing.servers.providers import GeminiServer
from tests.forks import agents
from tests.servers.mistral import MistralServer
from tests.unit.remedies.history.histories import Asked, Turn, reading, rendered

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment
    from tests.forks import Forks

LONG = "line of a file\n" * 20  # 300 bytes
TRIMMED = "[trimmed 300 bytes] read: " + " ".join(["line of a file"] * 10) + "…"  # 178 bytes
LARGE = 'print("字")\n' * 200  # 13 bytes a line
MARK = "[argument removed: 2600 bytes]"  # 30
WRITTEN = {"path": "a.py", "content": LARGE}
LEFT = {"path": "a.py", "content": MARK}

PROGRAM = """
given, base_url = {given!r}, {base_url!r}
history = json.loads(given)
{send}
report = history == json.loads(given)
"""
CHAT = """
import openai
client = openai.OpenAI(base_url=base_url, api_key="scripted", max_retries=0)
client.chat.completions.create(model="scripted", messages=history)
"""
STREAMED = """
import asyncio, openai
async def main():
    client = openai.AsyncOpenAI(base_url=base_url, api_key="scripted", max_retries=0)
    async for _ in await client.chat.completions.create(model="scripted", messages=history, stream=True):
        pass
asyncio.run(main())
"""
RESPONSES = """
import openai
client = openai.OpenAI(base_url=base_url, api_key="scripted", max_retries=0)
client.responses.create(model="scripted", input=history)
"""
CONTINUED = """
import openai
client = openai.OpenAI(base_url=base_url, api_key="scripted", max_retries=0)
client.responses.create(model="scripted", input=history, previous_response_id="resp_1")
"""
MESSAGES = """
import anthropic
client = anthropic.Anthropic(base_url=base_url, api_key="scripted", max_retries=0)
client.messages.create(model="scripted", max_tokens=100, messages=history)
"""
CONVERSE = """
import boto3
client = boto3.client("bedrock-runtime", endpoint_url=base_url, region_name="us-east-1",
                      aws_access_key_id="scripted", aws_secret_access_key="scripted")
client.converse(modelId="scripted", messages=history)
"""
OLLAMA = """
import ollama
ollama.Client(host=base_url).chat(model="scripted", messages=history)
"""
MISTRAL = """
from mistralai.client import Mistral
Mistral(api_key="scripted", server_url=base_url).chat.complete(model="scripted", messages=history)
"""
LITELLM = """
import litellm
model = "openai/scripted" if base_url.endswith("/v1") else "anthropic/scripted"
litellm.completion(model, history, api_base=base_url, api_key="scripted", max_retries=0, max_tokens=100)
"""
CONTENTS = """
from google import genai
client = genai.Client(api_key="scripted", http_options={"base_url": base_url})
client.models.generate_content(model="gemini-scripted", contents=history)
"""


SUMMARISED = """
import sys
import agent_otel.auto
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
base_url, kind = sys.argv[1:]
model = ChatOpenAI(model="scripted", base_url=base_url, api_key="scripted", max_retries=0)

@tool
def write_file(path: str, content: str) -> str:
    "Write a file."
    return f"Written: {path}"

if kind == "deepagents":
    from deepagents.backends import StateBackend
    from deepagents.middleware.summarization import SummarizationMiddleware
    summarising = SummarizationMiddleware(model, backend=StateBackend(), trigger=("messages", 4), keep=("messages", 2))
else:
    summarising = SummarizationMiddleware(model, trigger=("messages", 4), keep=("messages", 2))
agent = create_agent(model, tools=[write_file], middleware=[summarising])
agent.invoke({"messages": [{"role": "user", "content": "Write three reports."}]})
"""


RESTORED = """
import sys
import agent_otel.auto
from langchain_core.messages import AIMessage, HumanMessage
from langchain_openai import ChatOpenAI
model = ChatOpenAI(model="scripted", base_url=sys.argv[1], api_key="scripted", max_retries=0)
history = [HumanMessage("go", id="u1"), AIMessage("yes", id="a1")]
history += [HumanMessage("go", id="u2"), AIMessage("yes", id="a2")]
model.invoke([*history, *[each.model_copy() for each in history], HumanMessage("go", id="u3")])
model.invoke([HumanMessage("go"), AIMessage("yes")] * 2 + [HumanMessage("go")])
"""


class Way(NamedTuple):
    """One SDK: the shape of its histories, where they stand in a request, and a program that sends one."""

    shape: str
    key: str
    environment: str
    program: str
    server: type[Any] = OpenAIServer


WAYS = {
    "chat": Way("chat", "messages", "openai-agents", CHAT),
    "chat, streamed": Way("chat", "messages", "openai-agents", STREAMED),
    "chat with openai 2": Way("chat", "messages", "openai-2", CHAT),
    "responses": Way("responses", "input", "openai-agents", RESPONSES),
    "anthropic": Way("anthropic", "messages", "anthropic", MESSAGES, AnthropicServer),
    "bedrock": Way("bedrock", "messages", "bedrock", CONVERSE, BedrockServer),
    "gemini": Way("gemini", "contents", "google-genai", CONTENTS, GeminiServer),
}


@dataclass
class Sent:
    """What came of one request."""

    history: list[Any]
    wire: list[Any]
    report: dict[str, Any]

    @property
    def is_kept(self) -> bool:
        """Whether the program's history is as it was."""
        return self.report["report"] is True

    def removed(self) -> dict[str, float]:
        """Bytes kept from the model, by strategy."""
        found = [m for m in self.report["metrics"] if m["name"] == "agent_otel.context.removed" and m["sum"]]
        return {m["attributes"]["strategy"]: m["sum"] for m in found}


def history(shape: str, trimmed: int, arguments: Any = WRITTEN) -> list[Any]:
    """Seven turns after a question: the first results trimmed, all calls with these arguments."""
    turns = [reading(number, TRIMMED if number < trimmed else LONG, arguments) for number in range(7)]
    asked: dict[str, Any] = {"role": "user", "content": "go"}
    asked |= {"bedrock": {"content": [{"text": "go"}]}, "gemini": {"parts": [{"text": "go"}]}}.get(shape, {})
    asked = {key: value for key, value in asked.items() if shape != "gemini" or key != "content"}
    return [asked, *rendered(shape, turns)]


@pytest.fixture
def send(forks: Forks) -> Callable[..., Sent]:
    """Send a history of seven turns with these settings; what the scripted model got."""

    def run(way: Way, sent: list[Any] | None = None, **variables: str) -> Sent:
        given = history(way.shape, 0) if sent is None else sent
        sdk = next(filter(None, way.program.splitlines()))  # its import
        with way.server(lambda _: "done") as server:
            program = PROGRAM.format(given=json.dumps(given), base_url=server.base_url, send=way.program)
            report = forks.measure(way.environment, f"{sdk}\n{agents(way.environment)}", program, variables)
        [request] = server.requests
        return Sent(given, request[way.key], report)

    return run


each_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


@each_way
@pytest.mark.shows("003.last_two_turns", "004.view")
def test_old_results_and_old_arguments_are_short_on_the_wire_and_whole_in_the_program(
    send: Callable[..., Sent], way: Way
) -> None:
    sent = send(way, AGENT_OTEL_TRIM_RESULTS="1", AGENT_OTEL_COMPACT_ARGUMENTS="1")
    assert sent.wire == history(way.shape, 5, LEFT)
    assert sent.is_kept is True
    assert sent.removed() == {"trim": 5 * (300 - 178), "compact": 7 * (2600 - 30)}
    assert sent.report["messages"] == []


@each_way
def test_one_switch_at_a_time(send: Callable[..., Sent], way: Way) -> None:
    trimmed = send(way, AGENT_OTEL_TRIM_RESULTS="1")
    assert trimmed.wire == history(way.shape, 5)
    compacted = send(way, AGENT_OTEL_COMPACT_ARGUMENTS="1")
    assert compacted.wire == history(way.shape, 0, LEFT)


@each_way
def test_nothing_switched_on_changes_nothing(send: Callable[..., Sent], way: Way) -> None:
    sent = send(way)
    assert sent.wire == sent.history
    assert sent.removed() == {}


def test_of_turns_that_the_provider_keeps_it_is_said_that_nothing_is_rewritten(send: Callable[..., Sent]) -> None:
    new = [{"type": "function_call_output", "call_id": "call_9", "output": LONG}]
    variables = {"AGENT_OTEL_TRIM_RESULTS": "1", "AGENT_OTEL_COMPACT_ARGUMENTS": "1"}
    sent = send(Way("responses", "input", "openai-agents", CONTINUED), new, **variables)
    assert sent.wire == new
    assert sent.removed() == {}
    names = "AGENT_OTEL_TRIM_RESULTS, AGENT_OTEL_COMPACT_ARGUMENTS"
    said = "(previous_response_id, a conversation, a thread, cached content, a container), which is not sent again."
    assert sent.report["messages"] == [f"{names}: without effect on what the provider keeps of earlier requests {said}"]


@pytest.mark.parametrize("name", ["chat", "responses"])
def test_doubled_messages_are_sent_once(send: Callable[..., Sent], name: str) -> None:
    whole = history(WAYS[name].shape, 0)
    results = [each for each in whole if each.get("role") == "tool" or each.get("type") == "function_call_output"]
    sent = send(WAYS[name], [*whole, *copy.deepcopy(results)], AGENT_OTEL_DEDUPLICATE_HISTORY="1")
    assert sent.wire == whole
    assert list(sent.removed()) == ["deduplicate"]


@pytest.mark.parametrize("name", ["chat", "responses", "anthropic", "bedrock"])
@pytest.mark.shows("003.deduplicated")
def test_a_history_that_was_restored_twice_is_sent_once(send: Callable[..., Sent], name: str) -> None:
    way = WAYS[name]
    turns = [Turn((Asked(f"call_9aBcDeFgHiJkLmNoPqRsTu{n}", "read", {}, LONG),)) for n in range(3)]
    whole = rendered(way.shape, turns)
    sent = send(way, [*whole, *copy.deepcopy(whole)], AGENT_OTEL_DEDUPLICATE_HISTORY="1")
    assert sent.wire == whole
    assert list(sent.removed()) == ["deduplicate"]


@pytest.mark.parametrize(("variables", "counts"), [({}, [9, 5]), ({"AGENT_OTEL_DEDUPLICATE_HISTORY": "1"}, [5, 5])])
def test_ids_of_langchains_messages_count_where_the_wire_has_none(
    environment: Callable[[str], Environment], variables: dict[str, str], counts: list[int]
) -> None:
    with OpenAIServer(lambda _: "done") as server:
        environment("langchain").run(RESTORED, server.base_url, env={"AGENT_OTEL": "1", **variables}, check=True)
    assert [len(request["messages"]) for request in server.requests] == counts
    said = [message["content"] for message in server.requests[0]["messages"]]
    assert said[:4] == ["go", "yes", "go", "yes"]


class _Ollama(OllamaServer):
    def messages(self, request: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the messages as they are, since the model has asked for none of the calls."""
        return list(request["messages"])


def test_ollama_gets_views_of_calls_without_ids(send: Callable[..., Sent]) -> None:
    def turns(trimmed: int, arguments: dict[str, str]) -> list[Any]:
        asked = {
            "role": "assistant",
            "content": "I read it",
            "tool_calls": [{"function": {"name": "read", "arguments": arguments}}],
        }
        answers = [
            {"role": "tool", "tool_name": "read", "content": TRIMMED if number < trimmed else LONG}
            for number in range(7)
        ]
        return [{"role": "user", "content": "go"}, *(message for answer in answers for message in (asked, answer))]

    variables = {"AGENT_OTEL_TRIM_RESULTS": "1", "AGENT_OTEL_COMPACT_ARGUMENTS": "1"}
    sent = send(Way("ollama", "messages", "ollama", OLLAMA, _Ollama), turns(0, WRITTEN), **variables)
    assert sent.wire == turns(5, LEFT)
    assert sent.is_kept is True


def test_mistral_gets_views_as_its_own_models(send: Callable[..., Sent]) -> None:
    variables = {"AGENT_OTEL_TRIM_RESULTS": "1", "AGENT_OTEL_COMPACT_ARGUMENTS": "1"}
    sent = send(Way("chat", "messages", "mistralai", MISTRAL, MistralServer), **variables)
    results = [message["content"] for message in sent.wire if message["role"] == "tool"]
    assert results == [TRIMMED] * 5 + [LONG] * 2
    calls = [message["tool_calls"][0] for message in sent.wire if message["role"] == "assistant"]
    assert [json.loads(call["function"]["arguments"]) for call in calls] == [LEFT] * 7
    assert sent.is_kept is True


@pytest.mark.parametrize("server", [OpenAIServer, AnthropicServer])
@pytest.mark.shows("003.last_two_turns", "004.view")
def test_litellm_sends_views_through_an_sdk_and_to_a_provider_of_its_own(
    send: Callable[..., Sent], server: type[Any]
) -> None:
    variables = {"AGENT_OTEL_TRIM_RESULTS": "1", "AGENT_OTEL_COMPACT_ARGUMENTS": "1"}
    way = Way("chat", "messages", "litellm", LITELLM, server)
    sent = send(way, **variables)
    wire = json.dumps(sent.wire, ensure_ascii=False)
    assert [wire.count(text) for text in (TRIMMED, MARK, LONG[:-1].replace("\n", "\\n"))] == [5, 7, 2]
    assert json.dumps(LARGE, ensure_ascii=False)[1:30] not in wire
    assert sent.is_kept is True
    # Once, though LiteLLM and the SDK below it both send the request.
    assert sent.removed() == {"trim": 5 * (300 - 178), "compact": 7 * (2600 - 30)}
    assert sent.report["messages"] == []


@pytest.mark.parametrize(("variables", "trimmed"), [({}, 5), ({"AGENT_OTEL_TRIM_STEP_TURNS": "3"}, 3)])
@pytest.mark.parametrize("name", ["chat", "anthropic", "bedrock"])
def test_the_cut_moves_in_steps_only_where_the_provider_caches(
    send: Callable[..., Sent], name: str, variables: dict[str, str], trimmed: int
) -> None:
    way, six = WAYS[name], history(WAYS[name].shape, 0)[:-2]
    point = {"cachePoint": {"type": "default"}}
    variables = {"AGENT_OTEL_TRIM_RESULTS": "1", **variables}

    def lines(messages: list[Any]) -> int:
        return json.dumps(messages, ensure_ascii=False).count(TRIMMED)

    uncached = 0 if name == "chat" else 4  # all but the last two
    cached = 0 if trimmed == 5 else 3
    assert lines(send(way, six, **variables).wire) == (cached if name == "chat" else uncached)
    if name == "chat":
        return
    first = copy.deepcopy(six)
    mark = {"type": "text", "text": "go", "cache_control": {"type": "ephemeral"}}
    first[0]["content"] = [mark] if name == "anthropic" else [{"text": "go"}, point]
    assert lines(send(way, first, **variables).wire) == cached


@pytest.mark.parametrize("kind", ["langchain", "deepagents"])
@pytest.mark.parametrize(("variables", "copies"), [({}, True), ({"AGENT_OTEL_COMPACT_ARGUMENTS": "1"}, False)])
@pytest.mark.shows("004.summariser")
def test_no_summariser_reads_what_a_call_has_written(
    environment: Callable[[str], Environment], kind: str, variables: dict[str, str], copies: object
) -> None:
    content = 'a line of the report, with "quotes" & <tags>\n' * 60

    def decide(request: dict[str, Any]) -> Any:
        asked.append(request)
        if "tools" not in request:
            return "a summary"
        written = sum(1 for each in asked if "tools" in each) - 1
        arguments = {"path": f"{written}.md", "content": content}
        return [ToolCall(f"call_{written}", "write_file", arguments)] if written < 3 else "done"

    asked: list[dict[str, Any]] = []
    with OpenAIServer(decide) as server:
        environment(kind).run(SUMMARISED, server.base_url, kind, env={"AGENT_OTEL": "1", **variables}, check=True)
    summarised = [request for request in server.requests if "tools" not in request]
    assert summarised
    assert ["write_file" in json.dumps(request) for request in summarised] == [True] * len(summarised)
    assert copies is any(json.dumps(request).count("a line of the report") > 10 for request in summarised)
    later = server.requests[1:]
    assert copies is any(json.dumps(request).count("a line of the report") > 10 for request in later)


def test_a_history_that_is_none_goes_on_as_it_is(send: Callable[..., Sent]) -> None:
    odd = [{"role": "user", "content": "go"}, {"role": "tool", "tool_call_id": "nobody's", "content": LONG}]
    assert send(WAYS["chat"], odd, AGENT_OTEL_TRIM_RESULTS="1").wire == odd
