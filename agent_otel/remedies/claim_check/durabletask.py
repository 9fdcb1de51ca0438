"""The store of the claim check as a payload store of Microsoft's durabletask."""

from __future__ import annotations

import importlib
import types
from typing import TYPE_CHECKING, Any, Final

from agent_otel._internal import errors
from agent_otel.remedies.claim_check.payload_store import KEEP_SECONDS, TIMEOUT_SECONDS, open_payloads
from agent_otel.remedies.claim_check.stores.base import StoreError, said

if TYPE_CHECKING:
    from agent_otel.remedies.claim_check.payload_store import Payloads
    from agent_otel.remedies.claim_check.stores import ClaimStore

THRESHOLD_BYTES: Final = 256 * 1024
"""durabletask's own default, since 1.12."""

MAX_BYTES: Final = 10 * 1024 * 1024
"""durabletask's own default."""

_NODE = "payload"


def durabletask_payload_store(  # noqa: PLR0913 - each has a default
    store: str | ClaimStore | None = None,
    *,
    key: str | None = None,
    threshold_bytes: int = THRESHOLD_BYTES,
    max_bytes: int = MAX_BYTES,
    keep_seconds: float = KEEP_SECONDS,
    timeout: float = TIMEOUT_SECONDS,
) -> Any:
    """Return a ``durabletask.payload.PayloadStore`` that keeps large payloads in the store of the claim check.

    Pass it as ``payload_store=`` to a client and its workers; all need the same store and key. ``store`` is a URL as in
    ``AGENT_OTEL_CLAIM_CHECK`` or a store object, ``key`` the secret as in ``AGENT_OTEL_CLAIM_CHECK_KEY``; both default
    to these variables. Values are encrypted when ``AGENT_OTEL_CLAIM_CHECK_ENCRYPTION_KEY`` is set. Payloads above
    ``threshold_bytes`` UTF-8 bytes are stored; durabletask rejects those above ``max_bytes`` and reports that in its
    log only. A payload is kept for ``keep_seconds`` from each write, 30 days by default: choose more than the lifetime
    of the orchestration and its history. Each read checks the digest. ``timeout`` is in seconds, for one payload.

    When the store fails, a payload stays in the message, where it may still fit: on an error durabletask would only log
    it, and the orchestration would wait forever. A payload that cannot be read raises StoreError.

    Raises ValueError without a store or a key, StoreError without the store's library, ImportError without durabletask
    1.5 or later.
    """
    payload = importlib.import_module("durabletask.payload")
    made: type[Any] = types.new_class("ClaimPayloadStore", (_Store, payload.PayloadStore))
    options = payload.LargePayloadStorageOptions(
        threshold_bytes=threshold_bytes, max_stored_payload_bytes=max_bytes, enable_compression=False
    )
    return made(open_payloads(store, key, keep_seconds, timeout), options)


class _Store:
    """Methods of a payload store; the subclass of durabletask's class is created on demand, without an import here."""

    def __init__(self, payloads: Payloads, options: Any) -> None:
        self._payloads = payloads
        self._options = options

    @property
    def options(self) -> Any:
        """Return the sizes from which and up to which payloads are stored."""
        return self._options

    def upload(self, data: bytes, *, instance_id: str | None = None) -> str:
        """Store a payload; return its reference, or the payload itself when the store fails."""
        try:
            return str(self._payloads.put(data, instance_id or "-", _NODE))
        except StoreError as error:
            return _inline(data, error)

    async def upload_async(self, data: bytes, *, instance_id: str | None = None) -> str:
        """Store a payload as `upload` does, without blocking the event loop."""
        try:
            return str(await self._payloads.aput(data, instance_id or "-", _NODE))
        except StoreError as error:
            return _inline(data, error)

    def download(self, token: str) -> bytes:
        """Return a payload; NotFoundError when it does not exist any more, StoreError when the store fails."""
        return self._payloads.get(token)

    async def download_async(self, token: str) -> bytes:
        """Return a payload as `download` does, without blocking the event loop."""
        return await self._payloads.aget(token)

    def is_known_token(self, value: str) -> bool:
        """Return True for a reference sealed with this key; any other text is ordinary text."""
        return self._payloads.knows(value)


def _inline(data: bytes, error: StoreError) -> str:
    """Return the payload itself: durabletask puts the returned text into the message."""
    errors.warn_once("payload store", f"Large payloads stay in durabletask's messages: {said(error)}")
    return data.decode()
