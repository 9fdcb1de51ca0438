"""The tokens of a model's response, as its provider reports them."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_otel._internal.lazy import pattern
from agent_otel._internal.object_kinds import RECORD, fields, given, listed, shape_of, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


_VERSION: Final = pattern(r'"modelVersion"\s*:\s*"([^"\\]{1,200})"')
#: More tokens than any request has; a larger count is not read.
MOST_TOKENS: Final = 10**9


class Usage(NamedTuple):
    """Tokens of one response; 0 where the provider reports none.

    ``input`` counts the whole request. It includes ``cached``, read from the provider's cache, ``written``, written to
    it, and ``media``: images, audio and other media. ``media`` includes ``audio``, which has a separate price.
    ``cached_audio`` is audio that was read from the cache. ``output`` counts the response. It includes ``spoken``
    audio.
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
        """Return the usage of a stream with a later item: a total that grows, or a share that ``adds``."""
        return Usage(*map(operator.add if adds else max, self, later))


def read(value: Any) -> Usage | None:
    """Return the usage in a provider's object with the counts; None for any other value, and without a count.

    The names of the counts distinguish the formats: OpenAI's chat (also of Mistral, LiteLLM and many servers), OpenAI's
    Responses and LangChain, Anthropic, Bedrock, Gemini and its interactions, Ollama. Zero counts as not reported.
    """
    shape = shape_of(type(value))
    # A model of pydantic has the counts that its class does not declare beside its fields.
    counts = {**shape.read(value), **fields(value)} if shape.kind is RECORD else fields(value)
    for name, columns in _FORMATS:
        if name in counts and (name not in _DETAILS or fields(counts[name])):
            usage = Usage(*(_count(counts, places) for places in columns))
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


def _count(counts: Mapping[str, Any], places: Iterable[Sequence[str]]) -> int:
    """Return the sum of the counts at these places."""
    total = 0
    for *outer, name in places:
        found = counts
        for each in outer:
            several = listed(found.get(each))
            found = _by_modality(several) if several else fields(found.get(each))
        value = found.get(name)
        if type(value) is int and value > 0:
            total += value
    return total


def _by_modality(counts: Sequence[Any]) -> dict[str, int]:
    """Return the tokens of other media than text, and of audio, of a list in either of Google's forms."""
    media = audio = 0
    for each in map(fields, counts):
        modality, count = text(each.get("modality")), _count(each, (("tokenCount",), ("tokens",)))
        modality = "TEXT" if modality is None else modality.upper()
        media += count if modality not in _TEXTS else 0
        audio += count if modality == "AUDIO" else 0
    return {"media": media, "audio": audio}


def _columns(*columns: str) -> tuple[tuple[tuple[str, ...], ...], ...]:
    """Return the places of the counts in the order of `Usage`: each column has some, with the objects around them."""
    return tuple(tuple(tuple(place.split(".")) for place in column.split()) for column in columns)


def _items(sent: str, wrote: str) -> tuple[tuple[tuple[str, ...], ...], ...]:
    """Return the places in OpenAI's Responses and LangChain, which have details of sent and written tokens."""
    return _columns(
        "input_tokens",
        f"{sent}.cached_tokens {sent}.cache_read",
        "output_tokens",
        f"{sent}.audio_tokens {sent}.image_tokens {sent}.audio {sent}.image",
        f"{sent}.cache_creation {sent}.cache_write_tokens",
        f"{sent}.audio_tokens {sent}.audio",
        f"{wrote}.audio_tokens {wrote}.audio",
        f"{sent}.cached_tokens_details.audio_tokens",
    )


_TEXTS: Final = ("TEXT", "MODALITY_UNSPECIFIED")
#: Fields that distinguish a format only where they have a value.
_DETAILS: Final = ("input_tokens_details", "input_token_details")
_CHAT: Final = _columns(
    "prompt_tokens",
    "prompt_tokens_details.cached_tokens",
    "completion_tokens",
    "prompt_tokens_details.audio_tokens prompt_tokens_details.image_tokens",
    "prompt_tokens_details.cache_write_tokens",
    "prompt_tokens_details.audio_tokens",
    "completion_tokens_details.audio_tokens",
    "prompt_tokens_details.cached_tokens_details.audio_tokens",
)
_ANTHROPIC: Final = _columns(  # the tokens of the cache are counted apart
    "input_tokens cache_read_input_tokens cache_creation_input_tokens",
    *("cache_read_input_tokens", "output_tokens", "", "cache_creation_input_tokens"),
)
_BEDROCK: Final = _columns(
    "inputTokens cacheReadInputTokens cacheWriteInputTokens",
    *("cacheReadInputTokens", "outputTokens", "", "cacheWriteInputTokens"),
)
_GEMINI: Final = _columns(  # thoughts are counted apart from the output
    *("promptTokenCount toolUsePromptTokenCount", "cachedContentTokenCount", "candidatesTokenCount thoughtsTokenCount"),
    *("promptTokensDetails.media", "", "promptTokensDetails.audio", "candidatesTokensDetails.audio"),
    "cacheTokensDetails.audio",
)
_INTERACTION: Final = _columns(
    *("total_input_tokens total_tool_use_tokens", "total_cached_tokens", "total_output_tokens total_thought_tokens"),
    *("input_tokens_by_modality.media", "", "input_tokens_by_modality.audio", "output_tokens_by_modality.audio"),
    "cached_tokens_by_modality.audio",
)
_OLLAMA: Final = _columns("prompt_eval_count", "", "eval_count")
_FORMATS: Final = (
    ("prompt_tokens", _CHAT),
    ("input_tokens_details", _items("input_tokens_details", "output_tokens_details")),
    ("input_token_details", _items("input_token_details", "output_token_details")),
    ("input_tokens", _ANTHROPIC),
    ("inputTokens", _BEDROCK),
    ("promptTokenCount", _GEMINI),
    ("total_input_tokens", _INTERACTION),
    ("output_tokens", _ANTHROPIC),
    ("prompt_eval_count", _OLLAMA),
    ("eval_count", _OLLAMA),
)
