"""Views of the history: what leaves for the model, in each SDK's own shape, and what the program keeps."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel.testing.servers.openai import OpenAIServer, ToolCall
from tests.contract.once import kept
from tests.contract.remedies.sendings import (
    DOUBLED,
    LARGE,
    LEFT,
    LONG,
    MARK,
    NEW,
    ODD,
    RESTORED_TWICE,
    SENDINGS,
    SERVERS,
    STEPS,
    TRIMMED,
    WAYS,
    beside,
    history,
    restored,
    run,
    without_ids,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

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


@dataclass
class Sent:
    """What came of one request."""

    history: list[Any]
    wire: list[Any]
    report: dict[str, Any]

    def removed(self) -> dict[str, float]:
        """Bytes kept from the model, by strategy."""
        found = [m for m in self.report["metrics"] if m["name"] == "agent_otel.context.removed" and m["sum"]]
        return {m["attributes"]["strategy"]: m["sum"] for m in found}


@pytest.fixture
def send(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    environment: Callable[[str], Environment],
) -> Callable[[str], Sent]:
    """Send a history; return what the scripted model got. One child sends all with its environment and variables."""

    def read(name: str) -> Sent:
        way, given, variables = SENDINGS[name]
        row = environment(way.environment)
        folders = (__name__, row.name, "+".join(variables) or "none")
        found = kept(request, tmp_path_factory, lambda folder: run(beside(name), row, folder), *folders)[name]
        if found["report"]["raised"] is not None:
            pytest.fail(found["report"]["raised"], pytrace=False)
        [got] = found["requests"]
        return Sent(given, got[way.key], found["report"])

    return read


each_way = pytest.mark.parametrize("name", WAYS)


@each_way
@pytest.mark.shows("003.last_two_turns", "004.view")
def test_old_results_and_old_arguments_are_short_on_the_wire_and_whole_in_the_program(
    send: Callable[[str], Sent], name: str
) -> None:
    sent = send(f"both: {name}")
    assert sent.wire == history(WAYS[name].shape, 5, LEFT)
    assert sent.report["kept"] is True
    assert sent.removed() == {"trim": 5 * (300 - 178), "compact": 7 * (2600 - 30)}
    assert sent.report["messages"] == []


@each_way
def test_one_switch_at_a_time(send: Callable[[str], Sent], name: str) -> None:
    assert send(f"trim: {name}").wire == history(WAYS[name].shape, 5)
    assert send(f"compact: {name}").wire == history(WAYS[name].shape, 0, LEFT)


@each_way
def test_nothing_switched_on_changes_nothing(send: Callable[[str], Sent], name: str) -> None:
    sent = send(f"none: {name}")
    assert sent.wire == sent.history
    assert sent.removed() == {}


def test_of_turns_that_the_provider_keeps_it_is_said_that_nothing_is_rewritten(send: Callable[[str], Sent]) -> None:
    sent = send("continued")
    assert sent.wire == NEW
    assert sent.removed() == {}
    names = "AGENT_OTEL_TRIM_RESULTS, AGENT_OTEL_COMPACT_ARGUMENTS"
    said = "(previous_response_id, a conversation, a thread, cached content, a container), which is not sent again."
    assert sent.report["messages"] == [f"{names}: without effect on what the provider keeps of earlier requests {said}"]


@pytest.mark.parametrize("name", DOUBLED)
def test_doubled_messages_are_sent_once(send: Callable[[str], Sent], name: str) -> None:
    sent = send(f"doubled: {name}")
    assert sent.wire == history(WAYS[name].shape, 0)
    assert list(sent.removed()) == ["deduplicate"]


@pytest.mark.parametrize("name", RESTORED_TWICE)
@pytest.mark.shows("003.deduplicated")
def test_a_history_that_was_restored_twice_is_sent_once(send: Callable[[str], Sent], name: str) -> None:
    sent = send(f"restored: {name}")
    assert sent.wire == restored(name)
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


def test_ollama_gets_views_of_calls_without_ids(send: Callable[[str], Sent]) -> None:
    sent = send("ollama")
    assert sent.wire == without_ids(5, LEFT)
    assert sent.report["kept"] is True


def test_mistral_gets_views_as_its_own_models(send: Callable[[str], Sent]) -> None:
    sent = send("mistral")
    results = [message["content"] for message in sent.wire if message["role"] == "tool"]
    assert results == [TRIMMED] * 5 + [LONG] * 2
    calls = [message["tool_calls"][0] for message in sent.wire if message["role"] == "assistant"]
    assert [json.loads(call["function"]["arguments"]) for call in calls] == [LEFT] * 7
    assert sent.report["kept"] is True


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.shows("003.last_two_turns", "004.view")
def test_litellm_sends_views_through_an_sdk_and_to_a_provider_of_its_own(
    send: Callable[[str], Sent], server: type[Any]
) -> None:
    sent = send(f"litellm: {server.__name__}")
    wire = json.dumps(sent.wire, ensure_ascii=False)
    assert [wire.count(text) for text in (TRIMMED, MARK, LONG[:-1].replace("\n", "\\n"))] == [5, 7, 2]
    assert json.dumps(LARGE, ensure_ascii=False)[1:30] not in wire
    assert sent.report["kept"] is True
    # Once, though LiteLLM and the SDK below it both send the request.
    assert sent.removed() == {"trim": 5 * (300 - 178), "compact": 7 * (2600 - 30)}
    assert sent.report["messages"] == []


@pytest.mark.parametrize(("variables", "trimmed"), [(STEPS[0], 5), (STEPS[1], 3)])
@pytest.mark.parametrize("name", ["chat", "anthropic", "bedrock"])
def test_the_cut_moves_in_steps_only_where_the_provider_caches(
    send: Callable[[str], Sent], name: str, variables: dict[str, str], trimmed: int
) -> None:
    def lines(*, is_cached: bool) -> int:
        sent = send(f"steps {STEPS.index(variables)} {is_cached}: {name}")
        return json.dumps(sent.wire, ensure_ascii=False).count(TRIMMED)

    uncached = 0 if name == "chat" else 4  # all but the last two
    cached = 0 if trimmed == 5 else 3
    assert lines(is_cached=False) == (cached if name == "chat" else uncached)
    if name != "chat":
        assert lines(is_cached=True) == cached


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


def test_a_history_that_is_none_goes_on_as_it_is(send: Callable[[str], Sent]) -> None:
    assert send("odd").wire == ODD
