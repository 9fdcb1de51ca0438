"""Wrappers of functions that run an agent: to its end, or in the generator, coroutine or context that they return."""

from __future__ import annotations

import sys
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import TYPE_CHECKING, Any

import wrapt

from agent_otel._internal.errors import finishing
from agent_otel.core import run_visit
from agent_otel.core.types import Invocation, RunReader
from agent_otel.integrations import generators

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType

    from agent_otel.core.run_visit import RunVisit
    from agent_otel.integrations.hooks import Wrapper


def running(reader: RunReader, *, is_async: bool) -> Wrapper:
    """Return the wrapper of a function that runs an agent."""
    if is_async:

        async def call_async(
            wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
        ) -> Any:
            visit = run_visit.enter_run(reader, Invocation(instance, args, kwargs))
            if visit is None:
                return await wrapped(*args, **kwargs)
            with finishing(visit.close), visit:
                return _carried_on(await wrapped(*args, **kwargs), visit)

        return call_async

    def call(wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        visit = run_visit.enter_run(reader, Invocation(instance, args, kwargs))
        if visit is None:
            return wrapped(*args, **kwargs)
        with finishing(visit.close), visit:
            return _carried_on(wrapped(*args, **kwargs), visit)

    return call


def _carried_on(value: Any, visit: RunVisit) -> Any:
    """Return the value that a function returned; where the run goes on in it, with the run around it."""
    if visit.watches(value):
        return value
    kind = type(value)
    if kind is GeneratorType or kind is AsyncGeneratorType:
        visit.goes_on = True
        return generators.watched(value, visit)
    if kind is CoroutineType:
        visit.goes_on = True
        return generators.closing(_awaited(value, visit), value)
    if any("__aenter__" in vars(owner) for owner in kind.__mro__):  # `dir` sorts all names of the class
        visit.goes_on = True
        return _Context(value, visit)
    visit.returned(value)
    return value


async def _awaited(value: Awaitable[Any], visit: RunVisit) -> Any:
    visit.goes_on = False
    with finishing(visit.close), visit:
        return await value


class _Context(wrapt.ObjectProxy):  # type: ignore[type-arg]
    """An async context manager in whose block an agent runs."""

    def __init__(self, context: Any, visit: RunVisit) -> None:
        super().__init__(context)
        self._self_visit = visit

    async def __aenter__(self) -> Any:
        visit: RunVisit = self._self_visit
        visit.goes_on = False
        visit.__enter__()
        is_entered = False
        try:
            value = await self.__wrapped__.__aenter__()
            is_entered = True
            return value
        finally:
            if not is_entered:
                visit.__exit__(*sys.exc_info())

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> Any:
        try:
            return await self.__wrapped__.__aexit__(kind, error, traceback)
        finally:
            self._self_visit.__exit__(kind, error, traceback)
