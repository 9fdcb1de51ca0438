"""Generators, tools' and models': each item is measured as it passes; nothing is collected or consumed.

No context variable stays set across a ``yield``: the record and the span are made current around each step, which
is when the tool's own code runs.
"""

from __future__ import annotations

import functools
import weakref
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import TYPE_CHECKING, Any, TypeVar

import wrapt

from agent_otel._internal import collected
from agent_otel._internal.errors import finishing
from agent_otel.core import handler, run_visit
from agent_otel.core.backpressure import backpressure
from agent_otel.core.model_request import ModelVisit
from agent_otel.core.remedy_hooks import askipped, skipped, skips_calls
from agent_otel.core.types import LEFT_ALONE, Invocation, ModelReader, ResponseVisit, RunReader, ToolReader

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Generator

_C = TypeVar("_C")


def closing(coroutine: _C, value: object) -> _C:
    """Return a coroutine that awaits ``value``; a coroutine that is awaited is closed with it.

    A task that is cancelled before its first step closes its coroutine alone, and Python warns of one in it that was
    never awaited.
    """
    if type(value) is CoroutineType:
        weakref.finalize(coroutine, value.close).atexit = False
    return coroutine


class _Steps:
    """The record of one stream, opened at its first step unless it is open already."""

    def __init__(self, begin: Callable[[], Any] | None, visit: Any = None, *, queues: bool = False) -> None:
        self._begin = begin
        self._queues = queues
        self.visit: Any = visit

    def begin(self) -> None:
        if self._begin is not None:
            begin, self._begin = self._begin, None
            self.visit = begin()

    async def begin_in_turn(self) -> bool:
        """Begin, after a wait where parallel calls queue; return true for the first step."""
        if self._begin is None:
            return False
        self.begin()
        if self._queues and self.visit is not None:
            await self.visit.atake_turn()
        return True

    def run(self, advance: Callable[..., Any], *args: Any) -> Any:
        if self._begin is not None:
            self.begin()
        if self.visit is None:
            return advance(*args)
        step = self.visit.step()
        with finishing(step.close), step:
            item = advance(*args)
            self.visit.item(item)
            return item

    async def run_async(self, advance: Callable[..., Awaitable[Any]], *args: Any) -> Any:
        if self._begin is not None:
            await self.begin_in_turn()
        if self.visit is None:
            return await advance(*args)
        step = self.visit.step()
        with finishing(step.close), step:
            item = await advance(*args)
            self.visit.item(item)
            return item

    def stepping(self, advance: Callable[[], Any]) -> Callable[[], Any]:
        """Return the function that takes a step."""
        return functools.partial(self.run, advance)

    def stepping_async(self, advance: Callable[[], Awaitable[Any]]) -> Callable[[], Awaitable[Any]]:
        return functools.partial(self.run_async, advance)

    def abandon(self) -> None:
        if self.visit is not None:
            self.visit.abandon()


class _ModelSteps(_Steps):
    """The steps of a streamed model request, which are many and short."""

    visit: ModelVisit | None

    def run(self, advance: Callable[..., Any], *args: Any) -> Any:
        if self._begin is not None:
            self.begin()
        step = functools.partial(advance, *args) if args else advance
        return step() if self.visit is None else self.visit.advance(step)

    async def run_async(self, advance: Callable[..., Awaitable[Any]], *args: Any) -> Any:
        if self._begin is not None:
            await self.begin_in_turn()
        step = functools.partial(advance, *args) if args else advance
        return await (step() if self.visit is None else self.visit.aadvance(step))

    def stepping(self, advance: Callable[[], Any]) -> Callable[[], Any]:
        return functools.partial(self.run if self.visit is None else self.visit.advance, advance)

    def stepping_async(self, advance: Callable[[], Awaitable[Any]]) -> Callable[[], Awaitable[Any]]:
        return functools.partial(self.run_async if self.visit is None else self.visit.aadvance, advance)


class _WaitingSteps(_ModelSteps):
    """The steps of a streamed model request, which waits for tokens before the first."""

    def run(self, advance: Callable[..., Any], *args: Any) -> Any:
        if self._begin is not None:
            self.begin()
            if self.visit is not None:
                self.visit.take_turn()
        return super().run(advance, *args)


class _GatedSteps(_Steps):
    """The steps of a generator tool while a policy or a limit is set: they decide before the first."""

    def __init__(self, begin: Callable[[], Any], call: _Call, reader: ToolReader, *, queues: bool) -> None:
        super().__init__(begin, queues=queues)
        self._call = call
        self._reader = reader
        #: False until the controls let the call run: another step may come before they have, or after a denial.
        self._is_open = False

    def run(self, advance: Callable[..., Any], *args: Any) -> Any:
        if self._begin is not None:
            self.begin()
            if self.visit is not None:
                step = self.visit.step()
                with finishing(step.close), step:
                    skipped(self.visit.record, self._reader._replace(replace=None), self._call.invocation)
                advance = self._call.renewed(advance)
            self._is_open = True
        if not self._is_open:
            raise StopIteration
        return super().run(advance, *args)

    async def run_async(self, advance: Callable[..., Awaitable[Any]], *args: Any) -> Any:
        if await self.begin_in_turn():
            if self.visit is not None:
                step = self.visit.step()
                with finishing(step.close), step:
                    await askipped(self.visit.record, self._reader._replace(replace=None), self._call.invocation)
                advance = self._call.renewed(advance)
            self._is_open = True
        if not self._is_open:
            raise StopAsyncIteration
        return await super().run_async(advance, *args)


class _Call:
    """A call of a generator function, which is made again when a policy has injected arguments into it."""

    def __init__(self, wrapped: Callable[..., Any], invocation: Invocation) -> None:
        self._wrapped = wrapped
        self._given = (invocation.args, invocation.kwargs)
        self.invocation = invocation
        self.generator = wrapped(*invocation.args, **invocation.kwargs)
        self.proxy: Callable[[], Any] = lambda: None

    def renewed(self, advance: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function that takes the first step: of a new generator when the arguments are others."""
        args, kwargs = self.invocation.args, self.invocation.kwargs
        if args is self._given[0] and kwargs is self._given[1]:
            return advance
        generator = self._wrapped(*args, **kwargs)
        proxy = self.proxy()
        if proxy is not None:
            proxy._self_put(generator)  # noqa: SLF001 - wrapt's own prefix for what is the proxy's
        step: Callable[..., Any] = getattr(generator, advance.__name__)
        return step


class _RemediedSteps(_GatedSteps):
    """The steps of an async generator of events, whose result a remedy may replace."""

    async def run_async(self, advance: Callable[..., Awaitable[Any]], *args: Any) -> Any:
        is_first = await self.begin_in_turn()
        if self.visit is None:
            return await advance(*args)
        step = self.visit.step()
        with finishing(step.close), step:
            if is_first:
                instead = await self.visit.askipped(self._call.invocation)
                if instead is not LEFT_ALONE:  # the only event of a call that is skipped
                    return instead
                advance = self._call.renewed(advance)
                self._is_open = True
            if not self._is_open:
                raise StopAsyncIteration
            return await self.visit.aremedied(await advance(*args), self._call.invocation)


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
        """Put a generator behind the proxy, whose attributes each cost a tenth of a microsecond in a step."""
        self.__wrapped__ = generator
        if hasattr(generator, "__anext__"):
            self._self_next = self._self_steps.stepping_async(generator.__anext__)
        elif hasattr(generator, "__next__"):
            self._self_next = self._self_steps.stepping(generator.__next__)

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


def measured(wrapped: Callable[..., Any], reader: ToolReader | ModelReader | RunReader, invocation: Invocation) -> Any:
    """Call a generator function, and put the measuring around its generator, of either kind."""
    if isinstance(reader, ModelReader):
        generator = wrapped(*invocation.args, **invocation.kwargs)
        queues = backpressure() is not None
        kind = _WaitingSteps if queues else _ModelSteps
        return _proxy(generator, kind(lambda: handler.enter_model(reader, invocation), queues=queues))
    if isinstance(reader, RunReader):
        generator = wrapped(*invocation.args, **invocation.kwargs)
        return _proxy(generator, _Steps(lambda: run_visit.enter_run_stream(reader, invocation)))
    begin = functools.partial(handler.enter_stream, reader, invocation)
    skips = skips_calls()
    if handler.result_remedies() is None and not skips:
        return _proxy(wrapped(*invocation.args, **invocation.kwargs), _Steps(begin))
    call = _Call(wrapped, invocation)
    # A consumer may take its time between the items of any other generator.
    queues = reader.events and handler.queues_calls()
    steps: _Steps = _Steps(begin, queues=queues)
    if reader.events and reader.replace is not None and hasattr(call.generator, "__anext__"):
        steps = _RemediedSteps(begin, call, reader, queues=queues)
    elif handler.injects() or (skips and not reader.events):
        steps = _GatedSteps(begin, call, reader, queues=queues)
    proxy = _proxy(call.generator, steps)
    call.proxy = weakref.ref(proxy)
    call.generator = None
    return proxy


def _proxy(generator: Any, steps: _Steps) -> _Measured:
    kind = MeasuredAsyncGenerator if hasattr(generator, "__anext__") else MeasuredGenerator
    return kind(generator, steps)


def watched(value: Any, visit: ResponseVisit) -> Any:
    """Put an open visit around the steps of a generator of either kind; return any other value as it is."""
    kind = _ModelSteps if type(visit) is ModelVisit else _Steps
    if type(value) is AsyncGeneratorType:
        return MeasuredAsyncGenerator(value, kind(None, visit))
    return MeasuredGenerator(value, kind(None, visit)) if type(value) is GeneratorType else value
