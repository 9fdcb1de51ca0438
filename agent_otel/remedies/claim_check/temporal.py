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

    Pass it to ``ExternalStorage(drivers=[…])`` of a data converter, which moves payloads of 256 KiB and more out of the
    history; client and workers need the same store and key. ``store`` is a URL as in ``AGENT_OTEL_CLAIM_CHECK`` or a
    store object, ``key`` the secret as in ``AGENT_OTEL_CLAIM_CHECK_KEY``; both default to these variables. Values are
    encrypted when ``AGENT_OTEL_CLAIM_CHECK_ENCRYPTION_KEY`` is set. ``name`` is the driver's name in the history.

    A payload is kept for ``keep_seconds`` from each write, 30 days by default: choose more than the workflow's lifetime
    plus its namespace's retention, because a history without its payload cannot be replayed. Each read checks the
    digest. ``timeout`` is in seconds, for one payload. When the store fails, the task fails, as with any driver:
    Temporal retries a workflow task until the store is back, and an activity by its retry policy.

    Raises ValueError without a store or a key, StoreError without the store's library, ImportError without temporalio
    1.24 or later.
    """
    converter = importlib.import_module("temporalio.converter")
    if not hasattr(converter, "StorageDriver"):
        raise ImportError("temporalio has external storage from version 1.24 on")
    made: type[Any] = types.new_class("ClaimStorageDriver", (_Driver, converter.StorageDriver))
    return made(open_payloads(store, key, keep_seconds, timeout), name)


class _Driver:
    """Methods of a driver; the subclass of Temporal's class is created on demand, without an import here."""

    def __init__(self, payloads: Payloads, name: str) -> None:
        self._payloads = payloads
        self._name = name
        self._claim = importlib.import_module("temporalio.converter").StorageDriverClaim
        self._payload = importlib.import_module("temporalio.api.common.v1").Payload

    def name(self) -> str:
        """Return the driver's name in a history."""
        return self._name

    def type(self) -> str:
        """Return the name of this kind of driver, whatever its instances are called."""
        return _TYPE

    async def store(self, context: Any, payloads: Sequence[Any]) -> list[Any]:
        """Store payloads; StoreError when the store fails."""
        execution, node = _place(context.target)
        data = (payload.SerializeToString(deterministic=True) for payload in payloads)
        stored = await asyncio.gather(*(self._payloads.aput(each, execution, node) for each in data))
        return [self._claim(claim_data={_REFERENCE: str(reference)}) for reference in stored]

    async def retrieve(self, _: Any, claims: Sequence[Any]) -> list[Any]:
        """Return payloads; NotFoundError when one does not exist any more, StoreError when the store fails."""
        wanted = (claim.claim_data.get(_REFERENCE, "") for claim in claims)
        data = await asyncio.gather(*(self._payloads.aget(reference) for reference in wanted))
        return [self._payload.FromString(each) for each in data]


def _place(target: Any) -> tuple[str, str]:
    """Return the execution that a payload belongs to, and the type of the workflow or activity.

    The execution is the run, as for tool results, so that `forget` erases both; before the run has begun, the workflow.
    """
    if target is None:
        return "unknown", "payload"
    return target.run_id or f"{target.namespace or '-'}/{target.id or '-'}", target.type or "payload"
