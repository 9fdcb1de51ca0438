"""LiteLLM: through OpenAI's SDK, where its request and the SDK's are one, and speaking to a provider itself."""

from __future__ import annotations

import json
from typing import ClassVar

from agent_otel.testing.servers.anthropic import AnthropicServer
from tests.contract.cases import looked_up
from tests.contract.composition import Client


class TestOverOpenAI(Client):
    """LiteLLM 1.106 over openai 2."""

    agent = "litellm_client"
    environment = "litellm"
    variables: ClassVar = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR"}
    integrations: ClassVar = {
        "litellm": ["litellm.litellm_core_utils.litellm_logging:Logging.pre_call", "litellm:completion"],
    }
    # It speaks to the Responses API itself.
    own: ClassVar = {**Client.own, "responses": looked_up("lookup", "call_20", setting="responses")}


class TestAlone(TestOverOpenAI):
    """LiteLLM 1.106 over its own HTTP client, to a provider with other shapes than OpenAI's."""

    server = AnthropicServer
    own: ClassVar = Client.own
    arguments_bytes = 26  # {"key": "gr\u00f6\u00dfe"}

    def tools_bytes(self, name: str) -> int:
        """Bytes of the definitions as they are sent."""
        schema = {"type": "object", "properties": {}}
        definitions = [{"name": name, "input_schema": schema, "type": "custom"}]
        return len(json.dumps(definitions, separators=(",", ":")))


del Client
