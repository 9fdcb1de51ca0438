"""The lean record of a tool call for a program's state, without the result, and its form in a user interface.

The stored type and the displayed type are separate, with one mapping between them, so that a user interface can still
show old records.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Final

from agent_otel.remedies.claim_check.policy import PREVIEW_BYTES
from agent_otel.remedies.claim_check.preview import head
from agent_otel.remedies.claim_check.serialization import raw_of

if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION: Final = 1


@dataclass(frozen=True)
class LeanRecord:
    """A tool call in the state: at most 4 KiB of the result, and the reference to the whole.

    ``duration_ms`` is in milliseconds, as user interfaces show it; ``truncated_preview`` at most 4,096 UTF-8 bytes.
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
    ) -> LeanRecord:
        """Return the record of a call; it keeps only the preview and the size of ``result``."""
        raw = raw_of(result)
        preview = None if raw.text is None else head(raw.text, PREVIEW_BYTES)
        return cls(call_id, name, args, duration_ms, error is None, error, ref, len(raw.data), preview)

    def to_dict(self) -> dict[str, Any]:
        """Return the record as a JSON object, without unset fields."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> LeanRecord:
        """Return a record of this version, or of a later one without its new fields; KeyError without an id."""
        known = {each.name for each in fields(cls)}
        return cls(
            **{
                "name": "",
                "args": {},
                "duration_ms": 0.0,
                "success": True,
                **{name: value for name, value in stored.items() if name in known},
                "id": stored["id"],
            }
        )


@dataclass(frozen=True)
class Shown:
    """A tool call as a row of a user interface; ``ref`` is the reference for "show everything"."""

    id: str
    title: str
    args: Mapping[str, Any]
    status: str
    duration_ms: float
    preview: str
    complete: bool
    ref: str | None


def shown(record: LeanRecord | Mapping[str, Any]) -> Shown:
    """Return the row of a stored record; a mapping may have the old form with the whole ``result``."""
    if not isinstance(record, LeanRecord):
        whole = record.get("result")
        record = LeanRecord.from_dict(record)
        if whole is not None and record.truncated_preview is None:
            raw = raw_of(whole)
            text = raw.text or ""
            return _row(record, text, complete=True)
    text = record.truncated_preview or ""
    return _row(record, text, complete=record.result_bytes == len(text.encode("utf-8", "surrogatepass")))


def _row(record: LeanRecord, text: str, *, complete: bool) -> Shown:
    status = "ok" if record.success else record.error or "error"
    return Shown(record.id, record.name, record.args, status, record.duration_ms, text, complete, record.result_ref)
