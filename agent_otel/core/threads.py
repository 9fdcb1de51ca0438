"""Threads of model requests in hand-written loops, which no framework, runtime or name connects.

A request continues a thread if it delivers a result of the thread, or begins as the thread's last request did. The
thread is the conversation. Each message of the user after an answer begins a run, which is one trace.
"""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

from opentelemetry.trace import INVALID_SPAN, NonRecordingSpan

from agent_otel import semconv
from agent_otel._internal import fork
from agent_otel.core.execution_context import Run, loop, loop_here
from agent_otel.core.executions import executions
from agent_otel.core.request_parts import HEADS, OF_CALLS, sketch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opentelemetry.trace import Span

    from agent_otel.core.types import RequestPart

_MOST_THREADS = 10_000
_MOST_ALIKE = 8  # threads with the same first message


class Thread:
    """A thread: its id, its run, and the messages of its last request by number and by the prints of both ends."""

    __slots__ = ("__weakref__", "count", "first", "id", "last", "run")

    def __init__(self, first: int) -> None:
        self.id = secrets.token_hex(16)
        self.first = first
        self.last = 0
        self.count = 0
        self.begin()

    def begin(self) -> None:
        """Begin the thread's next run."""
        self.run = Run(secrets.token_hex(16), None, self.id, self)

    def is_continued_by(self, messages: Sequence[RequestPart]) -> bool:
        """Return true when a request with the same first message begins as the thread's last request, and has more."""
        return self.count < len(messages) and sketch(messages[self.count - 1]) == self.last

    def take(self, new: Sequence[RequestPart], count: int) -> None:
        """Keep a request of so many messages by its new ones. A message of the user after an answer begins a run."""
        kinds = {part.part for part in new}
        if self.count and {semconv.USER, semconv.ASSISTANT} <= kinds and kinds.isdisjoint(OF_CALLS):
            self.begin()
        self.count = count
        if new:
            self.last = sketch(new[-1])


class Threads:
    """The threads of this process; the one that was idle longest is forgotten first."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all threads and renew the lock, for a forked child."""
        # Reentrant, because a signal handler or the garbage collector may run a loop while this thread holds the lock.
        self._lock = threading.RLock()
        self._threads: OrderedDict[str, Thread] = OrderedDict()
        self._by_first: dict[int, list[Thread]] = {}
        #: True after the first request of a loop; until then no request claims a call that has no execution.
        self.has_some = False

    def take(self, parts: Sequence[RequestPart], execution_id: str | None) -> Thread | None:
        """Return the thread of a request that has these parts and may deliver results of this execution.

        Return None if the execution belongs to a framework, a runtime or a name.
        """
        messages = [part for part in parts if part.part not in HEADS]
        if (execution_id is not None and execution_id not in self._threads) or not messages:
            loop.set(None)
            return None
        with self._lock:
            first = sketch(messages[0])
            thread = self._find(messages, first) if execution_id is None else self._threads.get(execution_id)
            # A request without tools beside a loop may be one for a title.
            is_beside = thread is None and loop.get() is not None and all(part.part != semconv.TOOLS for part in parts)
            thread = self._add(Thread(first)) if thread is None else thread
            self._threads.move_to_end(thread.id)
            thread.take(messages[thread.count :] or messages[-1:], len(messages))
        if not is_beside:
            loop.set(thread.run)
        return thread

    def take_new(self, execution_id: str, new: Sequence[RequestPart]) -> None:
        """Keep a request that continues the one before it by new parts."""
        with self._lock:
            thread = self._threads.get(execution_id)
            if thread is not None:
                self._threads.move_to_end(execution_id)
                thread.take(new, thread.count + len(new))
        loop.set(None if thread is None else thread.run)

    def _find(self, messages: Sequence[RequestPart], first: int) -> Thread | None:
        """Return the thread that a request without a known result continues.

        The thread of the context comes first. While it has a result to deliver, it also gets a request that has lost
        its history.
        """
        here = self._threads.get("" if (run := loop_here()) is None else run.key)
        if here is not None:
            state = executions.known(here.id)
            is_owed = state is not None and any(call.delivered < 0 for call in state.results or ())
            if is_owed or (here.first == first and here.is_continued_by(messages)):
                return here
        alike = reversed(self._by_first.get(first, ()))
        return next((thread for thread in alike if thread.is_continued_by(messages)), None)

    def _add(self, thread: Thread) -> Thread:
        self._threads[thread.id] = thread
        self.has_some = True
        alike = self._by_first.setdefault(thread.first, [])
        alike.append(thread)
        if len(alike) > _MOST_ALIKE:
            del alike[0]
        if len(self._threads) > _MOST_THREADS:
            _, oldest = self._threads.popitem(last=False)
            left = [one for one in self._by_first.pop(oldest.first, ()) if one is not oldest]
            if left:
                self._by_first[oldest.first] = left
        return thread


def parent_of(run: Run | None, current: Span) -> Span:
    """Return the parent of a span: the current one, else the first span of the loop's run."""
    if current is not INVALID_SPAN or run is None or run.root is None:
        return current
    return NonRecordingSpan(run.root)


def opened(run: Run | None, span: Span) -> None:
    """Keep the first span of a loop's run as the parent of later spans."""
    if run is not None and run.root is None and run is loop.get():
        run.root = span.get_span_context()


#: The threads of this process.
threads = Threads()
fork.after_fork(threads.reset)
