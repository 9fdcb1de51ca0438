"""A loop of the program's own over Azure AI Inference's client."""

# mypy: disable-error-code="import-not-found,unused-ignore"
# The SDK is not installed where types are checked.

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from azure.ai import inference
from azure.ai.inference import aio
from azure.core.credentials import AzureKeyCredential

from tests.contract.agents.chat_loop import ChatLoop

if TYPE_CHECKING:
    from typing_extensions import Self


class _Client:
    """A client with its function where OpenAI's clients have it."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.chat = SimpleNamespace(completions=SimpleNamespace(create=client.complete))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()


LOOP = ChatLoop(
    lambda base_url: _Client(inference.ChatCompletionsClient(base_url, AzureKeyCredential("scripted"))),
    lambda base_url: _Client(aio.ChatCompletionsClient(base_url, AzureKeyCredential("scripted"))),
)
run, arun, astream = LOOP.run, LOOP.arun, LOOP.astream
