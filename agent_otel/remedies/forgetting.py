"""Erasure of an execution's data: its tool results, its summarised history and its payloads."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from agent_otel._internal.daemon_pool import Workers, is_in_asyncio
from agent_otel._internal.errors import ours
from agent_otel.remedies.claim_check import payload_store, policy
from agent_otel.remedies.claim_check.stores.base import StoreError, said

if TYPE_CHECKING:
    from agent_otel.remedies.claim_check.keys import Claims

_workers = Workers("forgetting", 8)


def forget(execution: str) -> int:
    """Erase all that an execution has stored, and return the number of values.

    ``execution`` is the id of the results' owner: the id given to ``agent_otel.execution``, the durable runtime's run,
    or the framework's thread or session. The call erases the execution's results in the store of
    ``AGENT_OTEL_CLAIM_CHECK`` and its payloads in the stores of this process's drivers. References to them no longer
    resolve. Values written during or after the call stay: call it when the execution has ended.

    Raises StoreError when a store fails, after the other stores were tried, and when no store is in use. Dapr and
    py-key-value stores cannot list keys and use an index instead: the number may include expired keys.
    """
    failed: list[StoreError] = []
    removed = 0
    for claims in _stores(execution):
        started = time.perf_counter()
        try:
            removed += claims.store.delete_group(claims.group(execution))
        except ours(Exception) as error:
            failed.append(_reported(claims, error, started))
        else:
            claims.report("delete", "ok", 0, started)
    return _concluded(removed, failed)


async def aforget(execution: str) -> int:
    """Erase all that an execution has stored, as `forget`, without blocking the event loop."""
    if not is_in_asyncio():
        return forget(execution)
    return await asyncio.wrap_future(_workers.submit(lambda: forget(execution)))


def _stores(execution: str) -> list[Claims]:
    """Return the stores in use, each with its keys; ValueError for an invalid id."""
    if not isinstance(execution, str) or not execution:
        raise ValueError("the id of an execution is a text, and not empty")
    check = policy.archive()
    claims = [*([] if check is None else [check.claims]), *payload_store.opened]
    if not claims:
        raise StoreError("AGENT_OTEL_CLAIM_CHECK names no store")
    return claims


def _reported(claims: Claims, error: Exception, started: float) -> StoreError:
    claims.report("delete", "error", 0, started)
    return error if isinstance(error, StoreError) else StoreError(said(error))


def _concluded(removed: int, failed: list[StoreError]) -> int:
    if failed:
        raise StoreError(f"not everything could be erased: {failed[0]}") from failed[0]
    return removed
