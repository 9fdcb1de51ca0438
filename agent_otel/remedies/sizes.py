"""Size of the text that the model reads of a call: the result, or the framework's text about an exception."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, TypeVar

from agent_otel._internal.daemon_pool import BusyError, Workers, is_in_asyncio
from agent_otel.remedies.claim_check.serialization import size_up_to

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.core.tool_invocation import ToolInvocation
    from agent_otel.measure.size import Size

_T = TypeVar("_T")

_workers: Final = Workers("sizes", 2)


def read_size(record: ToolInvocation) -> Size | None:
    """Return the size; None when the call has produced nothing yet."""
    return record.produced or record.failed


def refine(record: ToolInvocation, read: object, most_bytes: int) -> None:
    """Find the size of what was read, as `size_up_to` does: a lower bound that is not above has no known size."""
    size = read_size(record)
    if size is None or size.exact or size.bytes > most_bytes:
        return
    correct(record, size_up_to(read, most_bytes))


async def arefine(record: ToolInvocation, read: object, most_bytes: int) -> None:
    """Do the same as `refine` in another thread, so that the event loop is not blocked."""
    size = read_size(record)
    if size is None or size.exact or size.bytes > most_bytes:
        return
    await off_the_loop(lambda: refine(record, read, most_bytes))


def correct(record: ToolInvocation, size: Size) -> None:
    """Replace a lower bound by the exact size."""
    if record.produced is None:
        record.failed = size
    else:
        record.produced = size


async def off_the_loop(call: Callable[[], _T]) -> _T:
    """Call a function in a thread, from asyncio; where there is no thread for it, or another loop, here and now."""
    if not is_in_asyncio():
        return call()
    try:
        calling = _workers.submit(call)
    except BusyError:
        return call()
    return await asyncio.wrap_future(calling)
