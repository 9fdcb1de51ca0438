"""What a program may keep of a tool call in its state: the lean record, without the result, and how to show it.

What is stored and what is shown are two types with one mapping between them, so that a user interface that shows old
records goes on doing so.
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
    """One tool call as the state carries it: at most 4 KiB of the result, and the reference to the whole.

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
        """Make the record of a call; of ``result`` nothing is kept but the preview and the size."""
        raw = raw_of(result)
        preview = None if raw.text is None else head(raw.text, PREVIEW_BYTES)
        return cls(call_id, name, args, duration_ms, error is None, error, ref, len(raw.data), preview)

    def to_dict(self) -> dict[str, Any]:
        """The record as JSON has it, without what is not set."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> LeanRecord:
        """Read a record of this version, or a later one without what is new in it; KeyError without an id."""
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
    """One tool call as a row of a user interface shows it; ``ref`` is what "show everything" asks for."""

    id: str
    title: str
    args: Mapping[str, Any]
    status: str
    duration_ms: float
    preview: str
    complete: bool
    ref: str | None


def shown(record: LeanRecord | Mapping[str, Any]) -> Shown:
    """Map what is stored to what is shown; a mapping may be of the old kind, which has the whole ``result``."""
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
