"""Visits of async functions of a tool call that leave their result in an object and return something else.

An adapter's `Door` enters such a function and returns a `LeftVisit` with the place of the result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from agent_otel._internal.errors import guarded, reported
from agent_otel.core.types import LEFT_ALONE, Invocation

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

    from agent_otel.core import handler


class Place(Protocol):
    """The place where a function leaves its result."""

    def get(self) -> Any:
        """Return the result."""

    def put(self, result: Any) -> None:
        """Leave the replacement of the result."""

    def leave(self) -> None:
        """Undo the changes of the visit, at its end."""


class AroundVisit:
    """A wrapper of a tool call's visit, for a function that returns something other than the result."""

    __slots__ = ("_visit",)

    def __init__(self, visit: handler.Visit | handler.Unrecorded) -> None:
        self._visit = visit

    def __enter__(self) -> Self:
        self._visit.__enter__()
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._visit, name)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._leave()
        self._visit.__exit__(kind, error, traceback)

    def close(self) -> None:
        """Complete an ``__exit__`` that an interrupt has ended."""
        self._leave()
        self._visit.close()

    def _leave(self) -> None:
        """Undo the changes of the visit, at its end."""


class LeftVisit(AroundVisit):
    """The visit of a function that leaves its result in a place."""

    __slots__ = ("_place",)

    def __init__(self, place: Place, visit: handler.Visit | handler.Unrecorded) -> None:
        super().__init__(visit)
        self._place = place

    async def askipped(self, invocation: Invocation) -> Any:
        """Leave the replacement result when a limit skips the handler; else return LEFT_ALONE."""
        skipped = await self._visit.askipped(invocation)
        if skipped is LEFT_ALONE:
            return LEFT_ALONE
        self._place.put(skipped)
        return None

    @guarded("left_result")
    def returned(self, _: Any) -> None:
        """Read the result that the function has left."""
        self._visit.returned(self._place.get())

    async def aremedied(self, value: Any, invocation: Invocation) -> Any:
        """Read the result that the function has left, and leave the replacement of a remedy; return the value."""
        with reported("left_result"):
            self._place.put(await self._visit.aremedied(self._place.get(), invocation))
        return value

    @guarded("left_result")
    def _leave(self) -> None:
        self._place.leave()
