"""Programs that post their model requests themselves, with httpx or httpx2."""

from __future__ import annotations

from typing import ClassVar

from tests.contract.composition import Client


class TestHttpx(Client):
    """httpx 0.28."""

    agent = "httpx_client"
    environment = "httpx"
    integrations: ClassVar = {"httpx": ["httpx._client:Client.send"]}
    variables: ClassVar = {"AGENT_OTEL_HTTPX": "1"}


class TestHttpx2(TestHttpx):
    """httpx2 2.16."""

    environment = "openai-agents"
    integrations: ClassVar = {"httpx2": ["httpx2._client:Client.send"]}


del Client
