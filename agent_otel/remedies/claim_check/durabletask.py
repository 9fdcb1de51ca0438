"""The store of the claim check as a payload store of Microsoft's durabletask."""

from __future__ import annotations

import importlib
import types
from typing import TYPE_CHECKING, Any, Final

from agent_otel._internal import errors
from agent_otel.remedies.claim_check.payload_store import KEEP_SECONDS, TIMEOUT_SECONDS, open_payloads
from agent_otel.remedies.claim_check.stores import StoreError

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

    For ``payload_store=`` of a client and its workers, which want the same. ``store`` is a URL as in
    ``AGENT_OTEL_CLAIM_CHECK`` or a store of your own, ``key`` the secret as in ``AGENT_OTEL_CLAIM_CHECK_KEY``; both
    default to these, and what is stored is encrypted where ``AGENT_OTEL_CLAIM_CHECK_ENCRYPTION_KEY`` is set. Payloads
    above ``threshold_bytes`` UTF-8 bytes are stored; those above ``max_bytes`` durabletask refuses, in its log alone.
    A payload is kept for ``keep_seconds`` from each write, 30 days by default: longer than the orchestration and its
    history are to live. What is read is checked against its digest. ``timeout`` is in seconds, for one payload.

    When the store fails, a payload stays in the message, where it may still fit: durabletask would only log an error
    and the orchestration would wait for ever. What cannot be read is raised, as a StoreError.

    ValueError without a store or a key, StoreError when its library is missing, ImportError when durabletask is, or is
    older than 1.5.
    """
    payload = importlib.import_module("durabletask.payload")
    made: type[Any] = types.new_class("ClaimPayloadStore", (_Store, payload.PayloadStore))
    options = payload.LargePayloadStorageOptions(
        threshold_bytes=threshold_bytes, max_stored_payload_bytes=max_bytes, enable_compression=False
    )
    return made(open_payloads(store, key, keep_seconds, timeout), options)


class _Store:
    """What a payload store does; the class that durabletask wants it to be of is made when one is asked for."""

    def __init__(self, payloads: Payloads, options: Any) -> None:
        self._payloads = payloads
        self._options = options

    @property
    def options(self) -> Any:
        """From which size on payloads are stored, and up to which."""
        return self._options

    def upload(self, data: bytes, *, instance_id: str | None = None) -> str:
        """Store a payload; the reference to it, or the payload itself when the store fails."""
        try:
            return str(self._payloads.put(data, instance_id or "-", _NODE))
        except StoreError as error:
            return _inline(data, error)

    async def upload_async(self, data: bytes, *, instance_id: str | None = None) -> str:
        """As `upload`, while the event loop goes on."""
        try:
            return str(await self._payloads.aput(data, instance_id or "-", _NODE))
        except StoreError as error:
            return _inline(data, error)

    def download(self, token: str) -> bytes:
        """Get a payload back; NotFoundError when it is gone, StoreError."""
        return self._payloads.get(token)

    async def download_async(self, token: str) -> bytes:
        """As `download`, while the event loop goes on."""
        return await self._payloads.aget(token)

    def is_known_token(self, value: str) -> bool:
        """Whether a text is a reference made with this key; one that somebody else wrote is a text like any other."""
        return self._payloads.knows(value)


def _inline(data: bytes, error: StoreError) -> str:
    """What goes on in the message: durabletask puts whatever it is given in the place of the payload."""
    errors.warn_once("payload store", f"Large payloads stay in durabletask's messages: {error}")
    return data.decode()
