"""State that the ledger keeps of an execution: integers and short strings only, never a value."""

from __future__ import annotations

import functools
from array import array
from dataclasses import KW_ONLY, dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_otel import semconv
from agent_otel._internal.errors import ours
from agent_otel._internal.fork import recording
from agent_otel.core.thread.request_parts import KINDS, NO_SHARES
from agent_otel.measure.forecast import turns_to_cap
from agent_otel.measure.preview import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opentelemetry.trace import SpanContext

    from agent_otel.core.cost.usage import Usage
    from agent_otel.core.thread.request_parts import Shares, Sized
    from agent_otel.measure.prints import Prints
    from agent_otel.telemetry.setup import Telemetry


@dataclass(eq=False)
class Fragment:
    """A part of a result, where the model got or gets no more of it.

    ``reason`` is how that is known. ``shown`` are the bytes of the part. ``whole`` are the bytes that there were, -1
    where the tool itself cut. ``is_open`` is true until a later call follows the result up, or an answer is built on
    it. ``is_inside`` is true when an agent inside a tool sent the request that delivered it. ``removed`` is the remedy
    that has replaced the result, and the bytes that it has removed.
    """

    reason: str
    shown: int
    whole: int = -1
    span: SpanContext | None = None
    _: KW_ONLY
    is_open: bool = True
    is_inside: bool = False
    removed: tuple[str, int] | None = None
    #: Another tool, which was called with a value that this page gave for the next one.
    followed_by: str | None = None


#: Of a call whose results cannot be matched: no answer counts as built on it.
REUSED = Fragment("", -1, is_open=False)


@dataclass(slots=True)
class Followed:
    """A result that invites a follow-up: what its call was about, by hashes, and the number of model requests since.

    ``things`` are those that its arguments name, ``words`` all of their words.
    """

    things: frozenset[int]
    words: frozenset[int]
    requests: int = 0


class Stage(IntEnum):
    """How far a call has come: a response asks for it, limits decide, its handler runs, a request has its result."""

    ASKED, GATED, RUNNING, FAILED, PRODUCED, DELIVERED = range(6)


class SeenCall:
    """A tool call whose result may appear in model requests and payloads: the tool, and the result's bytes.

    A call of a response has the key of its state (``place``), the ``run``, the ``turn`` and the ``agent`` of the
    request, the number of the response, and the tool call ``around`` it. Any other call has none of these.
    ``produced``, ``handed`` and ``delivered`` are bytes at these stages, -1 where not measured. ``length`` is the
    number of characters delivered; by it a result that was delivered before is recognised at little cost. ``prints``
    are those of the result's passages, None where it has none. ``span`` is the context of the tool's span. Both are
    dropped when the result has been delivered. ``fragment`` is set when the model gets a part only.
    ``shown`` is a fingerprint of the call where no adapter saw it and a model request showed it first, else 0.
    ``most_delivered`` stays when a later request holds less of the result.
    """

    stage = Stage.RUNNING
    tool = ""
    id: str | None = None
    place: str | None = None
    run: Any = None  # of execution_context
    turn = 0
    agent: str | None = None
    asked_in = 0
    #: By a weak reference.
    around: Callable[[], object] | None = None
    #: The tool of the result that the call follows up.
    follows: str | None = None
    #: The hash of the arguments.
    digest = ""
    produced = -1
    #: Bytes of the text of a failure, of which the ``prints`` are where the framework has not made the text yet.
    failed = -1
    handed = -1
    delivered = -1
    most_delivered = -1
    length = -1
    shown = 0
    prints: Prints | None = None
    #: True when a request had a passage of the result, too few of them to be its delivery.
    is_held = False
    #: A hash of the tools and the agent to whose requests the call owes its result, 0 where it owes none.
    owed_to = 0
    #: The last request in the context of the call.
    mark: object = None
    span: SpanContext | None = None
    fragment: Fragment | None = None
    #: Records the output of a durable step as a tool call, when a model request holds it.
    counted_later: Callable[[], object] | None = None


class Lacking(NamedTuple):
    """A request without a result that it is owed; ``has_call`` is true when it has messages of the model.

    So it is for a request of a loop that begins otherwise than the loop's first one.
    """

    call: SeenCall
    has_call: bool


class SeenParts(NamedTuple):
    """The parts of a request: their fingerprints, their bytes, and their kinds as indexes of the request parts."""

    prints: array[int]
    sizes: array[int]
    kinds: bytes

    def then(self, new: Sequence[Sized]) -> SeenParts:
        """Return these parts with further ones behind them."""
        return SeenParts(
            self.prints + array("q", [one.print for one in new]),
            self.sizes + array("q", [one.bytes for one in new]),
            self.kinds + bytes([KINDS[one.part.part] for one in new]),
        )


NO_PARTS = SeenParts(array("q"), array("q"), b"")

_MOST_PRINTS = 32_768
_PRINTS_PER_ENTRY = 50


class ReadTexts:
    """Hashes of the passages that model requests held; those that ``modulus`` divides, at most 32,768 of 4 bytes."""

    def __init__(self) -> None:
        self.modulus = 1
        self.prints = array("I")

    def add(self, prints: set[int]) -> None:
        """Add hashes; where there are too many, keep every second one of all."""
        every = self.modulus
        self.prints.extend(prints if every == 1 else [one for one in prints if not one % every])
        if len(self.prints) > _MOST_PRINTS:
            kept = set(self.prints)
            while len(kept) > _MOST_PRINTS:
                self.modulus = every = every * 2
                kept = {one for one in kept if not one % every}
            self.prints = array("I", kept)

    def __len__(self) -> int:
        return len(self.prints) // _PRINTS_PER_ENTRY


_STREAM_ENTRIES = 2
_PARTS_PER_ENTRY = 8
_RESULT = KINDS[semconv.TOOL_RESULTS]


@dataclass(slots=True, eq=False)
class Conversation:
    """The model requests of one transcript: the parts of the last request.

    ``offered`` is the fingerprint of the tools, and ``tools`` are their definitions. ``task`` is the
    fingerprint of the message that the agent works on, 0 when that was dropped.
    ``has_restarted`` is true when several histories share this transcript, such as those of parallel branches.
    ``read_parts`` is the number of parts whose texts the execution has in ``read``. ``input_tokens`` are those that the
    provider reported for the last request with a report, and ``bytes`` its bytes; 0 without one. ``turns`` are its
    model requests, ``token_sizes`` the tokens of the latest ones. ``shares`` are the bytes of the last request by part
    and tool. ``prefix`` is what `request_prefix` keeps of it. The length counts entries of about 200 bytes each; a
    part takes about 30 bytes, and a result 200 more in ``prefix``.
    """

    #: Prints of the user's last message.
    said: Prints | None = None
    offered: int = 0
    tools: Any = None
    task: int = 0
    read_parts: int = 0
    input_tokens: int = 0
    #: Tokens of the last request that its provider's cache may have.
    cacheable: int = 0
    #: The part that changed since the request before, how it changed, and the tokens of that one in a cache.
    missed: tuple[str, str, int] | None = None
    bytes: int = 0
    turns: int = 0
    has_restarted: bool = False
    token_sizes: list[int] = field(default_factory=list)
    shares: Shares = NO_SHARES
    parts: SeenParts = NO_PARTS
    prefix: Any = None

    def __len__(self) -> int:
        parts = len(self.parts.prints) // _PARTS_PER_ENTRY
        results = self.parts.kinds.count(_RESULT)
        return _STREAM_ENTRIES + parts + results


#: Direction, activity, and what else separates payloads that are no turns of one another.
PayloadKind = tuple[str, str | None, str]


@dataclass(slots=True)
class PayloadHistory:
    """Payloads of one kind in one execution: the sizes of the recent turns, and the rejections in a row.

    ``last`` are bytes, cap and turns left of the last one.
    """

    last: tuple[int, int | None, int | None] | None = None
    sizes: list[int] = field(default_factory=list)
    refused: int = 0
    utilization: float = 0.0


#: The other growth of a state hides the copies of results of fewer bytes.
_LEAST_BYTES = 4096
_MOST_COPIES = 8


@dataclass(slots=True)
class Stored:
    """Bytes that a thread has written into a store: all, those that were new, and its largest and last state.

    ``growth`` is that of the histories that runs read, where each write adds to the thread. ``texts`` are of the last
    state, and ``equal`` the largest path that was equal to the state before, and its bytes. Only states shortly before
    the limit of the warning have them.
    """

    written: int = 0
    new: int = 0
    largest: int = 0
    last: int = 0
    growth: int = 0
    texts: Sequence[int] = ()
    equal: tuple[str, int] = "", 0

    def add(self, size_bytes: int, *, is_whole: bool) -> tuple[int, int]:
        """Add a payload; return its new bytes, and the growth of a whole state. It holds the results of its steps."""
        new, more = size_bytes, 0
        if is_whole:
            new = max(0, size_bytes - (self.largest or self.new))
            more = size_bytes - (self.last or size_bytes)
            self.largest, self.last = max(size_bytes, self.largest), size_bytes
        elif self.largest:
            new = 0
        self.written += size_bytes
        self.new += new
        return new, more


class LastRequest(NamedTuple):
    """A model request whose response has shown its tokens: these, its bytes and its model."""

    tokens: int
    bytes: int
    model: str | None


@dataclass
class ContextUse:
    """Tokens of a model request, the window of its model, and the tokens of its conversation's latest requests."""

    tokens: int
    window: int | None
    sizes: Sequence[int] = ()

    @functools.cached_property
    def attributes(self) -> dict[str, int]:
        """Return span attributes of the use of a context window; the forecast is made when a span first shows it."""
        found = {semconv.CONTEXT_TOKENS: self.tokens}
        if self.window is not None:
            found[semconv.CONTEXT_WINDOW] = self.window
            turns = turns_to_cap(self.sizes, self.window)
            if turns is not None:
                found[semconv.CONTEXT_TURNS_TO_LIMIT] = turns
        return found


#: Of an execution without entries; `Executions` replaces it before the first one.
_EMPTY: Final[Any] = MappingProxyType({})
_MOST_TOOLS: Final = 64
_LAST_RESULTS: Final = 5


class Totals:
    """Totals of one execution: calls, bytes and tokens, and hashes of the calls, by which repeats are found."""

    # Defaults stand on the classes: an execution that makes one call sets few of them.
    tool_calls = 0
    result_bytes = 0
    payload_bytes = 0
    #: Model requests that repeat the one before.
    model_retries = 0
    #: None before a response has shown its tokens.
    tokens: Tokens | None = None
    #: Of streams whose provider has reported none, and of requests that remedies send.
    estimated_tokens = 0
    #: Hashes of the calls so far, with the turn of the first call that has it.
    asked: dict[int, int] = _EMPTY
    #: By tool, fingerprints of its last results with their turns, the latest first.
    outcomes: dict[str, tuple[tuple[int, int], ...]] = _EMPTY
    #: By tool and label, the turn since which its calls repeat, and how many do.
    loops: dict[tuple[str, str], tuple[int, int]] = _EMPTY
    #: Concludes from the number of calls at the execution's end if a response was the final answer.
    unsettled: Callable[[int], None] | None = None

    @property
    def used_tokens(self) -> int:
        """Return the tokens of the model requests so far and of their responses, estimated where none are reported."""
        reported = self.tokens
        return self.estimated_tokens + (0 if reported is None else reported.input + reported.output)

    def repeats(self, tool: str, by: str, since: int, *, is_new: bool = False) -> None:
        """Note that a call of a tool repeats others, since this turn."""
        loops = self.loops = self.loops or {}
        known, count = loops.get((tool, by), (since, 0))
        loops[tool, by] = (since if is_new else known, count + 1)

    def again(self, tool: str, outcome: int, turn: int) -> str | None:
        """Return `result` for the third equal result of a tool in a row, or where two alternate for the third time.

        The results of other tools between them make no difference.
        """
        last = self.outcomes.get(tool)
        if last is None:
            self.outcomes = {**(self.outcomes if len(self.outcomes) < _MOST_TOOLS else {}), tool: ((outcome, turn),)}
            return None
        now = self.outcomes[tool] = ((outcome, turn), *last[:_LAST_RESULTS])
        if outcome != last[0][0] and outcome != last[len(last) > 1][0]:
            return None
        results = [each for each, _ in now]
        for step in (1, 2):
            end = 2 * step + 1
            if len(results) >= end and results[: end - step] == results[step:end]:
                is_new = results[end - step : end - step + 1] != results[end : end + 1]
                self.repeats(tool, semconv.RESULT, now[end - 1][1], is_new=is_new)
                return semconv.RESULT
        return None

    def loop_attributes(self, tool: str, by: str) -> dict[str, Any]:
        """Return the span attributes of calls that repeat others; none before the third equal call or result."""
        since, count = self.loops[tool, by]
        if count == 1 and by == semconv.ARGUMENTS:
            return {}
        found = {semconv.LOOP_TOOL: clean(tool), semconv.LOOP_BY: by, semconv.LOOP_CALLS: count}
        return {**found, semconv.LOOP_SINCE: since} if since else found

    def attributes(self) -> dict[str, Any]:
        """Return the span attributes of an execution."""
        most = max(self.loops, key=lambda loop: self.loops[loop][1], default=None)
        found = {} if most is None else self.loop_attributes(*most)
        if self.tokens is not None:
            found.update(self.tokens.attributes())
        if self.tokens is not None or self.tool_calls:
            found[semconv.EXECUTION_CALLS] = self.tool_calls
        if self.model_retries:
            found[semconv.EXECUTION_RETRIES] = self.model_retries
        return found


class ExecutionState(Totals):
    """The state of one execution, or of a conversation whose runs count their own totals.

    ``call_ids`` maps call ids to calls; ``unnamed`` holds calls without an id, oldest first. ``streams`` are the
    transcripts of the agent and its sub-agents. ``followed`` maps tools whose last result invites a follow-up to the
    number of model requests since. ``read`` are the texts of the model requests, None before the first one of an
    execution with payloads. ``is_continued`` is true when the provider keeps earlier messages. ``is_unread_open`` is
    true when most of the payload analysed last might still be sent to a model, so that the next one is analysed too.
    """

    seen_at = 0.0
    analysed = -1
    few_turns = False
    forgotten = False
    #: Bytes, cap and turns left of the payload nearest to its cap.
    carries: tuple[int, int | None, int | None] | None = None
    #: The context window at the last model request.
    context: ContextUse | None = None
    #: Bytes of the last model request, 0 without a known window, and of the results handed on since.
    context_bytes = 0
    handed_to_model_bytes = 0
    #: Copies of each result in that payload.
    copies = 1
    #: Bytes of the results that were handed on since that payload.
    handed_bytes = 0
    #: Results that were handed on since that payload, and between the two payloads before it.
    handed_count = 0
    turn_count = 1
    #: Payloads that carried new results.
    turns = 0
    #: Number of the last model request in its conversation.
    turn = 0
    #: Growth of that payload in its last turn, in bytes, without the results.
    own_growth_bytes = 0
    call_ids: dict[str, SeenCall] = _EMPTY
    #: Calls whose id was used again or dropped, and results that were delivered again with another length.
    call_changes = 0
    unnamed: list[SeenCall] | None = None
    #: The latest results: those that no request held, and the last few.
    results: list[SeenCall] | None = None
    #: A hash of the tools and the agent of the last request, 0 before one; and whether it forced the call of its tool.
    owner = 0
    is_forced = False
    #: Requests that lack a result, which a later one may hold.
    unsure: tuple[Lacking, ...] = ()
    #: True when the last request had lost its history.
    has_lost = False
    streams: dict[int, Conversation] | None = None
    followed: dict[str, Followed] | None = None
    #: Hashes of the values that name a next page, with the tool and the result that has them.
    cursors: dict[int, tuple[str, Fragment | None]] | None = None
    tracks: dict[PayloadKind, PayloadHistory] | None = None
    #: What the thread has written into its store.
    stored: Stored | None = None
    workflow: str | None = None
    #: The telemetry of the last call, request or step, whose names and labels its runtime's workers do not have.
    out: Telemetry | None = None
    read: ReadTexts | None = None
    is_continued = False
    is_unread_open = False
    #: Input tokens and bytes of the last request, by whether an agent inside a tool sent it.
    last_requests: dict[bool, LastRequest] | None = None

    def carried_on(self, sizes: list[int]) -> None:
        """Record that a state holds the results handed on; its last two ``sizes`` show the copies of each."""
        if len(sizes) > 1 and self.handed_bytes >= _LEAST_BYTES:
            self.copies = min(_MOST_COPIES, max(1, round((sizes[-1] - sizes[-2]) / self.handed_bytes)))
            self.own_growth_bytes = max(0, sizes[-1] - sizes[-2] - self.copies * self.handed_bytes)
        if self.handed_count:
            self.turn_count = self.handed_count
            self.turns += 1
        self.handed_bytes = self.handed_count = 0

    def __len__(self) -> int:
        streams = sum(map(len, (self.streams or {}).values()))
        own = (self.asked, self.call_ids, self.tracks, self.unnamed, self.read)
        return sum(len(one) for one in own if one is not None) + streams


def state_attributes(state: ExecutionState) -> dict[str, int | float]:
    """Return span attributes of the payload nearest to its cap, and of the last model request."""
    found: dict[str, int | float] = {}
    if state.carries is not None:
        payload_bytes, cap_bytes, turns_left = state.carries
        found[semconv.PAYLOAD_BYTES] = payload_bytes
        if cap_bytes is not None:
            found[semconv.PAYLOAD_CAP_BYTES] = cap_bytes
            found[semconv.PAYLOAD_UTILIZATION] = payload_bytes / cap_bytes
            if turns_left is not None:
                found[semconv.PAYLOAD_TURNS_TO_CAP] = turns_left
    if state.context is not None:
        found.update(state.context.attributes)
    return found


# Tokens of the model requests of one execution, and their price.


@dataclass(slots=True, eq=False)
class Tokens:
    """Tokens of the responses of one execution, as the providers reported them, and their price in US dollars."""

    requests: int = 0
    #: None before a request with a price.
    cost: float | None = None
    input: int = 0
    cached: int = 0
    output: int = 0
    # Lists, because their methods are atomic: another thread reads prices.
    _unpriced: list[None] = field(default_factory=list)
    _waiting: list[Callable[[float], None]] = field(default_factory=list)

    def add(self, usage: Usage) -> None:
        """Add the tokens of a response, whose price is not known yet."""
        self.requests += 1
        self.input += usage.input
        self.cached += usage.cached
        self.output += usage.output
        self._unpriced.append(None)

    def priced(self, cost: float | None) -> None:
        """Add the price of a response; None where its model has none."""
        with recording.held:
            if cost is not None:
                self.cost = (self.cost or 0.0) + cost
            self._unpriced.pop()
        self._settle()

    def when_priced(self, use: Callable[[float], None]) -> None:
        """Call ``use`` with the price of all responses, as soon as all are priced; not without any price."""
        self._waiting.append(use)
        self._settle()

    def _settle(self) -> None:
        while self._waiting and not self._unpriced:
            try:
                use = self._waiting.pop()
            except ours(IndexError):  # another thread was faster
                return
            if self.cost is not None:
                use(self.cost)

    def attributes(self) -> dict[str, int | float]:
        """Return the span attributes of an execution's tokens and price."""
        found: dict[str, int | float] = {
            semconv.EXECUTION_REQUESTS: self.requests,
            semconv.EXECUTION_INPUT_TOKENS: self.input,
            semconv.EXECUTION_CACHED_TOKENS: self.cached,
            semconv.EXECUTION_OUTPUT_TOKENS: self.output,
        }
        if self.cost is not None:
            found[semconv.EXECUTION_COST] = self.cost
        return found
