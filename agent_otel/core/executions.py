"""Bounded memory of executions and call ids.

One ledger per process answers the questions that involve more than one call: whether an execution repeats a call,
whether a call is a retry or a resumed step, which tool produced a result that a payload holds, and how a payload has
grown from turn to turn.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_otel import semconv
from agent_otel._internal import fork
from agent_otel.core.execution_state import (
    REUSED,
    Conversation,
    ExecutionState,
    Fragment,
    PayloadHistory,
    SeenCall,
    Stage,
)
from agent_otel.measure.forecast import LOOK_BACK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from agent_otel.core.execution_state import PayloadKind, ReadTexts, SeenParts, Totals

_MAX_KINDS = 64
_MAX_SMALL = 4_096
_MAX_UNNAMED = 256
#: The most recently used executions that are searched for a call id.
_LOOK_BACK = 64
#: Results that are kept although a request has held them.
_LAST_RESULTS = 2
#: Transcripts per execution; each sub-agent has one of its own.
_MAX_STREAMS = 8


def new_call(tool: str, **known: Any) -> SeenCall:
    """Return a call of this tool, with values of its fields."""
    call = SeenCall()
    vars(call).update(known, tool=tool)
    return call


@dataclass(eq=False)
class Executions:
    """The state of all executions; the least recently used is dropped first.

    ``max_executions`` and ``max_entries`` bound the memory: 10,000 executions with 16 calls each take under 32 MB
    (measured by ``benchmarks/budgets.py``), and so do fewer with transcripts. Ids have at most 128 characters,
    because ``names`` hashes longer ones. ``idle_seconds`` is the time that an execution is kept after its last use.
    """

    max_executions: int = 10_000
    max_entries: int = 160_000
    max_entries_per_execution: int = 4_096
    idle_seconds: float = 3_600.0
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Drop all executions and renew the lock, for a forked child."""
        # Reentrant, because the garbage collector may finish another call while this thread holds the lock.
        self._lock = threading.RLock()
        self._executions: OrderedDict[str, ExecutionState] = OrderedDict()
        self._entries = 0
        self._small: OrderedDict[tuple[str, PayloadKind], tuple[int, ...]] = OrderedDict()
        #: True when a model got a part of a result in this process; until then no request is searched for fragments.
        self.has_fragments = False

    def __len__(self) -> int:
        return len(self._executions)

    def began(  # noqa: PLR0913, PLR0917 - the fields of a call
        self,
        execution_id: str,
        tool: str,
        digest: str,
        call_id: str | None,
        run: Totals | None = None,
        call: SeenCall | None = None,
    ) -> tuple[ExecutionState, bool]:
        """Record a call; return its state, and True when it repeats an earlier one of the execution, or of the ``run``.

        A repeat has an earlier call's tool and arguments hash, but not its call id. A call id that comes again is the
        same call, a retry or a resumed step. Some models reuse ids: one whose result has been delivered, or that
        belongs to another tool, is a new call; and so is the first attempt of a ``call`` that a response has asked for.
        """
        key = hash((tool, digest))
        with self._lock:
            execution = self._touch(execution_id)
            if call is not None:
                is_first, call.stage = call.stage is Stage.GATED, Stage.RUNNING
                self._keep(execution, call)
                if not is_first:
                    return execution, False
            elif call_id is not None:
                known = execution.call_ids.get(call_id)
                if known is None:
                    self._remember(execution, call_id, new_call(tool))
                elif known.tool == tool and known.delivered < 0:
                    return execution, False
                else:  # in a request the results of an id that is used again may be of either call
                    execution.call_ids[call_id] = new_call(tool, fragment=REUSED)
                    execution.call_changes += 1
            before, totals = len(execution.asked), execution if run is None else run
            totals.tool_calls += 1
            repeated = key in totals.asked
            if repeated:
                totals.repeats(tool, semconv.ARGUMENTS, totals.asked[key])
            else:
                asked = totals.asked = totals.asked or {}
                if len(asked) >= self.max_entries_per_execution:
                    del asked[next(iter(asked))]
                asked[key] = execution.turn
            self._count(execution, len(execution.asked) - before)
            return execution, repeated

    def produced(  # noqa: PLR0913 - the readings of one result
        self,
        execution: ExecutionState,
        tool: str,
        result_bytes: int,
        call_id: str | None,
        run: Totals | None = None,
        *,
        call: SeenCall | None = None,
        goes_on: bool = True,
    ) -> SeenCall | None:
        """Add the bytes of a result to its execution; return its ``call``, None when there is none.

        The result ``goes_on`` into the next payload, unless `handed_on` has counted it.
        """
        with self._lock:
            if execution.forgotten:
                return None
            (execution if run is None else run).result_bytes += result_bytes
            if goes_on:
                self.handed_on(execution, result_bytes)
            if call is None:
                call = execution.call_ids.get(call_id) if call_id is not None else self._unnamed(execution, tool)
            if call is not None:
                call.produced, call.stage = result_bytes, Stage.PRODUCED
                results = execution.results = execution.results or []
                results.append(call)
                del results[:-_MAX_UNNAMED]
            return call

    def results(self, execution: ExecutionState) -> list[SeenCall]:
        """Return the latest calls with results; of those that a request held, keep the last ones only."""
        if not execution.results:
            return []
        with self._lock:
            waiting = [call for call in execution.results[:-_LAST_RESULTS] if call.delivered < 0]
            execution.results = [*waiting, *execution.results[-_LAST_RESULTS:]]
            return execution.results.copy()

    def partly_shown(self, call: SeenCall, fragment: Fragment) -> None:
        """Record that a model gets only a part of a call's result; the first reason stays."""
        if call.fragment is None:
            call.fragment = fragment
            self.has_fragments = True

    def asked(self, execution_id: str, calls: Iterable[SeenCall]) -> None:
        """Record the calls that a response asks for."""
        with self._lock:
            execution = self._touch(execution_id)
            for call in calls:
                self._keep(execution, call)

    def _keep(self, execution: ExecutionState, call: SeenCall) -> None:
        """Keep a call of a response. It replaces one with the same id."""
        if call.id is None:
            if call not in (execution.unnamed or ()):
                self._unnamed(execution, call.tool, call)
            return
        unnamed = execution.unnamed or []
        if call in unnamed:  # the framework has given it an id
            unnamed.remove(call)
            self._entries -= 1
        earlier = execution.call_ids.get(call.id)
        if earlier is None:
            self._remember(execution, call.id, call)
        elif earlier is not call:
            execution.call_ids[call.id] = call
            if earlier.stage is not Stage.ASKED:
                execution.call_changes += 1
                call.fragment = REUSED  # in a request the results of an id that is used again may be of either call

    def owner(self, call_ids: Iterable[str], likely: str | None = None) -> str | None:
        """Return the execution that made one of these calls, among the most recently used ones.

        ``call_ids`` end with the newest. ``likely`` is searched first, because some models reuse call ids in each run.
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

    def made(self, call_id: str) -> SeenCall | None:
        """Return the call with this id of its `owner`."""
        owner = self.known(self.owner((call_id,)) or "")
        return None if owner is None else owner.call_ids.get(call_id)

    def noted(self, execution: ExecutionState, call_id: str, noted: SeenCall) -> SeenCall:
        """Store a call under the id that a model request uses for it."""
        with self._lock:
            execution.call_changes += call_id in execution.call_ids
            self._remember(execution, call_id, noted)
            return noted

    def touched(self, execution_id: str) -> ExecutionState:
        """Return the execution, which becomes the most recently used; create it if necessary."""
        with self._lock:
            return self._touch(execution_id)

    def conversation(self, execution: ExecutionState, key: int) -> Conversation:
        """Return the transcript of an execution with this key; above the limit the first transcript is dropped."""
        with self._lock:
            streams = execution.streams = execution.streams or {}
            if key not in streams:
                if len(streams) >= _MAX_STREAMS:
                    self._count(execution, -len(streams.pop(next(iter(streams)))))
                streams[key] = Conversation()
                self._count(execution, len(streams[key]))
            return streams[key]

    def requested(self, execution: ExecutionState, conversation: Conversation, parts: SeenParts) -> None:
        """Replace the parts of a conversation by those of its latest request."""
        with self._lock:
            before = len(conversation)
            conversation.parts = parts
            self._count(execution, len(conversation) - before)

    def read(self, execution: ExecutionState, texts: ReadTexts, prints: set[int]) -> None:
        """Add the hashes of passages that a model request held to the texts of an execution."""
        with self._lock:
            before = len(execution.read or ())
            execution.read = texts
            texts.add(prints)
            self._count(execution, len(texts) - before)

    def step_ended(self, execution: ExecutionState, call: SeenCall) -> None:
        """Keep the output of a durable step, which a model request may hold."""
        with self._lock:
            if call.id is None:
                self._unnamed(execution, call.tool, call)
            execution.results = [*(execution.results or ()), call][-_MAX_UNNAMED:]

    def without_result(self, execution: ExecutionState, tool: str, digest: str) -> None:
        """Record a call without an id that has failed or was not run; a request may hold a text in its place."""
        with self._lock:
            call = self._unnamed(execution, tool)
            call.digest, call.stage = digest, Stage.FAILED

    def _unnamed(self, execution: ExecutionState, tool: str, call: SeenCall | None = None) -> SeenCall:
        unnamed = execution.unnamed = execution.unnamed or []
        unnamed.append(new_call(tool) if call is None else call)
        if len(unnamed) > _MAX_UNNAMED:
            del unnamed[0]
        else:
            self._entries += 1
        return unnamed[-1]

    def carried(
        self, execution_id: str, kind: PayloadKind, payload_bytes: int, *, again: bool = False
    ) -> tuple[ExecutionState, PayloadHistory]:
        """Record a payload; it adds no turn when ``again`` is true or when it retries a rejected payload."""
        with self._lock:
            execution = self._touch(execution_id)
            execution.payload_bytes = max(payload_bytes, execution.payload_bytes)
            track = self._track(execution_id, execution, kind)
            # A retry of a rejected payload may differ by an id or a time in it: 1 % is still the same payload.
            if track.refused and track.sizes and abs(payload_bytes - track.sizes[-1]) * 100 > track.sizes[-1]:
                track.refused = 0
            if not track.sizes or not (again or track.refused):
                track.sizes.append(payload_bytes)
                if len(track.sizes) > LOOK_BACK:
                    del track.sizes[0]
            return execution, track

    def handed_on(self, execution: ExecutionState, result_bytes: int) -> None:
        """Add the bytes of a result that goes on to those that the execution's next payload will carry."""
        with self._lock:
            execution.handed_bytes += result_bytes
            execution.handed_to_model_bytes += result_bytes
            execution.handed_count += 1

    def small(self, execution_id: str, kind: PayloadKind, payload_bytes: int) -> bool:
        """Record a payload that is far from its cap; return False when the ledger has its execution.

        The caller then records the payload with `carried`. The first turn of an agent is small, and so are the
        payloads of ten thousand tasks that never grow. These are kept apart, and evict no execution that matters.
        """
        with self._lock:
            if execution_id in self._executions:
                return False
            sizes = self._small.pop((execution_id, kind), ())
            self._small[execution_id, kind] = (*sizes, payload_bytes)[-LOOK_BACK:]
            if len(self._small) > _MAX_SMALL:
                self._small.popitem(last=False)
            return True

    def refused(self, execution_id: str, kind: PayloadKind) -> int:
        """Record that the runtime rejected a payload; return the number of rejections in a row."""
        with self._lock:
            track = self._track(execution_id, self._touch(execution_id), kind)
            track.refused += 1
            return track.refused

    def known(self, execution_id: str) -> ExecutionState | None:
        """Return the state of an execution, None when there is none."""
        return self._executions.get(execution_id)

    def is_first(self, execution: ExecutionState, *, analysis: int | None = None) -> bool:
        """Return true for the first analysis at this level; without a level, for the first forecast of few turns."""
        with self._lock:
            if analysis is None:
                first, execution.few_turns = not execution.few_turns, True
                return first
            first = analysis > execution.analysed
            execution.analysed = max(analysis, execution.analysed)
            return first

    def _track(self, execution_id: str, execution: ExecutionState, kind: PayloadKind) -> PayloadHistory:
        tracks = execution.tracks = execution.tracks or {}
        if kind not in tracks:
            if len(tracks) >= _MAX_KINDS:
                del tracks[next(iter(tracks))]
                self._entries -= 1
            tracks[kind] = PayloadHistory()
            tracks[kind].sizes += self._small.pop((execution_id, kind), ())
            self._entries += 1
        return tracks[kind]

    def finish(self, execution_id: str) -> ExecutionState | None:
        """Drop an execution and return its state."""
        with self._lock:
            return self._drop(execution_id)

    def _touch(self, execution_id: str) -> ExecutionState:
        now = self.clock()
        execution = self._executions.get(execution_id)
        if execution is None:
            execution = self._executions[execution_id] = ExecutionState()
            self._evict(now)
        else:
            self._executions.move_to_end(execution_id)
        execution.seen_at = now
        return execution

    def _evict(self, now: float) -> None:
        while len(self._executions) > 1:
            oldest_id, oldest = next(iter(self._executions.items()))
            expired = now - oldest.seen_at > self.idle_seconds
            if not expired and len(self._executions) <= self.max_executions and self._entries <= self.max_entries:
                return
            self._drop(oldest_id)

    def _drop(self, execution_id: str) -> ExecutionState | None:
        execution = self._executions.pop(execution_id, None)
        if execution is not None:
            self._entries -= len(execution)
            execution.forgotten = True
        return execution

    def _count(self, execution: ExecutionState, entries: int) -> None:
        """Add to the number of entries, unless the execution has been dropped."""
        if not execution.forgotten:
            self._entries += entries
            if self._entries > self.max_entries:
                self._evict(execution.seen_at)

    def _remember(self, execution: ExecutionState, call_id: str, call: SeenCall) -> None:
        known = execution.call_ids = execution.call_ids or {}
        if len(known) >= self.max_entries_per_execution:
            del known[next(iter(known))]
            self._entries -= 1
            execution.call_changes += 1
        known[call_id] = call
        self._entries += 1
        if self._entries > self.max_entries:
            self._evict(execution.seen_at)


#: The executions of this process.
executions = Executions()
fork.after_fork(executions.reset)
