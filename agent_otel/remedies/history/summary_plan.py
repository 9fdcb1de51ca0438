"""Plan of a summary: the messages that stay, those whose results become marks, and those that the summary replaces.

The plan fills the target from the newest message backwards, first with whole messages, then with calls and marks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_otel import semconv
from agent_otel.measure.size import estimated_tokens
from agent_otel.messages.fields import fields, is_list, text
from agent_otel.remedies.history.trimmed_line import text_of
from agent_otel.remedies.limits import tokens, tokens_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agent_otel.remedies.history.turns import Call, History

MARK: Final = "SUMMARIZED executionId:'"
"""The beginning of the text in the place of a result; the call's id and an apostrophe follow."""

_MARK: Final = re.compile(f"{MARK}.{{0,300}}'")
MARKED: Final = "Results of earlier calls:"
READ: Final = 'Read an original with get_tool_result(ref="<executionId>").'
#: The beginning of a summary in a request without tools, where no call can stand.
SAID: Final = f"[{semconv.CONTEXT_SUMMARIZE}]\n"

_SYSTEMS: Final = ("system", "developer")
_SUMMARY_SHARE: Final = 4
"""The summary has this part of the room for messages: a quarter."""

_LEAST_ROOM: Final = 256
_LEAST_SUMMARY: Final = 64
_MARK_TOKENS: Final = 24
#: Fields that change from request to request although the message does not, such as the place of a cache point.
_MOVING: Final = frozenset({"cache_control", "cachePoint"})
#: Fields of binary data and of data that only the provider reads; providers do not count their characters as tokens.
_BINARY: Final = frozenset(
    {
        *("data", "file_data", "image_url", "b64_json", "bytes", "images", "signature", "encrypted_content"),
        *("thoughtSignature", "thought_signature", "redactedContent"),
    }
)
_LONG: Final = 256
_BINARY_CHARACTERS: Final = 4_000


def is_mark(written: str) -> bool:
    """Return True for the text in the place of a result; a result may begin like one."""
    return _MARK.fullmatch(written) is not None


class Weight(NamedTuple):
    """The characters of a message and a hash of its content, equal for an equal message in a later request."""

    characters: int
    hash: int

    @property
    def tokens(self) -> int:
        """The estimated tokens."""
        return estimated_tokens(self.characters)


def weigh(value: Any, key: str = "") -> Weight:
    """Return the weight of a message, or of a part of a request."""
    cls = type(value)
    if cls is str:
        length = len(value)
        if key in _BINARY and length > _LONG:
            return Weight(min(length, _BINARY_CHARACTERS), hash(value))
        return Weight(length, hash(value))
    if cls in (int, float, bool, type(None)):
        return Weight(4, hash(value))
    if cls is bytes:
        return Weight(min(len(value), _BINARY_CHARACTERS), hash(value))
    if is_list(value):
        inner = [
            weigh(each, key) for each in value if type(each) is not dict or len(each) != 1 or _MOVING.isdisjoint(each)
        ]
        return Weight(sum(one.characters for one in inner), hash(tuple([one.hash for one in inner])))
    characters, hashes = 0, []
    for name, each in fields(value).items():
        if name not in _MOVING:
            one = weigh(each, name)
            characters += one.characters + len(name) + 4
            hashes.append((name, one.hash))
    return Weight(characters, hash(tuple(sorted(hashes))))


def request_tokens(weights: Sequence[Weight], messages: Sequence[Any]) -> list[int]:
    """Return the tokens of each message, counted by the program's function where it has one."""
    return [
        tokens_of(weight.characters, lambda message=message: str(message))  # type: ignore[misc]
        for weight, message in zip(weights, messages, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class Plan:
    """The places where the parts of a history begin: kept, folded into the summary, marked; and the tokens."""

    first: int
    fold: int
    end: int
    asked: int | None
    summary_tokens: int
    after_tokens: int


def plan(
    history: History, sizes: Sequence[int], fixed_tokens: int, target_tokens: int, made_end: int = 0
) -> Plan | None:
    """Return the plan that meets a target, or comes nearest; None for a history without anything to summarise."""
    count, first = len(sizes), opening(history)
    parts = list(units(history, first, count))
    if not parts:
        return None
    opened_tokens = fixed_tokens + sum(sizes[:first])
    room = max(target_tokens - opened_tokens, target_tokens // _SUMMARY_SHARE, _LEAST_ROOM)
    summary_tokens = max(room // _SUMMARY_SHARE, _LEAST_SUMMARY)
    last_user = max((at for at in range(first, count) if _is_user(history, at)), default=None)
    left = room - summary_tokens - (0 if last_user is None else sizes[last_user])
    # A new summary replaces the last earlier one.
    floor = max((stop for start, stop in parts if earlier_summary(history, start, stop) is not None), default=0)
    end, left = _kept(history, parts, sizes, left, last_user, max(floor, made_end))
    answers = {result.at for result in history.results if result.at >= made_end}  # the others are marks already
    costs = [_MARK_TOKENS if at in answers else size for at, size in enumerate(sizes)]
    if last_user is not None:
        costs[last_user] = 0
    fold = end if end > first else 0
    for start, stop in reversed([part for part in parts if part[0] < end]):
        cost = sum(costs[start:stop])
        if start < floor or (cost > left and stop < count):
            break
        fold, left = start, left - cost
    if not history.calls:  # the summary is a message of the model, which a message of the user has to follow
        fold = next((at for at in range(fold, count) if _is_user(history, at)), fold)
        end = max(end, fold)
        if last_user is None:
            return None
    if end == first:
        return None
    asked = last_user if last_user is not None and last_user < fold else None
    return Plan(first, fold, end, asked, summary_tokens, opened_tokens + room - max(left, 0))


def _kept(  # noqa: PLR0913, PLR0917 - the readings of a history
    history: History, parts: list[tuple[int, int]], sizes: Sequence[int], left: int, last_user: int | None, floor: int
) -> tuple[int, int]:
    """Return where the messages begin that stay as they are, and the tokens that are left."""
    last = [call for call in history.calls if call.turn == history.turns - 1]
    of_model = (
        at
        for at, (message, one) in enumerate(zip(history.messages, history.seen, strict=True))
        if not (one.answered or one.by_user or _is_system(message))
    )
    seen = max(of_model, default=-1)
    unseen = (call.at for call in last if call.answer is None or call.answer.at > seen)
    waiting = min(unseen, default=len(history.messages))
    end, spent, most = parts[-1][1], 0, left * 2 // 3
    for start, stop in reversed(parts):
        cost = sum(sizes[start:stop]) - (sizes[start] if start == last_user else 0)
        is_newest = end == parts[-1][1]
        if start < floor or (spent + cost > (left if is_newest else most) and start < waiting):
            break
        end, spent = start, spent + cost
    return end, left - spent


def earlier_summary(history: History, start: int, stop: int) -> str | None:
    """Return the text of an earlier summary that stands in a range of messages."""
    for at in range(start, stop):
        for call in history.seen[at].asked:
            if call.name == semconv.CONTEXT_SUMMARIZE:
                answered = history.seen[min(at + 1, len(history.seen) - 1)].answered
                return (text_of(answered[0].content) or "") if answered else ""
        known = fields(history.messages[at])
        said = text_of(known.get("content")) or text_of(known.get("parts"))
        if said is not None and said.startswith(SAID):
            return said.removeprefix(SAID)
    return None


def opening(history: History) -> int:
    """Return the number of opening messages, up to the first of the model or a provider's last compaction."""
    count, messages = len(history.seen), history.messages
    first = next((at for at in range(count) if not (_is_system(messages[at]) or _is_user(history, at))), count)
    compacted = (at + 1 for at in range(first, count) if fields(messages[at]).get("type") == semconv.COMPACTION)
    return max(compacted, default=first)


def systems(messages: Sequence[Any]) -> int:
    """Return the number of leading messages of a system."""
    return next((at for at, message in enumerate(messages) if not _is_system(message)), len(messages))


def _is_system(message: Any) -> bool:
    known = fields(message)
    return (known.get("role") or known.get("type")) in _SYSTEMS


def _is_user(history: History, at: int) -> bool:
    seen = history.seen[at]
    return seen.by_user and not seen.answered


def units(history: History, first: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of messages that must stay together: a call, its result, and what is between or before."""
    last = {at: at for at in range(first, end)}
    for call in history.calls:
        if call.at in last and call.answer is not None:
            last[call.at] = max(last[call.at], call.answer.at)
    for begin, at in _tied(history, first, end):
        last[begin] = max(last[begin], at)
    for at in range(first, end - 1):
        if fields(history.messages[at]).get("type") == "reasoning":
            last[at] = max(last[at], at + 1)
    start = open_until = first
    for at in range(first, end):
        if at > open_until:
            yield start, at
            start = at
        open_until = max(open_until, last[at])
    if start < end:
        yield start, end


def _tied(history: History, first: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the places of an item and of a later one that names it: `shell_call` and its output, an approval."""
    places: dict[str | None, int] = {}
    for at in range(first, end):
        known, seen = fields(history.messages[at]), history.seen[at]
        if seen.asked or seen.answered:
            continue
        own, kind = text(known.get("call_id")) or text(known.get("id")), text(known.get("type")) or ""
        named = text(known.get("approval_request_id")) or (own if kind.endswith("_output") else None)
        if named in places:
            yield places[named], at
        elif own is not None:
            places[own] = at


def identity(call: Call | None, digest: int, uses: int) -> str:
    """Return the id under which a call's result is kept: the provider's, with a digest where a history repeats it."""
    own = text(call.asked.id) if call is not None else None
    if own is not None and uses == 1:
        return own
    name = own or (text(call.asked.name) if call is not None else None) or "call"
    return f"{name}-{digest & 0xFFFFFFFF:08x}"


def pieces(parts: Sequence[str], most_tokens: int) -> list[str]:
    """Return texts joined to chunks of at most ``most_tokens``; a longer text is divided."""
    chunks, now, size = list[str](), list[str](), 0
    for part in parts:
        for piece in _divided(part, most_tokens):
            more = tokens(piece)
            if now and size + more >= most_tokens:
                chunks.append("\n".join(now))
                now, size = [], 0
            now.append(piece)
            size += more + 1
    return [*chunks, "\n".join(now)] if now else chunks


def _divided(part: str, most_tokens: int) -> Iterator[str]:
    size = tokens(part)
    if size <= most_tokens:
        yield part
        return
    step = max(len(part) * most_tokens // size, 1)
    for start in range(0, len(part), step):
        yield part[start : start + step]
