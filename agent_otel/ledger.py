"""Bounded memory of executions and call ids: integers and short strings only, never a value.

One ledger per process answers the questions that take more than one call: has this execution asked the same before, is
this the same call again (a retry or a resumed step), which tool answered the call whose result is found in a payload,
and how has the payload grown from turn to turn.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_K = TypeVar("_K")
_V = TypeVar("_V")
_MAX_ID_LENGTH = 128
_MAX_KINDS = 64
#: Sizes of one kind of payload that a forecast looks back on.
_TURNS = 6
_MAX_SMALL = 4_096


class Track:
    """Payloads of one kind in one execution, turn by turn: their recent sizes, and how many were refused in a row."""

    __slots__ = ("refused", "sizes", "utilization")

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.refused = 0
        self.utilization = 0.0


class Execution:
    """What is remembered of one execution.

    ``call_ids`` maps a call's id to the tool that was asked and the bytes it produced.
    """

    __slots__ = (
        "analysed",
        "asked",
        "call_ids",
        "carries",
        "few_turns",
        "payload_bytes",
        "result_bytes",
        "seen_at",
        "tool_calls",
        "tracks",
        "workflow",
    )

    def __init__(self) -> None:
        self.tool_calls = 0
        self.result_bytes = 0
        self.payload_bytes = 0
        self.seen_at = 0.0
        self.analysed = -1
        self.few_turns = False
        #: Bytes, cap and recent sizes of the payload nearest to its cap.
        self.carries: tuple[int, int | None, tuple[int, ...]] | None = None
        self.asked: dict[int, None] = {}
        self.call_ids: dict[str, tuple[str, int]] = {}
        self.tracks: dict[str, Track] | None = None
        self.workflow: str | None = None

    def __len__(self) -> int:
        return len(self.asked) + len(self.call_ids) + len(self.tracks or ())


class Ledger:
    """Executions, the oldest forgotten first.

    ``max_executions`` and ``max_entries`` bound the memory: 10,000 executions with 16 calls each take under 32 MB
    (measured by ``benchmarks/budgets.py``). ``idle_seconds`` is how long an execution is kept after its last call.
    """

    def __init__(
        self,
        max_executions: int = 10_000,
        max_entries: int = 160_000,
        max_entries_per_execution: int = 4_096,
        idle_seconds: float = 3_600.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_executions = max_executions
        self._max_entries = max_entries
        self._max_per_execution = max_entries_per_execution
        self._idle_seconds = idle_seconds
        self._clock = clock
        self.reset()

    def reset(self) -> None:
        """Forget everything and renew the lock; a forked child calls this."""
        # Reentrant, because the garbage collector may finish another call inside.
        self._lock = threading.RLock()
        self._executions: OrderedDict[str, Execution] = OrderedDict()
        self._entries = 0
        self._small: OrderedDict[tuple[str, str], tuple[int, ...]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._executions)

    def asked(self, execution_id: str, tool: str, digest: str, call_id: str | None) -> bool:
        """Note a call; True when this execution has asked the same tool the same before, under another call id."""
        key = hash((tool, digest))
        with self._lock:
            execution = self._touch(execution_id)
            if call_id is not None:
                call_id = call_id[:_MAX_ID_LENGTH]
                if call_id in execution.call_ids:
                    return False
                self._remember(execution, execution.call_ids, call_id, (tool, 0))
            execution.tool_calls += 1
            repeated = key in execution.asked
            if not repeated:
                self._remember(execution, execution.asked, key, None)
            return repeated

    def produced(self, execution_id: str, result_bytes: int, tool: str = "", call_id: str | None = None) -> None:
        """Add the bytes of a result to its execution, and to its call where that has an id."""
        with self._lock:
            execution = self._executions.get(execution_id)
            if execution is not None:
                execution.result_bytes += result_bytes
                if call_id is not None and call_id[:_MAX_ID_LENGTH] in execution.call_ids:
                    execution.call_ids[call_id[:_MAX_ID_LENGTH]] = (tool, result_bytes)

    def carried(
        self, execution_id: str, kind: str, payload_bytes: int, *, again: bool = False
    ) -> tuple[Execution, Track]:
        """Note a payload of an execution; ``again`` when it is no further turn; nor is a refused one."""
        with self._lock:
            execution = self._touch(execution_id)
            execution.payload_bytes = max(execution.payload_bytes, payload_bytes)
            track = self._track(execution_id, execution, kind)
            # A refused payload that comes again may differ by an id or a time in it.
            if track.refused and track.sizes and abs(payload_bytes - track.sizes[-1]) * 100 > track.sizes[-1]:
                track.refused = 0
            if not track.sizes or not (again or track.refused):
                track.sizes.append(payload_bytes)
                del track.sizes[:-_TURNS]
            return execution, track

    def small(self, execution_id: str, kind: str, payload_bytes: int) -> bool:
        """Note a payload that is far from its cap; False when its execution is remembered, and the payload should be.

        The first turn of an agent is small, and so are ten thousand tasks that never grow: those must not push the
        executions that matter out of the ledger, so that they are held in a place of their own.
        """
        with self._lock:
            if execution_id in self._executions:
                return False
            sizes = self._small.pop((execution_id, kind), ())
            self._small[execution_id, kind] = (*sizes, payload_bytes)[-_TURNS:]
            if len(self._small) > _MAX_SMALL:
                self._small.popitem(last=False)
            return True

    def refused(self, execution_id: str, kind: str) -> int:
        """Note that a payload was refused; how often that has happened in a row."""
        with self._lock:
            track = self._track(execution_id, self._touch(execution_id), kind)
            track.refused += 1
            return track.refused

    def named(self, execution_id: str, workflow: str) -> None:
        """Note the workflow of an execution, for payloads that are read where only its id is known."""
        with self._lock:
            self._touch(execution_id).workflow = workflow

    def known(self, execution_id: str) -> Execution | None:
        """What is remembered of an execution."""
        return self._executions.get(execution_id)

    def is_first(self, execution: Execution, *, analysis: int | None = None) -> bool:
        """Whether this is the first analysis at this step of an execution, or the first time it has few turns left."""
        with self._lock:
            if analysis is None:
                first, execution.few_turns = not execution.few_turns, True
                return first
            first = analysis > execution.analysed
            execution.analysed = max(analysis, execution.analysed)
            return first

    def _track(self, execution_id: str, execution: Execution, kind: str) -> Track:
        if execution.tracks is None:
            execution.tracks = {}
        track = execution.tracks.get(kind)
        if track is None:
            if len(execution.tracks) >= _MAX_KINDS:
                del execution.tracks[next(iter(execution.tracks))]
                self._entries -= 1
            track = execution.tracks[kind] = Track()
            track.sizes += self._small.pop((execution_id, kind), ())
            self._entries += 1
        return track

    def finish(self, execution_id: str) -> Execution | None:
        """Forget an execution and return what was known of it."""
        with self._lock:
            return self._drop(execution_id)

    def _touch(self, execution_id: str) -> Execution:
        now = self._clock()
        execution = self._executions.get(execution_id)
        if execution is None:
            execution = self._executions[execution_id] = Execution()
            self._evict(now)
        else:
            self._executions.move_to_end(execution_id)
        execution.seen_at = now
        return execution

    def _evict(self, now: float) -> None:
        while len(self._executions) > 1:
            oldest_id, oldest = next(iter(self._executions.items()))
            expired = now - oldest.seen_at > self._idle_seconds
            if not expired and len(self._executions) <= self._max_executions and self._entries <= self._max_entries:
                return
            self._drop(oldest_id)

    def _drop(self, execution_id: str) -> Execution | None:
        execution = self._executions.pop(execution_id, None)
        if execution is not None:
            self._entries -= len(execution)
        return execution

    def _remember(self, execution: Execution, memory: dict[_K, _V], key: _K, value: _V) -> None:
        if len(memory) >= self._max_per_execution:
            del memory[next(iter(memory))]
            self._entries -= 1
        memory[key] = value
        self._entries += 1
        if self._entries > self._max_entries:
            self._evict(execution.seen_at)
