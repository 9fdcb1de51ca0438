"""The lean record of a tool call for a program's state, without the result, and its form in a user interface."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Final

from agent_otel.messages.fields import fields as values_of
from agent_otel.messages.fields import listed, text
from agent_otel.remedies.claim_check.policy import PREVIEW_BYTES, claim_in
from agent_otel.remedies.claim_check.serialization import head, raw_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agent_otel.core.types import Claim

VERSION: Final = 1


@dataclass(frozen=True)
class LeanRecord:
    """A tool call in the state: at most 4 KiB of the result, and the reference to the whole.

    ``truncated_preview`` has at most 4,096 UTF-8 bytes. ``result_bytes`` is the size of the whole result.
    """

    id: str
    name: str
    args: Mapping[str, Any]
    duration_ms: float
    success: bool
    error: str | None = None
    result_ref: str | None = None
    result_bytes: int | None = None
    truncated_preview: str | None = None
    version: int = VERSION

    @classmethod
    def of(  # noqa: PLR0913 - what a record says
        cls,
        call_id: str,
        name: str,
        args: Mapping[str, Any],
        result: object,
        *,
        duration_ms: float,
        error: str | None = None,
        ref: str | None = None,
        claim: Claim | None = None,
    ) -> LeanRecord:
        """Return the record of a call; it keeps only the preview and the size of ``result``.

        ``result`` may be the view of a stored one: it names the reference and the size of the whole. ``claim`` is the
        claim of a stored result, such as ``agent_otel.tool_call``'s.
        """
        claim = claim or claim_in(result)
        if claim is None:
            raw = raw_of(result)
            size_bytes, preview = len(raw.data), None if raw.text is None else head(raw.text, PREVIEW_BYTES)
        else:
            ref, size_bytes, preview = claim.reference or ref, claim.size_bytes, claim.preview
        return cls(call_id, name, args, duration_ms, error is None, error, ref, size_bytes, preview)

    def to_dict(self) -> dict[str, Any]:
        """Return the record as a JSON object, without unset fields."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> LeanRecord:
        """Return a record of this version, or of a later one without its new fields; KeyError without an id."""
        known = {each.name for each in fields(cls)}
        read = {name: value for name, value in stored.items() if name in known}
        return cls(**{"name": "", "args": {}, "duration_ms": 0.0, "success": True, **read, "id": stored["id"]})


@dataclass(frozen=True)
class RenderedRecord:
    """A tool call as a row of a user interface; ``ref`` is the reference for "show everything"."""

    id: str
    title: str
    args: Mapping[str, Any]
    status: str
    duration_ms: float
    preview: str
    complete: bool
    ref: str | None


def render(record: LeanRecord | Mapping[str, Any]) -> RenderedRecord:
    """Return the row of a stored record; a mapping may have the old form with the whole ``result``."""
    whole = None
    if not isinstance(record, LeanRecord):
        whole = record.get("result")
        record = LeanRecord.from_dict(record)
    if whole is not None and record.truncated_preview is None:
        text, complete = raw_of(whole).text or "", True
    else:
        text = record.truncated_preview or ""
        complete = record.result_bytes == len(text.encode("utf-8", "surrogatepass"))
    status, ref = "ok" if record.success else record.error or "error", record.result_ref
    return RenderedRecord(record.id, record.name, record.args, status, record.duration_ms, text, complete, ref)


def lean_records(records: Sequence[Mapping[str, Any]] | None, update: Iterable[Any] | None) -> list[dict[str, Any]]:
    """Merge tool calls into the lean records of a state: a reducer for a channel of LangGraph.

    ``update`` has lean records, as objects or dictionaries, or LangChain's messages: the calls of an ``AIMessage`` and
    the results of ``ToolMessage`` objects. A record with the id of an earlier one replaces it.
    """
    merged = {record["id"]: dict(record) for record in records or ()}
    for each in update or ():
        for record in _records_of(each, merged):
            merged[record["id"]] = record
    return list(merged.values())


def _records_of(each: Any, merged: Mapping[str, Mapping[str, Any]]) -> Iterable[dict[str, Any]]:
    if isinstance(each, LeanRecord):
        return (each.to_dict(),)
    known = values_of(each)
    if type(each) is dict and "id" in known:
        return (each,)
    if known.get("type") == "ai":
        calls = (values_of(call) for call in listed(known.get("tool_calls")))
        return [
            LeanRecord(call["id"], call["name"], call["args"], 0.0, success=True).to_dict()
            for call in calls
            if call.get("id") not in merged
        ]
    call_id = text(known.get("tool_call_id"))
    if call_id is None:
        return ()
    asked = merged.get(call_id, {})
    record = LeanRecord.of(
        call_id,
        text(known.get("name")) or asked.get("name", ""),
        asked.get("args", {}),
        known.get("content"),
        duration_ms=asked.get("duration_ms", 0.0),
        error="error" if known.get("status") == "error" else None,
    )
    return (record.to_dict(),)
