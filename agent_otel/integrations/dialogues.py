"""Wrappers around the measured functions that send model requests, for a remedy that answers calls of its own tool.

Each request of a dialogue is sent through the measured function, so that it counts like any other. The caller gets the
last response. Of a stream the caller gets everything up to the first tool call at once; from there on the rest is held
until the stream ends, because a call of the remedy's tool must not reach a program that does not have it.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from agent_otel._internal import errors
from agent_otel.core import handler
from agent_otel.core.types import Exchange, Invocation, ModelReader

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Generator

    from agent_otel.core.remedy_hooks import Dialogue
    from agent_otel.integrations.hooks import Wrapper


def answering(measured: Wrapper, reader: ModelReader, exchange: Exchange, *, is_async: bool) -> Wrapper:
    """Return the wrapper that answers calls around the measured function of a model request."""

    def wrapper(wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        invocation = Invocation(instance, args, kwargs)
        dialogue = handler.begin_dialogue(reader, invocation)
        if dialogue is None:
            return measured(wrapped, instance, invocation.args, dict(invocation.kwargs))
        return _talk(exchange, dialogue, lambda: measured(wrapped, instance, invocation.args, dict(invocation.kwargs)))

    async def wrapper_async(
        wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        invocation = Invocation(instance, args, kwargs)
        dialogue = handler.begin_dialogue(reader, invocation)
        if dialogue is None:
            return await measured(wrapped, instance, invocation.args, dict(invocation.kwargs))

        def send() -> Any:
            return measured(wrapped, instance, invocation.args, dict(invocation.kwargs))

        return await _atalk(exchange, dialogue, send)

    return wrapper_async if is_async else wrapper


def _talk(exchange: Exchange, dialogue: Dialogue, send: Callable[[], Any]) -> Any:
    """Send requests until a response needs no answer, or is a stream."""
    while True:
        value = send()
        stream = stream_of(exchange, value)
        if stream is not None:
            return _replaced(exchange, value, stream, _items(exchange, dialogue, generator_of(exchange, stream), send))
        if not dialogue.continues(value):
            return value


async def _atalk(exchange: Exchange, dialogue: Dialogue, send: Callable[[], Awaitable[Any]]) -> Any:
    while True:
        value = await send()
        stream = stream_of(exchange, value)
        if inspect.isawaitable(stream):
            stream = await stream
        if stream is not None:
            items = _aitems(exchange, dialogue, generator_of(exchange, stream), send)
            return _replaced(exchange, value, stream, items)
        if not await dialogue.acontinues(value):
            return value


@errors.guarded("model_request.dialogue")
def stream_of(exchange: Exchange, value: Any) -> Any:
    """Return the stream of a response, or an awaitable of it; None for a whole response."""
    return None if exchange.stream is None else exchange.stream(value)


def generator_of(exchange: Exchange, stream: Any) -> Any:
    """Return the generator of a stream's items."""
    return getattr(stream, exchange.generator) if exchange.generator else stream


def _replaced(exchange: Exchange, value: Any, stream: Any, items: Any) -> Any:
    """Put a generator in the place of a stream's own."""
    if exchange.replaced is not None:
        return exchange.replaced(stream, items)
    if not exchange.generator:
        return items
    setattr(stream, exchange.generator, items)
    return value


def _items(
    exchange: Exchange, dialogue: Dialogue, generator: Any, send: Callable[[], Any]
) -> Generator[Any, None, None]:
    further: list[Any] = []
    try:
        while True:
            for item in generator:
                yield from dialogue.passing(item)
            if not dialogue.continues(None):
                yield from dialogue.held()
                return
            stream = stream_of(exchange, send())
            if stream is None:
                return
            further.append(stream)
            generator = generator_of(exchange, stream)
    finally:
        if hasattr(generator, "close"):
            generator.close()
        if exchange.generator:
            for stream in further:
                stream.close()


async def _aitems(
    exchange: Exchange, dialogue: Dialogue, generator: Any, send: Callable[[], Awaitable[Any]]
) -> AsyncGenerator[Any, None]:
    further: list[Any] = []
    try:
        while True:
            async for item in generator:
                for passed in dialogue.passing(item):
                    yield passed
            if not await dialogue.acontinues(None):
                for passed in dialogue.held():
                    yield passed
                return
            stream = stream_of(exchange, await send())
            if inspect.isawaitable(stream):
                stream = await stream
            if stream is None:
                return
            further.append(stream)
            generator = generator_of(exchange, stream)
    finally:
        await generator.aclose()
        if exchange.generator:
            for stream in further:
                await _aclose(stream)


async def _aclose(stream: Any) -> None:
    """Close a stream; the function of aiobotocore's is sync."""
    closing = stream.close()
    if inspect.isawaitable(closing):
        await closing
