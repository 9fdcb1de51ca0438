"""Backpressure: tool calls and model requests wait for tokens, and for the time that a provider's refusal gives.

A wait for tokens ends by time alone, and one for a slot waits for siblings only: the calls that a running call makes
have their own slots. So a call never waits for itself.
"""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from collections import OrderedDict, deque
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from concurrent.futures import thread as pools
from contextlib import contextmanager
from datetime import timezone
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakSet, WeakValueDictionary

from agent_otel import semconv, settings
from agent_otel._internal import errors, fork
from agent_otel._internal.daemon_pool import is_in_asyncio
from agent_otel._internal.object_kinds import dictionaries, fields, is_dict, text
from agent_otel.core.cost import model_tokens
from agent_otel.telemetry.foreign_spans import add_event
from agent_otel.telemetry.setup import telemetry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from agent_otel.core.cost.model_tokens import SentRequest
    from agent_otel.core.tool_invocation import ToolInvocation
    from agent_otel.telemetry.setup import Telemetry


_MINUTE_SECONDS: Final = 60.0


class TokenBudget:
    """The tokens of a minute. They come back evenly; requests may take more than there is, and later ones then wait."""

    def __init__(self, per_minute: int, clock: Callable[[], float]) -> None:
        self._most = float(per_minute)
        self._rate = per_minute / _MINUTE_SECONDS
        self._clock = clock
        self.reset()

    def reset(self) -> None:
        """Fill the budget; a forked child calls this."""
        self._lock = threading.Lock()
        self._left = self._most
        self._at = self._clock()

    def take(self, tokens: float) -> float:
        """Take tokens; return the time, by the clock, from which on the budget has had them."""
        with self._lock:
            ready_at = self._ready_at(tokens)
            self._left -= tokens
            return ready_at

    def ready_at(self, tokens: float) -> float:
        """Return the time, by the clock, from which on the budget has so many tokens; it is full for more."""
        with self._lock:
            return self._ready_at(tokens)

    def correct(self, taken: float, used: float) -> None:
        """Replace the tokens that a request has taken by those used, at most a further minute's more."""
        with self._lock:
            self._ready_at(0)
            self._left = min(self._most, self._left + taken - min(used, taken + self._most))

    def _ready_at(self, tokens: float) -> float:
        now = self._clock()
        self._left = min(self._most, self._left + (now - self._at) * self._rate)
        self._at = now
        return now + max(0.0, min(tokens, self._most) - self._left) / self._rate


class Reservation:
    """The tokens that a request has taken from the budget until its response shows how many it used, and its wait.

    The wait ends when the budget has had the tokens, at ``ready_at`` by the clock, and the pause of the model is over.
    """

    def __init__(self, backpressure: Backpressure, model: str | None, tokens: int = 0, ready_at: float = 0.0) -> None:
        self._backpressure = backpressure
        self._model = model
        self._ready_at = ready_at
        self._reason = semconv.WAIT_TOKENS
        self._refused: Any = None
        self.tokens = tokens

    @property
    def reservation(self) -> Reservation:
        """Itself, for a request that a remedy sends."""
        return self

    def left(self) -> float:
        """Return the seconds of the wait that are left; 0 or less at the end."""
        until = self._backpressure.pauses.until(self._model)
        if until > self._ready_at:
            self._reason = semconv.WAIT_RATE_LIMIT
        return max(until, self._ready_at) - self._backpressure.clock()

    async def over(
        self, out: Telemetry | None = None, *, blocks: bool, record: Callable[[str, float], object] = lambda *_: None
    ) -> None:
        """Wait to the end, except where an event loop's thread would block; ``record`` gets reason and seconds."""
        if self.left() <= 0 or is_in_asyncio() == blocks:
            return
        began = self._backpressure.clock()
        try:
            while (seconds := self.left()) > 0:  # the end is a time, and may be moved
                if blocks:
                    time.sleep(seconds)  # noqa: ASYNC251 - no event loop runs here
                else:
                    await asyncio.sleep(seconds)
        finally:
            with errors.reported("backpressure"):
                seconds = self._backpressure.clock() - began
                (out or telemetry()).metrics.record(semconv.BACKPRESSURE_WAIT, seconds, self._reason)
                record(self._reason, seconds)

    def used(self, tokens: int) -> None:
        """Correct the budget by the tokens of the response."""
        self._backpressure.budget.correct(self.tokens, tokens)
        self.tokens = tokens
        self._backpressure.pauses.responded(self._model)

    def abandoned(self) -> None:
        """Give the tokens back: the request was not sent, or not answered."""
        self._backpressure.budget.correct(self.tokens, 0)
        self.tokens = 0

    def failed(self, error: BaseException) -> None:
        """Give the tokens back; where the provider has refused the request for its rate, begin the model's pause."""
        self.abandoned()
        if self._refused is None or getattr(error, "response", None) is not self._refused:
            self._refuse(error)

    def attempt_refused(self, refused: Any) -> None:
        """Begin the model's pause where the provider has refused an attempt for its rate; the SDK may send another."""
        self._refused = refused
        self._refuse(refused)

    def delay(self, seconds: float) -> float:
        """Return the seconds before the SDK's next attempt: its own, or those to the end of the model's pause."""
        left = self._backpressure.pauses.until(self._model) - self._backpressure.clock()
        if left > seconds:
            telemetry().metrics.record(semconv.BACKPRESSURE_WAIT, left - max(seconds, 0.0), semconv.WAIT_RATE_LIMIT)
        return max(left, seconds)

    def _refuse(self, refused: Any) -> None:
        found = refusal(refused)
        if found is None:
            return
        seconds = self._backpressure.pauses.refused(self._model, found)
        said = f"A provider has refused a request to {self._model or 'a model'} for"
        if seconds:
            errors.warn_once(
                "backpressure of a rate limit",
                f"{said} its rate. Requests to this model, and the tool calls before them, wait {seconds:g} s. This is "
                f"logged once; {semconv.BACKPRESSURE_WAIT.name} has every wait.",
            )
        elif found.seconds is not None and found.seconds > LONGEST_SECONDS:
            errors.warn_once(
                "backpressure of a quota",
                f"{said} {found.seconds:g} s. Nothing waits longer than {LONGEST_SECONDS:g} s for a provider; further "
                "requests are sent.",
            )


class Backpressure:
    """The budget and the pauses of this process."""

    def __init__(self, tokens_per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = tokens_per_minute
        self.clock = clock
        self.budget = TokenBudget(tokens_per_minute, clock)
        self.pauses = Pauses(clock)
        fork.after_fork(self._reset)

    def _reset(self) -> None:
        self.budget.reset()
        self.pauses.reset()

    async def before_call(self, call: ToolInvocation, enclosing: ToolInvocation | None, *, blocks: bool) -> None:
        """Wait before a tool call, as long as the next model request of its execution would have to."""
        last = None if call.state is None else (call.state.last_requests or {}).get(enclosing is not None)
        tokens, model = (0, None) if last is None else (last.tokens, last.model)

        def record(reason: str, seconds: float) -> None:
            self._log(reason)
            call.tell(semconv.WAIT_EVENT, {semconv.REASON: reason, semconv.WAIT_SECONDS: seconds})
            _begins_now(call, time.perf_counter())

        wait = Reservation(self, model, ready_at=self.budget.ready_at(tokens))
        await wait.over(call.out, blocks=blocks, record=record)

    async def before_request(
        self, out: Telemetry, model: str | None, sent: SentRequest | None, *, blocks: bool
    ) -> None:
        """Wait before a model request; ``sent`` is None while only the layers below know the request."""
        if sent is None:
            wait = Reservation(self, model, ready_at=self.budget.ready_at(0))
        else:
            sent.reservation = wait = self.apart(sent.model, model_tokens.estimated(sent))

        def record(reason: str, seconds: float) -> None:
            self._log(reason)
            if sent is not None and sent.span.is_recording():
                add_event(sent.span, semconv.WAIT_EVENT, {semconv.REASON: reason, semconv.WAIT_SECONDS: seconds})

        has_waited = False
        try:
            await wait.over(out, blocks=blocks, record=record)
            has_waited = True
        finally:  # a request that is not sent, because its wait was cancelled or interrupted, gives its tokens back
            if not has_waited:
                wait.abandoned()

    def sent(self, sent: SentRequest) -> None:
        """Count a request that is on its way without tokens of its own."""
        sent.reservation = Reservation(self, sent.model)

    def apart(self, model: str | None, tokens: int) -> Reservation:
        """Take the tokens of a request."""
        return Reservation(self, model, tokens, self.budget.take(tokens))

    def _log(self, reason: str) -> None:
        if reason == semconv.WAIT_TOKENS:
            errors.warn_once(
                "backpressure of the budget",
                f"AGENT_OTEL_TOKENS_PER_MINUTE={self._per_minute}: the tokens are used up; tool calls and model "
                f"requests wait for more. This is logged once; {semconv.BACKPRESSURE_WAIT.name} has every wait.",
            )


@functools.lru_cache(maxsize=1)
def current() -> Backpressure | None:
    """Return the backpressure of this process; None where it is off."""
    tokens_per_minute = settings.current().tokens_per_minute
    return None if tokens_per_minute is None else Backpressure(tokens_per_minute)


#: Too many requests, unavailable, and Anthropic's overloaded; the last two only with a time.
_TOO_MANY: Final = 429
_WITH_TIME: Final = (503, 529)
_THROTTLED: Final = ("ThrottlingException", "TooManyRequestsException", "Throttling", "ServiceQuotaExceededException")
#: A longer pause is a quota of hours: the request is sent, and its refusal shows what is wrong.
LONGEST_SECONDS: Final = 300.0
_LONGEST_GUESS_SECONDS: Final = 60.0
_MOST_MODELS: Final = 256


class Refusal(NamedTuple):
    """A refusal for the rate; ``seconds`` is the time that the provider gives, None without one."""

    seconds: float | None


def refusal(error: Any) -> Refusal | None:
    """Return the refusal for the rate that an exception or a response of an SDK stands for; None for any other."""
    # botocore's response: in an exception, or itself
    parsed = fields(error) if is_dict(error) else fields(getattr(error, "response", None))
    metadata = fields(parsed.get("ResponseMetadata"))
    codes: tuple[Any, ...] = (
        getattr(error, "status_code", None),
        metadata.get("HTTPStatusCode"),
        getattr(error, "code", None),
    )
    status = next((int(code) for code in codes if issubclass(type(code), int)), None)
    seconds = next((found for found in _times(error, metadata) if found is not None), None)
    is_throttled = text(fields(parsed.get("Error")).get("Code")) in _THROTTLED
    if status == _TOO_MANY or is_throttled or (status in _WITH_TIME and seconds is not None):
        return Refusal(seconds)
    return None


def _times(error: Any, metadata: Mapping[str, Any]) -> Iterator[float | None]:
    """Yield the seconds in the headers of a refusal, and in its body."""
    for headers in (
        getattr(getattr(error, "response", None), "headers", None),
        metadata.get("HTTPHeaders"),
        getattr(getattr(error, "raw_response", None), "headers", None),
        getattr(error, "headers", None),
    ):
        get = getattr(headers, "get", None)
        if callable(get):
            milliseconds = _float(text(get("retry-after-ms")) or text(get("Retry-After-Ms")))
            yield None if milliseconds is None else milliseconds / 1000
            yield _seconds(text(get("retry-after")) or text(get("Retry-After")))
    for holder in (getattr(error, "details", None), getattr(error, "body", None)):
        status = fields(fields(holder).get("error")) or fields(holder)
        for detail in dictionaries(status.get("details")):
            yield _seconds((text(detail.get("retryDelay")) or "").removesuffix("s"))


def _seconds(value: str | None) -> float | None:
    """Return the seconds of a header: a number, or the time from now to a date."""
    seconds = _float(value)
    if seconds is not None or not value:
        return seconds
    try:
        date = parsedate_to_datetime(value)
        date = date if date.tzinfo is not None else date.replace(tzinfo=timezone.utc)
        return max(0.0, date.timestamp() - time.time())
    except errors.ours(TypeError, ValueError, OverflowError):
        return None


def _float(value: str | None) -> float | None:
    seconds = errors.attempt(float, value or "", default=-1.0)
    return seconds if 0 <= seconds < float("inf") else None


class Pauses:
    """The pauses of models whose provider has refused a request for the rate; at most 256 models."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.reset()

    def reset(self) -> None:
        """Drop all pauses; a forked child calls this."""
        self._lock = threading.Lock()
        #: The end of the pause, and the refusals in a row.
        self._models: OrderedDict[str | None, tuple[float, int]] = OrderedDict()

    def refused(self, model: str | None, given: Refusal) -> float:
        """Begin a pause of a model and return its seconds, 0 for none; without a given time it doubles each time."""
        with self._lock:
            until, refusals = self._models.get(model, (0.0, 0))
            seconds = min(_LONGEST_GUESS_SECONDS, 2.0**refusals) if given.seconds is None else given.seconds
            if seconds > LONGEST_SECONDS:
                return 0.0
            self._models[model] = (max(until, self._clock() + seconds), min(refusals + 1, 10))
            self._models.move_to_end(model)
            if len(self._models) > _MOST_MODELS:
                self._models.popitem(last=False)
            return seconds

    def responded(self, model: str | None) -> None:
        """End the row of refusals of a model; a pause that another refusal has begun goes on."""
        if model in self._models:
            with self._lock:
                until, _ = self._models.pop(model, (0.0, 0))
                if until > self._clock():
                    self._models[model] = (until, 0)

    def until(self, model: str | None) -> float:
        """Return the end of a model's pause, 0 for none; for an unknown model, the end of the longest pause."""
        if not self._models:
            return 0.0
        with self._lock:
            if model is None:
                return max((until for until, _ in self._models.values()), default=0.0)
            return self._models.get(model, (0.0, 0))[0]


_FREE: Final = object()


class Slot:
    """A slot that a call has. It goes back when the call ends, or when an interrupt has left nothing of the call."""

    __slots__ = ("_slots",)

    def __init__(self, slots: Slots) -> None:
        self._slots: Slots | None = slots

    def release(self) -> None:
        """Give the slot to the call that waits longest; do nothing the second time."""
        slots, self._slots = self._slots, None
        if slots is not None:
            slots.give_back()

    __del__ = release


class Slots:
    """The slots of an execution, or of the calls that a running call makes."""

    __slots__ = ("__weakref__", "_free", "_matching", "_waiting")

    def __init__(self, maximum: int) -> None:
        # Appending to a deque is atomic. The garbage collector may release a slot anywhere, also within `_match`.
        self._free = deque([_FREE] * maximum)
        self._waiting: deque[Future[Slot]] = deque()
        self._matching = threading.Lock()

    def ask(self) -> Future[Slot]:
        """Return the future of a slot; it is done at once when one is free."""
        waiter: Future[Slot] = Future()
        self._waiting.append(waiter)
        self._match()
        return waiter

    def give_back(self) -> None:
        """Free a slot."""
        self._free.append(_FREE)
        self._match()

    def _match(self) -> None:
        """Give free slots to the first waiters; a thread that does so looks again after it has released the lock."""
        while self._free and self._waiting and self._matching.acquire(blocking=False):
            try:
                if self._free and self._waiting:
                    waiter = self._waiting.popleft()
                    if waiter.set_running_or_notify_cancel():
                        self._free.pop()
                        waiter.set_result(Slot(self))
            finally:
                self._matching.release()


#: Seconds between two looks at the pool, and the looks in a row that have to find it without a free thread.
_SECONDS: Final = 0.5
_LOOKS: Final = 4
_SAID: Final = (
    "AGENT_OTEL_MAX_PARALLEL_TOOL_CALLS: a call runs at once, because all threads of its pool wait for the call that "
    "runs, which may wait for a thread itself. Make the event loop's executor larger, or the tools async."
)


class CallQueue:
    """The slots of all executions with a call that runs or waits."""

    def __init__(self, maximum: int) -> None:
        self._maximum = maximum
        self._reset()
        fork.after_fork(self._reset)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._slots: WeakValueDictionary[str, Slots] = WeakValueDictionary()
        self._blocked: WeakSet[threading.Thread] = WeakSet()

    async def take(self, call: ToolInvocation, enclosing: ToolInvocation | None, *, blocks: bool) -> Slot | None:
        """Return a slot, when there is one; None where a wait would block an event loop or starve a pool."""
        waiter = self._of(call, enclosing).ask()
        if not waiter.done() and is_in_asyncio() == blocks and waiter.cancel():
            return None
        with _waiting(call, waiter):
            if blocks:
                return self._wait(waiter)
            if not waiter.done():
                await asyncio.wrap_future(waiter)
            return waiter.result()

    def _of(self, call: ToolInvocation, enclosing: ToolInvocation | None) -> Slots:
        with self._lock:
            if enclosing is None:
                return self._slots.setdefault(call.execution or "", Slots(self._maximum))
            slots: Slots = enclosing.slots_inside or Slots(self._maximum)
            enclosing.slots_inside = slots
            return slots

    def _wait(self, waiter: Future[Slot]) -> Slot | None:
        """Block until a slot is free; None where all threads of a pool wait and the running call may need one."""
        thread = threading.current_thread()
        if thread is threading.main_thread() or waiter.done():
            return waiter.result()
        looks = 0
        with self._lock:
            self._blocked.add(thread)
        try:
            while True:
                try:
                    return waiter.result(_SECONDS)
                except errors.ours(FutureTimeoutError):
                    looks = looks + 1 if self._is_starved(thread) else 0
                with self._lock:  # unless another thread of the pool has just given up its place
                    if looks >= _LOOKS and self._is_starved(thread) and waiter.cancel():
                        self._blocked.discard(thread)
                        break
        finally:
            with self._lock:
                self._blocked.discard(thread)
        errors.warn_once("starved threads", _SAID)
        return None

    def _is_starved(self, thread: threading.Thread) -> bool:
        """Return True when all threads of the thread's pool wait for slots, and the pool has work left."""
        queues = getattr(pools, "_threads_queues", {})  # a pool registers a thread after its start
        work = queues.get(thread)
        try:
            others = [other for other, own in list(queues.items()) if own is work]
        except errors.ours(RuntimeError):  # another pool has started a thread meanwhile
            return False
        return work is not None and not work.empty() and all(other in self._blocked for other in others)


def _begins_now(call: ToolInvocation, now: float) -> None:
    call.started = now
    call.start_ns = time.time_ns() if call.start_ns else 0


@contextmanager
def _waiting(call: ToolInvocation, waiter: Future[Slot]) -> Iterator[None]:
    """Record the time of a wait; a call that is cancelled or interrupted in it leaves no slot taken."""
    if waiter.done():
        yield
        return
    began, has_slot = time.perf_counter(), False
    try:
        yield
        has_slot = True
    finally:
        if not has_slot and not waiter.cancel():
            waiter.add_done_callback(lambda late: None if late.cancelled() else late.result().release())
        now = time.perf_counter()
        call.out.metrics.record(semconv.BACKPRESSURE_WAIT, now - began, semconv.PARALLEL)
        _begins_now(call, now)
