"""Streams of models that are iterators of both kinds themselves, sync and async, and hold no generator to replace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import wrapt

from agent_otel._internal import collected

if TYPE_CHECKING:
    from typing_extensions import Self


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

    _self_visit: Any = None  # an interrupt may come before it is set

    def __init__(self, stream: Any, visit: Any) -> None:
        super().__init__(stream)
        collected.follow()
        collected.run_due()
        self._self_visit = visit

    def __del__(self) -> None:
        if self._self_visit is not None:
            collected.run(self._self_visit.abandon)

    def __next__(self) -> Any:
        return self._self_visit.advance(self.__wrapped__.__next__)

    async def __anext__(self) -> Any:
        return await self._self_visit.aadvance(self.__wrapped__.__anext__)


class _OtherItems(_Stream):
    """A stream whose items come from a generator, sync or async as the program reads them."""

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


def with_items(stream: Any, items: Any) -> Any:
    """Return a stream that hands on the items of a generator."""
    return _OtherItems(stream, items)
