"""Threads of model requests, and the calls that their responses ask for.

A tool call that a response has asked for belongs to the request's thread, wherever it runs. In a hand-written loop,
which no framework, runtime or name connects, a request continues a thread if it delivers a result of the thread, or
begins as the thread's last request did. The thread is the conversation. Each message of the user after an answer begins
a run, which is one trace.
"""

from __future__ import annotations

import itertools
import secrets
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from opentelemetry.trace import INVALID_SPAN, NonRecordingSpan

from agent_otel import semconv
from agent_otel._internal import fork
from agent_otel.core.execution_context import Run, loop, loop_here
from agent_otel.core.execution_state import Stage
from agent_otel.core.executions import executions, new_call
from agent_otel.core.switches import added_messages
from agent_otel.core.thread.request_parts import HEADS, OF_CALLS, OF_THE_MODEL, first_text, sketch, texts
from agent_otel.measure.arguments_hash import arguments as digest_arguments
from agent_otel.measure.prints import hashes_in, prints

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opentelemetry.trace import Span

    from agent_otel.core.execution_state import ExecutionState, SeenCall
    from agent_otel.core.types import AskedCall, RequestPart
    from agent_otel.telemetry.setup import Telemetry

_MOST_OPEN = 8_192
_MOST_THREADS = 10_000
_MOST_ALIKE = 8  # threads with the same first message
_MOST_TEXTS = 8  # of a thread's first request
_OF_THE_PROGRAM = (semconv.SYSTEM, semconv.USER)


class Thread:
    """A thread: its id, its run, and the messages of its last request by number and by the prints of both ends.

    ``texts`` are passages of what the program says first, by part. ``is_astray`` is true when the last request begins
    otherwise.
    """

    is_astray = False
    last = 0
    whole = 0
    count = 0

    def __init__(self, parts: Sequence[RequestPart], first: int) -> None:
        self.id = secrets.token_hex(16)
        self.first = first
        begin = itertools.takewhile(lambda part: part.part not in OF_THE_MODEL, parts)
        said = itertools.islice((part for part in begin if part.part in _OF_THE_PROGRAM), _MOST_TEXTS)
        self.texts = {sketch(part): prints(first_text(part.value)) for part in said}
        self.begin()

    def begin(self, agent: str | None = None) -> None:
        """Begin the thread's next run."""
        self.run = Run(secrets.token_hex(16), agent, self.id, self)

    def is_continued_by(self, messages: Sequence[RequestPart]) -> bool:
        """Return true when a request with the same first message begins as the thread's last request, and has more."""
        if not self.count:  # a remedy has entered it, and this is its first request
            return True
        return self.count < len(messages) and sketch(messages[self.count - 1]) in {self.last, self.whole}

    def is_begun_by(self, parts: Sequence[RequestPart]) -> bool:
        """Return true when a request may be this thread's first one again, without its history.

        A first request of another thread has no passage of this one's, but for a whole part that programs share.
        """
        if any(part.part in OF_THE_MODEL or part.part == semconv.TOOL_RESULTS for part in parts):
            return True
        said = {sketch(part): part for part in parts if part.part in _OF_THE_PROGRAM}
        shared = {key for key, part in said.items() if part.part == semconv.SYSTEM and key in self.texts}
        known = [each.hashes for key, each in self.texts.items() if each is not None and key not in shared]
        new = [text for key, part in said.items() if key not in shared for text in texts(part.value)]
        return not known or not new or not hashes_in(new).isdisjoint(itertools.chain(*known))

    def take(self, new: Sequence[RequestPart], count: int) -> None:
        """Keep a request of so many messages by its new ones. A message of the user after an answer begins a run."""
        kinds = {part.part for part in new}
        if self.count and {semconv.USER, semconv.ASSISTANT} <= kinds and kinds.isdisjoint(OF_CALLS):
            self.begin(self.run.agent)
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
        self.lock = threading.RLock()
        self._threads: OrderedDict[str, Thread] = OrderedDict()
        self._by_first: dict[int, list[Thread]] = {}
        #: True after the first request of a loop; until then no request has the result of a call without an execution.
        self.has_some = False

    def take(self, parts: Sequence[RequestPart], execution_id: str | None) -> Thread | None:
        """Return the thread of a request; None if a framework, a runtime or a name owns its execution."""
        messages = self._messages(parts, execution_id)
        if not messages:
            loop.set(None)
            return None
        with self.lock:
            thread = self._find(parts, messages, execution_id)
            # A request without tools beside a loop may be one for a title.
            is_beside = thread is None and loop.get() is not None and all(part.part != semconv.TOOLS for part in parts)
            first = sketch(messages[0])
            thread = self._add(Thread(parts, first)) if thread is None else thread
            thread.is_astray = thread.first != first
            self._threads.move_to_end(thread.id)
            if not added_messages.get():  # the program's next request has none of them
                thread.take(messages[thread.count :] or messages[-1:], len(messages))
        if not is_beside:
            loop.set(thread.run)
        return thread

    def enter(self, parts: Sequence[RequestPart], execution_id: str | None) -> str | None:
        """Enter the loop of a request, and begin its thread, before a remedy changes the request; return its execution.

        The program has the last message as it is here, and its next request begins with that.
        """
        messages = self._messages(parts, execution_id)
        if not messages:
            return execution_id
        with self.lock:
            thread = self._find(parts, messages, execution_id) or self._add(Thread(parts, sketch(messages[0])))
            thread.whole = sketch(messages[-1])
        loop.set(thread.run)
        return thread.id

    def take_new(self, execution_id: str, new: Sequence[RequestPart]) -> None:
        """Keep a request that continues the one before it by new parts."""
        with self.lock:
            thread = self._threads.get(execution_id)
            if thread is not None:
                self._threads.move_to_end(execution_id)
                thread.take(new, thread.count + len(new))
        loop.set(None if thread is None else thread.run)

    def _messages(self, parts: Sequence[RequestPart], execution_id: str | None) -> list[RequestPart]:
        """Return the messages of a request that may be a loop's; none of another execution."""
        is_other = execution_id is not None and execution_id not in self._threads
        return [] if is_other else [part for part in parts if part.part not in HEADS]

    def _find(
        self, parts: Sequence[RequestPart], messages: Sequence[RequestPart], execution_id: str | None
    ) -> Thread | None:
        """Return the thread that a request continues; the ids of its new results are of this execution.

        The thread of the context comes first. While it has a result to deliver, it also gets a request that has lost
        its history, but no first request of another conversation.
        """
        first = sketch(messages[0])
        by_id = None if execution_id is None else self._threads.get(execution_id)
        if by_id is not None and by_id.is_continued_by(messages):  # else ids are equal in several threads
            return by_id
        here = self._threads.get("" if (run := loop_here()) is None else run.key)
        if here is not None and by_id is None:
            state = executions.known(here.id)
            is_owed = state is not None and any(call.delivered < 0 for call in state.results or ())
            is_here = here.first == first
            if (is_owed and (is_here or here.is_begun_by(parts))) or (is_here and here.is_continued_by(messages)):
                return here
        alike = [each for each in reversed(self._by_first.get(first, ())) if each.is_continued_by(messages)]
        if by_id is not None:
            ids = {part.call_id for part in messages if part.part == semconv.TOOL_RESULTS}
            states = [(each, executions.known(each.id)) for each in alike]
            alike = [each for each, state in states if state is not None and not ids.isdisjoint(state.call_ids)]
        return alike[0] if alike else by_id

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


def is_astray() -> bool:
    """Return true when the last request of the loop in this context begins otherwise than its first one."""
    run = loop.get()
    thread = None if run is None else run.visit()
    return isinstance(thread, Thread) and thread.is_astray


def parent_of(run: Run | None, current: Span) -> Span:
    """Return the parent of a span: the current one, else the first span of the loop's run."""
    if current is not INVALID_SPAN or run is None or run.root is None:
        return current
    return NonRecordingSpan(run.root)


def opened(run: Run | None, span: Span) -> None:
    """Keep the first span of a loop's run as the parent of later spans."""
    if run is not None and run.root is None and isinstance(run.visit(), Thread):
        run.root = span.get_span_context()


class OpenCalls:
    """Calls of responses, and calls without a known response, until a request delivers their results."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all calls and renew the lock, for a forked child."""
        self._lock = threading.RLock()  # reentrant, as above
        self._calls: OrderedDict[SeenCall, None] = OrderedDict()
        #: Calls by id, and by tool and arguments.
        self.by: dict[str | tuple[str, str], list[SeenCall]] = {}
        self._responses = itertools.count(1)
        #: True when a response has asked for a call in this process.
        self.has_asked = False

    def __len__(self) -> int:
        return len(self._calls)

    def ask(self, out: Telemetry, calls: Sequence[AskedCall], known: dict[str, Any]) -> None:
        """Keep the calls of a response, with the thread, turn and agent of its request."""
        known.setdefault("asked_in", next(self._responses))
        found = [
            new_call(
                asked.name, id=asked.id, digest=digest_arguments(asked.arguments, out.args_key).digest,
                stage=Stage.ASKED, **known,
            )
            for asked in calls
        ]  # fmt: skip
        executions.asked(known["place"], found)
        with self._lock:
            self.has_asked = True
            for call in found:
                self.add(call)

    def add(self, call: SeenCall) -> None:
        """Keep a call until a request delivers its result."""
        with self._lock:
            self._calls[call] = None
            for key in (call.id, (call.tool, call.digest)):
                if key is not None:
                    self.by.setdefault(key, []).append(call)
            if len(self._calls) > _MOST_OPEN:
                self.close(next(iter(self._calls)))

    def close(self, call: SeenCall) -> None:
        """Forget a call after its delivery."""
        with self._lock:
            if call not in self._calls:
                return
            del self._calls[call]
            for key in (call.id, (call.tool, call.digest)):
                if key in self.by:
                    self.by[key] = [one for one in self.by[key] if one is not call]
                    if not self.by[key]:
                        del self.by[key]

    def claim(  # noqa: PLR0913 - the fields of a call
        self, call_id: str | None, tool: str, digest: str, run: Run | None, around: object, *, takes: bool = True
    ) -> SeenCall | None:
        """Return the call of a response for a tool call: the newest with its id, else with its tool and arguments.

        Calls of the ``run`` come first. Equal calls of one response are taken in their order. ``around`` is the running
        tool call: inside it, only requests inside it ask for calls. A further attempt takes a call again: with its id,
        or after a failure. A loop may change arguments: its call is else the next one of its tool.
        """
        place = None if run is None else run.key

        def is_this(call: SeenCall) -> bool:
            is_failed = call.stage is Stage.FAILED and call.place == place
            is_again = call.id == call_id if call_id is not None else is_failed
            is_inside = around is None or (call.around is not None and call.around() is around)
            return bool(call.asked_in) and is_inside and (call.stage is Stage.ASKED or is_again)

        def rank(call: SeenCall) -> tuple[bool, bool, bool, int, bool]:
            is_free = call.stage in {Stage.ASKED, Stage.FAILED}
            return is_free, call.place == place, call.digest == digest, call.asked_in, call.stage is Stage.ASKED

        with self._lock:
            found = self.by.get(call_id, ()) if call_id is not None else ()
            if not found:  # by a framework's own id, where the provider has none
                found = [call for call in self.by.get((tool, digest), ()) if call_id is None or call.id is None]
            found = [*filter(is_this, found)]
            if not found and call_id is None and run is not None and run is loop.get():
                state = executions.known(run.key)
                own = () if state is None else (*state.call_ids.values(), *(state.unnamed or ()))
                found = [call for call in own if call.tool == tool and call.stage is Stage.ASKED and is_this(call)]
            best = max(found, key=rank, default=None)
            if best is not None and best.stage is Stage.ASKED and takes:
                best.stage, best.id = Stage.GATED, best.id or call_id
            return best

    def of_result(self, execution: ExecutionState | None, call_id: str) -> SeenCall | None:
        """Return the call with this id: of the execution, else the only one without a known response."""
        noted = execution.call_ids.get(call_id) if execution is not None else None
        if noted is None and call_id in self.by:
            loose = [call for call in self.by[call_id] if call.place is None]
            noted = loose[0] if len(loose) == 1 else None
        return noted

    def is_an_adapters(self, call_id: str) -> bool:
        """Return true when an adapter reported a call with this id, in any recent execution or without one."""
        calls = (*self.by.get(call_id, ()), executions.made(call_id))
        return any(call is not None and call.produced >= 0 and not call.shown for call in calls)

    def unasked(self, execution: ExecutionState, tool: str, digest: str) -> SeenCall | None:
        """Return the call without an id, of the execution or of none, that has this tool and these arguments."""
        loose = (call for call in self.by.get((tool, digest), ()) if call.id is None and call.place is None)
        own = (call for call in execution.unnamed or () if call.tool == tool and call.digest == digest)
        return next((call for call in (*own, *loose) if call.delivered < 0), None)


#: The threads of this process, and the calls.
threads, open_calls = Threads(), OpenCalls()
fork.after_fork(threads.reset)
fork.after_fork(open_calls.reset)
