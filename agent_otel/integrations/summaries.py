"""Wrappers around the functions that send model requests, for a remedy that summarises long ones before they are sent.

The remedy's own requests are sent by the wrapped function itself, so that they do not count as the agent's.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from agent_otel.core import summaries
from agent_otel.core.types import Exchange, Invocation, ModelReader
from agent_otel.integrations.dialogues import generator_of, stream_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.core.remedy_hooks import Response
    from agent_otel.integrations.hooks import Wrapper


def summarising(inner: Wrapper, reader: ModelReader, exchange: Exchange, *, is_async: bool) -> Wrapper:
    """Return the wrapper that lets the remedy change a request before the inner wrapper gets it."""

    def wrapper(wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        invocation = Invocation(instance, args, kwargs)
        visit = summaries.begin(reader, invocation)
        if visit is not None:
            visit.run(lambda other: _whole(exchange, wrapped(*other.args, **other.kwargs)))
        return inner(wrapped, instance, invocation.args, dict(invocation.kwargs))

    async def wrapper_async(
        wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        invocation = Invocation(instance, args, kwargs)
        visit = summaries.begin(reader, invocation)
        if visit is not None:

            async def send(other: Invocation) -> Response:
                return await _awhole(exchange, await wrapped(*other.args, **other.kwargs))

            await visit.arun(send)
        return await inner(wrapped, instance, invocation.args, dict(invocation.kwargs))

    return wrapper_async if is_async else wrapper


def _whole(exchange: Exchange, value: Any) -> Response:
    """Return a response as plain data, or the items of its stream."""
    stream = stream_of(exchange, value)
    if stream is None:
        return exchange.plain(value), None
    return None, [exchange.plain(item) for item in generator_of(exchange, stream)]


async def _awhole(exchange: Exchange, value: Any) -> Response:
    stream = stream_of(exchange, value)
    if inspect.isawaitable(stream):
        stream = await stream
    if stream is None:
        return exchange.plain(value), None
    return None, [exchange.plain(item) async for item in generator_of(exchange, stream)]
