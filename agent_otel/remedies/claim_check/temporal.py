"""The store of the claim check as a driver of Temporal's external storage."""

from __future__ import annotations

import asyncio
import importlib
import types
from typing import TYPE_CHECKING, Any

from agent_otel import semconv
from agent_otel.remedies.claim_check.payload_store import KEEP_SECONDS, TIMEOUT_SECONDS, open_payloads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_otel.remedies.claim_check.payload_store import Payloads
    from agent_otel.remedies.claim_check.stores import ClaimStore

_TYPE = f"{semconv.SCOPE}.{semconv.CLAIM_CHECK}"
_REFERENCE = "reference"


def temporal_storage_driver(
    store: str | ClaimStore | None = None,
    *,
    key: str | None = None,
    keep_seconds: float = KEEP_SECONDS,
    timeout: float = TIMEOUT_SECONDS,
    name: str = _TYPE,
) -> Any:
    """Return a ``temporalio.converter.StorageDriver`` that keeps large payloads in the store of the claim check.

    For ``ExternalStorage(drivers=[…])`` of a data converter, which moves payloads from 256 KiB on out of the history;
    client and workers want the same. ``store`` is a URL as in ``AGENT_OTEL_CLAIM_CHECK`` or a store of your own,
    ``key`` the secret as in ``AGENT_OTEL_CLAIM_CHECK_KEY``; both default to these, and what is stored is encrypted
    where ``AGENT_OTEL_CLAIM_CHECK_ENCRYPTION_KEY`` is set. ``name`` is what the driver is called in the history.

    A payload is kept for ``keep_seconds``, from each write, 30 days by default: longer than the workflow runs and its
    namespace retains it, because a history whose payload is gone cannot be replayed. What is read is checked against
    its digest. ``timeout`` is in seconds, for one payload. When the store fails, the task fails, as with any driver:
    Temporal runs a workflow's task again until the store is back, an activity as its retry policy says.

    ValueError without a store or a key, StoreError when its library is missing, ImportError when temporalio is, or is
    older than 1.24.
    """
    converter = importlib.import_module("temporalio.converter")
    if not hasattr(converter, "StorageDriver"):
        raise ImportError("temporalio has external storage from version 1.24 on")
    made: type[Any] = types.new_class("ClaimStorageDriver", (_Driver, converter.StorageDriver))
    return made(open_payloads(store, key, keep_seconds, timeout), name)


class _Driver:
    """What a driver does; the class that Temporal wants it to be of is made when one is asked for."""

    def __init__(self, payloads: Payloads, name: str) -> None:
        self._payloads = payloads
        self._name = name
        self._claim = importlib.import_module("temporalio.converter").StorageDriverClaim
        self._payload = importlib.import_module("temporalio.api.common.v1").Payload

    def name(self) -> str:
        """What this driver is called in a history."""
        return self._name

    def type(self) -> str:
        """What drivers of this kind are called, however they are named."""
        return _TYPE

    async def store(self, context: Any, payloads: Sequence[Any]) -> list[Any]:
        """Store payloads; StoreError."""
        execution, node = _place(context.target)
        data = (payload.SerializeToString(deterministic=True) for payload in payloads)
        stored = await asyncio.gather(*(self._payloads.aput(each, execution, node) for each in data))
        return [self._claim(claim_data={_REFERENCE: str(reference)}) for reference in stored]

    async def retrieve(self, _: Any, claims: Sequence[Any]) -> list[Any]:
        """Get payloads back; NotFoundError for one that is gone, StoreError."""
        wanted = (claim.claim_data.get(_REFERENCE, "") for claim in claims)
        data = await asyncio.gather(*(self._payloads.aget(reference) for reference in wanted))
        return [self._payload.FromString(each) for each in data]


def _place(target: Any) -> tuple[str, str]:
    """Return the execution that a payload belongs to, and the type of the workflow or activity.

    The run, as tool results have it, so that both are forgotten together; before the run has begun, the workflow.
    """
    if target is None:
        return "unknown", "payload"
    return target.run_id or f"{target.namespace or '-'}/{target.id or '-'}", target.type or "payload"
