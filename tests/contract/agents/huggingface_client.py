"""A loop of the program's own over Hugging Face's InferenceClient."""

# mypy: disable-error-code="import-not-found,unused-ignore"
# The SDK is not installed where types are checked.

from __future__ import annotations

from huggingface_hub import AsyncInferenceClient, InferenceClient

from tests.contract.agents.chat_loop import ChatLoop

LOOP = ChatLoop(
    lambda base_url: InferenceClient(base_url=base_url, api_key="scripted"),
    lambda base_url: AsyncInferenceClient(base_url=base_url, api_key="scripted"),
)
run, arun, astream = LOOP.run, LOOP.arun, LOOP.astream
