"""What the remedies make of one tool result on its way out of the tool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from agent_otel import _shield, catalogue
from agent_otel.measure.size import text_bytes
from agent_otel.reading import LEFT_ALONE, Replacement
from agent_otel.remedies import ceiling
from agent_otel.remedies.raw import raw_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_otel.measure.size import Size
    from agent_otel.reading import Asked, ToolReader
    from agent_otel.record import Record
    from agent_otel.settings import Settings


class Remedied(NamedTuple):
    """What goes on in place of a result and its UTF-8 bytes, why, and the reference where the result was stored."""

    replacement: Replacement
    reason: str
    bytes: int
    ref: str | None = None
    error_type: str | None = None


class Remedies:
    """The remedies for results that are switched on."""

    def __init__(self, chosen: Settings) -> None:
        self._ceiling_bytes = chosen.result_ceiling_bytes

    def applied(self, record: Record, reader: ToolReader, read: object, value: Any, asked: Asked) -> Any:
        """Return what goes on: the value itself, or a replacement for what was read of it."""
        return self._put_back(record, reader, self._withheld(record, reader, read, asked), value, asked)

    async def aapplied(self, record: Record, reader: ToolReader, read: object, value: Any, asked: Asked) -> Any:
        """As `applied`, off the event loop where something takes time."""
        return self._put_back(record, reader, self._withheld(record, reader, read, asked), value, asked)

    def _withheld(self, record: Record, reader: ToolReader, read: object, asked: Asked) -> Remedied | None:
        """The error in place of a result that is above the ceiling."""
        limit_bytes = self._ceiling_bytes
        if record.produced is None or limit_bytes is None:
            return None
        size_bytes = _exact(record.produced, read, limit_bytes)
        if size_bytes <= limit_bytes:
            return None
        parameters: Iterable[str] = reader.parameters(asked) if reader.parameters is not None else ()
        error = ceiling.too_large(record.name, size_bytes, limit_bytes, parameters)
        text = ceiling.as_text(error)
        replacement = Replacement(text, error, is_error=True)
        return Remedied(replacement, catalogue.CEILING, text_bytes(text), error_type=ceiling.RESULT_TOO_LARGE)

    @staticmethod
    def _put_back(record: Record, reader: ToolReader, found: Remedied | None, value: Any, asked: Asked) -> Any:
        if found is None or reader.replace is None:
            return value
        put = reader.replace(value, found.replacement, asked)
        if put is LEFT_ALONE:
            _shield.say_once(
                f"left alone {record.name}",
                f"A result of {record.name} goes on whole: nothing else satisfies the output that the tool declares.",
            )
            return value
        record.replace(found)
        return put


def _exact(produced: Size, read: object, limit_bytes: int) -> int:
    """The size to hold against a limit; a lower bound will do when it is above, and is never believed below."""
    if produced.exact or produced.bytes > limit_bytes:
        return produced.bytes
    return len(raw_of(read).data)
