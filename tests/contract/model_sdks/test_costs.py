"""The carrying cost through each SDK: the parts sum up to the provider's tokens, and to genai-prices' own price."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel.testing.servers import anthropic, providers
from agent_otel.testing.servers.anthropic import AnthropicServer, BedrockServer
from agent_otel.testing.servers.openai import OpenAIServer
from agent_otel.testing.servers.providers import GeminiServer
from agent_otel.testing.servers.replies import usage

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.testing.servers.openai import Json, Reply
    from tests.environments import Environment

ANSWER = "Fine, thank you."
#: The process ends while the prices are being read.
_PROGRAM = """
import atexit, json, sys
import prometheus_client

url = sys.argv[1]
def show():
    from agent_otel._internal import errors
    found = {{}}
    for family in prometheus_client.REGISTRY.collect():
        for sample in family.samples:
            if sample.name.endswith(("context_tokens_total", "context_cost_total", "cost_sum", "tokens_sum")):
                found.setdefault(sample.name, []).append(sample.value)
    print(json.dumps([found, dict(errors.errors)]))
atexit.register(show)
# The table is read by the client's interpreter, whose environment lacks it.
sys.path.append(sys.argv[2])
import agent_otel
from agent_otel.core.cost import models
models._EXIT_SECONDS = 100  # a busy machine takes longer for two models than the process waits
texts = ["How are you? " * 20, "And you? " * 300]
{client}
with agent_otel.execution("run"):
    for count in (1, 2):
        ask(texts[:count])
"""
CHAT = """
import openai
client = openai.OpenAI(base_url=url, api_key="scripted", max_retries=0)
def ask(texts):
    client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": text} for text in texts])
"""
ANTHROPIC = """
import anthropic
client = anthropic.Anthropic(base_url=url, api_key="scripted", max_retries=0)
def ask(texts):
    messages = [{"role": "user", "content": text} for text in texts]
    client.messages.create(model="claude-sonnet-4-5", max_tokens=100, system="Be kind.", messages=messages)
"""
#: The second request names a deployment, whose model the response names.
GEMINI = """
from google import genai
client = genai.Client(api_key="scripted", http_options={"base_url": url})
def ask(texts):
    contents = [{"role": "user", "parts": [{"text": text}]} for text in texts]
    model = ["gemini-2.5-flash", "our-chat"][len(texts) - 1]
    list(client.models.generate_content_stream(model=model, contents=contents))
"""
BEDROCK = """
import boto3
client = boto3.client("bedrock-runtime", endpoint_url=url, region_name="us-east-1", aws_access_key_id="scripted",
                      aws_secret_access_key="scripted")
def ask(texts):
    messages = [{"role": "user", "content": [{"text": text}]} for text in texts]
    client.converse(modelId="us.anthropic.claude-sonnet-4-5-20250929-v1:0", messages=messages)
"""
MISTRAL = """
from mistralai.client import Mistral
client = Mistral(api_key="scripted", server_url=url.removesuffix("/v1"))
def ask(texts):
    client.chat.complete(model="mistral-large-latest", messages=[{"role": "user", "content": text} for text in texts])
"""
LITELLM = """
import litellm
def ask(texts):
    messages = [{"role": "user", "content": text} for text in texts]
    litellm.completion(model="openai/gpt-4o-mini", messages=messages, api_base=url, api_key="scripted", max_retries=0)
"""
#: Client, its environment, server and cached tokens; provider and model in genai-prices.
_CASES: list[tuple[str, str, type[Any], int, str, str]] = [
    (CHAT, "openai-agents", OpenAIServer, 0, "openai", "gpt-4o"),
    (ANTHROPIC, "anthropic", AnthropicServer, anthropic.CACHED_TOKENS, "anthropic", "claude-sonnet-4-5"),
    (GEMINI, "google-genai", GeminiServer, providers.CACHED_TOKENS, "google", "gemini-2.5-flash"),
    (BEDROCK, "bedrock", BedrockServer, anthropic.CACHED_TOKENS, "aws", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
    (MISTRAL, "mistralai", OpenAIServer, 0, "mistral", "mistral-large-latest"),
    (LITELLM, "litellm", OpenAIServer, 0, "openai", "gpt-4o-mini"),
]
_PRICES = """
import json, sys
from genai_prices import Usage, calc_price
usages, provider, model = json.loads(sys.argv[1])
prices = [
    calc_price(Usage(input_tokens=read, cache_read_tokens=cached, output_tokens=written), model, provider_id=provider)
    for read, cached, written in usages
]
print(json.dumps([float(sum(one.input_price for one in prices)), float(sum(one.total_price for one in prices))]))
"""
_FOLDER = "import genai_prices, pathlib; print(pathlib.Path(genai_prices.__file__).parent.parent)"


@pytest.mark.parametrize(
    ("client", "row", "server", "cached", "provider", "model"), _CASES, ids=[case[1] for case in _CASES]
)
def test_the_parts_sum_up_to_the_providers_tokens_and_price(  # noqa: PLR0913, PLR0917 - the columns of the table
    environment: Callable[[str], Environment],
    monkeypatch: pytest.MonkeyPatch,
    client: str,
    row: str,
    server: type[Any],
    cached: int,
    provider: str,
    model: str,
) -> None:
    def reply(_: Json) -> Reply:
        return ANSWER

    monkeypatch.setattr(providers, "MODEL", "gemini-2.5-flash")
    table = environment("pydantic-ai")
    folder = table.run(_FOLDER, check=True).stdout.strip()
    with server(reply) as provider_server:
        done = environment(row).run(
            _PROGRAM.format(client=client),
            provider_server.base_url,
            folder,
            env={
                "AGENT_OTEL": "1",
                "AGENT_OTEL_METRICS": "prometheus",
                "AGENT_OTEL_MODEL_PRICES": "1",
                "LITELLM_LOCAL_MODEL_COST_MAP": "true",
            },
            check=True,
            timeout=240,
        )
        counted = [usage(request, ANSWER) for request in provider_server.requests]
    found, errors = json.loads(done.stdout.splitlines()[-1])
    assert errors == {}
    apart = cached if server in {AnthropicServer, BedrockServer} else 0  # these count the cached tokens beside the rest
    usages = [(read + apart, cached, written) for read, written in counted]
    assert sum(found["agent_otel_tool_context_tokens_total"]) == sum(read for read, _, _ in usages)
    assert sum(found["agent_otel_execution_tokens_sum"]) == sum(read + written for read, _, written in usages)
    prices = table.run(_PRICES, json.dumps([usages, provider, model]), check=True).stdout
    input_price, total_price = json.loads(prices)
    assert sum(found["agent_otel_tool_context_cost_total"]) == pytest.approx(input_price, abs=1e-9)
    assert sum(found["agent_otel_execution_cost_sum"]) == pytest.approx(total_price, abs=1e-9)
