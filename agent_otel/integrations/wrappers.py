"""The wrappers, written once: sync, async and generators, with and without remedies.

The user's call is between a shielded "before" and a shielded "after"; same result, same exception object. A plain
function or method runs its wrapper by `as_function` or `as_method`, anything else by ``wrapt.FunctionWrapper``.
"""

from __future__ import annotations

import functools
import inspect
from types import CoroutineType, MethodType
from typing import TYPE_CHECKING, Any

import wrapt

from agent_otel._internal.errors import finishing
from agent_otel.core import handler
from agent_otel.core import summaries as core_summaries
from agent_otel.core.backpressure import backpressure
from agent_otel.core.remedy_hooks import skips_calls
from agent_otel.core.tool_visit import Visit
from agent_otel.core.types import LEFT_ALONE, Exchange, Invocation, ModelReader, RunReader, StepReader, ToolReader
from agent_otel.core.unrecorded import Unrecorded
from agent_otel.integrations import dialogues, generators, hooks, runs, summaries
from agent_otel.integrations.hooks import Door, Hook, Injecting, InThread, Passing, Revising

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import FunctionType

    from agent_otel.integrations.hooks import Wrapper

    Reader = ToolReader | ModelReader | StepReader | Door
    Measured = Reader | RunReader | Hook | Injecting | InThread | Passing | Revising

#: The visits that end after a coroutine that a sync function returns.
_ENTERED_AGAIN = (Visit, Unrecorded)


def as_function(original: FunctionType, wrapper: Wrapper) -> Any:
    """Return a function that runs a wrapper around the original one."""
    if _is_async(original, wrapper):

        @functools.wraps(original)
        async def call_async(*args: Any, **kwargs: Any) -> Any:
            return await wrapper(original, None, args, kwargs)

        return call_async

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        return wrapper(original, None, args, kwargs)

    return call


def as_method(original: FunctionType, wrapper: Wrapper) -> Any:
    """Return a method that calls the original one bound; a call without an instance is not watched."""
    if _is_async(original, wrapper):

        @functools.wraps(original)
        async def method_async(*args: Any, **kwargs: Any) -> Any:
            if not args or args[0] is None:
                return await original(*args, **kwargs)
            instance = args[0]
            return await wrapper(MethodType(original, instance), instance, args[1:], kwargs)

        return method_async

    @functools.wraps(original)
    def method(*args: Any, **kwargs: Any) -> Any:
        if not args or args[0] is None:
            return original(*args, **kwargs)
        instance = args[0]
        return wrapper(MethodType(original, instance), instance, args[1:], kwargs)

    return method


def _is_async(original: FunctionType, wrapper: Wrapper) -> bool:
    return inspect.iscoroutinefunction(original) and inspect.iscoroutinefunction(wrapper)


def wrapper_for(reader: Measured, wrapped: Callable[..., Any]) -> Wrapper:
    """Choose the wrapper that fits the kind of function, once, when it is wrapped."""
    is_async = inspect.iscoroutinefunction(wrapped)
    if isinstance(reader, Hook):
        return hooks.hooked(reader, is_async=is_async)
    if isinstance(reader, Passing):
        return hooks.passing(reader)
    if isinstance(reader, Revising):
        return hooks.revising(reader)
    if isinstance(reader, Injecting | InThread):
        return hooks.injecting(reader) if isinstance(reader, Injecting) else hooks.in_thread(reader)
    if isinstance(reader, ModelReader) and reader.exchange is not None:
        return _exchanging(reader, reader.exchange, wrapped, is_async=is_async)
    return _measuring(reader, wrapped)


def wrap_attribute(owner: Any, name: str, reader: Measured, function: Callable[..., Any] | None = None) -> None:
    """Wrap a callable attribute of an object, such as a function of a gRPC stub; ``function`` takes its place."""
    setattr(owner, name, around(getattr(owner, name) if function is None else function, reader))


def around(function: Callable[..., Any], reader: Measured) -> Any:
    """Return a proxy of a callable that a program passes to a framework, with the wrapper around its calls."""
    return wrapt.FunctionWrapper(function, wrapper_for(reader, function))


def _exchanging(reader: ModelReader, exchange: Exchange, wrapped: Callable[..., Any], *, is_async: bool) -> Wrapper:
    """Choose the wrapper of a function that sends requests. Remedies may send more requests."""
    wrapper = _measuring(reader, wrapped)
    if handler.dialogues() is not None:
        wrapper = dialogues.answering(wrapper, reader, exchange, is_async=is_async)
    if core_summaries.is_on():
        wrapper = summaries.summarising(wrapper, reader, exchange, is_async=is_async)
    return wrapper


def _measuring(reader: Reader | RunReader, wrapped: Callable[..., Any]) -> Wrapper:
    is_async = inspect.iscoroutinefunction(wrapped) or (isinstance(reader, ToolReader) and reader.is_awaited)
    is_generator = inspect.isgeneratorfunction(wrapped) or inspect.isasyncgenfunction(wrapped)
    if isinstance(reader, ToolReader | ModelReader | RunReader) and is_generator:
        return _stream(reader)
    if isinstance(reader, RunReader):
        return runs.running(reader, is_async=is_async)
    enter, queues = _entry_of(reader), _waits(reader)
    is_replaceable = isinstance(reader, ToolReader) and (reader.replace is not None or handler.injects())
    is_remedied = isinstance(reader, Door) or is_replaceable
    skips = skips_calls()
    is_remedied = is_remedied and (skips or handler.result_remedies() is not None)
    watches = isinstance(reader, ModelReader) and reader.watch is not None
    around = _around_async if is_async else _around
    return around(reader, enter, watches=watches, queues=queues, skips=is_remedied and skips, remedies=is_remedied)


def _waits(reader: Reader) -> bool:
    """Return true when the calls of a function may wait before it runs."""
    if isinstance(reader, ModelReader):
        return backpressure() is not None
    return isinstance(reader, Door | ToolReader) and handler.queues_calls()


def _entry_of(reader: Reader) -> Callable[..., Any]:
    """Return the function that begins to measure a call: of a tool, of a model, or of a step."""
    if isinstance(reader, ToolReader):
        return handler.enter_tool
    if isinstance(reader, ModelReader):
        return handler.enter_model
    if isinstance(reader, StepReader):
        from agent_otel.core import step_handler  # noqa: PLC0415 - few programs need the modules that it loads

        return step_handler.enter_step
    return lambda door, invocation: door.enter(invocation)


def _around(  # noqa: PLR0913 - the differences between wrapped functions
    reader: Any, enter: Callable[..., Any], *, watches: bool, queues: bool, skips: bool, remedies: bool
) -> Wrapper:
    """Wrap a function; if it ``watches``, its value may be a stream, and the visit continues in it.

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
            if skips and (skipped := visit.skipped(invocation)) is not LEFT_ALONE:
                return skipped
            try:
                value = wrapped(*invocation.args, **invocation.kwargs)
            except Exception as error:
                if remedies:
                    visit.raised(error, invocation)
                raise
            if watches:
                return visit.watched(value)
            if type(value) is CoroutineType and isinstance(visit, _ENTERED_AGAIN):
                visit.goes_on = True
                return generators.closing(_awaited(visit, value, invocation), value)
            if remedies:
                return visit.remedied(value, invocation)
            visit.returned(value)
            return value

    return wrapper


async def _awaited(visit: Visit | Unrecorded, value: Awaitable[Any], invocation: Invocation) -> Any:
    """Continue a visit in a coroutine: a program has put a sync function around the framework's async one."""
    with finishing(visit.close), visit:
        try:
            returned = await value
        except Exception as error:
            await visit.araised(error, invocation)
            raise
        return await visit.aremedied(returned, invocation)


def _around_async(  # noqa: PLR0913 - the signature of `_around`
    reader: Any, enter: Callable[..., Any], *, watches: bool, queues: bool, skips: bool, remedies: bool
) -> Wrapper:
    async def wrapper(wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        invocation = Invocation(instance, args, kwargs)
        visit = enter(reader, invocation)
        if visit is None:
            return await wrapped(*invocation.args, **invocation.kwargs)
        if queues:
            await visit.atake_turn()
        with finishing(visit.close), visit:
            if skips and (skipped := await visit.askipped(invocation)) is not LEFT_ALONE:
                return skipped
            try:
                value = await wrapped(*invocation.args, **invocation.kwargs)
            except Exception as error:
                if remedies:
                    await visit.araised(error, invocation)
                raise
            if watches:
                return visit.watched(value)
            if remedies:
                return await visit.aremedied(value, invocation)
            visit.returned(value)
            return value

    return wrapper


def _stream(reader: ToolReader | ModelReader | RunReader) -> Wrapper:
    def wrapper(wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return generators.measured(wrapped, reader, Invocation(instance, args, kwargs))

    return wrapper
