"""The claim check: a large result goes to a store, and the model gets its beginning and a reference."""

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
from agent_otel.core import remedy_hooks, tool_visit
from agent_otel.core.payload_cap import room_of
from agent_otel.core.types import Claim, Remedied, Replacement
from agent_otel.measure.size import Size, size, text_bytes
from agent_otel.messages.fields import fields
from agent_otel.remedies.claim_check.envelope import PREFIX, Claims, Origin, current_owner
from agent_otel.remedies.claim_check.reader import ClaimReader, ResultsApp
from agent_otel.remedies.claim_check.serialization import (
    Content,
    correct,
    head,
    json_head,
    off_the_loop,
    raw_of,
    read_size,
)
from agent_otel.remedies.claim_check.stores import StoreError, open_store
from agent_otel.remedies.claim_check.writer import ClaimWriter, NotStored, Stored
from agent_otel.remedies.pagination import Cursor

if TYPE_CHECKING:
    from agent_otel.core.payload_cap import Room
    from agent_otel.core.tool_invocation import ToolInvocation
    from agent_otel.remedies.claim_check.reader import Authorize, Resolved
    from agent_otel.remedies.claim_check.stores import ClaimStore
    from agent_otel.settings import Settings


#: Further turns that a short run is expected to make; a longer one is expected to make half as many again.
_LEAST_TURNS: Final = 4
#: Where a history holds the payload of each turn, the share of the cap that views fill, and a long run's views.
_SHARE_WITH_HISTORY: Final = 0.35
_LONG_RUN_TURNS: Final = 12
_LEAST_BYTES: Final = 1024


def view_bytes(room: Room, most_bytes: int, floor_bytes: int, warn_ratio: float, near_ratio: float) -> int:
    """Return the bytes of the next view, its line about the rest included: a fair share of the room for results.

    It has at least ``floor_bytes``, or 1 KiB in a long run with a history, until the payload meets ``near_ratio``.
    """
    if room.cap_bytes is None:
        return most_bytes
    further = max(room.turns // 2, _LEAST_TURNS)
    share = _SHARE_WITH_HISTORY if room.has_history else (warn_ratio + near_ratio) / 2
    left_bytes = int(room.cap_bytes * share) - room.taken_bytes - further * room.own_growth_bytes
    now_bytes = left_bytes // (room.copies * (room.to_come + further * room.results))
    is_long = room.has_history and room.turns > _LONG_RUN_TURNS
    now_bytes = max(now_bytes, min(floor_bytes, _LEAST_BYTES) if is_long else floor_bytes)
    if room.taken_bytes > room.cap_bytes * near_ratio:
        now_bytes = min(now_bytes, max(room.cap_bytes - room.taken_bytes, 0) // (2 * room.copies * room.to_come))
    return min(now_bytes, most_bytes)


PREVIEW_BYTES: Final = 4 * 1024
"""Bytes of the preview in a row of a user interface: 400 KiB for 20 calls in each of 5 turns."""

GET_TOOL_RESULT: Final = semconv.GET_TOOL_RESULT
"""The tool with which a model reads a stored result; its own results are never stored."""

_NAMED: Final = re.compile(rf'read on with {GET_TOOL_RESULT}\((ref=\\?"[^"]*")(?:, cursor=\\?"[^"]*")?\)')
#: The line of a view, in either form of it.
_LINE: Final = re.compile(r"\n?\[\d+ of (?:more than )?(\d+) bytes of .{1,300}'s result shown; (.*)\]", re.DOTALL)
_REF: Final = re.compile(rf"{PREFIX}[^\s\"\\]+")
_LONGEST_LINE: Final = 1024
_CALL_DIGITS: Final = 16


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
        self._kept: WeakKeyDictionary[ToolInvocation, int] = WeakKeyDictionary()

    def keep(self, value: object, tool: str, name: str, call: ToolInvocation | None = None) -> Stored | NotStored:
        """Store a value that a tool offers itself; a retry replaces what the first attempt stored."""
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
        """Store a text; return the id of its call there, with a digest where another has it; None if not stored."""
        digest = self.claims.signer.seal("text", text.encode("utf-8", "surrogatepass"))[:_CALL_DIGITS]
        if self.claims.first((origin.execution, origin.node, origin.call), digest) != digest:
            origin = origin._replace(call=f"{origin.call}-{digest}")
        outcome = await self.writer.aput(text, origin, blocks=blocks)
        return origin.call if isinstance(outcome, Stored) else None

    def _origin(self, record: ToolInvocation, part: str = "") -> Origin:
        """Return the owner and the place of a result, from this process's data, never from the model's."""
        owner = current_owner() or record.call.execution or ""
        call_id = record.call.call_id
        digest = self.claims.signer.seal("call", record.name.encode(), (record.args_hash or "").encode())[:_CALL_DIGITS]
        if call_id is None:
            return Origin(owner, owner, record.name, record.name, f"call-{digest}{part}")
        return Origin(owner, owner, record.name, record.name, f"{call_id}{part}", digest)

    async def view(
        self, record: ToolInvocation, content: Content, limit_bytes: int, *, blocks: bool
    ) -> Remedied | None:
        """Store a result; return the view that replaces it, also if the store fails; None for one without owner."""
        outcome = await self.writer.aput(content, self._origin(record), blocks=blocks)
        if isinstance(outcome, Stored):
            size = Size(outcome.size, exact=True)
            correct(record, size)
            named = self._settings.claim_check_tool
            return view(record.name, outcome.text, size, str(outcome.reference), limit_bytes, names_tool=named)
        if outcome.reason == "no_owner":
            return None
        size = read_size(record) or Size(content.least_bytes, exact=False)
        if blocks or type(content.value) is str:
            beginning = content.beginning(limit_bytes)
        else:
            beginning = await off_the_loop(lambda: content.beginning(limit_bytes))
        return view(record.name, beginning, size, None, limit_bytes)

    def limit(self, record: ToolInvocation, ceiling_bytes: int | None) -> int:
        """Return the most bytes of a result for the model: fewer, the fuller the state that carries it later."""
        chosen = self._settings
        # The framework would store a longer view itself, and cut its reference off.
        most_bytes = min(filter(None, (chosen.claim_check_bytes, ceiling_bytes, record.call.offloads_above)))
        floor_bytes = min(chosen.claim_check_floor_bytes, most_bytes)
        ratios = (chosen.payload_warn_ratio, chosen.payload_near_ratio)
        return view_bytes(room_of(record.state), most_bytes, floor_bytes, *ratios)


def view(  # noqa: PLR0913 - the parts of a view
    tool: str, text: str | None, size: Size, ref: str | None, limit_bytes: int, *, names_tool: bool = True
) -> Remedied:
    """Return the beginning of a result and a line about the rest, together at most ``limit_bytes`` in either form."""

    def rest(end_bytes: int) -> str:
        if ref is None:
            return "the rest could not be stored and is lost; ask for something smaller"
        if not names_tool:
            return f'the whole is stored: ref="{ref}"'
        named = f'ref="{ref}"' + (
            f', cursor="{Cursor((ref, None, None, None)).encode(end_bytes)}"' if end_bytes else ""
        )
        return f"the whole is stored: read on with {GET_TOOL_RESULT}({named})"

    of = f"of {'' if size.exact else 'more than '}{size.bytes} bytes of {tool}'s result shown"
    # The cursor and the number of shown bytes are not longer than for the limit.
    line_bytes = text_bytes(f"[{limit_bytes} {of}; {rest(limit_bytes)}]\n")
    shown = "" if text is None else head(text, max(limit_bytes - line_bytes, 0))
    shown_bytes = _stored_bytes(shown)
    said = f"[{shown_bytes} {of}; {rest(shown_bytes)}]"
    said = f"{shown}\n{said}" if shown else said
    data = {"content": "", "shown_bytes": limit_bytes, "size_bytes": size.bytes, "ref": ref, "note": rest(limit_bytes)}
    if not size.exact:
        data["at_least"] = True
    data["content"] = content = json_head(shown, limit_bytes - text_bytes(json.dumps(data, ensure_ascii=False)))
    data |= {"shown_bytes": _stored_bytes(content), "note": rest(_stored_bytes(content))}
    claim = None if ref is None else Claim(ref, size.bytes, shown_bytes, head(shown, PREVIEW_BYTES))
    return Remedied(Replacement(said, data, claim=claim), semconv.CLAIM_CHECK, text_bytes(said), ref)


def _stored_bytes(text: str) -> int:
    """Return the bytes of a text in the store, where half a character has three."""
    return len(text.encode("utf-8", "surrogatepass"))


def claim_in(shown: object) -> Claim | None:
    """Return the claim that a view names, without reference where the rest is lost; None for another result."""
    known = fields(shown)
    if {"content", "shown_bytes", "size_bytes", "ref"} <= known.keys():
        content, ref, size_bytes = str(known["content"]), known["ref"] or "", int(known["size_bytes"])
        return Claim(ref, size_bytes, text_bytes(content), head(content, PREVIEW_BYTES))
    written = raw_of(shown).text or ""
    start = written.rfind("\n[", max(len(written) - _LONGEST_LINE, 0))
    line = _LINE.fullmatch(written, max(start, 0))
    if line is None:
        return None
    ref, content = _REF.search(line[2]), written[: max(start, 0)]
    return Claim("" if ref is None else ref[0], int(line[1]), text_bytes(content), head(content, PREVIEW_BYTES))


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
    except errors.ours(Exception) as error:
        reason = error if isinstance(error, StoreError | ValueError) else errors.described(error)
        errors.warn_once(semconv.CLAIM_CHECK, f"{_OF_NO_USE}{reason}")
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

    ``caller`` is the execution that owns the result, from the server's own data, never from a client's; by default the
    current execution. Raises NotFoundError, with the same message for a reference that is forged, another owner's,
    expired or unknown; StoreError when the store fails.
    """
    return reader().resolve(ref, caller=caller)


async def aresolve(ref: str, *, caller: str | None = None) -> Resolved:
    """Do the same as ``resolve``, without blocking the event loop."""
    return await reader().aresolve(ref, caller=caller)


def delete(ref: str, *, caller: str | None = None) -> None:
    """Delete the result of a reference; ``caller`` and the errors are as in ``resolve``."""
    reader().delete(ref, caller=caller)


async def adelete(ref: str, *, caller: str | None = None) -> None:
    """Do the same as ``delete``, without blocking the event loop."""
    await reader().adelete(ref, caller=caller)


def results_app(authorize: Authorize) -> ResultsApp:
    """Return an ASGI application that serves stored results to authorised callers; mount it at any path.

    ``authorize(scope, execution)`` returns on the server the owner for whom the caller may read. Raises StoreError
    while ``AGENT_OTEL_CLAIM_CHECK`` names no store.
    """
    return ResultsApp(reader(), authorize)
