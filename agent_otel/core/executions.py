"""Bounded memory of executions and call ids.

One ledger per process answers the questions that take more than one call: has this execution asked the same before, is
this the same call again (a retry or a resumed step), which tool answered the call whose result is found in a payload,
and how has the payload grown from turn to turn.
"""

from __future__ import annotations

import itertools
import threading
import time
from array import array
from collections import OrderedDict, deque
from typing import TYPE_CHECKING, TypeVar

from agent_otel._internal import fork
from agent_otel.core.execution_state import Execution, Noted, Stream, Track
from agent_otel.measure.forecast import LOOK_BACK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_K = TypeVar("_K")
_V = TypeVar("_V")
_MAX_KINDS = 64
_MAX_SMALL = 4_096
_MAX_UNNAMED = 256
#: Executions, the latest first, that are asked whether a call id is theirs.
_LOOK_BACK = 64
_MAX_UNOWNED = 1_024
#: A sub-agent has a transcript of its own.
_MAX_STREAMS = 8


class Ledger:
    """Executions, the oldest forgotten first.

    ``max_executions`` and ``max_entries`` bound the memory: 10,000 executions with 16 calls each take under 32 MB
    (measured by ``benchmarks/budgets.py``), and so do fewer with transcripts. Ids are of 128 characters at most, as
    ``names`` makes them. ``idle_seconds`` is how long an execution is kept after its last call.
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
        self._unowned: OrderedDict[str, Noted | None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._executions)

    def asked(self, execution_id: str, tool: str, digest: str, call_id: str | None) -> bool:
        """Note a call; True when this execution has asked the same tool the same before, under another call id.

        An id that comes again is the same call, a retry or a resumed step. But some models number the calls of each
        turn anew: an id whose result a model has seen, or of another tool, is another call's.
        """
        key = hash((tool, digest))
        with self._lock:
            execution = self._touch(execution_id)
            if call_id is not None:
                known = execution.call_ids.get(call_id)
                if known is None:
                    self._remember(execution, execution.call_ids, call_id, Noted(tool))
                elif known.tool == tool and known.delivered < 0:
                    return False
                else:
                    execution.call_ids[call_id] = Noted(tool)
            execution.tool_calls += 1
            repeated = key in execution.asked
            if not repeated:
                self._remember(execution, execution.asked, key, None)
            return repeated

    def produced(self, execution_id: str, tool: str, result_bytes: int, call_id: str | None) -> Noted | None:
        """Add the bytes of a result to its execution; what is noted of its call from now on."""
        with self._lock:
            execution = self._executions.get(execution_id)
            if execution is None:
                return None
            execution.result_bytes += result_bytes
            noted = execution.call_ids.get(call_id) if call_id is not None else self._unnamed(execution, tool)
            if noted is not None:
                noted.produced = result_bytes
            return noted

    def produced_by_nobody(self, tool: str, result_bytes: int, call_id: str) -> Noted | None:
        """Note the result of a call of which nobody knows the execution, to be found by its id alone.

        None for an id that has been seen before: there may be several runs whose models number their calls alike.
        """
        with self._lock:
            noted = None if call_id in self._unowned else Noted(tool)
            self._unowned[call_id] = noted
            if noted is not None:
                noted.produced = result_bytes
            if len(self._unowned) > _MAX_UNOWNED:
                self._unowned.popitem(last=False)
            return noted

    def answered(self, execution: Execution | None, call_id: str) -> Noted | None:
        """What is noted of the call with this id: of an execution's, or of one of nobody's."""
        noted = execution.call_ids.get(call_id) if execution is not None else None
        return noted or self._unowned.get(call_id)

    def owner(self, call_ids: Iterable[str], likely: str | None = None) -> str | None:
        """The execution that asked one of these, among those that were busy last; the newest ids come last.

        ``likely`` is asked first: some models number the calls of each run anew.
        """
        wanted = list(call_ids)
        with self._lock:
            busy = itertools.islice(reversed(self._executions), _LOOK_BACK)
            first = () if likely is None or likely not in self._executions else (likely,)
            for execution_id in itertools.chain(first, busy):
                known = self._executions[execution_id].call_ids
                if any(call_id in known for call_id in reversed(wanted)):
                    return execution_id
        return None

    def noted(self, execution: Execution, call_id: str, noted: Noted) -> Noted:
        """Note a call under an id that a model request knows it by."""
        with self._lock:
            self._remember(execution, execution.call_ids, call_id, noted)
            return noted

    def touched(self, execution_id: str) -> Execution:
        """The execution, which is thereby the latest."""
        with self._lock:
            return self._touch(execution_id)

    def stream(self, execution: Execution, key: int) -> Stream:
        """Return the transcript of an execution that has this key; of too many the first is forgotten."""
        with self._lock:
            if execution.streams is None:
                execution.streams = {}
            stream = execution.streams.get(key)
            if stream is None:
                if len(execution.streams) >= _MAX_STREAMS:
                    self._count(execution, -len(execution.streams.pop(next(iter(execution.streams)))))
                stream = execution.streams[key] = Stream()
                self._count(execution, len(stream))
            return stream

    def requested(self, execution: Execution, stream: Stream, prints: Iterable[int]) -> None:
        """Note the fingerprints of a transcript's latest request, in place of those of the one before."""
        with self._lock:
            before = len(stream)
            stream.requests += 1
            stream.prints = array("q", prints)
            self._count(execution, len(stream) - before)

    def follow(self, execution_id: str, tool: str) -> None:
        """Note that a tool's result invites another call of it."""
        with self._lock:
            execution = self._executions.get(execution_id)
            if execution is not None:
                execution.followed = execution.followed or {}
                execution.followed[tool] = 0

    def followed(self, execution_id: str, tool: str) -> bool:
        """Whether a call of this tool follows up what `follow` noted; it does so once."""
        execution = self._executions.get(execution_id)
        if execution is None or not execution.followed:
            return False
        return execution.followed.pop(tool, None) is not None

    def _unnamed(self, execution: Execution, tool: str) -> Noted:
        if execution.unnamed is None:
            execution.unnamed = deque(maxlen=_MAX_UNNAMED)
        if len(execution.unnamed) < _MAX_UNNAMED:
            self._entries += 1
        execution.unnamed.append(Noted(tool))
        return execution.unnamed[-1]

    def carried(
        self, execution_id: str, kind: str, payload_bytes: int, *, again: bool = False
    ) -> tuple[Execution, Track]:
        """Note a payload of an execution; ``again`` when it is no further turn; nor is a refused one."""
        with self._lock:
            execution = self._touch(execution_id)
            execution.payload_bytes = max(execution.payload_bytes, payload_bytes)
            track = execution.tracks.get(kind) if execution.tracks else None
            if track is None:
                track = self._track(execution_id, execution, kind)
            # A refused payload that comes again may differ by an id or a time in it.
            if track.refused and track.sizes and abs(payload_bytes - track.sizes[-1]) * 100 > track.sizes[-1]:
                track.refused = 0
            if not track.sizes or not (again or track.refused):
                track.sizes.append(payload_bytes)
                if len(track.sizes) > LOOK_BACK:
                    del track.sizes[0]
            return execution, track

    def handed_on(self, execution_id: str, result_bytes: int) -> None:
        """Add the bytes of a result, as it goes on, to those that the execution's next payload will carry."""
        with self._lock:
            execution = self._executions.get(execution_id)
            if execution is not None:
                execution.handed_bytes += result_bytes

    def small(self, execution_id: str, kind: str, payload_bytes: int) -> bool:
        """Note a payload that is far from its cap; False when its execution is remembered, and the payload should be.

        The first turn of an agent is small, and so are ten thousand tasks that never grow: those must not push the
        executions that matter out of the ledger, so that they are held in a place of their own.
        """
        with self._lock:
            if execution_id in self._executions:
                return False
            sizes = self._small.pop((execution_id, kind), ())
            self._small[execution_id, kind] = (*sizes, payload_bytes)[-LOOK_BACK:]
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
            execution.forgotten = True
        return execution

    def _count(self, execution: Execution, entries: int) -> None:
        """Add to the entries, for an execution that is still remembered."""
        if not execution.forgotten:
            self._entries += entries
            if self._entries > self._max_entries:
                self._evict(execution.seen_at)

    def _remember(self, execution: Execution, memory: dict[_K, _V], key: _K, value: _V) -> None:
        if len(memory) >= self._max_per_execution:
            del memory[next(iter(memory))]
            self._entries -= 1
        memory[key] = value
        self._entries += 1
        if self._entries > self._max_entries:
            self._evict(execution.seen_at)


#: The executions of this process.
ledger = Ledger()
fork.after_fork(ledger.reset)
