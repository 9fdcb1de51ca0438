"""The cap of a payload, and the budget of a result.

A cap is configured, discovered from the runtime, or from the table of `agent_otel.caps`. It is looked up by runtime and
boundary. ``AGENT_OTEL_CAPS`` takes precedence over caps that adapters read from the
runtime (``discover``), and these over the table. All sizes are bytes.
"""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_otel import semconv, settings
from agent_otel._internal.errors import ours
from agent_otel.caps import HOSTS, TRANSPORTS, payload_caps
from agent_otel.core import execution_context
from agent_otel.settings import kinds as setting_kinds

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agent_otel.caps import Cap
    from agent_otel.core.execution_state import ExecutionState
    from agent_otel.core.types import Step, ToolCall
    from agent_otel.settings import Settings


class EffectiveCap(NamedTuple):
    """A cap in bytes and its source.

    ``source`` is ``configured``, ``discovered``, ``table``, or ``inferred`` for a row of the table that was neither
    tested nor read in the runtime's source or documentation.
    """

    bytes: int
    source: str


_ACTIVITY = {direction: f"activity_{direction}" for direction in (semconv.INPUT, semconv.OUTPUT)}
_WORKFLOW = {direction: f"workflow_{direction}" for direction in (semconv.INPUT, semconv.OUTPUT)}

_Boundary = tuple[str, str]
_MOST_FOUND = 1_024

# A cache, because each payload looks up its cap. `discover` replaces the dictionary, so that an outdated answer that
# another thread computes meanwhile goes into the old dictionary.
_found: dict[tuple[str, str, str | None], EffectiveCap | None] = {}
_discovered: dict[tuple[str, str, str | None], int] = {}


def cap_of(step: Step, direction: str) -> EffectiveCap | None:
    """Return the cap on a step's payload in a direction; None without one."""
    boundary = (_ACTIVITY if step.activity else _WORKFLOW).get(direction, direction)
    return cap_for(step.runtime, boundary, step.variant)


def cap_for(runtime: str, boundary: str, variant: str | None = None) -> EffectiveCap | None:
    """Return the cap of a runtime at a boundary, or None without one: the smallest cap of all its versions.

    Without ``variant``, only rows without one are used.
    """
    found = _found
    key = (runtime, boundary, variant)
    try:
        return found[key]
    except ours(KeyError):
        if len(found) >= _MOST_FOUND:
            found.clear()
        held = found[key] = _look_up(runtime, boundary, variant)
        return held


def discover(runtime: str, boundary: str, cap_bytes: int, variant: str | None = None) -> None:
    """Record a cap that an adapter read from the runtime, for all variants or for one.

    An unknown boundary or an impossible size is ignored.
    """
    global _found  # noqa: PLW0603 - the cached answers are outdated
    if boundary not in setting_kinds.BOUNDARIES or not isinstance(cap_bytes, int):
        return
    if not 0 < cap_bytes <= setting_kinds.LARGEST_BYTES:
        return
    if _discovered.get((runtime, boundary, variant)) != cap_bytes:
        _discovered[runtime, boundary, variant] = cap_bytes
        _found = {}


def _look_up(runtime: str, boundary: str, variant: str | None) -> EffectiveCap | None:
    rows = [cap for cap in payload_caps() if (cap.runtime, cap.boundary) == (runtime, boundary)]
    configured = {(of, at): cap_bytes for of, at, cap_bytes in settings.current().caps}
    chosen = [row for row in rows if row.variant == variant] or [row for row in rows if not row.variant]
    cap_bytes = _told(configured, runtime, boundary, chosen)
    if cap_bytes is None and not (any(row.cumulative for row in rows) if rows else boundary == "history"):
        cap_bytes = configured.get((runtime, "payload"))
    if cap_bytes is not None:
        return EffectiveCap(cap_bytes, "configured")
    # Caps of this variant sort last, so that they replace caps of all variants.
    discovered = sorted(_discovered.copy().items(), key=lambda item: item[0][2] is not None)
    of_this = {(of, at): told for (of, at, what), told in discovered if what in (None, variant)}
    cap_bytes = _told(of_this, runtime, boundary, chosen)
    if cap_bytes is not None:
        return EffectiveCap(cap_bytes, "discovered")
    known = [
        EffectiveCap(row.bytes, "inferred" if row.confidence == "inferred" else "table")
        for row in chosen
        if row.bytes is not None
    ]
    return min(known, default=None)


def _told(said: Mapping[_Boundary, int], runtime: str, boundary: str, rows: Iterable[Cap]) -> int | None:
    """Return the override for this boundary, or derive it from the boundary it scales with."""
    cap_bytes = said.get((runtime, boundary))
    if cap_bytes is not None:
        return cap_bytes
    shares = [int(row.share * said[runtime, row.share_of]) for row in rows if (runtime, row.share_of) in said]
    return min(shares, default=None)


# The budget of a tool's result: the bytes that the weakest layer on its way accepts. A result passes the ceiling of
# this package, the framework, the host of an MCP server, the response of the platform that the process runs on, the
# context window of the model, and the payload of the durable runtime that carries it in every later turn. Above the
# smallest of their limits it is withheld, cut, or refused with the whole state or request.

#: Larger caps belong to stores. A single result never reaches them, so they do not limit results.
_OF_A_STORE: Final = 512 * 1024 * 1024
#: Share of what is left of the context window that one result may fill: the response and further results need room, and
#: a result may have more tokens in its bytes than the request so far.
_CONTEXT_SHARE: Final = 0.5
#: The largest announcement that Claude Code accepts, in characters; other hosts read none.
MOST_ANNOUNCED: Final = 500_000
_READS_ANNOUNCEMENTS: Final = "claude-code"


class Budget(NamedTuple):
    """The largest result that passes, in bytes, and the layer that limits it: one of ``semconv.BUDGET_LAYERS``."""

    bytes: int
    layer: str


class _OfProcess:
    """The budget of a result that passes no layer of its own, and the settings that it was computed for."""

    chosen: Settings | None = None
    budget = Budget(0, semconv.DEFAULT)


of_process = _OfProcess()


class Room(NamedTuple):
    """Bytes that the next payload holds already, its cap, None when unknown, and its copies of each result.

    ``results`` is the number of results in a turn, ``to_come`` that of the present turn from this one on, ``turns`` the
    number of turns so far. Each turn adds ``own_growth_bytes`` besides results. ``has_history`` is true when a
    history with a cap holds the payload of each turn.
    """

    taken_bytes: int
    cap_bytes: int | None
    copies: int = 1
    results: int = 1
    to_come: int = 1
    turns: int = 0
    own_growth_bytes: int = 0
    has_history: bool = False


def room_of(execution: ExecutionState | None) -> Room:
    """Return the room of an execution: its last payload plus the results handed on since.

    Before the first payload, the cap is that of the step in which the tool runs.
    """
    handed_bytes = execution.handed_bytes if execution is not None else 0
    step = execution_context.current_step() if execution_context.runtime.get() is not None else None
    has_history = step is not None and cap_of(step, semconv.HISTORY) is not None
    if execution is not None and execution.carries is not None:
        payload_bytes, cap_bytes, _ = execution.carries
        handed = execution.handed_count
        return Room(
            payload_bytes + handed_bytes * execution.copies,
            cap_bytes,
            execution.copies,
            max(execution.turn_count, handed + 1),
            max(1, execution.turn_count - handed),
            execution.turns,
            execution.own_growth_bytes,
            has_history,
        )
    cap = cap_of(step, semconv.OUTPUT) if step is not None else None
    return Room(handed_bytes, cap.bytes if cap is not None else None, has_history=has_history)


def budget_of(execution: ExecutionState | None, chosen: Settings, call: ToolCall | None = None) -> Budget:
    """Return the budget of the result of a call of an execution; without any limit, the size of a large result."""
    if of_process.chosen is not chosen:
        of_process.budget, of_process.chosen = _least(_layers_of_process(chosen), chosen), chosen
    return _least([*_layers_of_process(chosen), *layers_of_call(execution, chosen, call)], chosen)


def layers_of_call(execution: ExecutionState | None, chosen: Settings, call: ToolCall | None) -> list[Budget]:
    """Return the limits of the framework, the host, the model and the durable runtime on a call's result."""
    found = []
    if call is not None and call.offloads_above:
        found.append(Budget(call.offloads_above, semconv.LAYER_FRAMEWORK))
    if call is not None and call.host is not None:
        # Hosts count characters, of which a text has no more than bytes. Gemini CLI adds the server's name to its own.
        announced = call.announced or chosen.mcp_result_characters
        host_bytes = next((limit_bytes for name, limit_bytes in HOSTS.items() if call.host.startswith(name)), 0)
        if announced is not None and call.host.startswith(_READS_ANNOUNCEMENTS):
            host_bytes = min(announced, MOST_ANNOUNCED)
        if host_bytes:
            found.append(Budget(host_bytes, semconv.HOST))
    if execution is not None and execution.context_bytes:
        context_bytes = _context_bytes(execution)
        if context_bytes is not None:
            found.append(Budget(context_bytes, semconv.CONTEXT))
    room = room_of(execution)
    if room.cap_bytes is not None and room.cap_bytes < _OF_A_STORE:
        found.append(Budget(max(0, room.cap_bytes - room.taken_bytes) // room.copies, semconv.PAYLOAD))
    return found


def _least(budgets: list[Budget], chosen: Settings) -> Budget:
    return min(budgets, default=Budget(chosen.large_result_bytes, semconv.DEFAULT))


def _layers_of_process(chosen: Settings) -> list[Budget]:
    """Return the budgets of the layers that all results of this process pass."""
    own = (chosen.result_ceiling_bytes, chosen.claim_check_bytes if chosen.claim_check else None)
    found = [Budget(limit_bytes, semconv.CEILING) for limit_bytes in own if limit_bytes]
    transport_bytes = transport()
    if transport_bytes:
        found.append(Budget(transport_bytes, semconv.TRANSPORT))
    return found


def _context_bytes(execution: ExecutionState) -> int | None:
    """Return the bytes that a result may have in what is left of the context window; None where it is unknown."""
    context = execution.context
    if context is None or context.window is None or not context.tokens:
        return None
    left_tokens = context.window - context.tokens
    left_bytes = left_tokens * execution.context_bytes / context.tokens - execution.handed_to_model_bytes
    return max(0, int(left_bytes * _CONTEXT_SHARE))


@functools.lru_cache(maxsize=1)
def transport() -> int:
    """Return the bytes of a response of this process: configured, or those of its platform; 0 when unknown."""
    configured = cap_for("transport", "message")
    if configured is not None:
        return configured.bytes
    return min((limit_bytes for variable, limit_bytes in TRANSPORTS.items() if os.environ.get(variable)), default=0)
