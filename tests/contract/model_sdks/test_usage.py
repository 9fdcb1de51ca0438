"""Tokens that providers report, of whole responses and of streams, through each SDK: an execution's sums are exact.

So are those of the parts of its requests, among which the tokens are divided.
"""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel.testing.servers import anthropic, providers
from agent_otel.testing.servers.anthropic import AnthropicServer, BedrockServer
from agent_otel.testing.servers.openai import CohereServer, OllamaServer, OpenAIServer
from agent_otel.testing.servers.providers import GeminiServer
from agent_otel.testing.servers.replies import usage

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.testing.servers.openai import Json, Reply
    from tests.environments import Environment

ANSWER = "Fine, thank you."
_PROGRAM = """
import json, sys
import agent_otel, prometheus_client
from agent_otel.core.cost import model_tokens
from agent_otel.core.executions import executions
from agent_otel._internal import errors

url, text = {url!r}, "How are you? " * 20
def told(name):
    state = executions.known(name)
    tokens = state.tokens
    return [tokens.requests, tokens.input, tokens.cached, tokens.output, model_tokens.last_request(name).tokens]

{client}
found = {{}}
for name, send in (("whole", whole), ("streamed", streamed)):
    with agent_otel.execution(name):
        send()
        send()
        found[name] = told(name)
assert errors.errors == {{}}, errors.errors
samples = [sample for family in prometheus_client.REGISTRY.collect() for sample in family.samples]
found["parts"] = sum(sample.value for sample in samples if sample.name == "agent_otel_tool_context_tokens_total")
print(json.dumps(found))
"""

CHAT = """
import openai
client = openai.OpenAI(base_url=url, api_key="scripted", max_retries=0)
request = {"model": "scripted", "messages": [{"role": "user", "content": text}]}
def whole(): client.chat.completions.create(**request)
def streamed(): list(client.chat.completions.create(**request, stream=True, stream_options={"include_usage": True}))
"""
RESPONSES = """
import asyncio, openai
request = {"model": "scripted", "input": text}
async def ask(**more):
    async with openai.AsyncOpenAI(base_url=url, api_key="scripted", max_retries=0) as client:
        response = await client.responses.create(**request, **more)
        if more:
            async for event in response:
                if event.type == "response.completed":
                    break  # as frameworks do
def whole(): asyncio.run(ask())
def streamed(): asyncio.run(ask(stream=True))
"""
ANTHROPIC = """
import anthropic
client = anthropic.Anthropic(base_url=url, api_key="scripted", max_retries=0)
request = {"model": "scripted", "max_tokens": 100, "messages": [{"role": "user", "content": text}]}
def whole(): client.messages.create(**request)
def streamed():
    with client.messages.stream(**request) as stream:
        stream.get_final_text()
"""
GEMINI = """
from google import genai
client = genai.Client(api_key="scripted", http_options={"base_url": url})
def whole(): client.models.generate_content(model="gemini-scripted", contents=text)
def streamed(): list(client.models.generate_content_stream(model="gemini-scripted", contents=text))
"""
BEDROCK = """
import boto3
client = boto3.client("bedrock-runtime", endpoint_url=url, region_name="us-east-1", aws_access_key_id="scripted",
                      aws_secret_access_key="scripted")
request = {"modelId": "scripted", "messages": [{"role": "user", "content": [{"text": text}]}]}
def whole(): client.converse(**request)
def streamed(): list(client.converse_stream(**request)["stream"])
"""
INVOKE = """
import boto3
client = boto3.client("bedrock-runtime", endpoint_url=url, region_name="us-east-1", aws_access_key_id="scripted",
                      aws_secret_access_key="scripted")
body = json.dumps({"anthropic_version": "bedrock-2023-05-31", "max_tokens": 9,
                   "messages": [{"role": "user", "content": text}]})
def whole(): client.invoke_model(modelId="scripted", body=body)["body"].read()
def streamed(): list(client.invoke_model_with_response_stream(modelId="scripted", body=body)["body"])
"""
OLLAMA = """
import ollama
client = ollama.Client(url)
request = {"model": "scripted", "messages": [{"role": "user", "content": text}]}
def whole(): client.chat(**request)
def streamed(): list(client.chat(**request, stream=True))
"""
MISTRAL = """
try:
    from mistralai.client import Mistral
except ImportError:
    from mistralai import Mistral
client = Mistral(api_key="scripted", server_url=url.removesuffix("/v1"))
request = {"model": "scripted", "messages": [{"role": "user", "content": text}]}
def whole(): client.chat.complete(**request)
def streamed(): list(client.chat.stream(**request))
"""
GROQ = """
import groq
client = groq.Groq(base_url=url.removesuffix("/v1"), api_key="scripted", max_retries=0)
request = {"model": "scripted", "messages": [{"role": "user", "content": text}]}
def whole(): client.chat.completions.create(**request)
def streamed(): list(client.chat.completions.create(**request, stream=True))
"""
TOGETHER = """
import together
client = together.Together(base_url=url.removesuffix("/v1"), api_key="scripted", max_retries=0)
request = {"model": "scripted", "messages": [{"role": "user", "content": text}]}
def whole(): client.chat.completions.create(**request)
def streamed(): list(client.chat.completions.create(**request, stream=True))
"""
FIREWORKS = """
import fireworks
client = fireworks.Fireworks(base_url=url.removesuffix("/v1"), api_key="scripted", max_retries=0)
request = {"model": "scripted", "messages": [{"role": "user", "content": text}]}
def whole(): client.chat.completions.create(**request)
def streamed(): list(client.chat.completions.create(**request, stream=True))
"""
HUGGING_FACE = """
import huggingface_hub
client = huggingface_hub.InferenceClient(base_url=url, token="hf_scripted")
request = {"messages": [{"role": "user", "content": text}], "model": "scripted"}
def whole(): client.chat_completion(**request)
def streamed(): list(client.chat_completion(**request, stream=True))
"""
AZURE = """
from azure.ai.inference import ChatCompletionsClient
from azure.core.credentials import AzureKeyCredential
client = ChatCompletionsClient(endpoint=url, credential=AzureKeyCredential("scripted"))
request = {"messages": [{"role": "user", "content": text}], "model": "scripted"}
def whole(): client.complete(**request)
def streamed(): list(client.complete(**request, stream=True))
"""
XAI = """
import xai_sdk
from tests.contract.agents.xai_client import gateway
from xai_sdk.chat import user
def talk(host):
    client = xai_sdk.Client(api_key="scripted", api_host=host, use_insecure_channel=True)
    return client.chat.create(model="scripted", messages=[user(text)])
def whole():
    with gateway(url) as host: talk(host).sample()
def streamed():
    with gateway(url) as host: list(talk(host).stream())
"""
HTTPX = """
import httpx
request = {"model": "scripted", "messages": [{"role": "user", "content": text}]}
def whole(): httpx.post(url + "/chat/completions", json=request)
def streamed():
    asked = {**request, "stream": True, "stream_options": {"include_usage": True}}
    with httpx.stream("POST", url + "/chat/completions", json=asked) as response:
        list(response.iter_lines())
"""
HTTPX_RESPONSES = """
import asyncio
import httpx2
async def ask(**more):
    async with httpx2.AsyncClient() as client:
        asked = {"model": "scripted", "input": text, **more}
        async with client.stream("POST", url + "/responses", json=asked) as response:
            if not more:
                return await response.aread()
            async for line in response.aiter_lines():
                if "response.completed" in line:
                    break  # as programs do
def whole(): asyncio.run(ask())
def streamed(): asyncio.run(ask(stream=True))
"""
HTTPX_MESSAGES = """
import httpx
request = {"model": "scripted", "max_tokens": 100, "messages": [{"role": "user", "content": text}]}
def whole(): httpx.post(url + "/v1/messages", json=request)
def streamed():
    with httpx.stream("POST", url + "/v1/messages", json={**request, "stream": True}) as response:
        response.read()
"""
AGENTS_SDK = """
import asyncio, os
os.environ |= {"OPENAI_API_KEY": "scripted", "OPENAI_BASE_URL": url, "OPENAI_AGENTS_DISABLE_TRACING": "1"}
import agents
agent, loop = agents.Agent("assistant", model="scripted"), asyncio.new_event_loop()
async def read():
    async for event in agents.Runner.run_streamed(agent, text).stream_events():
        pass
def whole(): loop.run_until_complete(agents.Runner.run(agent, text))
def streamed(): loop.run_until_complete(read())
"""
COHERE = """
import cohere
client = cohere.ClientV2("scripted", base_url=url)
request = {"model": "scripted", "messages": [{"role": "user", "content": text}]}
def whole(): client.chat(**request)
def streamed(): list(client.chat_stream(**request))
"""
LITELLM = """
import litellm
request = {"model": "openai/scripted", "messages": [{"role": "user", "content": text}], "api_base": url,
           "api_key": "scripted", "max_retries": 0}
def whole(): litellm.completion(**request)
def streamed(): list(litellm.completion(**request, stream=True, stream_options={"include_usage": True}))
"""
LANGCHAIN = """
from langchain_openai import ChatOpenAI
model = ChatOpenAI(model="scripted", base_url=url, api_key="scripted", max_retries=0)
def whole(): model.invoke(text)
def streamed(): list(model.stream(text, stream_usage=True))
"""
#: Client, its environment and server, and the tokens that the server says it had cached.
_CASES: list[tuple[str, str, type[Any], int]] = [
    (CHAT, "openai-agents", OpenAIServer, 0),
    (RESPONSES, "openai-agents", OpenAIServer, 0),
    (ANTHROPIC, "anthropic", AnthropicServer, anthropic.CACHED_TOKENS),
    (GEMINI, "google-genai", GeminiServer, providers.CACHED_TOKENS),
    (BEDROCK, "bedrock", BedrockServer, anthropic.CACHED_TOKENS),
    (INVOKE, "bedrock", BedrockServer, 0),
    (OLLAMA, "ollama", OllamaServer, 0),
    (MISTRAL, "mistralai", OpenAIServer, 0),
    (GROQ, "groq", OpenAIServer, 0),
    (TOGETHER, "together", OpenAIServer, 0),
    (FIREWORKS, "fireworks", OpenAIServer, 0),
    (HUGGING_FACE, "huggingface", OpenAIServer, 0),
    (AZURE, "azure-inference", OpenAIServer, 0),
    (XAI, "xai", OpenAIServer, 0),
    (HTTPX, "httpx", OpenAIServer, 0),
    (HTTPX_RESPONSES, "openai-agents", OpenAIServer, 0),
    (HTTPX_MESSAGES, "httpx", AnthropicServer, anthropic.CACHED_TOKENS),
    (AGENTS_SDK, "openai-agents", OpenAIServer, 0),
    (COHERE, "cohere", CohereServer, 0),
    (LITELLM, "litellm", OpenAIServer, 0),
    (LANGCHAIN, "langchain", OpenAIServer, 0),
]
_WITH_USAGE = (MISTRAL, TOGETHER, FIREWORKS, HUGGING_FACE, AZURE, XAI)
_NAMES = [
    "chat",
    "responses",
    "anthropic",
    "gemini",
    "bedrock",
    "invoke",
    "ollama",
    "mistral",
    "groq",
    "together",
    "fireworks",
    "hugging face",
    "azure",
    "xai",
    "httpx",
    "httpx, responses",
    "httpx, messages",
    "agents sdk",
    "cohere",
    "litellm",
    "langchain",
]


@pytest.mark.parametrize(("client", "row", "server", "cached"), _CASES, ids=_NAMES)
def test_the_tokens_of_an_execution_are_those_that_the_provider_counts(
    environment: Callable[[str], Environment], client: str, row: str, server: type[Any], cached: int
) -> None:
    def reply(request: Json) -> Reply:
        if client in _WITH_USAGE:  # their APIs need no option for the usage of a stream
            request["stream_options"] = {"include_usage": True}
        return ANSWER

    with server(reply) as model:
        code = _PROGRAM.format(url=model.base_url, client=textwrap.dedent(client))
        done = environment(row).run(
            code,
            # Where requests through httpx are read as well, those of SDKs count once.
            env={
                "AGENT_OTEL": "1",
                "AGENT_OTEL_HTTPX": "1",
                "LANGSMITH_TRACING": "false",
                "LITELLM_LOCAL_MODEL_COST_MAP": "true",
            },
            check=True,
        )
        found = json.loads(done.stdout.splitlines()[-1])
        counted = [usage(request, ANSWER) for request in model.requests]
    assert found["parts"] == found["whole"][1] + found["streamed"][1]
    for name, sent in (("whole", counted[:2]), ("streamed", counted[2:])):
        read, written = [10, 10] if server is OllamaServer else [count for count, _ in sent], [2, 2]
        if server is not OllamaServer:
            written = [count for _, count in sent]
        if cached and server in {AnthropicServer, BedrockServer}:  # what was read from the cache stands beside the rest
            read = [count + cached for count in read]
        assert found[name] == [2, sum(read), 2 * cached, sum(written), read[1]]
