"""Context managers around functions that send a model request; of all layers that see a request, one counts it."""

from __future__ import annotations

import time
import weakref
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from opentelemetry.trace import INVALID_SPAN

from agent_otel import semconv
from agent_otel._internal import errors, failures
from agent_otel._internal.daemon_pool import run_now
from agent_otel.core import execution_context
from agent_otel.core.cost import model_tokens
from agent_otel.core.cost.usage import answered_by, finish_reasons
from agent_otel.core.execution_context import id_or_none, text_or_none
from agent_otel.core.remedy_hooks import backpressure, cannot_rewrite, dialogues, sending
from agent_otel.core.thread import refusals
from agent_otel.core.thread.answers import is_answer
from agent_otel.core.thread.delivery import run_elsewhere, take
from agent_otel.core.thread.request_prefix import Messages, has_doubled_ids, plain_part
from agent_otel.core.thread.threads import open_calls, opened, parent_of
from agent_otel.core.types import AskedCall, ModelRequest
from agent_otel.telemetry import foreign_spans, spans
from agent_otel.telemetry.setup import telemetry

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence

    from typing_extensions import Self

    from agent_otel.core.cost.model_tokens import SentRequest
    from agent_otel.core.cost.usage import Usage
    from agent_otel.core.types import ModelReader, RequestPart
    from agent_otel.telemetry.setup import Telemetry


class _Chat:
    """A model request until its response has ended, for its duration and its span."""

    reasons: tuple[str, ...] = ()
    usage: Usage | None = None
    _attributes: dict[str, Any] | None = None

    def __init__(  # noqa: PLR0913 - the facts of a request
        self, out: Telemetry, request: ModelRequest, sent: SentRequest, provider: str, started: float, *, is_shown: bool
    ) -> None:
        self._out, self._provider, self._started = out, provider, started
        self._run, self._parent = execution_context.current_run(), sent.span
        if is_shown:
            self._start_ns = time.time_ns() - int((time.perf_counter() - started) * 1e9)
            known = {
                semconv.OPERATION_NAME: semconv.CHAT,
                semconv.PROVIDER_NAME: provider,
                semconv.REQUEST_MODEL: request.model,
                semconv.AGENT_NAME: execution_context.agent_of(request.agent),
            }
            self._attributes = {**out.label_attributes, **{name: value for name, value in known.items() if value}}
            execution_context.describe(self._attributes, "", request.execution, 0)

    def end(self, sent: SentRequest, error: Any) -> None:
        """Record the end of the response, or the error."""
        error_type = None
        if error is not None:
            error_type = failures.error_type(error) if isinstance(error, BaseException) else semconv.OTHER
        seconds, attributes, exemplar = time.perf_counter() - self._started, self._attributes, None
        if attributes is not None:
            read = self.usage
            more = {
                semconv.RESPONSE_MODEL: sent.answered_by,
                semconv.FINISH_REASONS: self.reasons,
                semconv.INPUT_TOKENS: read and read.input,
                semconv.OUTPUT_TOKENS: read and read.output,
                semconv.ERROR_TYPE: error_type,
            }
            attributes.update({name: value for name, value in more.items() if value})
            parent = parent_of(self._run, self._parent)
            span = spans.open_chat_span(self._out.tracer, attributes, self._start_ns, parent, error_type)
            exemplar = spans.exemplar_of(span)
            span.end()
            if parent is INVALID_SPAN:
                opened(self._run, span)
        self._out.metrics.model(sent.model).took(self._provider, error_type, seconds, exemplar)


class ModelVisit:
    """A wrapped function that sends a request, as a context manager around the user's call or a stream's step.

    A provider's SDK is the last layer before the wire, so its request is recorded at once. A layer above it records
    its request when the call, or a stream's first step, ends. It records nothing if an SDK reported a request inside
    it: that is the same request, and gets the agent, the execution and the doubled message ids of the layer above.
    """

    #: True when a layer nearer to the provider has recorded the request.
    seen = False
    #: True when a layer nearer to the provider, or this one, has recorded the tokens of the response.
    usage_is_told = False
    #: The request that was sent last; shared with the layers above.
    sent: SentRequest | None = None
    _request: ModelRequest | None = None
    #: The request that was recorded, for the calls that its response shows.
    _taken: ModelRequest | None = None
    #: True from a stream's first item on: the request is sent, and no function inside a step has to know of it.
    _flows = False
    #: The reader's function for the items that have nothing to read, once the stream flows and only its tokens are
    #: waited for; most items are a piece of the answer's text.
    _passes: Callable[[Any], bool] | None = None
    #: The tokens of the response as far as it has come.
    _usage: Usage | None = None
    #: The calls that the response asks for, by place; None before it shows these or an answer.
    _asks: dict[object, list[Any]] | None = None
    _backpressure: Any = None

    def __init__(
        self, reader: ModelReader, request: ModelRequest, package: str = "", *, is_traced: bool = False
    ) -> None:
        self._reader = reader
        #: The package of the SDK, and whether it opens a span for the request itself.
        self._package = package.removeprefix("langchain_")
        self._is_traced = is_traced
        self._started = time.perf_counter()
        #: Answers of the response that have not ended yet.
        self._answers = request.answers
        self._myself: weakref.ref[Any] = weakref.ref(self)
        self._around, self._sending = _above.get(), sending.get()
        above = self._above = _running()
        if above is not None:
            above.seen = True
            request = above.lend(request)
        self._out = telemetry(request.agent)
        if reader.outermost:
            self._request = request._replace(parts=_unread(request.parts))
        else:
            self._take(request)

    @errors.guarded("model_request.wait")
    def take_turn(self) -> None:
        """Wait for the tokens of the request, before the block; the layer nearest to the provider takes them."""
        self._backpressure = acting = backpressure()
        if acting is not None:
            run_now(acting.before_request(self._out, self._model(), self.sent, blocks=True))

    async def atake_turn(self) -> None:
        """Do the same as `take_turn` without blocking the event loop."""
        with errors.reported("model_request.wait"):
            self._backpressure = acting = backpressure()
            if acting is not None:
                await acting.before_request(self._out, self._model(), self.sent, blocks=False)

    @property
    def reservation(self) -> Any:
        """The tokens that are set aside for the request, where requests wait."""
        return None if self.sent is None else self.sent.reservation

    def _model(self) -> str | None:
        return None if self._request is None else self._request.model

    def step(self) -> Self:
        """Return the context manager around a stream's next step."""
        return self

    def __enter__(self) -> Self:
        if self._request is not None:
            self._around = _above.get()
            _above.set(self._myself)
        if self._backpressure is not None or (self._request is None and not self._flows):
            self._sending = sending.get()
            sending.set(self._myself)
        return self

    def advance(self, step: Callable[[], Any]) -> Any:
        """Take a stream's next step inside this visit, and read its item."""
        with errors.finishing(self.close), self:
            item = step()
            self.item(item, may_pass=True)
            return item

    async def aadvance(self, step: Callable[[], Awaitable[Any]]) -> Any:
        """Do the same as `advance` in an async stream."""
        with errors.finishing(self.close), self:
            item = await step()
            self.item(item, may_pass=True)
            return item

    def lend(self, request: ModelRequest) -> ModelRequest:
        """Return a request from inside this visit, with this layer's execution, agent and doubled message ids added."""
        mine = self._request
        if mine is None:
            return request
        return request._replace(
            execution=request.execution or mine.execution,
            agent=request.agent or mine.agent,
            doubled=request.doubled or mine.doubled or has_doubled_ids(mine.parts),
            model=request.model or mine.model,
        )

    def announce(self, request: ModelRequest) -> None:
        """Keep the request that the layer is about to send; record the one before it, which was a failed attempt."""
        announced = self.lend(request)._replace(parts=_unread(request.parts))
        self._settle()
        self._started = time.perf_counter()
        self._request, self.seen, self._flows, self._passes = announced, False, False, None

    @errors.guarded("model_request.response")
    def returned(self, value: Any) -> None:
        """Read a whole response: its tokens, and whether the model asks for a tool call."""
        self.item(value)
        has_answer = self._asks is not None
        self._answered()
        self._tell_usage()
        if has_answer:
            self._end()

    def watched(self, value: Any) -> Any:
        """Read a response and return it; a stream goes on with this visit around its steps."""
        self.returned(value)
        with errors.reported("model_request.response"):
            sent = self.sent
            if (
                sent is not None
                and (sent.pending is not None or not self.usage_is_told)
                and self._reader.watch is not None
            ):
                return self._reader.watch(value, self)
        return value

    def item(self, value: Any, *, may_pass: bool = False) -> None:
        """Read the tokens of a response, or of an item of a stream, and whether the model asks for a tool call."""
        try:
            if may_pass and self._passes is not None and self._passes(value):
                return
            self._read(value)
            self._flows = self._request is None and self._backpressure is None
            reader, is_of_tokens = self._reader, self._usage is None or self._reader.opens_with_usage
            self._passes = (
                reader.passes
                if self._flows and is_of_tokens and (self.sent is None or self.sent.pending is None)
                else None
            )
        except errors.ours(Exception):
            errors.report_error("model_request.response")

    def _read(self, value: Any) -> None:
        self._settle()
        reader = self._reader
        if reader.usage is not None and not self.usage_is_told:
            self._read_usage(value, reader.usage(value))
        if self._taken is not None and reader.hosted is not None:
            for call, result in reader.hosted(value):
                run_elsewhere(self._out, self._taken, plain_part(call), plain_part(result))
        if self.sent is not None and reader.asks is not None and (asked := reader.asks(value)) is not None:
            self._asked(asked)
        if self.sent is not None and self.sent.chat is not None:
            self.sent.chat.reasons = finish_reasons(value) or self.sent.chat.reasons
        is_read = self._usage is not None or self._asks is not None
        if is_read and reader.ends is not None and reader.ends(value):
            self._answers -= 1
            if self._answers <= 0:
                self._tell_usage()
                self._answered()

    def _read_usage(self, value: Any, usage: Usage | None) -> None:
        usage = None if usage is None else usage.plausible()
        if usage is not None:
            self._usage = usage if self._usage is None else self._usage.joined(usage, adds=self._reader.adds_usage)
            if self.sent is not None and self.sent.answered_by is None:
                self.sent.answered_by = answered_by(value)
        elif self.sent is not None and (error := refusals.reported(value)) is not None:
            self.refused(error)

    def _asked(self, calls: Sequence[AskedCall]) -> None:
        """Keep calls, or further pieces of them."""
        known = self._asks = {} if self._asks is None else self._asks
        for name, arguments, call_id, place in calls:
            call = known.setdefault(len(known) if place is None else place, [name, call_id])
            call[0], call[1] = call[0] or name, call[1] or call_id
            call[2 if place == call_id else len(call) :] = [arguments]  # an event and the end have the same whole call
        if all(call.place is None or call.place == call.id for call in calls):  # a program may run them at once
            self._announce(known)

    def _announce(self, asks: Mapping[object, list[Any]]) -> None:
        """Keep the new calls of a response; one of the layers that read it does."""
        sent = self.sent
        if not asks or sent is None or sent.known is None or sent.teller not in {None, id(self)}:
            return
        new, sent.told, sent.teller = [*asks.values()][sent.told :], len(asks), id(self)
        open_calls.ask(self._out, [call for each in new if (call := _call_of(*each)) is not None], sent.known)

    def _answered(self) -> None:
        """Conclude from the whole response; without anything read of it, the layer above may know more."""
        asks, pending = self._asks, None if self.sent is None else self.sent.pending
        if asks is None:
            return
        self._announce(asks)
        if self.sent is not None and pending is not None:
            self.sent.pending = None
            pending.responded(asks=bool(asks) and not all(is_answer(name) for name, *_ in asks.values()))

    def _tell_usage(self) -> None:
        """Record the tokens of the response, unless a layer nearer to the provider has recorded them."""
        usage, self._usage = self._usage, None
        if usage is None or self.sent is None or self.usage_is_told:
            return
        if self.sent.chat is not None:
            self.sent.chat.usage = usage
        model_tokens.responded(self._out, self.sent, usage)
        self._is_told()

    def _ended(self) -> None:
        """Record the tokens at the end of a stream, estimated where it has shown none."""
        self._tell_usage()
        if self.sent is not None and not self.usage_is_told:
            model_tokens.unreported(self._out, self.sent)
            self._is_told()
        self._end()

    def _end(self, error: Any = None) -> None:
        """Record the duration of the request and its span, once."""
        if self.sent is not None and self.sent.chat is not None:
            chat, self.sent.chat = self.sent.chat, None
            chat.end(self.sent, error)

    def _is_told(self) -> None:
        """Keep this layer and those above it from recording the tokens again."""
        self._end()
        for visit in self._layers():
            visit.usage_is_told = True

    def _layers(self) -> Iterator[ModelVisit]:
        """Yield this layer and those above it."""
        visit: ModelVisit | None = self
        while visit is not None:
            yield visit
            visit = visit._above  # noqa: SLF001 - of this class

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        try:
            if kind is not None and issubclass(kind, StopIteration | StopAsyncIteration):
                self._answered()
                self._ended()
            self.close()
            if self._request is not None:
                self._settle()
            if isinstance(error, Exception):
                self._failed(error)
            elif error is not None:  # cancelled
                self._end(error)
        except errors.ours(Exception):
            errors.report_error("model_request")

    def close(self) -> None:
        """Leave the context; safe to repeat, and without effect in another context than the step began in."""
        if _above.get() is self._myself:
            _above.set(self._around)
        if sending.get() is self._myself:
            sending.set(self._sending)

    def _failed(self, error: Any) -> None:
        self._end(error)
        if self.sent is not None and not self.usage_is_told:
            model_tokens.failed(self._out, self.sent, error)

    @errors.guarded("model_request.response")
    def refused(self, error: Any) -> None:
        """Record an error that a response reports, or an item of a stream. The client raises nothing."""
        self._failed(error)
        self._is_told()

    @errors.guarded("model_request.response")
    def abandon(self) -> None:
        """Record the tokens of a stream that its consumer abandons, as far as it has come."""
        self._answered()
        if self.sent is None or not self.sent.has_failed:
            self._ended()

    def _settle(self) -> None:
        request, self._request = self._request, None
        if request is not None and not self.seen and request.parts:
            self._take(request)
            reader = self._reader
            has_summaries = reader.exchange is not None and reader.exchange.apart is not None
            if reader.exchange is None and (acting := dialogues()) is not None:
                acting.left_out(reader.request.__module__, request.parts)
            cannot_rewrite(
                reader.request.__module__,
                has_views=reader.rewrite is not None,
                has_summaries=has_summaries,
                ends_runs=request.ends_at_limit or reader.answer_only is not None,
            )

    def _take(self, request: ModelRequest) -> None:
        """Record a request; the layers above may read its response as well."""
        sent = take(self._out, request)
        sent.chat = self._chat(request, sent)
        if self._reader.hosted is not None:
            self._taken = request._replace(parts=())
        if self._backpressure is not None:
            self._backpressure.sent(sent)
        self._asks = None
        for visit in self._layers():
            visit.sent, visit.usage_is_told, visit._answers = sent, False, request.answers  # noqa: SLF001 - of this class
            visit._passes = None  # noqa: SLF001 - of this class

    def _chat(self, request: ModelRequest, sent: SentRequest) -> _Chat:
        """Begin the duration of a request, and its span where no other instrumentation has one."""
        adapter, mode = self._reader.request.__module__.rpartition(".")[2], self._out.settings.spans
        provider = semconv.PROVIDERS.get(self._package) or semconv.PROVIDERS.get(adapter, adapter)
        is_shown = self._out.tracer is not None and mode != "enrich"
        if is_shown and mode != "own":
            has_other = any(map(foreign_spans.has_instrumentor, (self._package, adapter)))
            is_shown = not (self._is_traced or has_other or foreign_spans.is_chat_span(sent.span))
        return _Chat(self._out, request, sent, provider, self._started, is_shown=is_shown)


def announced(request: ModelRequest) -> None:
    """Hand a request that a layer is about to send to the running visit; record it at once where none runs."""
    above = _running()
    if above is not None:
        above.announce(request)
    else:
        take(telemetry(request.agent), request)


def is_read() -> bool:
    """Return true where a layer further out has recorded the request that is about to be sent."""
    above, reference = _running(), sending.get()
    if above is not None and above.seen:
        return True
    sender = None if reference is None else reference()
    return sender is not None and sender is not above


def answered() -> None:
    """Discard the request of the running visit: its layer answers from a cache and sends none."""
    above = _running()
    if above is not None:
        above.seen = above.usage_is_told = True


def around() -> ModelRequest:
    """Return the agent and the execution that the layers above the running code know."""
    above = _running()
    return ModelRequest(()) if above is None else above.lend(ModelRequest(()))


def _call_of(name: str, call_id: object, *pieces: object) -> AskedCall | None:
    """Return a call of a response from its pieces; None for one that has no name."""
    name, texts = text_or_none(name) or "", [each for each in pieces if type(each) is str]
    arguments: object = "".join(texts) if texts else next((each for each in pieces if each is not None), None)
    call_id = id_or_none(call_id) or None
    return AskedCall(name, arguments, None if call_id == name else call_id) if name else None


def _unread(parts: Iterable[RequestPart]) -> Iterable[RequestPart]:
    """Return parts that stay as they are while the call goes on."""
    return parts if type(parts) is Messages else list(parts)


def _running() -> ModelVisit | None:
    """Return the visit that encloses this code, unless an interrupt ended it without ``__exit__``."""
    above = _above.get()
    return above() if above is not None else None


_above: ContextVar[weakref.ref[ModelVisit] | None] = ContextVar("agent_otel_model_request", default=None)
