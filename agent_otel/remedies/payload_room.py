"""Free bytes of the payload that carries a tool's result in every later turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from agent_otel import semconv
from agent_otel.core import payload
from agent_otel.core.executions import executions

if TYPE_CHECKING:
    from agent_otel.core.tool_invocation import ToolInvocation

#: Share of the warn ratio that results may fill: a quarter of the cap by default. A state often holds a result twice,
#: and a history holds the state of each turn: 50 turns of a quarter of 2 MiB are 25 MiB of the 50 MiB that Temporal
#: accepts.
_FILLED: Final = 0.5


class Room(NamedTuple):
    """Bytes that the next payload holds already, and its cap, None when unknown."""

    taken_bytes: int
    cap_bytes: int | None

    def left_bytes(self, warn_ratio: float) -> int | None:
        """Return the bytes that results may still add, below 0 when there are too many; None without a cap."""
        return None if self.cap_bytes is None else int(self.cap_bytes * warn_ratio * _FILLED) - self.taken_bytes


def room_of(record: ToolInvocation) -> Room:
    """Return the room of a call's execution: its last payload plus the results handed on since.

    Before the first payload, the cap is that of the step in which the tool runs.
    """
    execution = executions.known(record.execution) if record.execution is not None else None
    handed_bytes = execution.handed_bytes if execution is not None else 0
    if execution is not None and execution.carries is not None:
        payload_bytes, cap_bytes, _ = execution.carries
        return Room(payload_bytes + handed_bytes, cap_bytes)
    step = payload.current_step()
    cap = payload.cap_of(step, semconv.OUTPUT) if step is not None else None
    return Room(handed_bytes, cap.bytes if cap is not None else None)


def hand_on(record: ToolInvocation, result_bytes: int) -> None:
    """Add a result that goes on to the model to its execution's next payload."""
    if record.execution is not None:
        executions.handed_on(record.execution, result_bytes)
