"""The claim check: a large result goes to a store, and the model gets its beginning and a reference.

A result has three forms: the text for the model (up to ``AGENT_OTEL_CLAIM_CHECK_BYTES``), a preview for a row of a user
interface (4 KiB), and the whole, which only the store has.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_otel import semconv, settings
from agent_otel._internal import env, errors
from agent_otel.core import remedy_hooks, step_visit, tool_visit
from agent_otel.core.result_budget import room_of
from agent_otel.core.types import Replacement
from agent_otel.measure.size import Size, text_bytes
from agent_otel.remedies.claim_check.envelope import Origin
from agent_otel.remedies.claim_check.keys import Claims, current_owner
from agent_otel.remedies.claim_check.preview import head
from agent_otel.remedies.claim_check.reader import ClaimReader
from agent_otel.remedies.claim_check.stores import StoreError, open_store
from agent_otel.remedies.claim_check.writer import ClaimWriter, NotStored, Stored
from agent_otel.remedies.sizes import correct, off_the_loop, read_size, refine

if TYPE_CHECKING:
    from agent_otel.core.tool_invocation import ToolInvocation
    from agent_otel.remedies.claim_check.http_app import Authorize, ResultsApp
    from agent_otel.remedies.claim_check.reader import Resolved
    from agent_otel.remedies.claim_check.serialization import Content, Raw
    from agent_otel.remedies.claim_check.stores import ClaimStore
    from agent_otel.settings import Settings

PREVIEW_BYTES: Final = 4 * 1024
"""Bytes of the preview in a row of a user interface: 400 KiB for 20 calls in each of 5 turns."""

GET_TOOL_RESULT: Final = "get_tool_result"
"""The tool with which a model reads a stored result; its own results are never stored."""

#: Bytes that go on whole when the store fails and neither a ceiling nor a payload's cap is known: half of 2 MiB, the
#: smallest payload cap that durable runtimes share (Temporal's and Dapr's).
_FITS_BYTES: Final = 1024 * 1024

#: Each view takes one part in 16 of the free room: of an empty state of 2 MiB, 32 KiB.
_SHARES: Final = 16
#: Bytes of a view while the state is not near its cap: enough for the model to decide whether to read on.
_LEAST_VIEW_BYTES: Final = 1024
#: Room for the line about the missing part: a reference has 512 characters at most.
_MARKER_BYTES: Final = 1024
_NO_OWNER: Final = (
    "AGENT_OTEL_CLAIM_CHECK: a result is not stored, because it belongs to no execution and nobody would be allowed to "
    "read it. Name one with agent_otel.execution, or give the framework a thread or session id."
)


class View(NamedTuple):
    """The replacement of a result, as text and as a JSON object, and the reference if it is stored."""

    replacement: Replacement
    bytes: int
    ref: str | None


class ClaimCheck:
    """A store with its writer and reader; StoreError or ValueError when the settings name no usable store."""

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

    def store(self, record: ToolInvocation, content: Content) -> Stored | NotStored:
        """Store a result within the time budget."""
        return self._writer.put(content, _origin(record), distinct=True)

    async def astore(self, record: ToolInvocation, content: Content) -> Stored | NotStored:
        """Store a result within the time budget, without blocking the event loop."""
        return await self._writer.aput(content, _origin(record), distinct=True)

    def keep(self, raw: Raw, tool: str, call_id: str) -> Stored | NotStored:
        """Store a value that a tool offers itself, for the execution of the call."""
        running = tool_visit.running()
        owner = current_owner() or (running.call.execution if running is not None else None) or ""
        origin = Origin(owner, owner, tool, tool, call_id)
        return self._writer.put(raw.content, origin, content_type=raw.content_type, distinct=True)

    def keep_answer(self, text: str, origin: Origin) -> None:
        """Store the result of a call for later attempts of its step; a later write replaces it."""
        self._writer.put(text, origin)

    async def akeep_answer(self, text: str, origin: Origin) -> None:
        """Store the result of a call for later attempts of its step, without blocking the event loop."""
        await self._writer.aput(text, origin)

    def view(self, record: ToolInvocation, content: Content, outcome: Stored | NotStored) -> View | None:
        """Return the view that replaces the result; None when the result was not stored and goes on whole."""
        if isinstance(outcome, Stored):
            size = Size(outcome.size, exact=True)
            correct(record, size)
            named, limit_bytes = self._settings.claim_check_tool, self._view_bytes(record)
            return view(record.name, outcome.text, size, str(outcome.reference), limit_bytes, names_tool=named)
        if outcome.reason == "no_owner":
            errors.warn_once("claim check owner", _NO_OWNER)
        if self._fits(record, content):
            return None
        limit_bytes = self._view_bytes(record)
        size = read_size(record) or Size(content.least_bytes, exact=False)
        return view(record.name, content.beginning(limit_bytes), size, None, limit_bytes)

    async def aview(self, record: ToolInvocation, content: Content, outcome: Stored | NotStored) -> View | None:
        """Return the same as `view`, without blocking the event loop while a result that is not stored is read."""
        if isinstance(outcome, Stored) or type(content.value) is str:
            return self.view(record, content, outcome)
        return await off_the_loop(lambda: self.view(record, content, outcome))

    def _view_bytes(self, record: ToolInvocation) -> int:
        """Return the bytes of a result for the model: fewer, the fuller the state that carries it in later turns."""
        most_bytes = self._settings.claim_check_bytes
        room = room_of(record.state)
        left_bytes = room.left_bytes(self._settings.payload_warn_ratio)
        if room.cap_bytes is not None and left_bytes is not None:
            is_near = room.taken_bytes >= room.cap_bytes * self._settings.payload_near_ratio
            most_bytes = min(most_bytes, max(left_bytes // _SHARES, 0 if is_near else _LEAST_VIEW_BYTES))
        ceiling_bytes = self._settings.result_ceiling_bytes
        if ceiling_bytes:  # with `auto` the room above is the limit
            most_bytes = min(most_bytes, ceiling_bytes - _MARKER_BYTES)
        return max(most_bytes, 0)

    def _fits(self, record: ToolInvocation, content: Content) -> bool:
        """Return True when a result that could not be stored may go on whole."""
        left_bytes = room_of(record.state).left_bytes(self._settings.payload_warn_ratio)
        limits = (left_bytes, self._settings.result_ceiling_bytes or None)
        most_bytes = min((limit for limit in limits if limit is not None), default=_FITS_BYTES)
        if content.least_bytes > most_bytes:
            return False
        refine(record, content.value, most_bytes)
        size = read_size(record)
        return size is not None and size.bytes <= most_bytes


def view(  # noqa: PLR0913 - the parts of a view
    tool: str, text: str | None, size: Size, ref: str | None, limit_bytes: int, *, names_tool: bool = True
) -> View:
    """Return the beginning of a result, at most ``limit_bytes``, and a line about the rest."""
    shown = "" if text is None else head(text, limit_bytes)
    shown_bytes = text_bytes(shown)
    if ref is None:
        rest = "the rest could not be stored and is lost; ask for something smaller"
    else:
        rest = f'the whole is stored: read on with {GET_TOOL_RESULT}(ref="{ref}")'
        rest = rest if names_tool else f'the whole is stored: ref="{ref}"'
    whole = f"{'' if size.exact else 'more than '}{size.bytes} bytes"
    marker = f"[{shown_bytes} of {whole} of {tool}'s result shown; {rest}]"
    text = f"{shown}\n{marker}" if shown else marker
    data = {"content": shown, "shown_bytes": shown_bytes, "size_bytes": size.bytes, "ref": ref, "note": rest}
    return View(Replacement(text, data), text_bytes(text), ref)


def _origin(record: ToolInvocation) -> Origin:
    """Return the owner and the place of a result, from this process's data, never from the model's."""
    step = step_visit.current_step()
    owner = current_owner() or record.call.execution or ""
    place = (step.activity if step is not None else None) or record.agent or "agent"
    # Call ids are not unique: some models restart them in each turn, some send none. The writer adds a digest of the
    # result to the key. Different results then have different keys, and a retry with the same result has the same key.
    return Origin(owner, owner, place, record.name, record.call.call_id or "call")


def report(operation: str, result: str, size: int, seconds: float) -> None:
    """Record an operation on the store, while the package is enabled."""
    if env.active:
        from agent_otel.telemetry.setup import telemetry  # noqa: PLC0415 - who only reads needs no providers

        telemetry().metrics.claim_check(operation, result, size, seconds)


_given: ClaimStore | None = None


def use_store(store: ClaimStore) -> None:
    """Use the program's own store, such as a py-key-value store, instead of the URL's.

    ``AGENT_OTEL_CLAIM_CHECK`` still enables the claim check. Call this before the first tool call.
    """
    global _given  # noqa: PLW0603 - one per process, as the settings are
    _given = store
    current.cache_clear()
    remedy_hooks.result_remedies.cache_clear()  # built when the first framework is imported


@functools.lru_cache(maxsize=1)
def current() -> ClaimCheck | None:
    """Return the claim check of this process; None when it is off or its settings are invalid, which is logged once."""
    chosen = settings.current()
    if not chosen.claim_check:
        return None
    try:
        return ClaimCheck(chosen)
    except (StoreError, ValueError) as error:
        errors.warn_once(semconv.CLAIM_CHECK, f"AGENT_OTEL_CLAIM_CHECK is of no use, results stay whole: {error}")
        return None


def reader() -> ClaimReader:
    """Return the reader of stored results; StoreError while ``AGENT_OTEL_CLAIM_CHECK`` names no store."""
    check = current()
    if check is None:
        raise StoreError("AGENT_OTEL_CLAIM_CHECK names no store")
    return check.reader


def resolve(ref: str, *, caller: str | None = None) -> Resolved:
    """Return the whole result of a reference.

    ``caller`` is the execution that owns the result, from the server's own data, never from a client's. By default it
    is the execution in which this is called. Raises NotFoundError, with the same message for a reference that is
    forged, another owner's, expired or unknown; StoreError when the store fails.
    """
    return reader().resolve(ref, caller=caller)


async def aresolve(ref: str, *, caller: str | None = None) -> Resolved:
    """Return the whole result as `resolve` does, without blocking the event loop."""
    return await reader().aresolve(ref, caller=caller)


def results_app(authorize: Authorize) -> ResultsApp:
    """Return an ASGI application that serves stored results to authorised callers; mount it at any path.

    ``authorize(scope, execution)`` returns on the server the owner for whom the caller may read; see `http_app`. Raises
    StoreError while ``AGENT_OTEL_CLAIM_CHECK`` names no store.
    """
    from agent_otel.remedies.claim_check.http_app import ResultsApp  # noqa: PLC0415 - where results are served, only

    return ResultsApp(reader(), authorize)
