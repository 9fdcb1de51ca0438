"""What the remedies make of one tool result on its way out of the tool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from agent_otel import _shield, catalogue
from agent_otel.emit import lifecycle
from agent_otel.measure.size import text_bytes
from agent_otel.reading import LEFT_ALONE, Replacement
from agent_otel.remedies import ceiling
from agent_otel.remedies.limits import Limits, as_text, tokens
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
    """The remedies for tool calls and their results that are switched on."""

    def __init__(self, chosen: Settings) -> None:
        self._ceiling_bytes = chosen.result_ceiling_bytes
        self._limits = Limits(chosen) if chosen.limits else None
        if self._limits is not None:
            lifecycle.after_fork(self._limits.reset)

    def finished(self, execution: str) -> None:
        """Forget an execution that has ended."""
        if self._limits is not None:
            self._limits.finish(execution)

    def skipped(self, record: Record, reader: ToolReader, asked: Asked) -> Any:
        """Return what goes on because the handler is not to be asked; LEFT_ALONE when it is."""
        if self._limits is None or record.execution is None or reader.replace is None:
            return LEFT_ALONE
        reached = self._limits.enter(record.execution)
        if reached is None:
            record.limits = self._limits
            return LEFT_ALONE
        answer = reached.answer()
        put = reader.replace(None, Replacement(as_text(answer), answer, is_error=True), asked)
        if put is not LEFT_ALONE:
            record.skip(reached)
        return put

    def applied(self, record: Record, reader: ToolReader, read: object, value: Any, asked: Asked) -> Any:
        """Return what goes on: the value itself, or a replacement for what was read of it."""
        found = self._withheld(record, reader, read, asked)
        return self._put_back(record, reader, found, value, asked)

    async def aapplied(self, record: Record, reader: ToolReader, read: object, value: Any, asked: Asked) -> Any:
        """As `applied`, off the event loop where something takes time."""
        found = self._withheld(record, reader, read, asked)
        return self._put_back(record, reader, found, value, asked)

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
        return Remedied(replacement, catalogue.CEILING, text_bytes(text), error_type=catalogue.RESULT_TOO_LARGE)

    def _put_back(self, record: Record, reader: ToolReader, found: Remedied | None, value: Any, asked: Asked) -> Any:
        put = value
        if found is not None and reader.replace is not None:
            put = reader.replace(value, found.replacement, asked)
            if put is LEFT_ALONE:
                put = value
                _shield.say_once(
                    f"left alone {record.name}",
                    f"A result of {record.name} goes on whole: nothing else satisfies the output it declares.",
                )
            else:
                record.replace(found)
        self._spend(record)
        return put

    def _spend(self, record: Record) -> None:
        """Take what goes on to the model off what the execution may spend."""
        if self._limits is None or record.execution is None or record.produced is None:
            return
        if record.remedied is None:
            self._limits.spend(record.execution, record.produced.bytes, (record.characters + 3) // 4)
        else:
            text = record.remedied.replacement.text
            self._limits.spend(record.execution, record.remedied.bytes, tokens(text))


def _exact(produced: Size, read: object, limit_bytes: int) -> int:
    """The size to hold against a limit; a lower bound will do when it is above, and is never believed below."""
    if produced.exact or produced.bytes > limit_bytes:
        return produced.bytes
    return len(raw_of(read).data)
