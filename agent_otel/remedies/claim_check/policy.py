"""The claim check: a large result goes to a store, and the model gets its beginning and a reference.

Of each result there are three forms: what the model reads (up to ``AGENT_OTEL_CLAIM_CHECK_BYTES``), a preview for a row
of a user interface (4 KiB), and the whole, which is in the store alone.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_otel import semconv, settings
from agent_otel._internal import env, errors
from agent_otel.core import payload
from agent_otel.core.types import Replacement
from agent_otel.measure.size import Size, text_bytes
from agent_otel.remedies.claim_check.envelope import Origin
from agent_otel.remedies.claim_check.keys import Claims, current_owner
from agent_otel.remedies.claim_check.preview import head
from agent_otel.remedies.claim_check.reader import ClaimReader
from agent_otel.remedies.claim_check.stores import StoreError, open_store
from agent_otel.remedies.claim_check.writer import ClaimWriter, NotStored, Stored
from agent_otel.remedies.payload_room import room_of
from agent_otel.remedies.sizes import correct, read_size

if TYPE_CHECKING:
    from agent_otel.core.tool_invocation import Record
    from agent_otel.remedies.claim_check.http_app import Authorize, ResultsApp
    from agent_otel.remedies.claim_check.reader import Resolved
    from agent_otel.remedies.claim_check.serialization import Content, Raw
    from agent_otel.remedies.claim_check.stores import ClaimStore
    from agent_otel.settings import Settings

PREVIEW_BYTES: Final = 4 * 1024
"""As much of a result as a row of a user interface shows: of 20 calls in each of 5 turns, 400 KiB."""

GET_TOOL_RESULT: Final = "get_tool_result"
"""The tool by which a model reads on; what it returns is never stored again."""

#: What goes on whole when the store cannot take it, where neither a ceiling nor a payload's cap is known: half of
#: 2 MiB, which is the smallest cap on a payload that durable runtimes have in common (Temporal's and Dapr's).
_FITS_BYTES: Final = 1024 * 1024

#: Each view takes so much of the room that is left: of an empty state of 2 MiB, 32 KiB.
_SHARES: Final = 16
#: What a model sees of a result as long as the state is not near its cap: enough to tell whether to read on.
_LEAST_VIEW_BYTES: Final = 1024
#: Room for the line that says what is missing: a reference has 512 characters at most.
_MARKER_BYTES: Final = 1024
_NO_OWNER: Final = (
    "AGENT_OTEL_CLAIM_CHECK: a result is not stored, because it belongs to no execution and nobody would be allowed to "
    "read it. Name one with agent_otel.execution, or give the framework a thread or session id."
)


class View(NamedTuple):
    """What the model reads instead of a result, as text and as a JSON object, and the reference if it is stored."""

    replacement: Replacement
    bytes: int
    ref: str | None


class ClaimCheck:
    """A store with whoever writes to it and reads from it; StoreError or ValueError when the settings name none."""

    def __init__(self, chosen: Settings) -> None:
        store = _given or open_store(chosen.claim_check, chosen.claim_check_budget_seconds)
        self._settings = chosen
        self.claims = Claims(
            store,
            key=chosen.claim_check_key,
            encryption_key=chosen.claim_check_encryption_key,
            tenant=chosen.claim_check_tenant,
            report=report,
        )
        self._writer = ClaimWriter(
            self.claims,
            budget=chosen.claim_check_budget_seconds,
            ttl=chosen.claim_check_ttl_seconds,
            max_bytes=chosen.claim_check_max_bytes,
        )
        self.reader = ClaimReader(self.claims)

    def store(self, record: Record, content: Content) -> Stored | NotStored:
        """Store a result, within the budget."""
        return self._writer.put(content, _origin(record), distinct=True)

    async def astore(self, record: Record, content: Content) -> Stored | NotStored:
        """Store a result, within the budget, while the event loop goes on."""
        return await self._writer.aput(content, _origin(record), distinct=True)

    def keep(self, raw: Raw, tool: str, call_id: str) -> Stored | NotStored:
        """Store something that a tool makes of its own accord, for the execution that the call is made in."""
        owner = current_owner() or ""
        origin = Origin(owner, owner, tool, tool, call_id)
        return self._writer.put(raw.content, origin, content_type=raw.content_type, distinct=True)

    def view(self, record: Record, content: Content, outcome: Stored | NotStored) -> View | None:
        """Return what goes on instead of the result; None when it was not stored and goes on whole."""
        if isinstance(outcome, Stored):
            size = Size(outcome.size, exact=True)
            correct(record, size)
            return view(record.name, outcome.text, size, str(outcome.reference), self._view_bytes(record))
        if outcome.reason == "no_owner":
            errors.warn_once("claim check owner", _NO_OWNER)
        if self._fits(record, content):
            return None
        limit_bytes = self._view_bytes(record)
        size = read_size(record) or Size(content.least_bytes, exact=False)
        return view(record.name, content.beginning(limit_bytes), size, None, limit_bytes)

    def _view_bytes(self, record: Record) -> int:
        """Return how much of a result the model gets: less, the fuller the state is that carries it in later turns."""
        most_bytes = self._settings.claim_check_bytes
        room = room_of(record)
        left_bytes = room.left_bytes(self._settings.payload_warn_ratio)
        if room.cap_bytes is not None and left_bytes is not None:
            is_near = room.taken_bytes >= room.cap_bytes * self._settings.payload_near_ratio
            most_bytes = min(most_bytes, max(left_bytes // _SHARES, 0 if is_near else _LEAST_VIEW_BYTES))
        ceiling_bytes = self._settings.result_ceiling_bytes
        if ceiling_bytes is not None:
            most_bytes = min(most_bytes, ceiling_bytes - _MARKER_BYTES)
        return max(most_bytes, 0)

    def _fits(self, record: Record, content: Content) -> bool:
        """Return whether a result that could not be stored may go on whole."""
        left_bytes = room_of(record).left_bytes(self._settings.payload_warn_ratio)
        limits = (left_bytes, self._settings.result_ceiling_bytes)
        most_bytes = min((limit for limit in limits if limit is not None), default=_FITS_BYTES)
        if content.least_bytes > most_bytes:
            return False
        size = read_size(record)
        if size is None or not size.exact:
            size = Size(len(content.raw().data), exact=True)
            correct(record, size)
        return size.bytes <= most_bytes


def view(tool: str, text: str | None, size: Size, ref: str | None, limit_bytes: int) -> View:
    """Return the beginning of a result of this size, at most ``limit_bytes``, and what became of the rest."""
    shown = "" if text is None else head(text, limit_bytes)
    shown_bytes = text_bytes(shown)
    if ref is None:
        rest = "the rest could not be stored and is lost; ask for something smaller"
    else:
        rest = f'the whole is stored: read on with {GET_TOOL_RESULT}(ref="{ref}")'
    whole = f"{'' if size.exact else 'more than '}{size.bytes} bytes"
    marker = f"[{shown_bytes} of {whole} of {tool}'s result shown; {rest}]"
    text = f"{shown}\n{marker}" if shown else marker
    data = {"content": shown, "shown_bytes": shown_bytes, "size_bytes": size.bytes, "ref": ref, "note": rest}
    return View(Replacement(text, data), text_bytes(text), ref)


def _origin(record: Record) -> Origin:
    """Return the owner and the place of a result, from what this process knows, never from what the model says."""
    step = payload.current_step()
    owner = current_owner() or record.call.execution or ""
    place = (step.activity if step is not None else None) or record.agent or "agent"
    # Some models number the calls of each turn anew, some not at all: the writer adds a digest of the result, which
    # tells them apart, and a retry that has the same result has the same key.
    return Origin(owner, owner, place, record.name, record.call.call_id or "call")


def report(operation: str, result: str, size: int, seconds: float) -> None:
    """Record an operation on the store, in a process that is measured."""
    if env.active:
        from agent_otel.telemetry.setup import telemetry  # noqa: PLC0415 - who only reads needs no providers

        telemetry().metrics.claim_check(operation, result, size, seconds)


_given: ClaimStore | None = None


def use_store(store: ClaimStore) -> None:
    """Use a store of the program's own, such as one of py-key-value's, in the place of what the URL names.

    ``AGENT_OTEL_CLAIM_CHECK`` switches the claim check on; to be called before the first tool call.
    """
    global _given  # noqa: PLW0603 - one per process, as the settings are
    _given = store
    current.cache_clear()


@functools.lru_cache(maxsize=1)
def current() -> ClaimCheck | None:
    """The claim check of this process; None when it is off, or its settings are no use, which is said once."""
    chosen = settings.current()
    if not chosen.claim_check:
        return None
    try:
        return ClaimCheck(chosen)
    except (StoreError, ValueError) as error:
        errors.warn_once(semconv.CLAIM_CHECK, f"AGENT_OTEL_CLAIM_CHECK is of no use, results stay whole: {error}")
        return None


def reader() -> ClaimReader:
    """Whoever reads what is stored; StoreError while ``AGENT_OTEL_CLAIM_CHECK`` names no store."""
    check = current()
    if check is None:
        raise StoreError("AGENT_OTEL_CLAIM_CHECK names no store")
    return check.reader


def resolve(ref: str, *, caller: str | None = None) -> Resolved:
    """Exchange a reference for the whole result.

    ``caller`` is the execution that the result belongs to, as the server knows it, never as a client says; left out,
    the execution in which this is called. NotFoundError, in the same words for a reference that is forged, somebody
    else's, expired or unknown, and StoreError when the store fails.
    """
    return reader().resolve(ref, caller=caller)


async def aresolve(ref: str, *, caller: str | None = None) -> Resolved:
    """As `resolve`, while the event loop goes on."""
    return await reader().aresolve(ref, caller=caller)


def results_app(authorize: Authorize) -> ResultsApp:
    """Return an ASGI application, to be mounted, that serves stored results to those who may read them.

    ``authorize(scope, execution)`` says on the server whose execution that is; see `http_app`.
    StoreError while ``AGENT_OTEL_CLAIM_CHECK`` names no store.
    """
    from agent_otel.remedies.claim_check.http_app import ResultsApp  # noqa: PLC0415 - where results are served, only

    return ResultsApp(reader(), authorize)
