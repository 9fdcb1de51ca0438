"""A dispatch policy in each framework: a call that it denies, and a call with a secret that it injects."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel.testing.servers.anthropic import AnthropicServer
from agent_otel.testing.servers.openai import ToolCall
from agent_otel.testing.servers.providers import GeminiServer, GeminiServerWithIds
from tests.contract import script
from tests.contract.remedies.test_last_request import Carrier, ran_in_fork
from tests.contract.remedies.tools import CANARY
from tests.servers.mistral import MistralServer

Json = dict[str, Any]

if TYPE_CHECKING:
    from agent_otel.testing.servers.openai import Reply
    from tests.forks import Forks

POLICY = """
[[rules]]
tools = "fetch_as"
require = { key = "one" }
inject = { token = { env = "CANARY_TOKEN" } }

[[rules]]
tools = "echo_as"
inject = { token = { env = "CANARY_TOKEN" } }

[[rules]]
tools = ["wide", "final_answer"]
"""
CARRIERS = {
    "anthropic's tool runner": Carrier("anthropic_runner", "anthropic", AnthropicServer),
    "anthropic's tool runner, sync": Carrier("anthropic_runner", "anthropic", AnthropicServer, "sync"),
    "anthropic's tool runner 0.125": Carrier("anthropic_runner", "anthropic-0.125", AnthropicServer),
    "openai's tool runner": Carrier("openai_runner", "openai-agents"),
    "google-genai": Carrier("google_functions", "google-genai", GeminiServer),
    "google-adk": Carrier("google_adk", "google-adk", GeminiServerWithIds),
    "google-adk 1.15": Carrier("google_adk", "google-adk-1.15", GeminiServerWithIds),
    "strands": Carrier("strands", "strands"),
    "crewai": Carrier("crewai", "crewai", mode="sync"),
    "smolagents": Carrier("smolagents", "smolagents", mode="sync"),
    "agent-framework": Carrier("agent_framework", "agent-framework"),
    "autogen": Carrier("autogen", "autogen"),
    "ag2": Carrier("ag2", "ag2"),
    "haystack": Carrier("haystack", "haystack"),
    "llama-index": Carrier("llama_index", "llama-index"),
    "semantic-kernel": Carrier("semantic_kernel", "semantic-kernel"),
    "agentscope": Carrier("agentscope", "agentscope"),
    "camel": Carrier("camel", "camel-ai"),
    "camel, sync": Carrier("camel", "camel-ai", mode="sync"),
    "agno": Carrier("agno", "agno"),
    "agno, sync": Carrier("agno", "agno", mode="sync"),
    "agno 2.3": Carrier("agno", "agno-oldest"),
    "deepagents": Carrier("deepagents", "deepagents"),
    "mistral": Carrier("mistral_runs", "mistralai", MistralServer),
    "mistral 1": Carrier("mistral_runs", "mistralai-1", MistralServer),
}
CALLS: tuple[tuple[str, Json], ...] = (
    ("fetch_as", {"key": "one", "token": "the model's"}),
    ("big", {"n": 10}),
    ("fetch_as", {"key": "two", "token": "the model's"}),
    ("wide", {"n": 60_000}),
    ("echo_as", {"key": "plain", "token": "the model's"}),
)
_LAST_TURN = 4
RAISES: tuple[str, Json] = ("echo_as", {"key": "raise", "token": "the model's"})
#: Frameworks that end the run or drop the turn when a tool raises, or that log the exception first.
WITHOUT_EXCEPTIONS = (
    "openai's tool runner",
    "google-adk",
    "deepagents",
    "anthropic's tool runner",
    "agno",
    "smolagents",
)
#: A conversation of Mistral's keeps the tools that it began with.
UNNAMED = (
    "AGENT_OTEL_CLAIM_CHECK: get_tool_result cannot be offered in a request through mistral; the result's view has the "
    "reference and names no tool."
)


def run(
    carrier: Carrier,
    forks: Forks,
    policy: str,
    tools: tuple[str, ...] = ("fetch_as", "big", "wide", "echo_as"),
    calls: tuple[tuple[str, Json], ...] = CALLS,
) -> tuple[list[Json], Json, str]:
    """Run an agent whose model makes the calls; its requests, what the child reported, and all that it wrote."""

    def decide(_: Json) -> Reply:
        number = len(server.requests)
        # All from the fourth on in one turn: some frameworks end a run after few.
        asked = list(enumerate(calls, 1))[number - 1 : number if number < _LAST_TURN else None]
        if number > _LAST_TURN or not asked:
            is_tool = "final_answer" in json.dumps(server.requests[-1].get("tools"))
            return [ToolCall("call_last", "final_answer", '{"answer": "done"}')] if is_tool else "done"
        return [ToolCall(f"call_{place}", name, json.dumps(arguments)) for place, (name, arguments) in asked]

    server: Any
    prompt = script.prompt(*((f"call_{number}", *call) for number, call in enumerate(calls, 1)))
    case = {"tools": tools, "prompt": prompt, "mode": carrier.mode, "setting": "", "execution": "r-1"}
    settings = {
        "AGENT_OTEL_TOOL_POLICY": policy,
        "CANARY_TOKEN": CANARY,
        "AGENT_OTEL_CLAIM_CHECK": "memory:",
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true",
    }
    with carrier.server(decide) as server:
        done = ran_in_fork(carrier, forks, server.base_url, {"it": case}, settings)
        return server.requests, json.loads(done.stdout.splitlines()[-1]), done.stdout + done.stderr


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of the policy."""
    file = tmp_path_factory.mktemp("policy") / "policy.toml"
    file.write_text(POLICY)
    return str(file)


@pytest.mark.parametrize(("name", "carrier"), CARRIERS.items(), ids=CARRIERS)
def test_a_call_is_denied_a_secret_shows_nowhere_and_a_large_result_is_stored(
    forks: Forks, policy: str, name: str, carrier: Carrier
) -> None:
    raises = () if name.startswith(WITHOUT_EXCEPTIONS) else (RAISES,)
    requests, report, written = run(carrier, forks, policy, calls=(*CALLS, *raises))
    case: Any = report["cases"]["it"]
    sent = json.dumps(requests)
    assert case["ran"] == ["fetch_as", "echo_as", *("echo_as" for _ in raises)], case["messages"]
    assert "one: let in" in sent
    assert "plain: [injected]" in sent
    assert sent.count("tool_denied") >= 2
    assert CANARY not in sent
    assert CANARY not in written
    events = [event for span in case["spans"] for event in span["events"] if event["name"] == "policy_denied"]
    assert [event["attributes"] for event in events] == [
        {"rule": "tools", "mode": "enforce"},
        {"rule": "require", "mode": "enforce", "argument": "key"},
    ]
    assert report["errors"] == {}
    # 60,000 times two bytes; the model gets the beginning and the reference.
    shown = server_texts(requests)
    assert "ß" * 15_000 in shown
    assert "ß" * 16_384 not in shown
    assert re.search(r"of 120000 bytes of wide.s result shown; the whole is stored: .{0,40}ref=\W*claim:v2:", shown)
    is_mistral = name.startswith("mistral")
    assert ("get_tool_result" in sent) is not is_mistral
    assert case["messages"] == ([UNNAMED] if is_mistral else [])
    spans = [span["attributes"] for span in case["spans"] if "tool.result.bytes" in span["attributes"]]
    assert len(spans) >= 2
    assert all({"tool.result.budget_bytes", "tool.result.budget_layer"} <= span.keys() for span in spans)


def server_texts(requests: list[Json]) -> str:
    """Return the requests as text, in which JSON inside of JSON has no escapes."""
    written = json.dumps(requests, ensure_ascii=False)
    return re.sub(r"\\+u00df", "ß", written)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_the_denial_of_a_toolsets_member_names_the_toolset(forks: Forks, policy: str, mode: str) -> None:
    carrier = Carrier("anthropic_runner", "anthropic", AnthropicServer, mode)
    requests, report, _ = run(carrier, forks, policy, ("browser",), (("lookup", {"key": "one"}),))

    (block,) = requests[1]["messages"][-1]["content"]
    assert json.loads(block["content"])["error"] == "tool_denied"
    # Anthropic's API refuses a request whose result names another toolset than its call.
    assert (block["type"], block["tool_use_id"], block["toolset_name"]) == ("tool_result", "call_1", "browser")
    assert report["errors"] == {}
