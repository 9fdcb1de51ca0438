"""Summarising: what is old in a long history becomes one call and its answer, written by a model of the program's.

The originals go to the claim store, where `get_tool_result` reads them. Off unless it is called.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from opentelemetry import trace

from agent_otel import semconv
from agent_otel._internal import env, errors
from agent_otel.messages import build
from agent_otel.messages.fields import fields
from agent_otel.remedies.claim_check import policy
from agent_otel.remedies.claim_check.serialization import raw_of
from agent_otel.remedies.claim_check.writer import Stored
from agent_otel.remedies.history import turns
from agent_otel.remedies.history.turns import KEEP_TURNS
from agent_otel.remedies.limits import tokens

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from agent_otel.messages.types import Seen
    from agent_otel.remedies.history.turns import History

CHUNK_TOKENS: Final = 8_000
"""Of a transcript, for one call of the model."""

_MOST_ROUNDS: Final = 5
_ID_DIGITS: Final = 16
_SYSTEMS: Final = ("system", "developer")


class _Plan(NamedTuple):
    """Where the old part of a history begins and ends, its tokens, and its texts, chunk by chunk."""

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
    """Return the messages, the old ones summarised when all are above ``above_tokens``.

    ``summarize`` gets a piece of the transcript, at most ``chunk_tokens`` unless a single turn is longer, and returns a
    shorter text; it is asked again with what it said until that is at most ``target_tokens``, five times at most. The
    messages before the model's first and the last ``keep_turns`` turns stay as they are, and no call is parted from its
    result. Tokens are characters ÷ 4, or what ``token_counter`` was given. When ``summarize`` raises, the
    messages come back untouched, which is counted and said once. For histories of OpenAI (chat and responses),
    Anthropic, Gemini and LangChain; any other comes back untouched. TypeError when ``messages`` is no sequence of
    messages.
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
    except Exception:
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
    """As `summarize_history`, with a coroutine function."""
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
    except Exception:
        errors.report_error("remedies.summarize")
        return list(messages)


def _plan(messages: Sequence[Any], above_tokens: int, chunk_tokens: int, keep_turns: int) -> _Plan | None:
    history = turns.read(messages)
    texts = [_text(message) for message in messages]
    if sum(map(tokens, texts)) <= above_tokens:
        return None
    end = _end_of_old(history, keep_turns)
    first = next((at for at in range(len(messages)) if not _is_opening(messages[at], history.seen[at])), 0)
    if end <= first or build.shape_of(messages) is None:
        return None
    return _Plan(first, end, messages[first:end], list(_chunks(history, texts, first, end, chunk_tokens)))


def _end_of_old(history: History, keep_turns: int) -> int:
    """The place before which everything is old: no call before it is open, or has its result after it."""
    kept = [call.at for call in history.calls if call.turn >= history.turns - keep_turns]
    kept += [call.at for call in history.calls if call.answer is None]
    return min(kept, default=0)


def _chunks(history: History, texts: list[str], first: int, end: int, chunk_tokens: int) -> Iterator[str]:
    """The old part as texts; one is longer than a chunk only where a call and its result are."""
    piece, size = list[str](), 0
    for start, stop in _units(history, first, end):
        more = sum(map(tokens, texts[start:stop]))
        if piece and size + more > chunk_tokens:
            yield "\n".join(piece)
            piece, size = [], 0
        piece += texts[start:stop]
        size += more
    if piece:
        yield "\n".join(piece)


def _units(history: History, first: int, end: int) -> Iterator[tuple[int, int]]:
    """Messages that belong together: a call, its result, and what stands between them."""
    last = {at: at for at in range(first, end)}
    for call in history.calls:
        if call.at in last and call.answer is not None:
            last[call.at] = max(last[call.at], call.answer.at)
    start = open_until = first
    for at in range(first, end):
        if at > open_until:
            yield start, at
            start = at
        open_until = max(open_until, last[at])
    if start < end:
        yield start, end


def _too_long(texts: list[str], target_tokens: int, chunk_tokens: int) -> list[str] | None:
    """What is to be summarised once more; None when it is short enough, or one text that is left as it is."""
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
    summary = "\n".join(texts)
    raw = raw_of(list(plan.old))
    check = policy.current()
    outcome = check.keep(raw, semconv.CONTEXT_SUMMARIZE, semconv.CONTEXT_SUMMARIZE) if check is not None else None
    if isinstance(outcome, Stored):
        summary += f'\n[the originals are stored: {policy.GET_TOOL_RESULT}(ref="{outcome.reference}")]'
    call_id = f"{semconv.CONTEXT_SUMMARIZE}_{hashlib.sha256(raw.data).hexdigest()[:_ID_DIGITS]}"
    pair = build.pair(messages, call_id, semconv.CONTEXT_SUMMARIZE, summary)
    made = [*messages[: plan.first], *pair, *messages[plan.end :]]
    _tell(len(raw.data) - len(raw_of(pair).data), len(plan.old))
    return made


@errors.guarded("remedies.summarize")
def _tell(removed_bytes: int, old_messages: int) -> None:
    """An event on the span around it, and the bytes on the metric."""
    if not env.active:
        return
    from agent_otel.telemetry.setup import telemetry  # noqa: PLC0415 - nothing is set up while the package is off

    telemetry().metrics.removed(semconv.SUMMARIZE, max(removed_bytes, 0))
    event = {semconv.REMOVED_BYTES: removed_bytes, semconv.REMOVED_MESSAGES: old_messages}
    trace.get_current_span().add_event(semconv.CONTEXT_SUMMARIZE, event)


def _is_opening(message: Any, seen: Seen) -> bool:
    """Whether a message sets the task, and is what providers want first: a system's, or a user's without results."""
    known = fields(message)
    return (known.get("role") or known.get("type")) in _SYSTEMS or (seen.by_user and not seen.answered)


def _text(message: Any) -> str:
    """A message as the model that summarises is to read it."""
    if isinstance(message, dict):
        return json.dumps(message, ensure_ascii=False, default=str)
    return raw_of(message).text or ""
