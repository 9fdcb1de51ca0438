"""SDKs of providers with OpenAI's chat completions, or nearly those."""

from __future__ import annotations

from typing import ClassVar

from agent_otel.testing.servers.anthropic import AnthropicServer
from agent_otel.testing.servers.openai import CohereServer
from tests.contract.composition import Client


class TestGroq(Client):
    """groq 1.7."""

    agent = "groq_client"
    environment = "groq"
    integrations: ClassVar = {"groq": ["groq._base_client:SyncAPIClient.request"]}


class TestTogether(Client):
    """together 3.1."""

    agent = "together_client"
    environment = "together"
    integrations: ClassVar = {"together": ["together._base_client:SyncAPIClient.request"]}


class TestFireworks(Client):
    """fireworks-ai 1.2."""

    agent = "fireworks_client"
    environment = "fireworks"
    integrations: ClassVar = {"fireworks": ["fireworks._base_client:SyncAPIClient.request"]}


class TestFireworksMessages(Client):
    """The messages of fireworks-ai 1.2, which are those of Anthropic."""

    agent = "fireworks_messages"
    environment = "fireworks"
    server = AnthropicServer
    integrations: ClassVar = {"fireworks": ["fireworks._base_client:SyncAPIClient.request"]}

    def tools_bytes(self, name: str) -> int:
        """Bytes of the definitions as they are sent."""
        return len(f'[{{"name":"{name}","input_schema":{{"type":"object"}}}}]')


class TestHuggingFace(Client):
    """huggingface_hub 2.4."""

    agent = "huggingface_client"
    environment = "huggingface"
    integrations: ClassVar = {
        "huggingface-hub": [
            "huggingface_hub.inference._client:InferenceClient.chat_completion",
            "huggingface_hub.inference._generated._async_client:AsyncInferenceClient.chat_completion",
        ],
    }


class TestAzure(Client):
    """azure-ai-inference 1.0.0b9."""

    agent = "azure_client"
    environment = "azure-inference"
    integrations: ClassVar = {
        "azure-ai-inference": [
            "azure.ai.inference._patch:ChatCompletionsClient.complete",
            "azure.ai.inference.aio._patch:ChatCompletionsClient.complete",
        ],
    }


class TestCohere(Client):
    """cohere 7.3, version 2 of the API."""

    agent = "cohere_client"
    environment = "cohere"
    server = CohereServer
    integrations: ClassVar = {
        "cohere": ["cohere.v2.raw_client:RawV2Client.chat", "cohere.core.http_client:_retry_timeout"]
    }


class TestXai(Client):
    """xai-sdk 1.21."""

    agent = "xai_client"
    environment = "xai"
    integrations: ClassVar = {"xai-sdk": ["xai_sdk.chat:BaseClient.__init__"]}


class TestXaiOldest(TestXai):
    """xai-sdk 1.6, the oldest with ids of calls in results."""

    environment = "xai-1.6"


del Client
