"""OpenAI's Agents SDK: sessions in SQLite, whose rows are made inside of functions.

The connection of a session shows the rows that the database gets and returns. ``AsyncSQLiteSession`` has the same
functions as ``SQLiteSession``, which call aiosqlite. The sites are in ``openai_agents_sessions.py``.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import wrapt

from agent_otel._internal import errors
from agent_otel.core import handler
from agent_otel.core.plain import is_text, listed
from agent_otel.integrations import stores
from agent_otel.integrations.hooks import Hook, Passing, Revising
from agent_otel.integrations.runtimes import openai_agents_sessions as sessions

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from agent_otel.core.types import Invocation


class _Writing(wrapt.ObjectProxy):  # type: ignore[type-arg]
    """The connection of one append, which shows the rows that the database gets."""

    def __init__(self, connection: Any, session: Any, items: Any) -> None:
        super().__init__(connection)
        self._self_session = session
        self._self_items = items

    def executemany(self, *args: Any) -> Any:
        """Execute, and report the rows."""
        with self._reporting(args):
            return self.__wrapped__.executemany(*args)

    @contextmanager
    def _reporting(self, args: tuple[Any, ...]) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self._report(args, error)
            raise
        self._report(args, None)

    @errors.guarded("session.rows")
    def _report(self, args: tuple[Any, ...], error: BaseException | None) -> None:
        size = sum(handler.text_bytes(row[-1]) for row in listed(args[1]))
        sessions.report_added(self._self_session, self._self_items, size, error)


class _WritingAsync(_Writing):
    """The same of aiosqlite."""

    async def executemany(self, *args: Any) -> Any:
        """Execute, and report the rows."""
        with self._reporting(args):
            return await self.__wrapped__.executemany(*args)


class _Reading(wrapt.ObjectProxy):  # type: ignore[type-arg]
    """A connection, or a cursor of it, while a session's items are read; it adds up the rows' texts."""

    def cursor(self, *args: Any, **kwargs: Any) -> Any:
        """Return a cursor that adds up its rows."""
        return type(self)(self.__wrapped__.cursor(*args, **kwargs))

    def execute(self, *args: Any) -> Any:
        """Execute; return a cursor that adds up its rows."""
        return type(self)(self.__wrapped__.execute(*args))

    def fetchall(self) -> Any:
        """Return all rows."""
        rows = self.__wrapped__.fetchall()
        _count(rows)
        return rows


class _ReadingAsync(_Reading):
    """The same of aiosqlite, whose functions return what is awaited or entered for a cursor."""

    def __await__(self) -> Generator[Any, Any, Any]:
        cursor = yield from self.__wrapped__.__await__()
        return _ReadingAsync(cursor)

    async def __aenter__(self) -> Any:
        return _ReadingAsync(await self.__wrapped__.__aenter__())

    async def __aexit__(self, *error: object) -> Any:
        return await self.__wrapped__.__aexit__(*error)

    async def fetchall(self) -> Any:
        """Return all rows."""
        rows = await self.__wrapped__.fetchall()
        _count(rows)
        return rows


@errors.guarded("session.rows")
def _count(rows: Any) -> None:
    for row in listed(rows):
        if is_text(row[0]):
            stores.add(row[0], is_read=True)


def _inserting(invocation: Invocation) -> None:
    _put(invocation, _Writing)


def _inserting_async(invocation: Invocation) -> None:
    _put(invocation, _WritingAsync)


def _put(invocation: Invocation, connection: type[_Writing]) -> None:
    made = connection(invocation.arg(0, "conn"), invocation.instance, invocation.arg(1, "items"))
    invocation.put(0, "conn", made)


def _connected(_: Invocation, connection: Any) -> Any:
    return _Reading(connection) if stores.is_reading() else connection


async def _connected_async(connect: Any, invocation: Invocation) -> Any:
    connection = await connect(*invocation.args, **invocation.kwargs)
    return _ReadingAsync(connection) if stores.is_reading() else connection


inserting = Hook(_inserting)
inserting_async = Hook(_inserting_async)
connected = Revising(_connected)
connected_async = Passing(_connected_async)
read = sessions.read
