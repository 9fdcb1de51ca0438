"""A loop of the program's own over Together's client."""

# mypy: disable-error-code="import-not-found,unused-ignore"
# The SDK is not installed where types are checked.

from __future__ import annotations

import together

from tests.contract.agents.chat_loop import ChatLoop

LOOP = ChatLoop(
    lambda base_url: together.Together(base_url=base_url.removesuffix("/v1"), api_key="scripted", max_retries=0),
    lambda base_url: together.AsyncTogether(base_url=base_url.removesuffix("/v1"), api_key="scripted", max_retries=0),
)
run, arun, astream = LOOP.run, LOOP.arun, LOOP.astream
