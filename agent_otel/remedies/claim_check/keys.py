"""The store and the keys that writers and readers of results share."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol

from agent_otel._internal import errors
from agent_otel.core import execution_context
from agent_otel.remedies.claim_check import references
from agent_otel.remedies.claim_check.cipher import Cipher
from agent_otel.remedies.claim_check.envelope import HEADER_BYTES, Envelopes
from agent_otel.remedies.claim_check.references import Signer
from agent_otel.remedies.claim_check.stores.base import group_of

if TYPE_CHECKING:
    from agent_otel.remedies.claim_check.envelope import Origin
    from agent_otel.remedies.claim_check.references import Reference
    from agent_otel.remedies.claim_check.stores.base import ClaimStore

#: Keys that are recognised when another call of the process would have them.
_MOST_CALLS: Final = 4096

Operation = Literal["put", "get", "range", "head", "delete"]
Result = Literal["ok", "error", "timeout", "open", "too_large", "not_found", "denied", "expired", "corrupt"]


class Report(Protocol):
    """Callback for each operation on the store; called from any thread."""

    def __call__(self, operation: Operation, result: Result, size: int, seconds: float, /) -> object:
        """Count an operation; ``size`` is in bytes of the result, 0 when none was transferred."""


class Sealed(NamedTuple):
    """The bytes to store under the reference's key."""

    reference: Reference
    data: bytes


class Claims:
    """A store and its keys.

    ``key`` is the secret of references, ``encryption_key`` that of encryption at rest (32 bytes in base64; empty means
    no encryption). Both may be several keys separated by commas: the first is used, the others are still accepted.
    ``tenant`` is part of every key and every seal. ValueError for an invalid encryption key.
    """

    def __init__(
        self,
        store: ClaimStore,
        *,
        key: str = "",
        encryption_key: str = "",
        tenant: str = "",
        report: Report | None = None,
    ) -> None:
        self.store = store
        self._tenant = tenant
        self.signer = Signer(key, tenant)
        self.envelopes = Envelopes(self.signer, Cipher(encryption_key) if encryption_key else None)
        self._report = report
        #: Digests of the calls that used a key first.
        self._calls: dict[int, str] = {}

    def sealed(
        self,
        data: bytes,
        origin: Origin,
        *,
        content_type: str,
        ttl: float,
        encoding: str | None = None,
    ) -> Sealed:
        """Return the envelope of a result, to store for ``ttl`` seconds, and its reference."""
        key = self.key(origin.execution, origin.node, origin.call)
        header, stored = self.envelopes.pack(
            key,
            data,
            origin,
            content_type=content_type,
            encoding=encoding,
            created=time.time(),
            ttl=ttl,
        )
        return Sealed(self.signer.refer(key, origin.owner, header.digest, len(data)), stored)

    def apart(self, origin: Origin) -> Origin:
        """Return the origin of a result, with its call's digest in the key where another call has the key already.

        Some models use an id again in each turn. The store knows the calls of all processes; of this one they are known
        before their results are stored, and where the store refuses to be read.
        """
        if origin.asked is None:
            return origin
        key = self.key(origin.execution, origin.node, origin.call)
        first = self._held(key)
        if first is None:
            first = self._calls.setdefault(hash(key), origin.asked)
            with errors.suppressed(RuntimeError):  # another thread writes
                while len(self._calls) > _MOST_CALLS:
                    self._calls.pop(next(iter(self._calls)), None)
        return origin if first == origin.asked else origin._replace(call=f"{origin.call}-{origin.asked}")

    def _held(self, key: str) -> str | None:
        """Return the digest of the call whose result is stored under a key; None where it cannot be read."""
        try:
            return self.envelopes.read_header(self.store.get_range(key, 0, HEADER_BYTES)).asked
        except errors.ours(Exception):  # mostly there is nothing; a write is tried in any case
            return None

    def key(self, execution: str, node: str, call: str) -> str:
        """Return the key of a result of this tenant; see `references.key`."""
        return references.key(execution, node, call, tenant=self._tenant)

    def group(self, execution: str) -> str:
        """Return the common prefix of the keys of an execution's results; see `group_of`."""
        return group_of(self.key(execution, "", ""))

    @errors.guarded("remedies.report")
    def report(self, operation: Operation, result: Result, size: int, started: float) -> None:
        """Report an operation that started at this value of ``time.perf_counter``."""
        if self._report is not None:
            self._report(operation, result, size, time.perf_counter() - started)


def current_owner() -> str | None:
    """Return the owner of a call made in this context, from the server's own data.

    The owner is the execution named by ``agent_otel.execution``, else the durable runtime's run, else the thread or
    session of the outermost run, else that run itself; None without any. A client that chooses the id of a thread or
    session chooses the owner: a server with such clients has to name executions itself.
    """
    return execution_context.owner_here()
