"""The tokens of a model's response, as its provider reports them."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_otel._internal.lazy import pattern
from agent_otel._internal.object_kinds import RECORD, shape_of
from agent_otel.core.plain import fields, given, listed, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


_VERSION: Final = pattern(r'"modelVersion"\s*:\s*"([^"\\]{1,200})"')
#: More tokens than any request has; a larger count is not read.
MOST_TOKENS: Final = 10**9


class Usage(NamedTuple):
    """Tokens of one response; 0 where the provider reports none.

    ``input`` counts the whole request. Of these, ``cached`` were read from the provider's cache, ``written`` were
    written to it, and ``media`` are those of images, audio and other media, of which ``audio`` have a price of their
    own. ``cached_audio`` are those that are audio and were read from the cache. ``output`` counts the response, of
    which ``reasoning`` are no text of it, and ``spoken`` are audio.
    """

    input: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0
    media: int = 0
    written: int = 0
    audio: int = 0
    spoken: int = 0
    cached_audio: int = 0

    def plausible(self) -> Usage | None:
        """Return the usage without counts that no request can have; None where none is left.

        An absurd count, of a provider that is wrong, would otherwise leave the range of OTLP's integers, and the
        exporter would lose each later batch.
        """
        counts = self
        if min(self) < 0 or max(self) > MOST_TOKENS:
            counts = Usage(*(count if 0 <= count <= MOST_TOKENS else 0 for count in self))
        return counts if counts.input or counts.output else None

    def joined(self, later: Usage, *, adds: bool = False) -> Usage:
        """Return the usage of a stream with that of a later item.

        Providers repeat a total that grows. Where ``adds`` is true, each item has its own share.
        """
        return Usage(*map(operator.add if adds else max, self, later))


def read(value: Any) -> Usage | None:
    """Return the usage in a provider's object with the counts; None for any other value, and without a count.

    The names of the counts distinguish the formats: OpenAI's chat (also of Mistral, LiteLLM and many servers), OpenAI's
    Responses and LangChain, Anthropic, Bedrock, Gemini and its interactions, Ollama. Zero counts as not reported.
    """
    shape = shape_of(type(value))
    # A model of pydantic has the counts that its class does not declare beside its fields.
    counts = {**shape.read(value), **fields(value)} if shape.kind is RECORD else fields(value)
    for name, reader in _FORMATS:
        if name in counts:
            usage = reader(counts)
            return usage if usage.input or usage.output else None
    return None


def answered_by(response: Any) -> str | None:
    """Return the model that a response, or an item of a stream, names; None for one that names none."""
    known = fields(response)
    name = known.get("model")
    if name is None:
        name = _version(known)
    if name is None:
        name = fields(given(known.get("response"), known.get("message"))).get("model")
    return text(name) or None


def _version(known: Mapping[str, Any]) -> Any:
    """Return the name in a response of Gemini, which later versions of its SDK hand on as unparsed text."""
    body = known.get("body")
    if type(body) is not str:
        return known.get("modelVersion", known.get("model_version"))
    at = body.rfind('"modelVersion"')  # the last one, because arguments of a call may have the name, too
    found = _VERSION.match(body, at) if at > 0 and body[at - 1] != "\\" else None
    return None if found is None else found[1]


def _count(counts: Mapping[str, Any], *names: str) -> int:
    """Return the sum of the counts with these names."""
    total = 0
    for name in names:
        value = counts.get(name)
        if type(value) is int and value > 0:
            total += value
    return total


def _chat(counts: Mapping[str, Any]) -> Usage:
    details, written = fields(counts.get("prompt_tokens_details")), fields(counts.get("completion_tokens_details"))
    return Usage(
        _count(counts, "prompt_tokens"),
        _count(details, "cached_tokens"),
        _count(counts, "completion_tokens"),
        _count(written, "reasoning_tokens"),
        _count(details, "audio_tokens", "image_tokens"),
        _count(details, "cache_write_tokens"),
        _count(details, "audio_tokens"),
        spoken=_count(written, "audio_tokens"),
        cached_audio=_count(fields(details.get("cached_tokens_details")), "audio_tokens"),
    )


def _items(counts: Mapping[str, Any]) -> Usage:
    """Read OpenAI's Responses, LangChain, or Anthropic, which counts the tokens of its cache apart."""
    details = fields(counts.get("input_tokens_details")) or fields(counts.get("input_token_details"))
    written = fields(counts.get("output_tokens_details")) or fields(counts.get("output_token_details"))
    cached, apart = _count(details, "cached_tokens", "cache_read"), 0
    put = _count(details, "cache_creation") or _count(details, "cache_write_tokens")
    if not details:
        cached = _count(counts, "cache_read_input_tokens")
        put = _count(counts, "cache_creation_input_tokens")
        apart = cached + put
    return Usage(
        _count(counts, "input_tokens") + apart,
        cached,
        _count(counts, "output_tokens"),
        _count(written, "reasoning_tokens", "reasoning"),
        _count(details, "audio_tokens", "image_tokens", "audio", "image"),
        put,
        _count(details, "audio_tokens", "audio"),
        _count(written, "audio_tokens", "audio"),
        _count(fields(details.get("cached_tokens_details")), "audio_tokens"),
    )


def _bedrock(counts: Mapping[str, Any]) -> Usage:
    cached = _count(counts, "cacheReadInputTokens")
    put = _count(counts, "cacheWriteInputTokens")
    read_in = cached + put + _count(counts, "inputTokens")
    return Usage(read_in, cached, _count(counts, "outputTokens"), written=put)


def _gemini(counts: Mapping[str, Any]) -> Usage:
    thoughts = _count(counts, "thoughtsTokenCount")
    read_in, wrote = counts.get("promptTokensDetails"), counts.get("candidatesTokensDetails")
    return Usage(
        _count(counts, "promptTokenCount", "toolUsePromptTokenCount"),
        _count(counts, "cachedContentTokenCount"),
        _count(counts, "candidatesTokenCount") + thoughts,
        thoughts,
        _of_media(read_in),
        audio=_of_audio(read_in),
        spoken=_of_audio(wrote),
        cached_audio=_of_audio(counts.get("cacheTokensDetails")),
    )


def _of_media(by_modality: Any) -> int:
    """Return the tokens that are no text, of a list in either of Google's forms."""
    return sum(count for modality, count in _by_modality(by_modality) if modality not in _TEXTS)


def _of_audio(by_modality: Any) -> int:
    return sum(count for modality, count in _by_modality(by_modality) if modality == "AUDIO")


def _by_modality(given_counts: Any) -> Iterator[tuple[str | None, int]]:
    for each in map(fields, listed(given_counts)):
        modality = text(each.get("modality"))
        yield modality and modality.upper(), _count(each, "tokenCount", "tokens")


def _interaction(counts: Mapping[str, Any]) -> Usage:
    """Read Google's interactions, which count thoughts apart from the output."""
    thoughts = _count(counts, "total_thought_tokens")
    read_in = counts.get("input_tokens_by_modality")
    return Usage(
        _count(counts, "total_input_tokens", "total_tool_use_tokens"),
        _count(counts, "total_cached_tokens"),
        _count(counts, "total_output_tokens") + thoughts,
        thoughts,
        _of_media(read_in),
        audio=_of_audio(read_in),
        spoken=_of_audio(counts.get("output_tokens_by_modality")),
        cached_audio=_of_audio(counts.get("cached_tokens_by_modality")),
    )


def _ollama(counts: Mapping[str, Any]) -> Usage:
    return Usage(_count(counts, "prompt_eval_count"), 0, _count(counts, "eval_count"))


_TEXTS = ("TEXT", "MODALITY_UNSPECIFIED", None)
_FORMATS = (
    ("prompt_tokens", _chat),
    ("input_tokens", _items),
    ("inputTokens", _bedrock),
    ("promptTokenCount", _gemini),
    ("total_input_tokens", _interaction),
    ("output_tokens", _items),
    ("prompt_eval_count", _ollama),
    ("eval_count", _ollama),
)
