"""The loop of Mistral's client over a conversation, in both forms of its package."""

from __future__ import annotations

from typing import ClassVar

from tests.contract.delivery import WHOLE, Delivery
from tests.servers.mistral import MistralServer


class TestMistralRuns(Delivery):
    """mistralai 3."""

    agent = "mistral_runs"
    environment = "mistralai"
    server = MistralServer
    integrations: ClassVar = {
        "mistralai": [
            "mistralai.client.basesdk:BaseSDK._build_request",
            "mistralai.client.conversations:Conversations.run_async",
            "mistralai.extra.run.context:create_function_result",
        ],
    }
    has_runs = True
    run_span = "invoke_agent"
    outer = False
    modes: ClassVar = ("async",)
    origin = None
    reads_failures = True
    flagged = "tool_error"
    own: ClassVar = {"two megabytes": WHOLE}


class TestMistralRuns1(TestMistralRuns):
    """mistralai 1.12."""

    environment = "mistralai-1"
    inside: ClassVar = ("function_call[lookup_later]",)
    integrations: ClassVar = {
        "mistralai": [
            "mistralai.basesdk:BaseSDK._build_request",
            "mistralai.conversations:Conversations.run_async",
            "mistralai.extra.run.context:create_function_result",
        ],
    }


del Delivery
