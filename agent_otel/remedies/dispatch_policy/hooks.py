"""Functions of the program that a policy calls: approvals, and sources of injected values; both sync or async."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_otel._internal.daemon_pool import is_in_asyncio
from agent_otel._internal.signatures import function_named

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

_given: ContextVar[dict[str, Any] | None] = ContextVar("agent_otel_policy_values", default=None)


@dataclass(frozen=True, slots=True)
class DispatchedCall:
    """A tool call as the functions of a policy get it; ``arguments`` are the model's, a copy.

    ``attempt`` counts the attempts of the durable runtime's step from 1: a call of a second attempt may have run
    before. ``args_hash`` is that of the span; the retry of a call has the same.
    """

    tool: str
    arguments: dict[str, Any]
    agent: str | None
    workflow: str | None
    execution: str | None
    call_id: str | None
    attempt: int
    args_hash: str | None


@contextmanager
def policy_values(**values: object) -> Iterator[None]:
    """Set values that a policy injects with ``{context = "name"}``, for all tool calls inside the block."""
    token = _given.set({**(_given.get() or {}), **values})
    try:
        yield
    finally:
        _given.reset(token)


def context_value(name: str) -> Any:
    """Return a value that `policy_values` has set; LookupError when there is none."""
    return (_given.get() or {})[name]


def function_of(named: str | Callable[..., Any]) -> Callable[..., Any]:
    """Return the function of ``module:function``."""
    return function_named(named) if isinstance(named, str) else named


async def call_at_once(call: Callable[[], Any]) -> Any:
    """Call a function; await its result, when it is awaitable, in an event loop of its own. Never suspends."""
    value = call()
    if not inspect.isawaitable(value):
        return value
    if not is_in_asyncio():
        return asyncio.run(_await(value))
    return _in_thread(value)


async def call_async(call: Callable[[], Any]) -> Any:
    """Call a function in a thread, because it may block; await its result when it is awaitable."""
    value = await asyncio.to_thread(call) if is_in_asyncio() else call()
    return await value if inspect.isawaitable(value) else value


async def _await(value: Awaitable[Any]) -> Any:
    return await value


def _in_thread(value: Awaitable[Any]) -> Any:
    """Await a value in another thread: this one runs an event loop, in which a sync tool is called."""
    context = contextvars.copy_context()
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(context.run, asyncio.run, _await(value)).result()
