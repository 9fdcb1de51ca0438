"""The wrapping, written once: functions, generators, runs and streams, sync and async, with and without remedies.

The user's call is between a shielded "before" and a shielded "after"; same result, same exception object. A plain
function or method runs its wrapper by `as_function` or `as_method`, anything else by ``wrapt.FunctionWrapper``.
"""

from __future__ import annotations

import functools
import inspect
import pkgutil
import sys
import weakref
from types import AsyncGeneratorType, CoroutineType, FunctionType, GeneratorType, MethodType
from typing import TYPE_CHECKING, Any, TypeVar

import wrapt

from agent_otel import settings
from agent_otel._internal import collected, errors
from agent_otel._internal.daemon_pool import run_now
from agent_otel._internal.errors import finishing
from agent_otel._internal.object_kinds import is_named
from agent_otel.core import handler, run_visit
from agent_otel.core.remedy_hooks import askipped, backpressure, skipped, skips_calls, summaries
from agent_otel.core.thread.model_request import ModelVisit
from agent_otel.core.tool_visit import Unrecorded, Visit
from agent_otel.core.types import (
    LEFT_ALONE,
    Exchange,
    Invocation,
    ModelReader,
    ResponseVisit,
    RunReader,
    StepReader,
    ToolReader,
)
from agent_otel.integrations import hooks
from agent_otel.integrations.hooks import Door, Hook, Passing

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Generator

    from typing_extensions import Self

    from agent_otel.core.remedy_hooks import Response
    from agent_otel.core.run_visit import RunVisit
    from agent_otel.integrations.hooks import Wrapper

    Carry = Callable[[Any, Any], Any]
    Reader = ToolReader | ModelReader | StepReader | Door | RunReader
    Measured = Reader | Hook | Passing

_C = TypeVar("_C")
#: The visits that end after a coroutine that a sync function returns.
_ENTERED_AGAIN = (Visit, Unrecorded)


# --- replacements of functions ----------------------------------------------------------------------------------------

# Programs copy, pickle, inspect and subclass the attributes of a class. A plain function does all of that as its
# original does. It cannot replace an original of another kind (a generator function calls its body at the first step):
# there a proxy is used, which copies and pickles as the original does.


class Proxy(wrapt.ObjectProxy):  # type: ignore[type-arg]
    """A function that runs ``call`` instead, with the same arguments, and otherwise looks like the original."""

    def __init__(self, function: Any, call: Callable[..., Any], place: str = "") -> None:
        super().__init__(function)
        self._self_call = call
        self._self_place = place

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: D102 - the function's own
        return self._self_call(*args, **kwargs)

    def __get__(self, instance: Any, _: Any = None) -> Any:
        """Bind as functions do, into a method that copies and pickles."""
        return self if instance is None else MethodType(self, instance)

    def __copy__(self) -> Proxy:
        return self

    def __deepcopy__(self, _: dict[int, Any]) -> Proxy:
        return self

    def __reduce_ex__(self, _: Any) -> str | tuple[Any, ...]:
        """Pickle as functions do: by name, or by the place of a function that another module has imported."""
        if self._self_place:
            return pkgutil.resolve_name, (self._self_place,)
        name: str = self.__wrapped__.__qualname__
        return name


def stand_in(original: Any, wrapper: Wrapper, parent: Any, attribute: str) -> Any:
    """Return the replacement of a function in its module, or of a method in its class."""
    kind: type = type(original)  # not isinstance(): the proxies of others answer it for their originals
    if kind is FunctionType and isinstance(parent, type):
        return _made(original, wrapper)
    if kind is FunctionType:
        function = _made(original, wrapper, binds=False)
        module = getattr(parent, "__name__", original.__module__)
        # A plain function is pickled by the name of its module, which has the original.
        is_alias = original.__module__ != module and type(function) is FunctionType
        return Proxy(original, function, f"{module}:{attribute}") if is_alias else function
    if kind in (staticmethod, classmethod) and type(original.__func__) is FunctionType:
        return kind(_made(original.__func__, wrapper, binds=kind is classmethod))
    if kind is MethodType and type(original.__func__) is FunctionType:  # of an object
        return MethodType(_made(original.__func__, wrapper), original.__self__)
    return wrapt.FunctionWrapper(original, wrapper)  # knows how anything is bound


def _made(original: FunctionType, wrapper: Wrapper, *, binds: bool = True) -> Any:
    """Return a plain function that runs a wrapper, or a proxy if a plain function is not of the original's kind.

    One that ``binds`` is a method, which calls the original one bound; a call without an instance is not watched.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        if not binds:
            return wrapper(original, None, args, kwargs)
        if not args or args[0] is None:
            return original(*args, **kwargs)
        instance = args[0]
        return wrapper(MethodType(original, instance), instance, args[1:], kwargs)

    async def call_async(*args: Any, **kwargs: Any) -> Any:
        return await call(*args, **kwargs)

    is_async = inspect.iscoroutinefunction(original) and inspect.iscoroutinefunction(wrapper)
    made = functools.wraps(original)(call_async if is_async else call)
    kinds = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
    return made if all(is_kind(made) or not is_kind(original) for is_kind in kinds) else Proxy(original, made)


def wrapper_for(reader: Measured, wrapped: Callable[..., Any]) -> Wrapper:
    """Choose the wrapper that fits the kind of function, once, when it is wrapped."""
    is_async = inspect.iscoroutinefunction(wrapped)
    if isinstance(reader, Hook):
        return hooks.hooked(reader, is_async=is_async)
    if isinstance(reader, Passing):
        return hooks.passing(reader, is_async=is_async)
    wrapper = _measuring(reader, wrapped)
    if isinstance(reader, ModelReader) and reader.exchange is not None:
        if handler.dialogues() is not None:
            wrapper = answering(wrapper, reader, reader.exchange, is_async=is_async)
        if summaries() is not None:
            wrapper = prepared(wrapper, functools.partial(summarise, reader, reader.exchange), is_async=is_async)
    if isinstance(reader, ModelReader) and reader.rewrite is not None and handler.model_boundary() is not None:
        wrapper = prepared(wrapper, functools.partial(_replace, reader), is_async=is_async)
    return wrapper


def wrap_attribute(owner: Any, name: str, reader: Measured, function: Callable[..., Any] | None = None) -> None:
    """Wrap a callable attribute of an object, such as a function of a gRPC stub; ``function`` takes its place."""
    setattr(owner, name, around(getattr(owner, name) if function is None else function, reader))


def around(function: Callable[..., Any], reader: Measured) -> Any:
    """Return a proxy of a callable that a program passes to a framework, with the wrapper around its calls."""
    return wrapt.FunctionWrapper(function, wrapper_for(reader, function))


def _measuring(reader: Reader, wrapped: Callable[..., Any]) -> Wrapper:
    is_async = inspect.iscoroutinefunction(wrapped) or (isinstance(reader, ToolReader) and reader.is_awaited)
    is_generator = inspect.isgeneratorfunction(wrapped) or inspect.isasyncgenfunction(wrapped)
    if isinstance(reader, ToolReader | ModelReader | RunReader) and is_generator:
        return lambda wrapped, *call: _measured(wrapped, reader, Invocation(*call))
    queues = isinstance(reader, Door | ToolReader) and settings.current().dispatch_waits
    carry: Carry | None = None
    if isinstance(reader, ModelReader):
        queues, carry = backpressure() is not None, ModelVisit.watched if reader.watch is not None else None
    elif isinstance(reader, RunReader):
        carry = _carried_on
    is_replaceable = isinstance(reader, ToolReader) and (
        reader.replace is not None or bool(settings.current().tool_policy)
    )
    skips = skips_calls()
    remedies = (isinstance(reader, Door) or is_replaceable) and (skips or handler.result_remedies() is not None)
    around = _around_async if is_async else _around
    return around(reader, _entry_of(reader), carry=carry, queues=queues, skips=remedies and skips, remedies=remedies)


def _entry_of(reader: Reader) -> Callable[..., Any]:
    """Return the function that begins to measure a call: of a tool, of a model, of an agent, or of a step."""
    if isinstance(reader, StepReader):
        from agent_otel.core import step_handler  # noqa: PLC0415 - few programs need the modules that it loads

        return step_handler.enter_step
    if isinstance(reader, Door):
        return lambda door, invocation: door.enter(invocation)
    if isinstance(reader, ToolReader):
        return handler.enter_tool
    return handler.enter_model if isinstance(reader, ModelReader) else run_visit.enter_run


def _around(  # noqa: PLR0913 - the differences between wrapped functions
    reader: Any, enter: Callable[..., Any], *, carry: Carry | None, queues: bool, skips: bool, remedies: bool
) -> Wrapper:
    """Wrap a function. If its value may be a stream, ``carry`` lets the visit continue there.

    A tool call or a model request that ``queues`` waits for its turn. With ``skips`` a control may answer a tool call
    in place of the function, with ``remedies`` the returned value may be a replacement.
    """

    def wrapper(wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        invocation = Invocation(instance, args, kwargs)
        visit = enter(reader, invocation)
        if visit is None:
            return wrapped(*invocation.args, **invocation.kwargs)
        if queues:
            visit.take_turn()
        with finishing(visit.close), visit:
            if skips and (instead := visit.skipped(invocation)) is not LEFT_ALONE:
                return instead
            try:
                value = wrapped(*invocation.args, **invocation.kwargs)
            except Exception as error:
                if remedies:
                    visit.raised(error, invocation)
                raise
            if carry is not None:
                return carry(visit, value)
            if type(value) is CoroutineType and isinstance(visit, _ENTERED_AGAIN):
                visit.goes_on = True
                return closing(_awaited(visit, value, invocation), value)
            if remedies:
                return visit.remedied(value, invocation)
            visit.returned(value)
            return value

    return wrapper


async def _awaited(visit: Visit | Unrecorded, value: Awaitable[Any], invocation: Invocation) -> Any:
    """Continue a visit in a coroutine: a program has put a sync function around the framework's async one."""
    with finishing(visit.close), visit:
        return await _remedied(visit, value, invocation)


async def _remedied(visit: Any, value: Awaitable[Any], invocation: Invocation) -> Any:
    try:
        returned = await value
    except Exception as error:
        await visit.araised(error, invocation)
        raise
    return await visit.aremedied(returned, invocation)


def _around_async(  # noqa: PLR0913 - the signature of `_around`
    reader: Any, enter: Callable[..., Any], *, carry: Carry | None, queues: bool, skips: bool, remedies: bool
) -> Wrapper:
    async def wrapper(wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        invocation = Invocation(instance, args, kwargs)
        visit = enter(reader, invocation)
        if visit is None:
            return await wrapped(*invocation.args, **invocation.kwargs)
        if queues:
            await visit.atake_turn()
        with finishing(visit.close), visit:
            if skips and (instead := await visit.askipped(invocation)) is not LEFT_ALONE:
                return instead
            if remedies:
                return await _remedied(visit, wrapped(*invocation.args, **invocation.kwargs), invocation)
            value = await wrapped(*invocation.args, **invocation.kwargs)
            if carry is not None:
                return carry(visit, value)
            visit.returned(value)
            return value

    return wrapper


# --- runs of agents ---------------------------------------------------------------------------------------------------


def _carried_on(visit: RunVisit, value: Any) -> Any:
    """Return the value of a function. If the run continues in the value, put the run around it."""
    if visit.watches(value):
        return value
    kind = type(value)
    if kind is GeneratorType or kind is AsyncGeneratorType:
        visit.goes_on = True
        return watched(value, visit)
    if kind is CoroutineType:
        visit.goes_on = True
        return closing(_run_awaited(value, visit), value)
    if any("__aenter__" in vars(owner) for owner in kind.__mro__):  # `dir` sorts all names of the class
        visit.goes_on = True
        return _Context(value, visit)
    visit.returned(value)
    return value


async def _run_awaited(value: Awaitable[Any], visit: RunVisit) -> Any:
    visit.goes_on = False
    with finishing(visit.close), visit:
        return await value


class _Context(wrapt.ObjectProxy):  # type: ignore[type-arg]
    """An async context manager. An agent runs in its block."""

    def __init__(self, context: Any, visit: RunVisit) -> None:
        super().__init__(context)
        self._self_visit: Any = visit

    async def __aenter__(self) -> Any:
        visit: RunVisit = self._self_visit
        visit.goes_on = False
        visit.__enter__()
        is_entered = False
        try:
            self._self_run = await self.__wrapped__.__aenter__()
            is_entered = True
            return self._self_run
        finally:
            if not is_entered:
                visit.__exit__(*sys.exc_info())

    async def __aexit__(self, *error: object) -> Any:
        try:
            return await self.__wrapped__.__aexit__(*error)
        finally:
            self._self_visit.item(self._self_run)
            self._self_visit.__exit__(*error)


# --- generators -------------------------------------------------------------------------------------------------------


# Each item is measured as it passes; nothing is collected or consumed. No context variable stays set across a
# ``yield``: the record and the span are made current around each step, which is when the tool's own code runs.


def closing(coroutine: _C, value: object) -> _C:
    """Return a coroutine that awaits ``value``; a coroutine that is awaited is closed with it.

    A task that is cancelled before its first step closes its coroutine alone, and Python warns of one in it that was
    never awaited.
    """
    if type(value) is CoroutineType:
        weakref.finalize(coroutine, value.close).atexit = False
    return coroutine


class _Steps:
    """The record of one stream, opened at its first step unless it is open already.

    With a ``call``, the policy and the limits decide before the first step; with a ``replace`` of its reader, which
    only an async generator of events has here, a remedy may put another item in the place of each.
    """

    def __init__(
        self, begin: Callable[[], Any] | None, visit: Any = None, *, queues: bool = False, call: _Call | None = None
    ) -> None:
        self._begin = begin
        self.visit: Any = visit
        self._queues = queues
        self._call = call
        #: False until the controls let the call run: another step may come before they have, or after a denial.
        self._is_open = call is None

    def begin(self) -> bool:
        """Open the record; return true at the first step."""
        if self._begin is None:
            return False
        begin, self._begin = self._begin, None
        self.visit = begin()
        return True

    def run(self, advance: Callable[..., Any], *args: Any) -> Any:
        is_first = self.begin()
        visit = self.visit
        if visit is None:
            return advance(*args)
        if is_first and self._queues:
            visit.take_turn()
        if type(visit) is ModelVisit:
            return visit.advance(functools.partial(advance, *args) if args else advance)
        step = visit.step()
        with finishing(step.close), step:
            if is_first and self._call is not None:
                skipped(visit.record, self._call.reader, self._call.invocation)
                advance = self._call.renewed(advance)
                self._is_open = True
            if not self._is_open:
                raise StopIteration
            item = advance(*args)
            visit.item(item)
            return item

    async def run_async(self, advance: Callable[..., Awaitable[Any]], *args: Any) -> Any:
        is_first = self.begin()
        visit = self.visit
        if visit is None:
            return await advance(*args)
        if is_first and self._queues:
            await visit.atake_turn()
        if type(visit) is ModelVisit:
            return await visit.aadvance(functools.partial(advance, *args) if args else advance)
        step = visit.step()
        with finishing(step.close), step:
            if is_first and self._call is not None:
                instead = await askipped(visit.record, self._call.reader, self._call.invocation)
                if instead is not LEFT_ALONE:  # the only event of a call that is skipped
                    return instead
                advance = self._call.renewed(advance)
                self._is_open = True
            if not self._is_open:
                raise StopAsyncIteration
            item = await advance(*args)
            if self._call is not None and self._call.reader.replace is not None:
                return await visit.aremedied(item, self._call.invocation)
            visit.item(item)
            return item

    def abandon(self) -> None:
        if self.visit is not None:
            self.visit.abandon()


class _Call:
    """A call of a generator function, which is made again when a policy has injected arguments into it."""

    def __init__(self, wrapped: Callable[..., Any], invocation: Invocation, reader: ToolReader) -> None:
        self._wrapped = wrapped
        self.reader = reader
        self._given = (invocation.args, invocation.kwargs)
        self.invocation = invocation
        self.proxy: Callable[[], Any] = lambda: None

    def renewed(self, advance: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function that takes the first step: of a new generator when the arguments are others."""
        args, kwargs = self.invocation.args, self.invocation.kwargs
        if args is self._given[0] and kwargs is self._given[1]:
            return advance
        generator = self._wrapped(*args, **kwargs)
        proxy = self.proxy()
        if proxy is not None:
            proxy._self_put(generator)  # noqa: SLF001 - wrapt's prefix for attributes of the proxy
        step: Callable[..., Any] = getattr(generator, advance.__name__)
        return step


class _Measured(wrapt.ObjectProxy):  # type: ignore[type-arg]
    """A proxy of a generator, which ends its stream when it is deleted."""

    _self_next: Any = None

    def __init__(self, generator: AsyncGenerator[Any, Any] | Generator[Any, Any, Any], steps: _Steps) -> None:
        super().__init__(generator)
        collected.follow()
        collected.run_due()
        self._self_steps = steps
        self._self_end = finishing(collected.run, steps.abandon)
        self._self_put(generator)

    def _self_put(self, generator: Any) -> None:
        """Replace the generator of the proxy; an attribute of a proxy costs 0.1 µs in each step."""
        self.__wrapped__ = generator
        if hasattr(generator, "__anext__"):
            self._self_next = functools.partial(self._self_steps.run_async, generator.__anext__)
        elif hasattr(generator, "__next__"):
            self._self_next = functools.partial(self._self_steps.run, generator.__next__)

    def _self_abandon(self) -> None:
        self._self_steps.abandon()
        self._self_end.discard()


class MeasuredGenerator(_Measured):
    """A generator; in all but its measuring the generator itself."""

    def __iter__(self) -> MeasuredGenerator:
        return self

    def __next__(self) -> Any:
        has_item = False
        try:
            item = self._self_next()
            has_item = True
            return item
        finally:
            if not has_item:
                self._self_end.discard()

    def send(self, value: Any) -> Any:
        """Send a value into the generator, as one step of the stream."""
        return self._self_steps.run(self.__wrapped__.send, value)

    def throw(self, *error: Any) -> Any:
        """Raise an error in the generator, as one step of the stream."""
        return self._self_steps.run(self.__wrapped__.throw, *error)

    def close(self) -> None:
        """Close the generator; the items that it has yielded by then are the result."""
        try:
            self.__wrapped__.close()
        finally:
            self._self_abandon()


class MeasuredAsyncGenerator(_Measured):
    """An async generator; in all but its measuring the generator itself."""

    def __aiter__(self) -> MeasuredAsyncGenerator:
        return self

    def __anext__(self) -> Awaitable[Any]:
        return self._self_next()  # type: ignore[no-any-return]

    async def asend(self, value: Any) -> Any:
        """Send a value into the generator, as one step of the stream."""
        return await self._self_steps.run_async(self.__wrapped__.asend, value)

    async def athrow(self, *error: Any) -> Any:
        """Raise an error in the generator, as one step of the stream."""
        return await self._self_steps.run_async(self.__wrapped__.athrow, *error)

    async def aclose(self) -> None:
        """Close the generator; the items that it has yielded by then are the result."""
        try:
            await self.__wrapped__.aclose()
        finally:
            self._self_abandon()


def steps_of(response: Any) -> Any:
    """Return a response that is a stream, of either kind; None for any other."""
    return response if hasattr(type(response), "__next__") or hasattr(type(response), "__anext__") else None


def _measured(wrapped: Callable[..., Any], reader: ToolReader | ModelReader | RunReader, invocation: Invocation) -> Any:
    """Call a generator function, and put the measuring around its generator, of either kind."""
    generator = wrapped(*invocation.args, **invocation.kwargs)
    if not isinstance(reader, ToolReader):
        enter: Any = handler.enter_model if isinstance(reader, ModelReader) else run_visit.enter_run_stream
        queues = isinstance(reader, ModelReader) and backpressure() is not None
        return _proxy(generator, _Steps(functools.partial(enter, reader, invocation), queues=queues))
    begin = functools.partial(handler.enter_stream, reader, invocation)
    skips = skips_calls()
    is_remedied = skips or handler.result_remedies() is not None
    # A consumer may take its time between the items of any other generator.
    queues = is_remedied and reader.events and settings.current().dispatch_waits
    is_replaceable = reader.events and reader.replace is not None and hasattr(generator, "__anext__")
    if not is_remedied or not (is_replaceable or settings.current().tool_policy or (skips and not reader.events)):
        return _proxy(generator, _Steps(begin, queues=queues))
    call = _Call(wrapped, invocation, reader if is_replaceable else reader._replace(replace=None))
    proxy = _proxy(generator, _Steps(begin, queues=queues, call=call))
    call.proxy = weakref.ref(proxy)
    return proxy


def _proxy(generator: Any, steps: _Steps) -> _Measured:
    kind = MeasuredAsyncGenerator if hasattr(generator, "__anext__") else MeasuredGenerator
    return kind(generator, steps)


def watched(value: Any, visit: ResponseVisit) -> Any:
    """Put an open visit around the steps of a generator of either kind; return any other value as it is."""
    is_generator = type(value) is AsyncGeneratorType or type(value) is GeneratorType
    return _proxy(value, _Steps(None, visit)) if is_generator else value


# --- remedies that send requests --------------------------------------------------------------------------------------


# A remedy may answer calls of a tool that it adds, or summarise a long request. Each request of a dialogue is sent
# through the measured function, so that it counts like any other; a summary's is not. The caller gets the last
# response. It gets all of a stream up to the first tool call at once; the rest is held until the stream ends, because a
# call of the remedy's tool must not reach a program that does not have it.


def prepared(inner: Wrapper, prepare: Callable[..., Any], *, is_async: bool) -> Wrapper:
    """Return the wrapper that lets a remedy change a request before the inner wrapper gets it."""

    def wrapper(wrapped: Callable[..., Any], instance: Any, *call: Any) -> Any:
        invocation = Invocation(instance, *call)
        run_now(prepare(wrapped, invocation, blocks=True))
        return inner(wrapped, instance, invocation.args, dict(invocation.kwargs))

    async def wrapper_async(wrapped: Callable[..., Any], instance: Any, *call: Any) -> Any:
        invocation = Invocation(instance, *call)
        await prepare(wrapped, invocation, blocks=False)
        return await inner(wrapped, instance, invocation.args, dict(invocation.kwargs))

    return wrapper_async if is_async else wrapper


async def _replace(reader: ModelReader, _: Callable[..., Any], invocation: Invocation, *, blocks: bool) -> None:
    """Replace large results in a request."""
    if handler.measures():
        await handler.model_boundary().act(reader, invocation, blocks=blocks)


async def summarise(
    reader: ModelReader, exchange: Exchange, wrapped: Callable[..., Any], invocation: Invocation, *, blocks: bool
) -> None:
    """Put a summary in the place of a request's old messages."""
    visit = handler.begin_summary(reader, invocation)
    if visit is None:
        return

    async def send(other: Invocation) -> Response:
        value = wrapped(*other.args, **other.kwargs)
        value = value if blocks else await value
        stream = await _stream_of(exchange, value)
        if stream is None:
            return exchange.plain(value), None
        items = _generator_of(exchange, stream)
        if blocks:
            return None, [exchange.plain(item) for item in items]
        return None, [exchange.plain(item) async for item in items]

    await visit.make(send, blocks=blocks)


def answering(measured: Wrapper, reader: ModelReader, exchange: Exchange, *, is_async: bool) -> Wrapper:
    """Return the wrapper that answers calls around the measured function of a model request."""
    talk = _atalk if is_async else _talk

    def wrapper(wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        invocation = Invocation(instance, args, kwargs)
        dialogue = handler.begin_dialogue(reader, invocation)

        def send() -> Any:
            return measured(wrapped, instance, invocation.args, dict(invocation.kwargs))

        return send() if dialogue is None else talk(exchange, dialogue, send)

    async def wrapper_async(*call: Any) -> Any:
        return await wrapper(*call)

    return wrapper_async if is_async else wrapper


def _talk(exchange: Exchange, dialogue: Any, send: Callable[[], Any]) -> Any:
    """Send requests until a response needs no answer, or is a stream."""
    while True:
        value = send()
        stream = run_now(_stream_of(exchange, value))
        if stream is not None:
            return _replaced(exchange, value, stream, _items(exchange, dialogue, _generator_of(exchange, stream), send))
        if not run_now(dialogue.continues(value, blocks=True)):
            return value


async def _atalk(exchange: Exchange, dialogue: Any, send: Callable[[], Awaitable[Any]]) -> Any:
    while True:
        value = await send()
        stream = await _stream_of(exchange, value)
        if stream is not None:
            items = _aitems(exchange, dialogue, _generator_of(exchange, stream), send)
            return _replaced(exchange, value, stream, items)
        if not await dialogue.continues(value, blocks=False):
            return value


async def _stream_of(exchange: Exchange, value: Any) -> Any:
    """Return the stream of a response; None for a whole response."""
    stream = None
    with errors.reported("model_request.dialogue"):
        stream = None if exchange.stream is None else exchange.stream(value)
    return await stream if inspect.isawaitable(stream) else stream


def _generator_of(exchange: Exchange, stream: Any) -> Any:
    """Return the generator of a stream's items."""
    return getattr(stream, exchange.generator) if exchange.generator else stream


def _replaced(exchange: Exchange, value: Any, stream: Any, items: Any) -> Any:
    """Replace the generator of a stream."""
    if exchange.replaced is not None:
        return exchange.replaced(stream, items)
    if not exchange.generator:
        return items
    setattr(stream, exchange.generator, items)
    return value


def _items(exchange: Exchange, dialogue: Any, generator: Any, send: Callable[[], Any]) -> Generator[Any, None, None]:
    further: list[Any] = []
    try:
        while True:
            for item in generator:
                yield from dialogue.passing(item)
            if not run_now(dialogue.continues(None, blocks=True)):
                yield from dialogue.held()
                return
            stream = run_now(_stream_of(exchange, send()))
            if stream is None:
                return
            further.append(stream)
            generator = _generator_of(exchange, stream)
    finally:
        if hasattr(generator, "close"):
            generator.close()
        if exchange.generator:
            for stream in further:
                stream.close()


async def _aitems(
    exchange: Exchange, dialogue: Any, generator: Any, send: Callable[[], Awaitable[Any]]
) -> AsyncGenerator[Any, None]:
    further: list[Any] = []
    try:
        while True:
            async for item in generator:
                for passed in dialogue.passing(item):
                    yield passed
            if not await dialogue.continues(None, blocks=False):
                for passed in dialogue.held():
                    yield passed
                return
            stream = await _stream_of(exchange, await send())
            if stream is None:
                return
            further.append(stream)
            generator = _generator_of(exchange, stream)
    finally:
        await generator.aclose()
        if exchange.generator:
            for stream in further:
                closed = stream.close()
                if inspect.isawaitable(closed):  # aiobotocore's is sync
                    await closed


# --- streams that are iterators of both kinds -------------------------------------------------------------------------


class _Stream(wrapt.ObjectProxy):  # type: ignore[type-arg]
    """A stream; in all but its steps the object that the model's SDK has made."""

    def __iter__(self) -> _Stream:
        return self

    def __aiter__(self) -> _Stream:
        return self

    def __enter__(self) -> Self:
        self.__wrapped__.__enter__()
        return self

    async def __aenter__(self) -> Self:
        await self.__wrapped__.__aenter__()
        return self


class MeasuredStream(_Stream):
    """A stream with a visit around its steps, which ends when its consumer abandons it."""

    def __init__(self, stream: Any, visit: Any) -> None:
        super().__init__(stream)
        collected.follow()
        collected.run_due()
        self._self_end = finishing(collected.run, visit.abandon)  # when this is deleted
        self._self_visit = visit

    def __next__(self) -> Any:
        return self._self_visit.advance(self.__wrapped__.__next__)

    async def __anext__(self) -> Any:
        return await self._self_visit.aadvance(self.__wrapped__.__anext__)


class OtherItems(_Stream):
    """A stream with the items of a generator, sync or async as the program reads them."""

    def __init__(self, stream: Any, items: Any) -> None:
        super().__init__(stream)
        self._self_items = items

    def __next__(self) -> Any:
        return next(self._self_items)

    async def __anext__(self) -> Any:
        return await anext(self._self_items)

    async def aclose(self) -> None:
        """Close the generator, which closes the stream."""
        await self._self_items.aclose()


def streams(*classes: str, generator: str = "") -> tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]:
    """Return the functions that return a stream of these classes, or None, and that put a visit around its steps.

    ``generator`` is the attribute that has its items, empty where it is its own iterator.
    """

    def stream_of(response: Any) -> Any:
        return response if is_named(response, *classes) else None

    def watch(response: Any, visit: ResponseVisit) -> Any:
        if stream_of(response) is None:
            return response
        if not generator:
            return MeasuredStream(response, visit)
        setattr(response, generator, watched(getattr(response, generator), visit))
        return response

    return stream_of, watch
