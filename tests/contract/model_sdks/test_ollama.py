"""Ollama's client, whose protocol has no call ids."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from agent_otel.testing.servers.openai import OllamaServer
from tests.contract.composition import Client

if TYPE_CHECKING:
    from tests.contract.cases import Record
    from tests.contract.suite import Runs


class TestOllama(Client):
    """ollama 0.6."""

    agent = "ollama_client"
    environment = "ollama"
    server = OllamaServer
    integrations: ClassVar = {"ollama": ["ollama._client:Client._request"]}

    def expected(self, record: Record, runs: Runs) -> Record:
        """Without a call id."""
        return replace(super().expected(record, runs), call_id=None)


del Client
