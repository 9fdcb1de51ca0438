"""Usage of responses: each provider's counts, streams, and numbers that are missing, zero or no numbers."""

from __future__ import annotations

import base64
import dataclasses
import json
from types import SimpleNamespace
from typing import Any

import pytest

from agent_otel.core.cost.usage import Usage, answered_by, read
from agent_otel.integrations.model_sdks import bedrock, stainless
from agent_otel.measure.size import size
from agent_otel.messages.openai import hosted
from agent_otel.messages.openai import passes as is_passed
from tests.rows import each_row

CHAT = {
    "prompt_tokens": 1000,
    "completion_tokens": 200,
    "total_tokens": 1200,
    "prompt_tokens_details": {"cached_tokens": 768, "audio_tokens": 40, "cached_tokens_details": {"audio_tokens": 24}},
    "completion_tokens_details": {"reasoning_tokens": 150, "audio_tokens": 30},
}
RESPONSES = {
    "input_tokens": 1000,
    "output_tokens": 200,
    "input_tokens_details": {"cached_tokens": 768},
    "output_tokens_details": {"reasoning_tokens": 150},
}
ANTHROPIC = {
    "input_tokens": 32,
    "cache_read_input_tokens": 768,
    "cache_creation_input_tokens": 200,
    "output_tokens": 200,
}
LANGCHAIN = {
    "input_tokens": 1000,
    "output_tokens": 200,
    "input_token_details": {"cache_read": 768, "cache_creation": 200},
    "output_token_details": {"reasoning": 150},
}
GEMINI = {
    "promptTokenCount": 1000,
    "cachedContentTokenCount": 768,
    "candidatesTokenCount": 50,
    "thoughtsTokenCount": 150,
    "promptTokensDetails": [
        {"modality": "TEXT", "tokenCount": 742},
        {"modality": "IMAGE", "tokenCount": 200},
        {"modality": "AUDIO", "tokenCount": 58},
    ],
    "candidatesTokensDetails": [{"modality": "AUDIO", "tokenCount": 20}],
    "cacheTokensDetails": [{"modality": "TEXT", "tokenCount": 720}, {"modality": "AUDIO", "tokenCount": 48}],
}
INTERACTION = {
    "total_input_tokens": 1000,
    "total_cached_tokens": 768,
    "total_output_tokens": 50,
    "total_thought_tokens": 150,
    "input_tokens_by_modality": [
        SimpleNamespace(modality="text", tokens=742),
        SimpleNamespace(modality="image", tokens=200),
        SimpleNamespace(modality="audio", tokens=58),
    ],
    "output_tokens_by_modality": [SimpleNamespace(modality="audio", tokens=20)],
    "cached_tokens_by_modality": [{"modality": "text", "tokens": 720}, {"modality": "audio", "tokens": 48}],
}
WRITTEN = Usage(1000, 700, 200, written=200)
METRICS = (
    '{"amazon-bedrock-invocationMetrics": {"inputTokenCount": 3, "outputTokenCount": 13, '
    '"cacheReadInputTokenCount": 20000, "cacheWriteInputTokenCount": 5000}}'
)
BEDROCK = {"inputTokens": 32, "outputTokens": 200, "cacheReadInputTokens": 768, "cacheWriteInputTokens": 200}


@each_row(
    ("counts", "usage"),
    [
        (CHAT, Usage(1000, 768, 200, 40, audio=40, spoken=30, cached_audio=24)),
        (RESPONSES, Usage(1000, 768, 200)),
        (ANTHROPIC, Usage(1000, 768, 200, written=200)),
        (LANGCHAIN, Usage(1000, 768, 200, written=200)),
        (GEMINI, Usage(1000, 768, 200, 258, audio=58, spoken=20, cached_audio=48)),
        (BEDROCK, Usage(1000, 768, 200, written=200)),
        ({"prompt_eval_count": 1000, "eval_count": 200, "done": True}, Usage(1000, 0, 200)),
        (
            CHAT | {"prompt_tokens_details": {"cached_tokens": 700, "cache_write_tokens": 200}},
            WRITTEN._replace(spoken=30),
        ),
        (RESPONSES | {"input_tokens_details": {"cached_tokens": 700, "cache_write_tokens": 200}}, WRITTEN),
        (INTERACTION, Usage(1000, 768, 200, 258, audio=58, spoken=20, cached_audio=48)),
    ],
)
def test_each_format_gives_the_same_tokens(counts: dict[str, Any], usage: Usage) -> None:
    assert read(counts) == usage


@each_row(
    "counts",
    [
        None,
        "1000",
        {},
        {"prompt_tokens": 0, "completion_tokens": 0},
        {"prompt_tokens": None, "completion_tokens": None},
        {"prompt_tokens": -1, "completion_tokens": "many"},
        {"input_tokens": float("nan"), "output_tokens": True},
        {"promptTokenCount": [], "promptTokensDetails": "TEXT"},
        {"tokens": 7},
    ],
)
def test_a_report_without_a_count_is_none(counts: object) -> None:
    assert read(counts) is None


def test_totals_of_a_stream_grow_and_shares_add_up() -> None:
    begin, end = Usage(1000, 768), Usage(0, 0, 200)
    assert begin.joined(end) == Usage(1000, 768, 200)
    assert Usage(1000, 0, 50).joined(Usage(1000, 0, 200)) == Usage(1000, 0, 200)
    assert Usage(1000, 0, 50).joined(Usage(0, 0, 150), adds=True) == Usage(1000, 0, 200)


@each_row(
    ("usage", "plausible"),
    [
        (Usage(10**9, 0, 10**9), Usage(10**9, 0, 10**9)),
        (Usage(10**9 + 1, 768, 200), Usage(0, 768, 200)),
        (Usage(1000, 768, -1), Usage(1000, 768)),
        (Usage(10**30, 10**400, 2**63), None),
    ],
)
def test_a_count_that_no_request_can_have_is_not_read(usage: Usage, plausible: Usage | None) -> None:
    assert usage.plausible() == plausible


def test_a_response_names_its_model() -> None:
    assert answered_by({"model": "gpt-4o-2024-08-06", "usage": CHAT}) == "gpt-4o-2024-08-06"
    assert answered_by({"type": "response.completed", "response": {"model": "gpt-5"}}) == "gpt-5"
    assert answered_by({"type": "message_start", "message": {"model": "claude-sonnet-4-5"}}) == "claude-sonnet-4-5"
    assert answered_by({"modelVersion": "gemini-2.5-flash", "candidates": []}) == "gemini-2.5-flash"
    assert answered_by(SimpleNamespace(model_version="gemini-2.5-flash")) == "gemini-2.5-flash"
    for text, name in (
        (
            '{"candidates": [{"args": {"modelVersion": "mine"}}], "modelVersion" : "gemini-2.5-flash"}',
            "gemini-2.5-flash",
        ),
        ('{"text": "{\\"modelVersion\\": \\"quoted\\"}"}', None),
        ('{"modelVersion": 7}', None),
        ("", None),
    ):
        assert answered_by(SimpleNamespace(headers={}, body=text)) == name
    assert [answered_by(value) for value in ({"model": ""}, {"model": 7, "message": "x"}, {}, None, "gpt-4o")] == [
        None
    ] * 5


@each_row(
    ("item", "passes"),
    [
        ({"object": "chat.completion.chunk", "choices": [{"delta": {"content": "word"}}]}, True),
        ({"choices": [], "usage": None}, True),
        ({"choices": [], "usage": CHAT}, False),
        ({"type": "response.output_text.delta", "delta": "word"}, True),
        ({"type": "response.output_item.done", "item": {"type": "mcp_call", "output": "5"}}, False),
        ({"type": "response.completed", "response": {"usage": RESPONSES}}, False),
        ({"output": [{"type": "mcp_call", "output": "5"}]}, False),
    ],
)
def test_an_item_of_a_stream_passes_only_without_tokens_and_without_calls_of_the_provider(
    item: dict[str, Any], *, passes: bool
) -> None:
    for each in (item, SimpleNamespace(**item)):
        assert passes is is_passed(each)
        has_something = stainless.usage(each) is not None or bool(list(hosted(each)))
        assert has_something is not passes


class Undeclared:
    """As a model of pydantic whose class declares the field for what it does not declare itself."""

    __slots__ = ("__dict__", "__pydantic_extra__")
    __pydantic_fields__ = {"prompt_tokens": None}  # noqa: RUF012 - pydantic's is like this

    def __init__(self) -> None:
        extra = {"prompt_tokens_details": {"cached_tokens": 768}}
        self.__dict__.update(prompt_tokens=1000, __pydantic_extra__=extra)


def test_counts_that_the_sdk_does_not_declare_are_read() -> None:
    assert read(Undeclared()) == Usage(1000, 768)
    expected = '{"prompt_tokens":1000,"prompt_tokens_details":{"cached_tokens":768}}'
    assert size(Undeclared()) == (len(expected), True)


@dataclasses.dataclass
class Declared:
    """A class of an SDK that puts more on its instances than it declares."""

    prompt_tokens: int


def test_counts_beside_the_declared_fields_are_read() -> None:
    counts = Declared(1000)
    counts.completion_tokens = 200  # type: ignore[attr-defined]
    assert read(counts) == Usage(1000, 0, 200)


@pytest.mark.parametrize(
    "response",
    [
        {
            "ResponseMetadata": {
                "HTTPHeaders": {
                    "x-amzn-bedrock-input-token-count": "3",
                    "x-amzn-bedrock-output-token-count": "13",
                    "x-amzn-bedrock-cache-read-input-token-count": "20000",
                    "x-amzn-bedrock-cache-write-input-token-count": "5000",
                }
            }
        },
        {
            "headers": {":event-type": "chunk"},
            "payload": json.dumps({"bytes": base64.b64encode(METRICS.encode()).decode()}).encode(),
        },
    ],
)
def test_bedrock_counts_what_its_cache_has_read_and_written_apart(response: dict[str, Any]) -> None:
    assert bedrock._usage(response) == Usage(25_003, 20_000, 13, written=5_000)
