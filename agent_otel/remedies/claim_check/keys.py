"""The store and the keys, which writers and readers of results have in common."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from agent_otel._internal import errors
from agent_otel.core import execution_context
from agent_otel.remedies.claim_check import references
from agent_otel.remedies.claim_check.cipher import Cipher
from agent_otel.remedies.claim_check.envelope import Envelopes
from agent_otel.remedies.claim_check.references import Signer
from agent_otel.remedies.claim_check.stores.base import group_of

if TYPE_CHECKING:
    from agent_otel.remedies.claim_check.envelope import Origin
    from agent_otel.remedies.claim_check.references import Reference
    from agent_otel.remedies.claim_check.stores.base import ClaimStore

Operation = Literal["put", "get", "range", "head", "delete"]
Result = Literal["ok", "error", "timeout", "open", "too_large", "not_found", "denied", "expired", "corrupt"]


class Report(Protocol):
    """Told of each operation on the store, from any thread."""

    def __call__(self, operation: Operation, result: Result, size: int, seconds: float, /) -> object:
        """Count it; ``size`` is in bytes of the result, 0 where none went through."""


class Sealed(NamedTuple):
    """What is to be stored under the reference's key."""

    reference: Reference
    data: bytes


class Claims:
    """A store and the keys to it.

    ``key`` is the secret of references, ``encryption_key`` that of encryption at rest (32 bytes in base64; none, no
    encryption); of several, separated by commas, the first is used and the others are still accepted. ``tenant`` stands
    in every key and enters every seal. ValueError for an encryption key that is none.
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

    def sealed(  # noqa: PLR0913 - what a header says
        self,
        data: bytes,
        origin: Origin,
        *,
        content_type: str,
        ttl: float,
        encoding: str | None = None,
        truncated: bool = False,
    ) -> Sealed:
        """Make of a result what is to be stored for ``ttl`` seconds, and the reference to it."""
        key = self.key(origin.execution, origin.node, origin.call)
        header, stored = self.envelopes.pack(
            key,
            data,
            origin,
            content_type=content_type,
            encoding=encoding,
            truncated=truncated,
            created=time.time(),
            ttl=ttl,
        )
        return Sealed(self.signer.refer(key, origin.owner, header.digest, len(data)), stored)

    def key(self, execution: str, node: str, call: str) -> str:
        """Return the key of a result of this tenant; see `references.key`."""
        return references.key(execution, node, call, tenant=self._tenant)

    def group(self, execution: str) -> str:
        """Return what the keys of all results of an execution have in common; see `group_of`."""
        return group_of(self.key(execution, "", ""))

    @errors.guarded("remedies.report")
    def report(self, operation: Operation, result: Result, size: int, started: float) -> None:
        """Report an operation that was started at this reading of ``time.perf_counter``."""
        if self._report is not None:
            self._report(operation, result, size, time.perf_counter() - started)


def current_owner() -> str | None:
    """Return the owner of a call made here and now, as the server knows it.

    The execution named by ``agent_otel.execution``, else the durable runtime's run; None where there is neither. Then a
    tool's result belongs to the framework's thread or session: a client that chooses that id chooses the owner, so that
    a server whose clients do has to name executions itself.
    """
    named = execution_context.explicit.get()
    return execution_context.carrier() if named is None else named.id
