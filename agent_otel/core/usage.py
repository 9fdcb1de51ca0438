"""The tokens of a model's response, as its provider reports them."""

from __future__ import annotations

import operator
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_otel._internal.lazy import pattern
from agent_otel._internal.object_kinds import RECORD, fields, given, listed, shape_of, text

if TYPE_CHECKING:
    from collections.abc import Mapping


_VERSION: Final = pattern(r'"modelVersion"\s*:\s*"([^"\\]{1,200})"')
#: More tokens than any request has; a larger count is not read.
MOST_TOKENS: Final = 10**9


class Usage(NamedTuple):
    """Tokens of one response; 0 where the provider reports none.

    ``input`` counts the whole request. Of these, ``cached`` were read from the provider's cache, ``written`` were
    written to it, and ``media`` are those of images, audio and other media, of which ``audio`` have a price of their
    own. ``cached_audio`` are those that are audio and were read from the cache. ``output`` counts the response, of
    which ``spoken`` are audio.
    """

    input: int = 0
    cached: int = 0
    output: int = 0
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


def finish_reasons(response: Any) -> tuple[str, ...]:
    """Return why the model stopped, as a response or an item of a stream says; nothing for one that does not."""
    known = fields(response)
    body = fields(given(known.get("response"), known.get("delta"), known.get("messageStop"), known))
    answers = [fields(each) for each in listed(given(body.get("choices"), body.get("candidates"))) or (body,)]
    names = ("finish_reason", "finishReason", "stop_reason", "stopReason", "done_reason")
    found = [given(*(answer.get(name) for name in names)) for answer in answers]
    return tuple(said for each in found if (said := text(given(fields(each).get("_value_"), each))))


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
        _count(details, "audio_tokens", "image_tokens", "audio", "image"),
        put,
        _count(details, "audio_tokens", "audio"),
        _count(written, "audio_tokens", "audio"),
        _count(fields(details.get("cached_tokens_details")), "audio_tokens"),
    )


def _bedrock(counts: Mapping[str, Any]) -> Usage:
    cached, put = _count(counts, "cacheReadInputTokens"), _count(counts, "cacheWriteInputTokens")
    return Usage(cached + put + _count(counts, "inputTokens"), cached, _count(counts, "outputTokens"), written=put)


def _google(counts: Mapping[str, Any], names: tuple[str, ...]) -> Usage:
    """Read Gemini or Google's interactions, which count thoughts apart from the output."""
    sent, of_tools, cached, wrote, thought, *by_modality = names
    (media, audio), (_, spoken), (_, cached_audio) = (_of_media(counts.get(name)) for name in by_modality)
    return Usage(
        _count(counts, sent, of_tools),
        _count(counts, cached),
        _count(counts, wrote, thought),
        media,
        audio=audio,
        spoken=spoken,
        cached_audio=cached_audio,
    )


def _of_media(by_modality: Any) -> tuple[int, int]:
    """Return the tokens of other media than text, and of audio, of a list in either of Google's forms."""
    media = audio = 0
    for each in map(fields, listed(by_modality)):
        modality, count = text(each.get("modality")), _count(each, "tokenCount", "tokens")
        modality = "TEXT" if modality is None else modality.upper()
        media += count if modality not in _TEXTS else 0
        audio += count if modality == "AUDIO" else 0
    return media, audio


def _ollama(counts: Mapping[str, Any]) -> Usage:
    return Usage(_count(counts, "prompt_eval_count"), 0, _count(counts, "eval_count"))


_TEXTS = ("TEXT", "MODALITY_UNSPECIFIED")
_GEMINI = (
    *("promptTokenCount", "toolUsePromptTokenCount", "cachedContentTokenCount", "candidatesTokenCount"),
    *("thoughtsTokenCount", "promptTokensDetails", "candidatesTokensDetails", "cacheTokensDetails"),
)
_INTERACTION = (
    *("total_input_tokens", "total_tool_use_tokens", "total_cached_tokens", "total_output_tokens"),
    *("total_thought_tokens", "input_tokens_by_modality", "output_tokens_by_modality", "cached_tokens_by_modality"),
)
_FORMATS = (
    ("prompt_tokens", _chat),
    ("input_tokens", _items),
    ("inputTokens", _bedrock),
    ("promptTokenCount", partial(_google, names=_GEMINI)),
    ("total_input_tokens", partial(_google, names=_INTERACTION)),
    ("output_tokens", _items),
    ("prompt_eval_count", _ollama),
    ("eval_count", _ollama),
)
