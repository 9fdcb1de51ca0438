"""Automatic summarising: a summary, made once, replaces the old messages of long requests."""

from __future__ import annotations

import functools
import hashlib
import re
import threading
import time
from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from opentelemetry import trace

from agent_otel import semconv
from agent_otel._internal import errors, fork
from agent_otel.core import execution_context
from agent_otel.core.cost import model_tokens
from agent_otel.core.cost.model_tokens import removed
from agent_otel.core.executions import executions
from agent_otel.core.thread import model_request
from agent_otel.measure.size import json_size, size
from agent_otel.messages.fields import fields, is_list, listed, without
from agent_otel.messages.fields import text as text_or_none
from agent_otel.messages.formats import FORMATS
from agent_otel.remedies import limits
from agent_otel.remedies.claim_check import policy
from agent_otel.remedies.claim_check.dialogue import TOOL
from agent_otel.remedies.claim_check.envelope import Origin, current_owner
from agent_otel.remedies.claim_check.serialization import raw_of
from agent_otel.remedies.claim_check.writer import Breaker
from agent_otel.remedies.history import summarizer, turns
from agent_otel.remedies.history.summarizer import (
    MARK,
    MARKED,
    READ,
    SAID,
    Asking,
    earlier_summary,
    is_mark,
    is_system,
    is_user,
    opening,
    request_tokens,
    units,
    weigh,
)
from agent_otel.remedies.history.trimming import is_placeholder
from agent_otel.remedies.history.turns import Changes, replaced, text_of, value_of
from agent_otel.remedies.limits import tokens
from agent_otel.telemetry.foreign_spans import add_event
from agent_otel.telemetry.setup import telemetry

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from agent_otel.core.remedy_hooks import Response
    from agent_otel.core.types import Invocation, ModelReader, ModelRequest, RequestPart
    from agent_otel.messages import Format
    from agent_otel.remedies.history.summarizer import Weight
    from agent_otel.remedies.history.turns import History
    from agent_otel.settings import Settings


_MOST_CHARACTERS: Final = 32 * 1024 * 1024
_MOST_SUMMARIES: Final = 4096
_PAUSE_SECONDS: Final = 60.0
#: A summary is worth its request if it removes a tenth of the allowed tokens.
_LEAST_GAIN: Final = 10
#: Bytes. From this size on, a request's reported tokens are used to estimate other requests.
_LEAST_BYTES: Final = 4_096
#: Plausible bytes for each reported token. Local servers may report only the tokens that are not in their cache.
_LEAST_RATIO: Final = 1.0
_MOST_RATIO: Final = 16.0
#: Mistral accepts only call ids of nine letters and digits.
_ID_DIGITS: Final = 9

_SUMMARY_SHARE: Final = 4
"""The summary has this part of the room for messages: a quarter."""

_LEAST_ROOM: Final = 256
_LEAST_SUMMARY: Final = 64
_MARK_TOKENS: Final = 24


class Summaries:
    """The summaries of this process, and their settings."""

    def __init__(self, chosen: Settings) -> None:
        self.chosen = chosen
        self.above_tokens = chosen.summarize_above_tokens or 0
        self.kept = KeptSummaries()
        self.breaker = Breaker(failures=1, seconds=_PAUSE_SECONDS)

    def begin(self, reader: ModelReader, invocation: Invocation) -> _Visit | None:
        """Put an existing summary into a request. If a new summary is needed, return the visit that makes it."""
        exchange, request = reader.exchange, reader.request(invocation)
        if exchange is None or request is None:
            return None
        if request.continued:
            errors.warn_once("summaries of conversations at the provider", _CONTINUED)
            return None
        found = exchange.body(invocation) if exchange.apart is not None else None
        if found is None:
            return None
        form, body = found
        if (
            FORMATS[form].fixes(body) and not self.chosen.summarize_model
        ):  # a request for a summary would include kept data
            errors.warn_once("summaries of conversations at the provider", _CONTINUED)
            return None
        messages = body.get(FORMATS[form].messages)
        if not is_list(messages) or not messages:
            return None
        visit = _Visit(self, reader, invocation, found, request)
        return visit if visit.is_long() and visit.reuses() and self.breaker.allows() else None


_CONTINUED: Final = (
    "AGENT_OTEL_SUMMARIZE_ABOVE_TOKENS: without effect on requests to which the provider adds what it keeps "
    "(previous_response_id, a conversation, a thread, a prompt, cached content, a container); they go on as they are."
)
_NO_ROOM: Final = (
    "AGENT_OTEL_SUMMARIZE_TARGET_TOKENS cannot be met: the system prompt, the tools and the last messages alone have "
    "more tokens, so that a summary would remove too little; the request goes on as it is."
)


@dataclass
class _Request:
    """The messages of a request with their weights and tokens. They are parsed when needed."""

    messages: Sequence[Any]
    weights: list[Weight]
    sizes: list[int]

    @functools.cached_property
    def history(self) -> History:
        """The parsed messages."""
        return turns.read(self.messages)


class _Visit:
    """A request that has more tokens than allowed."""

    def __init__(
        self,
        summaries: Summaries,
        reader: ModelReader,
        invocation: Invocation,
        body: tuple[str, dict[str, Any]],
        request: ModelRequest,
    ) -> None:
        self._summaries = summaries
        self._exchange: Any = reader.exchange
        self._usage = reader.usage
        self._invocation = invocation
        self._name, self._body = body
        self._form = FORMATS[self._name]
        messages = self._body[self._form.messages]
        self._fixed = weigh(without(self._body, self._form.messages)).tokens
        weights = [weigh(message) for message in messages]
        sizes = request_tokens(weights, messages)
        self._scale = _scale(request.parts, self._fixed + sum(sizes))
        #: The program's messages, and the same messages with an earlier summary.
        self._own = self._now = _Request(messages, weights, self._scaled(sizes))
        tool_tokens = weigh(TOOL._asdict()).tokens if summaries.chosen.claim_check_tool else 0
        self._fixed, self._tool_tokens = self._scaled([self._fixed, tool_tokens])
        self._kept: Kept | None = None
        self._plan: Plan | None = None
        self._model = summaries.chosen.summarize_model or execution_context.text_or_none(request.model)

    def _scaled(self, sizes: list[int]) -> list[int]:
        return sizes if self._scale == 1 else [round(size * self._scale) for size in sizes]

    @functools.cached_property
    def _systems(self) -> int:
        """The number of leading messages of a system."""
        messages = self._own.messages
        return next((at for at, message in enumerate(messages) if not is_system(message)), len(messages))

    def is_long(self) -> bool:
        """Return True when the request may need a summary."""
        return not self._summaries.kept.is_empty or self._tokens() > self._summaries.above_tokens

    def reuses(self) -> bool:
        """Put an earlier summary into the request. Return True when it needs a new summary."""
        kept = self._summaries.kept.find((self._name, self._owner), self._own.weights[self._systems :])
        if kept is not None:
            self._use(kept)
        above, now = self._summaries.above_tokens, self._now
        if self._tokens() <= above:
            return False
        made_end = 0 if kept is None else self._systems + kept.opening + len(kept.messages)
        fixed_tokens, target_tokens = self._fixed + self._tool_tokens, self._summaries.chosen.summarize_target_tokens
        self._plan = plan(now.history, now.sizes, fixed_tokens, target_tokens or above // 2, made_end)
        if self._plan is None or self._tokens() - self._plan.after_tokens < above // _LEAST_GAIN:
            errors.warn_once("summary without room", _NO_ROOM)
            return False
        return True

    async def make(self, send: Callable[[Invocation], Awaitable[Response]], *, blocks: bool) -> None:
        """Make the summary. ``send`` sends a request of the remedy. Nothing is raised."""
        plan, now, chosen = self._plan, self._now, self._summaries.chosen
        if plan is None:
            return
        with errors.reported("remedies.summarize"):
            try:
                until, totals = time.monotonic() + chosen.summarize_timeout_seconds, model_tokens.totals_of(self._owner)
                asking = Asking(self._form, self._asked, send, until, blocks, self._model, totals, self._usage)
                texts = summarizer.transcript(now.history, plan.first, plan.end)
                text = await summarizer.summary(asking.ask, texts, plan.summary_tokens, chosen.summarize_chunk_tokens)
            except errors.ours(Exception) as error:  # raised by the model, its client, or the program's function
                self._summaries.breaker.failed()
                telemetry().metrics.record(semconv.CONTEXT_SUMMARIES, 1, semconv.FAILED)
                reason = f": {error}" if isinstance(error, summarizer.NoSummaryError) else ""
                errors.warn_once(
                    "summarizer",
                    "AGENT_OTEL_SUMMARIZE_ABOVE_TOKENS: no summary, the request goes on as it is: "
                    f"{errors.described(error)}{reason}. The next attempt is made {_PAUSE_SECONDS:.0f} s later.",
                )
                return
            replaced = originals(now.history, plan, now.weights)
            is_stored = await self._store(replaced, blocks=blocks)
            self._put(plan, text, replaced, names_tool=is_stored and chosen.claim_check_tool)

    def _asked(self, text: str) -> Invocation:
        """Return the request for a summary. It asks the configured model, else the agent's model."""
        instructions = summarizer.instructions(0 if self._plan is None else self._plan.summary_tokens)
        prompt = self._form.asking(self._body, instructions, summarizer.TASK + text)
        asked: Invocation = self._exchange.apart(self._invocation, prompt, self._summaries.chosen.summarize_model)
        return asked

    async def _store(self, replaced: dict[tuple[int, int], Original], *, blocks: bool) -> bool:
        """Store the originals, and give them their ids in the store. Return True when all are stored."""
        owner, is_stored, check = self._owner, bool(replaced), policy.archive()
        for place, one in replaced.items():
            origin = Origin(owner, owner, semconv.CONTEXT_SUMMARIZE, one.tool, one.id)
            kept_as = None if check is None else await check.keep_text(one.text, origin, blocks=blocks)
            replaced[place] = one._replace(id=kept_as or one.id)
            is_stored = kept_as is not None and is_stored
        return is_stored

    @functools.cached_property
    def _owner(self) -> str:
        """The execution that the originals belong to. Empty if none is found."""
        owner = current_owner() or model_request.around().execution
        if owner is not None:
            return owner
        ids = (result.answered.id for result in self._own.history.results)
        return executions.owner(call_id for call_id in ids if call_id is not None) or ""

    def _put(self, plan: Plan, text: str, replaced: Mapping[tuple[int, int], Original], *, names_tool: bool) -> None:
        """Put a new summary into the request, and keep it for later requests."""
        history, before, earlier, systems = self._now.history, self._tokens(), self._kept, self._systems
        has_tools = any(self._body.get(name) for name in _TOOLS) or bool(history.calls)
        made = rendered(history, plan, self._form, text, replaced, in_call=has_tools, names_tool=names_tool)
        # After the earlier summary, the indexes of the program's messages are shifted.
        moved = 0 if earlier is None else earlier.replaced - earlier.opening - len(earlier.messages)
        opening, count = plan.first - systems, plan.end + moved - systems
        removed_bytes = _json_bytes(self._own.messages[plan.first : systems + count]) - _json_bytes(made)
        kept = Kept(count, opening, made, weigh(made).characters, max(removed_bytes, 0))
        self._summaries.breaker.succeeded()
        self._summaries.kept.keep((self._name, self._owner), self._own.weights[systems:], kept)
        self._use(kept)
        telemetry().metrics.record(semconv.CONTEXT_SUMMARIES, 1, semconv.MADE)
        event = {
            semconv.TOKENS_BEFORE: before,
            semconv.TOKENS_AFTER: self._tokens(),
            semconv.REMOVED_MESSAGES: plan.end - plan.first,
        }
        add_event(trace.get_current_span(), semconv.CONTEXT_SUMMARIZE, event)

    def _use(self, kept: Kept) -> None:
        """Put a summary into the request."""
        own, weights = self._own, [weigh(message) for message in kept.messages]
        opening, end = self._systems + kept.opening, self._systems + kept.replaced
        sizes = self._scaled(request_tokens(weights, kept.messages))
        self._now = _Request(
            [*own.messages[:opening], *kept.messages, *own.messages[end:]],
            [*own.weights[:opening], *weights, *own.weights[end:]],
            [*own.sizes[:opening], *sizes, *own.sizes[end:]],
        )
        self._body = {**self._body, self._form.messages: self._now.messages}
        self._exchange.put(self._invocation, self._body)
        before = 0 if self._kept is None else self._kept.removed_bytes
        removed(telemetry(), semconv.SUMMARIZE, kept.removed_bytes, before)
        self._kept = kept

    def _tokens(self) -> int:
        return self._fixed + sum(self._now.sizes) + (0 if self._kept is None else self._tool_tokens)


def _scale(parts: Iterable[RequestPart], estimated_tokens: int) -> float:
    """Return the factor from estimated tokens to the tokens expected from the provider's reported usage."""
    execution_id = current_owner() or model_request.around().execution
    last = None if limits.has_counter() else model_tokens.last_request(execution_id)
    if last is None or last.bytes < _LEAST_BYTES or not estimated_tokens:
        return 1.0
    ratio, request_bytes = last.bytes / last.tokens, sum(size(part.value).bytes for part in parts)
    if not request_bytes or not _LEAST_RATIO <= ratio <= _MOST_RATIO:
        return 1.0
    return request_bytes / ratio / estimated_tokens


def _json_bytes(messages: Iterable[Any]) -> int:
    """Return the UTF-8 bytes of messages in a request."""
    return sum(json_size(message).bytes for message in messages)


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
    last_user = max((at for at in range(first, count) if is_user(history, at)), default=None)
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
        fold = next((at for at in range(fold, count) if is_user(history, at)), fold)
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
        if not (one.answered or one.by_user or is_system(message))
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


class Kept(NamedTuple):
    """A summary's messages. They replace messages ``opening`` to ``replaced``, counted after the system messages."""

    replaced: int
    opening: int
    messages: list[Any]
    characters: int
    #: UTF-8 bytes of the messages that the summary replaces, minus the bytes of the summary.
    removed_bytes: int


class KeptSummaries:
    """A bounded cache of summaries."""

    def __init__(self) -> None:
        self._kept: OrderedDict[int, Kept] = OrderedDict()
        self._characters = 0
        self._reset()
        fork.after_fork(self._reset)

    def _reset(self) -> None:
        self._lock = threading.Lock()

    @property
    def is_empty(self) -> bool:
        """True before the first summary."""
        return not self._kept

    def find(self, group: tuple[str, str], weights: Sequence[Weight]) -> Kept | None:
        """Return the summary of the most messages in a group. A group is a format and an owner."""
        found: Kept | None = None
        with self._lock:
            for key in _prefixes(group, weights):
                kept = self._kept.get(key)
                if kept is not None:
                    self._kept.move_to_end(key)
                    found = kept
        return found

    def keep(self, group: tuple[str, str], weights: Sequence[Weight], kept: Kept) -> None:
        """Keep the summary of the first messages."""
        *_, key = _prefixes(group, weights[: kept.replaced])
        with self._lock:
            before = self._kept.pop(key, None)
            self._characters += kept.characters - (before.characters if before is not None else 0)
            self._kept[key] = kept
            while self._characters > _MOST_CHARACTERS or len(self._kept) > _MOST_SUMMARIES:
                self._characters -= self._kept.popitem(last=False)[1].characters


def _prefixes(group: tuple[str, str], weights: Sequence[Weight]) -> list[int]:
    """Return the keys of the first message, of the first two, and so on."""
    keys, last = [], hash(group)
    for each in weights:
        last = hash((last, each.hash))
        keys.append(last)
    return keys


_TOOLS: Final = ("tools", "toolConfig", "functions")
_LINE: Final = re.compile(re.escape(MARK) + r"[^'\n]*'[^\n]*")
_VIEW_CONTINUED: Final = "I go on from this summary."


class Original(NamedTuple):
    """A result that a mark replaces: its id in the store, its tool's name, and its text."""

    id: str
    tool: str
    text: str


def originals(history: History, plan: Plan, weights: Sequence[Weight]) -> dict[tuple[int, int], Original]:
    """Return the results that a plan replaces, by the message's index and their index in the message."""
    uses = Counter(call.asked.id for call in history.calls)
    found: dict[tuple[int, int], Original] = {}
    places = Counter[int]()
    for result in history.results:
        place = (result.at, places[result.at])
        places[result.at] += 1
        content = result.answered.content
        if not plan.first <= result.at < plan.end or result.name == semconv.CONTEXT_SUMMARIZE:
            continue
        if is_mark(text_of(content) or "") or is_placeholder(content):
            continue
        own, named = (None, None) if result.call is None else result.call.asked[1:3]
        if own is None or uses[own] != 1:  # a history repeats it: with a digest
            digest = hash((weights[result.at].hash, place[1])) & 0xFFFFFFFF
            own = f"{own or text_or_none(named) or 'call'}-{digest:08x}"
        found[place] = Original(own, result.name or "tool", _text(content))
    return found


def _text(content: Any) -> str:
    """Return the text of a result. If it is not only a text, return its JSON."""
    known = fields(content) if not is_list(content) else {}
    if len(known) == 1:  # Gemini's results have an envelope
        content = known.get("result", known.get("output", content))
    if type(content) is str:
        return content
    only = value_of(content[0]) if is_list(content) and len(content) == 1 else None
    return only if type(only) is str else raw_of(content).text or ""


def rendered(  # noqa: PLR0913 - a summary and its form
    history: History,
    plan: Plan,
    form: Format,
    summary: str,
    kept: Mapping[tuple[int, int], Original],
    *,
    in_call: bool,
    names_tool: bool,
) -> list[Any]:
    """Return messages with the summary, in a call or a message of the model, and calls with marks as results."""
    lines = _lines(history, plan, kept)
    most = max(plan.summary_tokens // 2, 1)
    while lines and tokens("\n".join(lines)) > most:
        del lines[0]
    text = "\n".join([summary, *([MARKED, *lines] if lines else []), *([READ] if kept and names_tool else [])])
    follows = plan.asked if plan.asked is not None else plan.fold
    if in_call:
        digest = hashlib.sha256(summary.encode("utf-8", "replace")).hexdigest()[:_ID_DIGITS]
        made = form.pair(digest, semconv.CONTEXT_SUMMARIZE, text)
        # If the history's calls are signed, Gemini's call gets the signature that skips validation.
        parts = fields(made[0]).get("parts")
        signed = (fields(part) for message in history.messages for part in listed(fields(message).get("parts")))
        if parts and any("thoughtSignature" in part for part in signed):
            parts[0]["thoughtSignature"] = "skip_thought_signature_validator"
        if follows < len(history.seen) and history.seen[follows].by_user and not history.seen[follows].answered:
            made.append(form.statement(_VIEW_CONTINUED))
    else:
        made = [form.statement(f"{SAID}{text}")]
    if plan.asked is not None:
        made.append(history.messages[plan.asked])
    changes = Changes()
    for (at, place), one in kept.items():
        if plan.fold <= at < plan.end:
            answered = history.seen[at].answered[place]
            changes.put(at, answered.path, _as_content(answered.content, f"{MARK}{one.id}'"))
    return [*made, *changes.apply(history.messages)[0][plan.fold : plan.end]]


def _lines(history: History, plan: Plan, kept: Mapping[tuple[int, int], Original]) -> list[str]:
    """Return a mark for each call that leaves the transcript. Marks of an earlier summary come first."""
    lines = _LINE.findall(earlier_summary(history, plan.first, plan.fold) or "")
    for result in history.results:
        written = text_of(result.answered.content) or ""
        if plan.first <= result.at < plan.fold and is_mark(written):
            lines.append(f"{written} {result.name or 'tool'}")
    lines += [f"{MARK}{one.id}' {one.tool}" for (at, _), one in kept.items() if at < plan.fold]
    return lines


def _as_content(content: Any, text: str) -> Any:
    """Return a text in the form of a result's content."""
    if is_list(content):
        block = fields(content[0]) if content else {}
        return text if "type" in block or not content else [{"text": text}]
    return text if type(content) is str or content is None else replaced(content, text)
