"""The texts that the model requests of an execution held, as hashes of their passages, for executions with payloads.

`payload_analysis` compares payloads with them. The parts that the request before held are hashed already.
"""

from __future__ import annotations

from json import loads
from typing import TYPE_CHECKING, Any

from agent_otel import semconv
from agent_otel._internal.errors import attempt
from agent_otel.core.execution_context import short
from agent_otel.core.execution_state import REUSED, ReadTexts
from agent_otel.core.executions import executions
from agent_otel.core.plain import is_text, text
from agent_otel.measure.breakdown.passages import prints
from agent_otel.measure.breakdown.unread import Delivery, Held

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from agent_otel.core.execution_state import ExecutionState, SeenCall
    from agent_otel.core.types import RequestPart

_MOST_VALUES = 2_048  # of a part that is no text
_SHORTEST = 256  # bytes from which arguments are read as JSON


def note(execution: ExecutionState, parts: Iterable[RequestPart]) -> None:
    """Add the texts of parts that no request held before, where the execution carries payloads."""
    found = prints(said for part in parts for said in _texts(part))
    executions.read(execution, ReadTexts() if execution.read is None else execution.read, found)


def held(execution: ExecutionState) -> Held | None:
    """Return what the requests of an execution have held so far; None where that is unknown.

    It is unknown where no request was seen, and where the provider keeps the earlier messages.
    """
    read = execution.read
    if read is None or execution.is_continued:
        return None
    deliveries = _deliveries(execution.call_ids)
    return Held(read.prints, len(read.prints), read.modulus, lambda call_id: deliveries.get(short(call_id)))


def _deliveries(calls: Mapping[str, SeenCall]) -> dict[str, Delivery]:
    """Return what was delivered of the results; a result behind the last delivered one may still be on its way."""
    found: dict[str, Delivery] = {}
    is_pending = True
    for call_id, call in reversed(list(calls.items())):
        is_pending = is_pending and call.most_delivered < 0
        if max(call.produced, call.most_delivered) >= 0 and call.fragment is not REUSED:
            found[call_id] = Delivery(max(0, call.produced), max(0, call.most_delivered), is_pending)
    return found


def _texts(part: RequestPart) -> Iterator[str]:
    """Yield the texts of a part; of arguments and definitions those within."""
    value = part.value
    if not is_text(value):
        yield from _inner(value)
        return
    said = text(value) or ""
    yield said
    if part.part == semconv.TOOL_CALL_ARGUMENTS and len(said) >= _SHORTEST:
        yield from _inner(attempt(loads, said))


def _inner(value: Any) -> Iterator[str]:
    """Yield the texts in a structure of lists and dictionaries."""
    waiting, left = [value], _MOST_VALUES
    while waiting and left:
        left -= 1
        value = waiting.pop()
        cls = type(value)
        if cls is str:
            yield value
        elif cls is list or cls is tuple:
            waiting += value
        elif cls is dict:
            waiting += value.values()
