"""Payloads as runtimes and stores of sessions serialise them, for their adapters."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from agent_otel._internal.failures import cause_of, text_of
from agent_otel._internal.object_kinds import is_named, is_text
from agent_otel.core import execution_context, handler, step_handler
from agent_otel.core.types import Invocation, Payload, Step
from agent_otel.integrations.hooks import Hook, Within, on_return
from agent_otel.integrations.readers import remember
from agent_otel.semconv import HISTORY, STATE

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

_MAX_TEXT = 1_000
_MAX_CAUSES = 4
# Exceptions of databases that refuse a value as too large: the class and a part of the message.
_REFUSALS = (
    ("ProgramLimitExceeded", ""),  # psycopg, asyncpg
    ("DataError", "too big"),  # sqlite3
    ("ClientError", "Item size has exceeded the maximum allowed size"),  # DynamoDB
    ("CosmosHttpResponseError", "RequestEntityTooLarge"),  # azure-cosmos
    # pymongo: by itself, and of the server for an insert, an update and a command
    ("DocumentTooLarge", ""),
    ("OperationFailure", "object to insert too large"),
    ("OperationFailure", "Resulting document after update is larger than"),
    ("OperationFailure", "BSONObj size"),
    ("DaprInternalError", "larger than max"),
)


_REMEMBERED: Final = 10_000


def bytes_of(serialised: Any) -> int:
    """Return the bytes of a text or a bytes object."""
    return handler.text_bytes(serialised) if is_text(serialised) else len(serialised)


def carried(direction: str, serialised: Any, *, again: bool = False) -> Payload:
    """Return the payload of a serialised text, or of bytes."""
    return Payload(direction, bytes_of(serialised), serialised, again=again)


def carried_or_none(direction: str, serialised: Any, *, again: bool = False) -> Payload | None:
    """Return the payload of a serialised text; None without one."""
    return carried(direction, serialised, again=again) if serialised else None


class Recent:
    """The last keys that were noted, and how often each was, for runtimes that do not name the attempt of a step."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: OrderedDict[Hashable, int] = OrderedDict()

    def count(self, key: Hashable) -> int:
        """Return how often a key was noted."""
        return self._counts.get(key, 0)

    def note(self, key: Hashable) -> int:
        """Note a key; return how often it was by now."""
        with self._lock:
            noted = self._counts.pop(key, 0) + 1
            remember(self._counts, key, noted, _REMEMBERED)
            return noted

    def forget(self, key: Hashable) -> None:
        """Forget a key."""
        self._counts.pop(key, None)


# --- stores of sessions -----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Transfer:
    """The bytes of one call of a store's method, as its serializer makes or reads them."""

    bytes: int = 0
    is_read: bool = False


open_transfer: Within[Transfer] = Within("agent_otel_store_transfer")
#: The call of a method of LangGraph's savers, for the adapters of their clients.
open_saving: Within[Any] = Within("agent_otel_langgraph_saving")


def writing(report: Callable[[Invocation, Any, BaseException | None], None], *, is_read: bool = False) -> Hook:
    """Return the hook of a method that writes; inside of another one, where a store calls a store, it does nothing."""
    return Hook(lambda _: Transfer(is_read=is_read) if open_transfer.get() is None else None, report, open_transfer)


#: Return the hook of a method that reads stored values.
reading = partial(writing, is_read=True)


def add(serialized: Any, *, is_read: bool = False, is_whole: bool = False) -> None:
    """Add a serialised value, a text or bytes, to the open transfer of its direction, or make it all of that.

    Ignore anything else: a damaged store returned it, and the program gets no item of it.
    """
    transfer = open_transfer.get()
    if transfer is None or transfer.is_read != is_read:
        return
    if is_text(serialized) or issubclass(type(serialized), bytes | bytearray):
        transfer.bytes = bytes_of(serialized) + (0 if is_whole else transfer.bytes)


#: The hook of a function that returns a value for the store.
added = on_return(lambda _, value: add(value))


def adding(position: int, name: str) -> Hook:
    """Return the hook of a function that gets a value of the store as this argument."""
    return Hook(lambda invocation: add(invocation.arg(position, name), is_read=True))


def is_reading() -> bool:
    """Return true while a transfer from a store is open."""
    transfer = open_transfer.get()
    return transfer is not None and transfer.is_read


def in_run() -> bool:
    """Return true in the run of an agent."""
    return execution_context.open_run() is not None


def report(  # noqa: PLR0913 - all of a payload
    runtime: str,
    session: str | None,
    direction: str,
    size: int,
    value: Any,
    *,
    variant: str | None = None,
    error: BaseException | None = None,
    is_appended: bool = False,
    agent: str | None = None,
) -> None:
    """Record a payload of a session, unless it has no bytes or its store failed for another reason than its size."""
    if not size or is_lost(error):
        return
    run = execution_context.open_run()
    workflow = agent if run is None else run.workflow or run.agent
    step = Step(runtime, workflow=workflow, execution=session, variant=variant)
    stored = Payload(direction, size, value=value, is_appended=is_appended)
    step_handler.payload(step, stored, refused=refusal(error))


def transferred(
    runtime: str, invocation: Invocation, session: str | None, value: Any, *, is_appended: bool = True, **facts: Any
) -> None:
    """Record the bytes that a method of a store has written or read; a write of a whole session is not an append.

    ``facts`` are others of `report`.
    """
    transfer: Transfer = invocation.state
    direction, is_appended = (HISTORY, False) if transfer.is_read else (STATE, is_appended)
    report(runtime, session, direction, transfer.bytes, value, is_appended=is_appended, **facts)


def is_lost(error: BaseException | None) -> bool:
    """Return true for a failure other than a refusal of the size: nobody knows whether the value is stored."""
    return error is not None and refusal(error) is None


def refusal(error: BaseException | None) -> str | None:
    """Return the message of a store that refuses a value as too large; None for any other failure."""
    for _ in range(_MAX_CAUSES):
        if error is None:
            return None
        text = text_of(error, _MAX_TEXT)
        if any(is_named(error, name) and part in text for name, part in _REFUSALS):
            return text
        error = cause_of(error)
    return None
