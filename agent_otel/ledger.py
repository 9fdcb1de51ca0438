"""Bounded memory of executions and call ids: integers and short strings only, never a value.

One ledger per process answers two questions at the tool boundary: has this execution asked the same before, and is
this the same call again (a retry or a resumed step), which is not the agent repeating itself.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_MAX_ID_LENGTH = 128


class Execution:
    """What is remembered of one execution."""

    __slots__ = ("asked", "call_ids", "result_bytes", "seen_at", "tool_calls")

    def __init__(self) -> None:
        self.tool_calls = 0
        self.result_bytes = 0
        self.seen_at = 0.0
        self.asked: dict[int, None] = {}
        self.call_ids: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self.asked) + len(self.call_ids)


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
                self._remember(execution, execution.call_ids, call_id)
            execution.tool_calls += 1
            repeated = key in execution.asked
            if not repeated:
                self._remember(execution, execution.asked, key)
            return repeated

    def produced(self, execution_id: str, result_bytes: int) -> None:
        """Add the bytes of a result to its execution."""
        with self._lock:
            execution = self._executions.get(execution_id)
            if execution is not None:
                execution.result_bytes += result_bytes

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

    def _remember(self, execution: Execution, memory: dict, key: int | str) -> None:  # type: ignore[type-arg]
        if len(memory) >= self._max_per_execution:
            del memory[next(iter(memory))]
            self._entries -= 1
        memory[key] = None
        self._entries += 1
        if self._entries > self._max_entries:
            self._evict(execution.seen_at)
