"""The claim check: a large result goes to a store, and the model gets its beginning and a reference.

A result has three forms: the text for the model (up to ``AGENT_OTEL_CLAIM_CHECK_BYTES``), a preview for a row of a user
interface (4 KiB), and the whole, which only the store has.
"""

from __future__ import annotations

import functools
import json
import re
import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from agent_otel import semconv, settings
from agent_otel._internal import env, errors
from agent_otel._internal.daemon_pool import run_now
from agent_otel.core import execution_context, remedy_hooks, tool_visit
from agent_otel.core.payload_cap import room_of
from agent_otel.core.types import Claim, Remedied, Replacement
from agent_otel.measure.size import Size, size, text_bytes
from agent_otel.remedies.claim_check.envelope import Claims, Origin, current_owner
from agent_otel.remedies.claim_check.reader import ClaimReader, ResultsApp
from agent_otel.remedies.claim_check.serialization import Content, correct, head, off_the_loop, read_size, refine
from agent_otel.remedies.claim_check.stores import StoreError, open_store
from agent_otel.remedies.claim_check.writer import ClaimWriter, NotStored, Stored

if TYPE_CHECKING:
    from agent_otel.core.payload_cap import Room
    from agent_otel.core.tool_invocation import ToolInvocation
    from agent_otel.remedies.claim_check.reader import Authorize, Resolved
    from agent_otel.remedies.claim_check.stores import ClaimStore
    from agent_otel.settings import Settings


#: Turns that are likely still to come.
TURNS: Final = 10
#: Turns of a long run: where the runtime keeps the payload of each turn in a history with a cap, so many payloads fit.
LONG_RUN_TURNS: Final = 50
#: Share of its cap that the payload may take although the history has no room for a long run.
_LEAST_SHARE: Final = 0.4
#: Bytes of a view while the payload is not near its cap: enough for the model to decide whether to read on.
LEAST_BYTES: Final = 1024


def view_bytes(room: Room, most_bytes: int, floor_bytes: int, warn_ratio: float, near_ratio: float) -> int:
    """Return the bytes of the next view, its line about the rest included; 0 near the cap.

    Views fill the payload up to the middle between the ratios, so that a long run does not come near its cap.

    The view has ``most_bytes`` while 10 turns with views of ``floor_bytes`` fit behind the present turn, and not below
    ``floor_bytes`` while 10 turns fit, this one included. Then each turn gets a tenth of the rest.
    """
    if room.cap_bytes is None:
        return most_bytes
    if room.taken_bytes >= room.cap_bytes * near_ratio:
        return 0
    full_bytes = room.cap_bytes * (warn_ratio + near_ratio) / 2
    if room.history_cap_bytes is not None:
        of_history = room.history_cap_bytes * near_ratio / LONG_RUN_TURNS
        full_bytes = min(full_bytes, max(of_history, room.cap_bytes * _LEAST_SHARE))
    left_bytes = int(full_bytes) - room.taken_bytes
    per_turn = room.results * room.copies
    reserved_bytes = TURNS * (per_turn * floor_bytes + room.own_growth_bytes)
    now_bytes = (left_bytes - reserved_bytes) // (room.to_come * room.copies)
    if now_bytes < floor_bytes:
        even_bytes = (left_bytes - TURNS * room.own_growth_bytes) // (TURNS * per_turn)
        now_bytes = max(min(even_bytes, floor_bytes), LEAST_BYTES)
    return min(now_bytes, most_bytes)


PREVIEW_BYTES: Final = 4 * 1024
"""Bytes of the preview in a row of a user interface: 400 KiB for 20 calls in each of 5 turns."""

GET_TOOL_RESULT: Final = semconv.GET_TOOL_RESULT
"""The tool with which a model reads a stored result; its own results are never stored."""

_NAMED: Final = re.compile(rf'read on with {GET_TOOL_RESULT}\((ref=\\?"[^"]*")\)')

#: Bytes that go on whole when the store fails and neither a ceiling nor a payload's cap is known: half of 2 MiB, the
#: smallest payload cap that durable runtimes share (Temporal's and Dapr's).
_FITS_BYTES: Final = 1024 * 1024

_CALL_DIGITS: Final = 16
_NO_OWNER: Final = (
    "AGENT_OTEL_CLAIM_CHECK: a result is not stored, because it belongs to no execution and nobody would be allowed to "
    "read it. Name one with agent_otel.execution, or give the framework a thread or session id."
)


class ClaimCheck:
    """A store with its writer and reader; StoreError or ValueError when the settings name no usable store."""

    def __init__(self, chosen: Settings) -> None:
        store = _given or open_store(chosen.claim_check, chosen.claim_check_budget_seconds)
        self._settings = chosen
        # No other process can read this one's memory, so that a key of its own is all that it needs.
        in_memory = _given is None and chosen.claim_check.startswith("memory:")
        self.claims = Claims(
            store,
            key=chosen.claim_check_key or (secrets.token_hex(32) if in_memory else ""),
            encryption_key=chosen.claim_check_encryption_key,
            tenant=chosen.claim_check_tenant,
            report=report,
        )
        self.writer = ClaimWriter(
            self.claims,
            budget=chosen.claim_check_budget_seconds,
            ttl=chosen.claim_check_ttl_seconds,
            max_bytes=chosen.claim_check_max_bytes,
        )
        self.reader = ClaimReader(self.claims)
        #: Numbers of values that the handlers of running calls have stored themselves.
        self._kept: WeakKeyDictionary[ToolInvocation, int] = WeakKeyDictionary()

    def keep(self, value: object, tool: str, name: str, call: ToolInvocation | None = None) -> Stored | NotStored:
        """Store a value that a tool offers itself, for the execution of the call; by default that is the running one.

        The key is the call's with the name and a number, so that a retry replaces what the first attempt stored. A
        call without an id may be another one with the same arguments: a digest of the value is in its key. Values that
        the dispatch policy has injected into the call are not in what is stored.
        """
        call = call or tool_visit.running()
        content = Content(value, size(value).bytes, None if call is None else call.injected)
        if call is not None and call.call.call_id is not None:
            number = self._kept[call] = self._kept.get(call, 0) + 1
            origin = self._origin(call, f"-{name}-{number}")
            return self.writer.put(content, origin)
        owner = current_owner() or (call.call.execution if call is not None else None) or ""
        origin = Origin(owner, owner, tool, tool, name)
        return self.writer.put(content, origin, distinct=True)

    async def keep_text(self, text: str, origin: Origin, *, blocks: bool) -> str | None:
        """Store a text; return the id of its call there, None when it is not stored.

        Where another text of this process has the id, such as one of another agent, a digest is added to it.
        """
        digest = self.claims.signer.seal("text", text.encode("utf-8", "surrogatepass"))[:_CALL_DIGITS]
        if self.claims.first((origin.execution, origin.node, origin.call), digest) != digest:
            origin = origin._replace(call=f"{origin.call}-{digest}")
        outcome = await self.writer.aput(text, origin, blocks=blocks)
        return origin.call if isinstance(outcome, Stored) else None

    def _origin(self, record: ToolInvocation, part: str = "") -> Origin:
        """Return the owner and the place of a result, from this process's data, never from the model's.

        The call's segment is the call id, so that a retry replaces what the first attempt stored, and the ``part``.
        Models without call ids get a digest of the tool and its arguments; see also `Claims.apart`.
        """
        step = execution_context.current_step()
        owner = current_owner() or record.call.execution or ""
        node = (step.activity if step is not None else None) or record.agent or "agent"
        call_id = record.call.call_id
        digest = self.claims.signer.seal("call", record.name.encode(), (record.args_hash or "").encode())[:_CALL_DIGITS]
        if call_id is None:
            return Origin(owner, owner, node, record.name, f"call-{digest}{part}")
        return Origin(owner, owner, node, record.name, f"{call_id}{part}", digest)

    async def view(self, record: ToolInvocation, content: Content, *, blocks: bool) -> Remedied | None:
        """Store a result; return the view that replaces it, or None when the model gets the whole result.

        ``blocks`` blocks the thread. Otherwise another thread reads a result that is not stored.
        """
        outcome = await self.writer.aput(content, self._origin(record), blocks=blocks)
        if blocks or isinstance(outcome, Stored) or type(content.value) is str:
            return self._view(record, content, outcome)
        return await off_the_loop(lambda: self._view(record, content, outcome))

    def _view(self, record: ToolInvocation, content: Content, outcome: Stored | NotStored) -> Remedied | None:
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

    def _view_bytes(self, record: ToolInvocation) -> int:
        """Return the bytes of a result for the model: fewer, the fuller the state that carries it in later turns."""
        chosen = self._settings
        # The framework would store a longer view itself, and cut its reference off.
        limits = (chosen.claim_check_bytes, chosen.result_ceiling_bytes, record.call.offloads_above)
        most_bytes = min(filter(None, limits))
        floor_bytes = min(chosen.claim_check_floor_bytes, most_bytes)
        ratios = (chosen.payload_warn_ratio, chosen.payload_near_ratio)
        return view_bytes(room_of(record.state), most_bytes, floor_bytes, *ratios)

    def _fits(self, record: ToolInvocation, content: Content) -> bool:
        """Return True when the model may get the whole of a result that could not be stored."""
        left_bytes = room_of(record.state).left_bytes(self._settings.payload_warn_ratio)
        limits = (left_bytes, self._settings.result_ceiling_bytes or None)
        most_bytes = min((limit for limit in limits if limit is not None), default=_FITS_BYTES)
        if content.least_bytes > most_bytes:
            return False
        run_now(refine(record, content.value, most_bytes, blocks=True))
        size = read_size(record)
        return size is not None and size.bytes <= most_bytes


def view(  # noqa: PLR0913 - the parts of a view
    tool: str, text: str | None, size: Size, ref: str | None, limit_bytes: int, *, names_tool: bool = True
) -> Remedied:
    """Return the beginning of a result and a line about the rest, together at most ``limit_bytes``.

    Where the line alone is longer, it is all there is. Either form of the replacement keeps to the limit.
    """
    rest = "the rest could not be stored and is lost; ask for something smaller"
    if ref is not None:
        rest = f'read on with {GET_TOOL_RESULT}(ref="{ref}")' if names_tool else f'ref="{ref}"'
        rest = f"the whole is stored: {rest}"
    line = f"of {'' if size.exact else 'more than '}{size.bytes} bytes of {tool}'s result shown; {rest}]"
    # No number of shown bytes has more digits than the limit.
    line_bytes = text_bytes(f"[0 {line}") + len(str(limit_bytes))
    shown = "" if text is None else head(text, max(limit_bytes - line_bytes, 0))
    said = f"[{text_bytes(shown)} {line}"
    said = f"{shown}\n{said}" if shown else said
    data = {"content": shown, "shown_bytes": text_bytes(shown), "size_bytes": size.bytes, "ref": ref, "note": rest}
    over_bytes = text_bytes(json.dumps(data, ensure_ascii=False)) - limit_bytes
    if over_bytes > 0:  # by the escapes of JSON
        data["content"] = content = head(shown, max(text_bytes(shown) - over_bytes, 0))
        data["shown_bytes"] = text_bytes(content)
    claim = None if ref is None else Claim(ref, size.bytes, text_bytes(shown), head(shown, PREVIEW_BYTES))
    return Remedied(Replacement(said, data, claim=claim), semconv.CLAIM_CHECK, text_bytes(said), ref)


def without_tool(text: str) -> str:
    """Return a view that has the reference and does not name the tool; any other text as it is."""
    return _NAMED.sub(r"\1", text) if GET_TOOL_RESULT in text else text


def report(operation: str, result: str, size: int, seconds: float) -> None:
    """Record an operation on the store, while the package is enabled."""
    if env.active:
        from agent_otel.telemetry.setup import telemetry  # noqa: PLC0415 - who only reads needs no providers

        telemetry().metrics.claim_check(operation, result, size, seconds)


_OF_NO_USE: Final = "AGENT_OTEL_CLAIM_CHECK is of no use, results stay whole: "
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
    except errors.ours(StoreError, ValueError) as error:
        errors.warn_once(semconv.CLAIM_CHECK, f"{_OF_NO_USE}{error}")
    except errors.ours(Exception) as error:
        errors.warn_once(semconv.CLAIM_CHECK, f"{_OF_NO_USE}{errors.described(error)}")
    return None


def archive() -> ClaimCheck | None:
    """Return where the originals of summarised results go: the claim check, else a store of this process's memory."""
    chosen = settings.current()
    return current() if chosen.claim_check or not chosen.summarize_above_tokens else _in_memory()


@functools.lru_cache(maxsize=1)
def _in_memory() -> ClaimCheck:
    chosen = settings.current()
    return ClaimCheck(replace(chosen, claim_check="memory:", claim_check_key="", claim_check_encryption_key=""))


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


def delete(ref: str, *, caller: str | None = None) -> None:
    """Delete the result of a reference; ``caller`` and the errors are those of `resolve`."""
    reader().delete(ref, caller=caller)


async def adelete(ref: str, *, caller: str | None = None) -> None:
    """Delete the result of a reference, without blocking the event loop."""
    await reader().adelete(ref, caller=caller)


def results_app(authorize: Authorize) -> ResultsApp:
    """Return an ASGI application that serves stored results to authorised callers; mount it at any path.

    ``authorize(scope, execution)`` returns on the server the owner for whom the caller may read. Raises StoreError
    while ``AGENT_OTEL_CLAIM_CHECK`` names no store.
    """
    return ResultsApp(reader(), authorize)
