"""Requests that are unusual and complete are counted as neither lost nor cut, over real SDKs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.system.bad_input.conversations import CONVERSATIONS, STATELESS
from tests.system.scripted_child import report_of

if TYPE_CHECKING:
    from tests.forks import Forks

_SDKS = {
    "openai_chat": ("openai-agents", "openai:OpenAIServer"),
    "openai_responses": ("openai-agents", "openai:OpenAIServer"),
    "openai_conversation": ("openai-agents", "openai:OpenAIServer"),
    "anthropic": ("anthropic", "anthropic:AnthropicServer"),
    "gemini": ("google-genai", "providers:GeminiServer"),
    "bedrock": ("bedrock", "anthropic:BedrockServer"),
}
#: Bytes of the results, as a model got them first: an edit is 11 bytes, and 30 lines have 11.
_DELIVERED = {
    "ids twice": 300 + 400 + 500,
    "re-ordered": 300 + 301 + 302,
    "streamed": 2 * 30 * 11,
    "edited": 311 + 311 + 300,
    "kept": 300,
}


@pytest.mark.parametrize("sdk", _SDKS)
def test_nothing_is_lost_or_cut(forks: Forks, sdk: str) -> None:
    name, server = _SDKS[sdk]
    report = report_of("tests.system.bad_input.conversations", sdk, forks, name, server, lambda _: "done")

    held = {talk for talk in CONVERSATIONS if talk != "kept" or sdk not in STATELESS}
    expected = {talk: {"tool.result.delivered": size} for talk, size in _DELIVERED.items() if talk in held}
    assert report == {"counted": expected, "messages": []}
