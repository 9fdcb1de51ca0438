"""Erasing what an execution has stored: its tool results, its summarised history and its payloads."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from agent_otel._internal.daemon_pool import is_in_asyncio
from agent_otel.remedies.claim_check import payload_store, policy
from agent_otel.remedies.claim_check.stores import StoreError

if TYPE_CHECKING:
    from agent_otel.remedies.claim_check.keys import Claims


def forget(execution: str) -> int:
    """Erase all that an execution has stored, and return how many values that were.

    ``execution`` is the id that its results belong to: that given to ``agent_otel.execution``, the durable runtime's
    run, or the framework's thread or session. Erased are its results in the store of ``AGENT_OTEL_CLAIM_CHECK``, and
    its payloads in the stores of this process's drivers. References to them are then good for nothing. What is written
    while this runs, or later, stays: call it when the execution has ended.

    StoreError when a store fails, after all others were asked, and where no store is in use. An index stands in for a
    list of keys where the store has none (Dapr, py-key-value): keys that have expired may be among those counted.
    """
    failed: list[StoreError] = []
    removed = 0
    for claims in _stores(execution):
        started = time.perf_counter()
        try:
            removed += claims.store.delete_group(claims.group(execution))
        except Exception as error:
            failed.append(_reported(claims, error, started))
        else:
            claims.report("delete", "ok", 0, started)
    return _concluded(removed, failed)


async def aforget(execution: str) -> int:
    """Erase all that an execution has stored, as `forget`, while the event loop goes on."""
    if not is_in_asyncio():
        return forget(execution)
    failed: list[StoreError] = []
    removed = 0
    for claims in _stores(execution):
        started = time.perf_counter()
        try:
            removed += await claims.store.adelete_group(claims.group(execution))
        except Exception as error:
            failed.append(_reported(claims, error, started))
        else:
            claims.report("delete", "ok", 0, started)
    return _concluded(removed, failed)


def _stores(execution: str) -> list[Claims]:
    """Return the stores to ask, each with its keys; ValueError for what is no id."""
    if not isinstance(execution, str) or not execution:
        raise ValueError("the id of an execution is a text, and not empty")
    check = policy.current()
    claims = [*([] if check is None else [check.claims]), *payload_store.opened]
    if not claims:
        raise StoreError("AGENT_OTEL_CLAIM_CHECK names no store")
    return claims


def _reported(claims: Claims, error: Exception, started: float) -> StoreError:
    claims.report("delete", "error", 0, started)
    return error if isinstance(error, StoreError) else StoreError(f"{type(error).__name__}: {error}")


def _concluded(removed: int, failed: list[StoreError]) -> int:
    if failed:
        raise StoreError(f"not everything could be erased: {failed[0]}") from failed[0]
    return removed
