"""Histories in each SDK's own shape that programs send, and what the scripted models get of them."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

from agent_otel.testing.servers.anthropic import AnthropicServer
from agent_otel.testing.servers.bedrock import BedrockServer
from agent_otel.testing.servers.gemini import GeminiServer
from agent_otel.testing.servers.mistral import MistralServer
from agent_otel.testing.servers.ollama import OllamaServer
from agent_otel.testing.servers.openai import OpenAIServer
from tests.unit.remedies.history.histories import Asked, Turn, reading, rendered

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.environments import Environment

LONG = "line of a file\n" * 20  # 300 bytes
TRIMMED = "[trimmed 300 bytes] read: " + " ".join(["line of a file"] * 10) + "…"  # 178 bytes
LARGE = 'print("字")\n' * 200  # 13 bytes a line
MARK = "[argument removed: 2600 bytes]"  # 30
WRITTEN = {"path": "a.py", "content": LARGE}
LEFT = {"path": "a.py", "content": MARK}

#: Runs programs with the same settings one after the other: a view is made of the history in a request alone.
PROGRAM = """
import copy, json, sys, traceback
import agent_otel.auto
from tests.contract.child import Telemetry, Messages
telemetry, messages = Telemetry(), Messages()
reports = {}
for name, case in json.load(open(sys.argv[1])).items():
    telemetry.metrics()
    given = {"base_url": case["base_url"], "history": copy.deepcopy(case["history"])}
    raised = None
    try:
        exec(case["program"], given)
    except Exception:
        raised = traceback.format_exc()
    kept = given["history"] == case["history"]
    reports[name] = {"raised": raised, "kept": kept, "metrics": telemetry.metrics(), "messages": messages.take()}
print(json.dumps(reports))
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


def history(shape: str, trimmed: int, arguments: Any = WRITTEN) -> list[Any]:
    """Seven turns after a question: the first results trimmed, all calls with these arguments."""
    turns = [reading(number, TRIMMED if number < trimmed else LONG, arguments) for number in range(7)]
    asked: dict[str, Any] = {"role": "user", "content": "go"}
    asked |= {"bedrock": {"content": [{"text": "go"}]}, "gemini": {"parts": [{"text": "go"}]}}.get(shape, {})
    asked = {key: value for key, value in asked.items() if shape != "gemini" or key != "content"}
    return [asked, *rendered(shape, turns)]


class _Ollama(OllamaServer):
    def messages(self, request: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the messages as they are, since the model has asked for none of the calls."""
        return list(request["messages"])


class Sending(NamedTuple):
    """A history that a program sends with these variables."""

    way: Way
    history: list[Any]
    variables: dict[str, str]


TRIM = {"AGENT_OTEL_TRIM_RESULTS": "1"}
COMPACT = {"AGENT_OTEL_COMPACT_ARGUMENTS": "1"}
BOTH = {**TRIM, **COMPACT}
DEDUPLICATE = {"AGENT_OTEL_DEDUPLICATE_HISTORY": "1"}
STEPS: tuple[dict[str, str], ...] = ({}, {"AGENT_OTEL_TRIM_STEP_TURNS": "3"})
SWITCHES = {"both": BOTH, "trim": TRIM, "compact": COMPACT, "none": {}}
DOUBLED, RESTORED_TWICE = ("chat", "responses"), ("chat", "responses", "anthropic", "bedrock")
NEW = [{"type": "function_call_output", "call_id": "call_9", "output": LONG}]
ODD = [{"role": "user", "content": "go"}, {"role": "tool", "tool_call_id": "nobody's", "content": LONG}]
SERVERS = (OpenAIServer, AnthropicServer)


def doubled(name: str) -> list[Any]:
    """Return a history and its results once more."""
    whole = history(WAYS[name].shape, 0)
    results = [each for each in whole if each.get("role") == "tool" or each.get("type") == "function_call_output"]
    return [*whole, *results]


def restored(name: str) -> list[Any]:
    """Return a history whose calls have ids as providers give them."""
    turns = [Turn((Asked(f"call_9aBcDeFgHiJkLmNoPqRsTu{n}", "read", {}, LONG),)) for n in range(3)]
    return rendered(WAYS[name].shape, turns)


def stepped(name: str, *, is_cached: bool) -> list[Any]:
    """Return six turns, after a question that marks what the provider caches."""
    six = history(WAYS[name].shape, 0)[:-2]
    if is_cached:
        mark = {"type": "text", "text": "go", "cache_control": {"type": "ephemeral"}}
        point = {"cachePoint": {"type": "default"}}
        six[0]["content"] = [mark] if name == "anthropic" else [{"text": "go"}, point]
    return six


def without_ids(trimmed: int, arguments: dict[str, str]) -> list[Any]:
    """Return the history of seven turns in Ollama's shape."""
    asked = {
        "role": "assistant",
        "content": "I read it",
        "tool_calls": [{"function": {"name": "read", "arguments": arguments}}],
    }
    answers = [
        {"role": "tool", "tool_name": "read", "content": TRIMMED if number < trimmed else LONG} for number in range(7)
    ]
    return [{"role": "user", "content": "go"}, *(message for answer in answers for message in (asked, answer))]


def _sendings() -> dict[str, Sending]:
    """Return all that is sent, by test and way."""
    found = {
        f"{switch}: {name}": Sending(way, history(way.shape, 0), variables)
        for switch, variables in SWITCHES.items()
        for name, way in WAYS.items()
    }
    for name in DOUBLED:
        found[f"doubled: {name}"] = Sending(WAYS[name], doubled(name), DEDUPLICATE)
    for name in RESTORED_TWICE:
        found[f"restored: {name}"] = Sending(WAYS[name], restored(name) * 2, DEDUPLICATE)
    for number, variables in enumerate(STEPS):
        for name in ("chat", "anthropic", "bedrock"):
            for is_cached in (False, True)[: 1 if name == "chat" else 2]:
                sent = stepped(name, is_cached=is_cached)
                found[f"steps {number} {is_cached}: {name}"] = Sending(WAYS[name], sent, {**TRIM, **variables})
    continued, ollama, mistral = (
        Way("responses", "input", "openai-agents", CONTINUED),
        Way("ollama", "messages", "ollama", OLLAMA, _Ollama),
        Way("chat", "messages", "mistralai", MISTRAL, MistralServer),
    )
    found["continued"] = Sending(continued, NEW, BOTH)
    found["ollama"] = Sending(ollama, without_ids(0, WRITTEN), BOTH)
    found["mistral"] = Sending(mistral, history("chat", 0), BOTH)
    for server in SERVERS:
        way = Way("chat", "messages", "litellm", LITELLM, server)
        variables = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", **BOTH}
        found[f"litellm: {server.__name__}"] = Sending(way, history("chat", 0), variables)
    found["odd"] = Sending(WAYS["chat"], ODD, TRIM)
    return found


SENDINGS = _sendings()


def run(sendings: Mapping[str, Sending], environment: Environment, folder: Path) -> dict[str, Any]:
    """Send histories with the same variables; return what the scripted models got, and what the child reported."""
    [variables] = {tuple(each.variables.items()) for each in sendings.values()}
    with ExitStack() as stack:
        servers = {name: stack.enter_context(each.way.server(lambda _: "done")) for name, each in sendings.items()}
        cases = {
            name: {"base_url": servers[name].base_url, "history": each.history, "program": each.way.program}
            for name, each in sendings.items()
        }
        file = folder / "cases.json"
        file.write_text(json.dumps(cases))
        done = environment.run(PROGRAM, str(file), env={"AGENT_OTEL": "1", **dict(variables)}, timeout=180, check=True)
    reports = json.loads(done.stdout.splitlines()[-1])
    return {name: {"report": reports[name], "requests": servers[name].requests} for name in sendings}


def beside(name: str) -> dict[str, Sending]:
    """Return all that is sent in the environment of one, and with its variables."""
    one = SENDINGS[name]
    return {
        key: each
        for key, each in SENDINGS.items()
        if (each.way.environment, each.variables) == (one.way.environment, one.variables)
    }
