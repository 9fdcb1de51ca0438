"""Size of the view of a stored result, in a durable runtime whose payload carries it in every later turn.

The views of the turns that are likely still to come have to fit as well: as many results a turn and copies of each as
in the last turn, and the growth that the run has besides them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from agent_otel.core.result_budget import Room

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
    ``floor_bytes`` while 10 turns fit, this one included. Then each turn gets a tenth of what is left.
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
