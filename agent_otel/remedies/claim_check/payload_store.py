"""Whole payloads of a durable runtime in the store of the claim check, for the runtime's storage drivers.

A payload moved out of a history exists nowhere else: failures are raised, and a key is required.
"""

from __future__ import annotations

import asyncio
import importlib
import time
import types
import weakref
from typing import TYPE_CHECKING, Any, Final

from agent_otel import semconv, settings
from agent_otel._internal import errors
from agent_otel._internal.daemon_pool import Workers, is_in_asyncio, run_now, settled
from agent_otel._internal.errors import ours
from agent_otel.remedies.claim_check import policy
from agent_otel.remedies.claim_check.envelope import BadReferenceError, Claims, Origin, Reference, Reserved
from agent_otel.remedies.claim_check.reader import ClaimReader
from agent_otel.remedies.claim_check.serialization import BINARY
from agent_otel.remedies.claim_check.stores import NotFoundError, StoreError, open_store
from agent_otel.remedies.claim_check.stores.base import said
from agent_otel.settings.kinds import KEYS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_otel.remedies.claim_check.stores import ClaimStore


KEEP_SECONDS: Final = 30 * 86_400.0
"""TTL of a payload from each write: the history that refers to it has to end before."""

TIMEOUT_SECONDS: Final = 10.0

#: All payloads have one owner, which no execution's id can equal: access to the history gives access to its payloads.
_OWNER: Final = Reserved("payloads")

#: Payloads that wait for a thread, each as long as its timeout: a runtime hands over those of all its tasks at once.
_MOST_WAITING: Final = 16_384

_workers = Workers("payloads", 8, _MOST_WAITING)
_reading = Workers("payloads-read", 8, _MOST_WAITING)

#: The payload stores that this process uses, for erasing an execution.
opened: Final[weakref.WeakSet[Claims]] = weakref.WeakSet()


class Payloads:
    """Writer and reader of payloads; a read returns every byte as written or fails."""

    def __init__(self, claims: Claims, *, keep_seconds: float, timeout: float) -> None:
        self._claims = claims
        opened.add(claims)
        self._keep_seconds = keep_seconds
        self._timeout = timeout
        self._reader = ClaimReader(claims, timeout=timeout, workers=_reading)

    def put(self, data: bytes, execution: str, node: str) -> Reference:
        """Store a payload of a node in an execution; an equal payload has the same key. Raises StoreError."""
        return run_now(self.aput(data, execution, node, blocks=True))

    async def aput(self, data: bytes, execution: str, node: str, *, blocks: bool = False) -> Reference:
        """Store a payload as `put` does, without blocking asyncio's event loop."""
        started = time.perf_counter()
        try:
            writing = _workers.submit(lambda: self._write(data, execution, node))
        except ours(RuntimeError) as error:
            raise StoreError(f"a payload could not be stored: {said(error)}") from error
        try:
            await settled(writing, self._timeout, blocks=blocks)
        finally:
            is_late = writing.cancel() or not writing.done()
        failure = None if is_late else writing.exception()
        if is_late or failure is not None:
            self._claims.report("put", "timeout" if is_late else "error", 0, started)
            reason = f"no answer within {self._timeout:g} s" if failure is None else said(failure)
            raise StoreError(f"a payload could not be stored: {reason}") from failure
        self._claims.report("put", "ok", len(data), started)
        return writing.result()

    def get(self, reference: str) -> bytes:
        """Return a payload; NotFoundError when it expired or has another key, StoreError when the store fails."""
        return run_now(self.aget(reference, blocks=True))

    async def aget(self, reference: str, *, blocks: bool = False) -> bytes:
        """Return a payload as `get` does, without blocking asyncio's event loop."""
        try:
            return (await self._reader.aresolve(reference, caller=_OWNER, blocks=blocks)).data
        except NotFoundError:
            raise NotFoundError(
                f"the payload {reference[:200]} is not in the store: it was kept for {self._keep_seconds:g} s, or "
                f"AGENT_OTEL_CLAIM_CHECK_KEY was another one"
            ) from None

    def knows(self, text: str) -> bool:
        """Return True for a reference that was sealed with this key."""
        try:
            return self._claims.signer.vouches(Reference.parse(text), _OWNER)
        except BadReferenceError:
            return False

    def _write(self, data: bytes, execution: str, node: str) -> Reference:
        """Store a payload, in a worker thread."""
        call = self._claims.signer.seal("payload", data)
        origin = Origin(_OWNER, execution, node, "payload", call)
        reference, stored = self._claims.sealed(data, origin, content_type=BINARY, ttl=self._keep_seconds)
        self._claims.store.put(reference.key, stored, self._keep_seconds)
        return reference


def open_payloads(store: str | ClaimStore | None, key: str | None, keep_seconds: float, timeout: float) -> Payloads:
    """Open a store by its URL; None means ``AGENT_OTEL_CLAIM_CHECK`` and ``AGENT_OTEL_CLAIM_CHECK_KEY``.

    Raises ValueError without a store or a key: without a key, no process could read the payloads after a restart.
    Raises StoreError when the URL names no store, or its library is not installed.
    """
    chosen = settings.current()
    wanted, secret = store or chosen.claim_check, key or chosen.claim_check_key
    if not wanted:
        raise ValueError("no store is named: give the URL of one, or set AGENT_OTEL_CLAIM_CHECK")
    if not secret:
        raise ValueError("no key is given: without AGENT_OTEL_CLAIM_CHECK_KEY a restart would lose every payload")
    try:
        secret = KEYS.parse(secret)
    except ours(ValueError) as error:
        raise ValueError(f"the key is not {error}") from None
    if not (keep_seconds > 0 and timeout > 0):
        raise ValueError("keep_seconds and timeout are above 0")
    claims = Claims(
        open_store(wanted, timeout) if isinstance(wanted, str) else wanted,
        key=secret,
        encryption_key=chosen.claim_check_encryption_key,
        tenant=chosen.claim_check_tenant,
        report=policy.report,
    )
    return Payloads(claims, keep_seconds=keep_seconds, timeout=timeout)


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
    history; client and workers need the same store and key. ``store``, ``key``, ``keep_seconds`` and ``timeout`` are as
    in ``durabletask_payload_store``: choose more seconds than the workflow's lifetime plus its namespace's retention.
    ``name`` is the driver's name in the history. When the store fails, the task fails, and Temporal retries it.

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
        # The execution is the run, as for tool results, so that `forget` erases both; before it begins, the workflow.
        target, execution, node = context.target, "unknown", "payload"
        if target is not None:
            execution = target.run_id or f"{target.namespace or '-'}/{target.id or '-'}"
            node = target.type or node
        data = (payload.SerializeToString(deterministic=True) for payload in payloads)
        stored = await asyncio.gather(*(self._payloads.aput(each, execution, node) for each in data))
        return [self._claim(claim_data={_REFERENCE: str(reference)}) for reference in stored]

    async def retrieve(self, _: Any, claims: Sequence[Any]) -> list[Any]:
        """Return payloads; NotFoundError when one does not exist any more, StoreError when the store fails."""
        wanted = (claim.claim_data.get(_REFERENCE, "") for claim in claims)
        data = await asyncio.gather(*(self._payloads.aget(reference) for reference in wanted))
        return [self._payload.FromString(each) for each in data]


THRESHOLD_BYTES: Final = 256 * 1024
"""durabletask's own default, since 1.12."""

MAX_BYTES: Final = 10 * 1024 * 1024
"""durabletask's own default."""


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
    to these variables. Payloads above ``threshold_bytes`` UTF-8 bytes are stored; durabletask rejects those above
    ``max_bytes`` and reports that in its log only. A payload is kept for ``keep_seconds`` from each write: choose more
    than the lifetime of the orchestration and its history. ``timeout`` is in seconds, for one payload.

    When the store fails, a payload stays in the message. A payload that cannot be read raises StoreError. Raises
    ValueError without a store or a key, StoreError without the store's library, ImportError without durabletask 1.5 or
    later.
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
        return run_now(self.upload_async(data, instance_id=instance_id, blocks=True))

    async def upload_async(self, data: bytes, *, instance_id: str | None = None, blocks: bool = False) -> str:
        """Store a payload as `upload` does, without blocking the event loop."""
        try:
            return str(await self._payloads.aput(data, instance_id or "-", "payload", blocks=blocks))
        except StoreError as error:  # durabletask puts the returned text into the message
            errors.warn_once("payload store", f"Large payloads stay in durabletask's messages: {said(error)}")
            return data.decode()

    def download(self, token: str) -> bytes:
        """Return a payload; NotFoundError when it does not exist any more, StoreError when the store fails."""
        return self._payloads.get(token)

    async def download_async(self, token: str) -> bytes:
        """Return a payload as `download` does, without blocking the event loop."""
        return await self._payloads.aget(token)

    def is_known_token(self, value: str) -> bool:
        """Return True for a reference sealed with this key; any other text is ordinary text."""
        return self._payloads.knows(value)


_forgetting = Workers("forgetting", 8)


def forget(execution: str) -> int:
    """Erase all that an execution has stored, and return the number of values.

    ``execution`` is the id of the results' owner. The call erases its results in the store of
    ``AGENT_OTEL_CLAIM_CHECK`` and its payloads in the stores of this process's drivers. Values written during or after
    the call stay: call it when the execution has ended.

    Raises StoreError when a store fails, after trying the remaining stores, and when no store is in use. With Dapr and
    py-key-value stores, the number may include expired keys.
    """
    if not isinstance(execution, str) or not execution:
        raise ValueError("the id of an execution is a text, and not empty")
    check = policy.archive()
    stores = [*([] if check is None else [check.claims]), *opened]
    if not stores:
        raise StoreError("AGENT_OTEL_CLAIM_CHECK names no store")
    failed: list[StoreError] = []
    removed = 0
    for claims in stores:
        started = time.perf_counter()
        try:
            removed += claims.store.delete_group(claims.group(execution))
        except ours(Exception) as error:
            claims.report("delete", "error", 0, started)
            failed.append(error if isinstance(error, StoreError) else StoreError(said(error)))
        else:
            claims.report("delete", "ok", 0, started)
    if failed:
        raise StoreError(f"not everything could be erased: {failed[0]}") from failed[0]
    return removed


async def aforget(execution: str) -> int:
    """Do the same as ``forget``, without blocking the event loop."""
    if not is_in_asyncio():
        return forget(execution)
    return await asyncio.wrap_future(_forgetting.submit(lambda: forget(execution)))
