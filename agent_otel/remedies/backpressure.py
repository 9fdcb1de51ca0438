"""Backpressure: tool calls and model requests wait for tokens, and for the time that a provider's refusal gives.

A model request takes its estimated tokens from the budget before it is sent, and the response corrects them. A tool
call takes none: it waits until the budget has the tokens of its execution's next request. A wait ends by time alone and
not by what another call does, so that a tool that calls tools never waits for itself.
"""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from collections import OrderedDict
from contextlib import contextmanager
from datetime import timezone
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_otel import semconv, settings
from agent_otel._internal import errors, fork
from agent_otel._internal.daemon_pool import is_in_asyncio
from agent_otel.core import model_tokens
from agent_otel.core.plain import dictionaries, fields, is_dict, text
from agent_otel.telemetry.foreign_spans import add_event
from agent_otel.telemetry.setup import telemetry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from agent_otel.core.sent_request import SentRequest
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
        """Replace the tokens that a request has taken by those that it has used.

        A response takes at most the tokens of a further minute, whatever its provider reports.
        """
        with self._lock:
            self._ready_at(0)
            self._left = min(self._most, self._left + taken - min(used, taken + self._most))

    def _ready_at(self, tokens: float) -> float:
        now = self._clock()
        self._left = min(self._most, self._left + (now - self._at) * self._rate)
        self._at = now
        return now + max(0.0, min(tokens, self._most) - self._left) / self._rate


class Reservation:
    """The tokens that a request has taken from the budget until its response shows how many it used."""

    __slots__ = ("_backpressure", "_model", "_refused", "tokens")

    def __init__(self, backpressure: Backpressure, model: str | None, tokens: int) -> None:
        self._backpressure = backpressure
        self._model = model
        #: The last refused attempt.
        self._refused: Any = None
        self.tokens = tokens

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
        if seconds:
            errors.warn_once(
                "backpressure of a rate limit",
                f"A provider has refused a request to {self._model or 'a model'} for its rate. Requests to this model, "
                f"and the tool calls before them, wait {seconds:g} s. This is logged once; "
                f"{semconv.BACKPRESSURE_WAIT.name} has every wait.",
            )
        elif found.seconds is not None and found.seconds > LONGEST_SECONDS:
            errors.warn_once(
                "backpressure of a quota",
                f"A provider has refused a request to {self._model or 'a model'} for {found.seconds:g} s. Nothing "
                f"waits longer than {LONGEST_SECONDS:g} s for a provider; further requests are sent.",
            )


class _Wait:
    """A wait: until the budget has had the tokens, and until the pause of the model is over."""

    def __init__(self, backpressure: Backpressure, model: str | None, ready_at: float) -> None:
        self._backpressure = backpressure
        self._model = model
        self._ready_at = ready_at
        self._reason = semconv.WAIT_TOKENS

    def left(self) -> float:
        """Return the seconds that are left; 0 or less at the end."""
        until = self._backpressure.pauses.until(self._model)
        if until > self._ready_at:
            self._reason = semconv.WAIT_RATE_LIMIT
        return max(until, self._ready_at) - self._backpressure.clock()

    def block(self, record: Callable[[str, float], object]) -> None:
        """Block the thread to the end. Return at once in the thread of an event loop, which must not block."""
        if self.left() > 0 and not is_in_asyncio():
            with self._recorded(record):
                while (seconds := self.left()) > 0:
                    time.sleep(seconds)

    async def suspend(self, record: Callable[[str, float], object]) -> None:
        """Suspend the task to the end. Return at once where another event loop than asyncio's runs it."""
        if self.left() > 0 and is_in_asyncio():
            with self._recorded(record):
                while (seconds := self.left()) > 0:  # noqa: ASYNC110 - the end is a time, and may be moved
                    await asyncio.sleep(seconds)

    @contextmanager
    def _recorded(self, record: Callable[[str, float], object]) -> Iterator[None]:
        began = self._backpressure.clock()
        try:
            yield
        finally:
            errors.guarded("backpressure")(record)(self._reason, self._backpressure.clock() - began)


class Apart:
    """A request that a remedy sends itself: its tokens, and its wait, which is no longer than its sender's."""

    def __init__(self, backpressure: Backpressure, model: str | None, tokens: int) -> None:
        self.reservation = Reservation(backpressure, model, tokens)
        self._wait = _Wait(backpressure, model, backpressure.budget.take(tokens))

    def block(self, most_seconds: float) -> None:
        """Block until the request may be sent. Raises TimeoutError where that is later."""
        self._check(most_seconds)
        record = telemetry().metrics.record
        self._wait.block(lambda reason, seconds: record(semconv.BACKPRESSURE_WAIT, seconds, reason))

    async def suspend(self, most_seconds: float) -> None:
        """Do the same as `block` without blocking the event loop."""
        self._check(most_seconds)
        record = telemetry().metrics.record
        await self._wait.suspend(lambda reason, seconds: record(semconv.BACKPRESSURE_WAIT, seconds, reason))

    def _check(self, most_seconds: float) -> None:
        if self._wait.left() > most_seconds:
            raise TimeoutError("no tokens in time")


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

    def before_call(self, call: ToolInvocation, enclosing: ToolInvocation | None) -> None:
        """Wait before a tool call, as long as the next model request of its execution would have to."""
        self._of_call(call, enclosing).block(lambda reason, seconds: self._call_waited(call, reason, seconds))

    async def abefore_call(self, call: ToolInvocation, enclosing: ToolInvocation | None) -> None:
        """Do the same as `before_call` without blocking the event loop."""
        wait = self._of_call(call, enclosing)
        await wait.suspend(lambda reason, seconds: self._call_waited(call, reason, seconds))

    def before_request(self, out: Telemetry, model: str | None, sent: SentRequest | None) -> None:
        """Wait before a model request; ``sent`` is None while only the layers below know the request."""
        wait = self._of_request(model, sent)
        with _given_back(sent):
            wait.block(lambda reason, seconds: self._request_waited(out, sent, reason, seconds))

    async def abefore_request(self, out: Telemetry, model: str | None, sent: SentRequest | None) -> None:
        """Do the same as `before_request` without blocking the event loop."""
        wait = self._of_request(model, sent)
        with _given_back(sent):
            await wait.suspend(lambda reason, seconds: self._request_waited(out, sent, reason, seconds))

    def sent(self, sent: SentRequest) -> None:
        """Count a request that is on its way without tokens of its own."""
        sent.reservation = Reservation(self, sent.model, 0)

    def apart(self, model: str | None, tokens: int) -> Apart:
        """Take the tokens of a request that a remedy sends itself."""
        return Apart(self, model, tokens)

    def _of_call(self, call: ToolInvocation, enclosing: ToolInvocation | None) -> _Wait:
        last = None if call.state is None else (call.state.last_requests or {}).get(enclosing is not None)
        tokens, model = (0, None) if last is None else (last.tokens, last.model)
        return _Wait(self, model, self.budget.ready_at(tokens))

    def _of_request(self, model: str | None, sent: SentRequest | None) -> _Wait:
        if sent is None:
            return _Wait(self, model, self.budget.ready_at(0))
        tokens = model_tokens.estimated(sent)
        sent.reservation = Reservation(self, sent.model, tokens)
        return _Wait(self, sent.model, self.budget.take(tokens))

    def _call_waited(self, call: ToolInvocation, reason: str, seconds: float) -> None:
        self._log(reason)
        call.out.metrics.record(semconv.BACKPRESSURE_WAIT, seconds, reason)
        call.waited = (reason, seconds)
        call.started = time.perf_counter()  # the call begins now
        call.start_ns = time.time_ns() if call.start_ns else 0

    def _request_waited(self, out: Telemetry, sent: SentRequest | None, reason: str, seconds: float) -> None:
        self._log(reason)
        out.metrics.record(semconv.BACKPRESSURE_WAIT, seconds, reason)
        if sent is not None and sent.span.is_recording():
            add_event(sent.span, semconv.WAIT_EVENT, {semconv.REASON: reason, semconv.WAIT_SECONDS: seconds})

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


@contextmanager
def _given_back(sent: SentRequest | None) -> Iterator[None]:
    """Give back the tokens of a request that is not sent, because its wait was cancelled or interrupted."""
    has_waited = False
    try:
        yield
        has_waited = True
    finally:
        if not has_waited and sent is not None and isinstance(sent.reservation, Reservation):
            sent.reservation.abandoned()


#: Too many requests, unavailable, and Anthropic's overloaded; the last two only with a time.
_TOO_MANY: Final = 429
_WITH_TIME: Final = (503, 529)
_THROTTLED: Final = ("ThrottlingException", "TooManyRequestsException", "Throttling", "ServiceQuotaExceededException")
#: A longer pause is a quota of hours: the request is sent, and its refusal shows what is wrong.
LONGEST_SECONDS: Final = 300.0
_LONGEST_GUESS_SECONDS: Final = 60.0
_MOST_MODELS: Final = 256

# Rate limits of providers: refusals for the rate in the exceptions of SDKs, and the pauses that they ask for.


class Refusal(NamedTuple):
    """A refusal for the rate; ``seconds`` is the time that the provider gives, None without one."""

    seconds: float | None


def refusal(error: Any) -> Refusal | None:
    """Return the refusal for the rate that an exception or a response of an SDK stands for; None for any other.

    OpenAI, Anthropic, Mistral, Ollama and LiteLLM have a status and the response's headers, Google has them and the
    time in the body, botocore has both in a dictionary.
    """
    status = _status(error)
    seconds = next((found for found in _times(error) if found is not None), None)
    body = _parsed(error)
    is_throttled = text(fields(body.get("Error")).get("Code")) in _THROTTLED
    if status == _TOO_MANY or is_throttled or (status in _WITH_TIME and seconds is not None):
        return Refusal(seconds)
    return None


def _parsed(error: Any) -> Mapping[str, Any]:
    """Return botocore's response: in an exception, or itself."""
    return fields(error) if is_dict(error) else fields(getattr(error, "response", None))


def _status(error: Any) -> int | None:
    metadata = fields(_parsed(error).get("ResponseMetadata"))
    found: tuple[Any, ...] = (
        getattr(error, "status_code", None),
        metadata.get("HTTPStatusCode"),
        getattr(error, "code", None),
    )
    return next((int(status) for status in found if issubclass(type(status), int)), None)


def _times(error: Any) -> Iterator[float | None]:
    """Yield the seconds in the headers of a refusal, and in its body."""
    response = getattr(error, "response", None)
    metadata = fields(_parsed(error).get("ResponseMetadata"))
    for headers in (
        getattr(response, "headers", None),
        metadata.get("HTTPHeaders"),
        getattr(getattr(error, "raw_response", None), "headers", None),
        getattr(error, "headers", None),
    ):
        if callable(getattr(headers, "get", None)):
            yield _milliseconds(_header(headers, "retry-after-ms"))
            yield _seconds(_header(headers, "retry-after"))
    for holder in (getattr(error, "details", None), getattr(error, "body", None)):
        status = fields(fields(holder).get("error")) or fields(holder)
        for detail in dictionaries(status.get("details")):
            yield _seconds((text(detail.get("retryDelay")) or "").removesuffix("s"))


def _header(headers: Any, name: str) -> str | None:
    return text(headers.get(name)) or text(headers.get(name.title()))


def _milliseconds(value: str | None) -> float | None:
    seconds = _float(value)
    return None if seconds is None else seconds / 1000


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
    try:
        seconds = float(value or "")
    except errors.ours(ValueError):
        return None
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
        """Begin a pause of a model and return its seconds, 0 for none.

        Without a time from the provider it is a second, and twice as long after each further refusal in a row.
        """
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
