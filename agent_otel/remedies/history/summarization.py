"""Summarising: a model of the program's summarises the old part of a long history as one call and its result.

The originals go to the claim store, where `get_tool_result` reads them. The remedy runs only when it is called.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from opentelemetry import trace

from agent_otel import semconv
from agent_otel._internal import env, errors
from agent_otel.messages import formats
from agent_otel.remedies.claim_check import policy
from agent_otel.remedies.claim_check.serialization import raw_of
from agent_otel.remedies.claim_check.writer import Stored
from agent_otel.remedies.history import turns
from agent_otel.remedies.history.argument_compaction import compact
from agent_otel.remedies.history.summarizer import NoSummaryError
from agent_otel.remedies.history.summary_plan import opening, units
from agent_otel.remedies.history.turns import KEEP_TURNS
from agent_otel.remedies.limits import tokens
from agent_otel.telemetry.foreign_spans import add_event

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from agent_otel.remedies.history.turns import History

CHUNK_TOKENS: Final = 8_000
"""Tokens of a transcript in one call of the model."""

_MOST_ROUNDS: Final = 5
_ID_DIGITS: Final = 16


class _Plan(NamedTuple):
    """The begin, end and messages of the old part of a history, and its texts in chunks."""

    first: int
    end: int
    old: Sequence[Any]
    chunks: list[str]


def summarize_history(  # noqa: PLR0913 - the knobs of summarising
    messages: Sequence[Any],
    *,
    summarize: Callable[[str], str],
    above_tokens: int,
    target_tokens: int,
    chunk_tokens: int = CHUNK_TOKENS,
    keep_turns: int = KEEP_TURNS,
) -> list[Any]:
    """Return the messages with the old ones summarised, when all have more than ``above_tokens`` tokens.

    ``summarize`` takes a piece of the transcript, at most ``chunk_tokens`` unless a single turn is longer, and returns
    a shorter text. In the transcript, completed calls have marks instead of large arguments. ``summarize`` is called
    again with its own output until that has at most ``target_tokens``, in five rounds at most. The messages before the
    model's first and the last ``keep_turns`` turns stay unchanged, and no call is separated from its result. Tokens are
    characters ÷ 4, or counted by the function of ``token_counter``.

    When ``summarize`` raises, or returns nothing, or no less than it got, the messages come back unchanged; the failure
    is counted and logged once. Supported are histories of OpenAI (chat and responses), Anthropic, Gemini and LangChain;
    any other comes back unchanged. Raises TypeError when ``messages`` is no sequence of messages.
    """
    plan = _plan(messages, above_tokens, chunk_tokens, keep_turns)
    if plan is None:
        return list(messages)
    try:
        texts = [summarize(chunk) for chunk in plan.chunks]
        for _ in range(_MOST_ROUNDS):
            again = _too_long(texts, target_tokens, chunk_tokens)
            if again is None:
                break
            texts = [summarize(chunk) for chunk in again]
        return _summarised(messages, plan, texts)
    except errors.ours(Exception):
        errors.report_error("remedies.summarize")
        return list(messages)


async def asummarize_history(  # noqa: PLR0913 - the knobs of summarising
    messages: Sequence[Any],
    *,
    summarize: Callable[[str], Awaitable[str]],
    above_tokens: int,
    target_tokens: int,
    chunk_tokens: int = CHUNK_TOKENS,
    keep_turns: int = KEEP_TURNS,
) -> list[Any]:
    """Return the same as `summarize_history`, with ``summarize`` a coroutine function."""
    plan = _plan(messages, above_tokens, chunk_tokens, keep_turns)
    if plan is None:
        return list(messages)
    try:
        texts = [await summarize(chunk) for chunk in plan.chunks]
        for _ in range(_MOST_ROUNDS):
            again = _too_long(texts, target_tokens, chunk_tokens)
            if again is None:
                break
            texts = [await summarize(chunk) for chunk in again]
        return _summarised(messages, plan, texts)
    except errors.ours(Exception):
        errors.report_error("remedies.summarize")
        return list(messages)


def _plan(messages: Sequence[Any], above_tokens: int, chunk_tokens: int, keep_turns: int) -> _Plan | None:
    history = turns.read(messages)
    if sum(tokens(_text(message)) for message in messages) <= above_tokens:
        return None
    texts = [_text(message) for message in compact(messages)]
    end = _end_of_old(history, keep_turns)
    first = opening(history)
    if end <= first or formats.shape_of(messages) is None:
        return None
    return _Plan(first, end, messages[first:end], list(_chunks(history, texts, first, end, chunk_tokens)))


def _end_of_old(history: History, keep_turns: int) -> int:
    """Return the end of the old part: every call before it has its result before it, too."""
    kept = [call.at for call in history.calls if call.turn >= history.turns - keep_turns]
    kept += [call.at for call in history.calls if call.answer is None]
    end = min(kept, default=0)
    return next((start for start, stop in units(history, 0, len(history.seen)) if start < end < stop), end)


def _chunks(history: History, texts: list[str], first: int, end: int, chunk_tokens: int) -> Iterator[str]:
    """Yield the old part as texts of at most ``chunk_tokens``; longer only for a single call with its result."""
    piece, size = list[str](), 0
    for start, stop in units(history, first, end):
        more = sum(map(tokens, texts[start:stop]))
        if piece and size + more > chunk_tokens:
            yield "\n".join(piece)
            piece, size = [], 0
        piece += texts[start:stop]
        size += more
    if piece:
        yield "\n".join(piece)


def _too_long(texts: list[str], target_tokens: int, chunk_tokens: int) -> list[str] | None:
    """Return the texts to summarise again; None when they are short enough."""
    if tokens("\n".join(texts)) <= target_tokens:
        return None
    merged: list[str] = []
    for text in texts:
        if merged and tokens(merged[-1]) + tokens(text) <= chunk_tokens:
            merged[-1] += "\n" + text
        else:
            merged.append(text)
    return merged


def _summarised(messages: Sequence[Any], plan: _Plan, texts: list[str]) -> list[Any]:
    summary, old = "\n".join(texts), sum(map(tokens, plan.chunks))
    if not all(map(str.strip, texts)) or tokens(summary) >= old:
        raise NoSummaryError(f"{tokens(summary)} tokens are no summary of {old}, or a part of it is empty")
    originals = list(plan.old)
    raw = raw_of(originals)
    check = policy.current()
    outcome = check.keep(originals, semconv.CONTEXT_SUMMARIZE, semconv.CONTEXT_SUMMARIZE) if check is not None else None
    if isinstance(outcome, Stored):
        summary += f'\n[the originals are stored: {policy.GET_TOOL_RESULT}(ref="{outcome.reference}")]'
    call_id = f"{semconv.CONTEXT_SUMMARIZE}_{hashlib.sha256(raw.data).hexdigest()[:_ID_DIGITS]}"
    pair = formats.pair(messages, call_id, semconv.CONTEXT_SUMMARIZE, summary)
    made = [*messages[: plan.first], *pair, *messages[plan.end :]]
    _tell(len(raw.data) - len(raw_of(pair).data), len(plan.old))
    return made


@errors.guarded("remedies.summarize")
def _tell(removed_bytes: int, old_messages: int) -> None:
    """Add an event to the current span, and the removed bytes to the metric."""
    if not env.active:
        return
    from agent_otel.telemetry.setup import telemetry  # noqa: PLC0415 - nothing is set up while the package is off

    telemetry().metrics.record(semconv.CONTEXT_REMOVED, max(removed_bytes, 0), semconv.SUMMARIZE)
    event = {semconv.REMOVED_BYTES: removed_bytes, semconv.REMOVED_MESSAGES: old_messages}
    add_event(trace.get_current_span(), semconv.CONTEXT_SUMMARIZE, event)


def _text(message: Any) -> str:
    """Return a message as text for the model that summarises."""
    if isinstance(message, dict):
        return json.dumps(message, ensure_ascii=False, default=str)
    return raw_of(message).text or ""
