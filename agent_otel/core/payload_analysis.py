"""Analysis of payloads that come near their cap, in one daemon thread that uses at most a twentieth of a core.

The thread's mailbox has one slot and the latest payload wins, so at most one payload waits. The receiver of a dropped
payload gets None, because it must end the span of the step. A payload that is a live object is analysed at once in the
calling thread, because its owner may change it.
"""

from __future__ import annotations

import atexit
import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from agent_otel import semconv
from agent_otel._internal import errors, fork
from agent_otel.core.tool_names import seen
from agent_otel.measure.breakdown.report import breakdown_object, breakdown_text
from agent_otel.measure.preview import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent_otel.core.execution_state import SeenCall
    from agent_otel.core.payload_cap import EffectiveCap
    from agent_otel.core.types import Payload
    from agent_otel.measure.breakdown.report import Breakdown
    from agent_otel.measure.breakdown.unread import Held

#: Payloads from this size on are analysed below the warn ratio and without a cap, once each time they double.
LARGE_BYTES = 1024 * 1024
_SHARE = 0.05  # of one core
_EXIT_SECONDS = 1.0
_NEAR = 100  # a level above all doublings


class Explanation(NamedTuple):
    """Facts of an execution for an analysis: the tool of each call id, and the contents of model requests."""

    tool_of: Callable[[str], str | None]
    held: Held | None
    #: Receives the breakdown, exactly once; None when there is none.
    found: Callable[[Breakdown | None], None]


def level(payload_bytes: int, cap: EffectiveCap | None, warn_ratio: float) -> int:
    """Return the level of a payload; each level of an execution is analysed once.

    From the warn ratio up levels are tenths of the cap; below it, doublings of ``LARGE_BYTES``.
    """
    if cap is not None and payload_bytes >= warn_ratio * cap.bytes:
        return _NEAR + int(payload_bytes * 10 / cap.bytes)
    return (payload_bytes // LARGE_BYTES).bit_length()


def look_into(carried: Payload, explanation: Explanation) -> None:
    """Analyse a payload, at once or in the thread, and pass the breakdown to ``explanation``."""
    if carried.data is not None:
        _analyst.offer(carried.data, explanation)
        return
    found = None
    try:
        if carried.value is not None:
            found = breakdown_object(carried.value, explanation.tool_of, seen.__contains__, explanation.held)
    finally:
        explanation.found(found)


def drain(seconds: float) -> None:
    """Wait at most ``seconds`` until no payload waits; a payload that still waits then gets no breakdown."""
    _analyst.drain(seconds)


def attributes(found: Breakdown, calls: Mapping[str, SeenCall]) -> dict[str, Any]:
    """Return the span attributes of an analysed payload; ``calls`` are the execution's calls by id."""
    said: dict[str, Any] = {
        semconv.PAYLOAD_LARGEST_PATH: clean(found.largest_path),
        semconv.PAYLOAD_LARGEST_PATH_BYTES: found.largest_path_bytes,
        semconv.PAYLOAD_DUPLICATE_BYTES: found.duplicate_bytes,
    }
    if found.tools:
        tool, tool_bytes = max(found.tools.items(), key=lambda item: item[1])
        said[semconv.PAYLOAD_LARGEST_TOOL] = clean(tool)
        said[semconv.PAYLOAD_LARGEST_TOOL_BYTES] = tool_bytes
    if found.duplicates:
        largest = max(found.duplicates, key=lambda duplicate: duplicate.bytes)
        said[semconv.PAYLOAD_DUPLICATE_PATHS] = [clean(largest.path), clean(largest.other_path)]
    if found.unread is not None:
        unread = found.unread.paths
        said[semconv.PAYLOAD_UNREAD_BYTES] = sum(unread.values())
        if unread:
            said[semconv.PAYLOAD_UNREAD_PATH] = clean(max(unread, key=unread.__getitem__))
    inside = sum(
        calls[call].produced if call in calls and calls[call].produced > 0 else there
        for call, there in found.calls.items()
    )
    if inside:
        said[semconv.PAYLOAD_AMPLIFICATION] = round(found.total_bytes / inside, 3)
    return said


class _Analyst:
    """The thread and its mailbox."""

    def __init__(self) -> None:
        self._registered = False
        self.reset()

    def reset(self) -> None:
        """Discard the state, for a forked child, in which the thread does not run."""
        self._ready = threading.Condition()
        self._slot: tuple[Any, Explanation] | None = None
        self._busy = False
        self._thread: threading.Thread | None = None

    def offer(self, data: Any, explanation: Explanation) -> None:
        """Put a payload into the slot; a payload that waits there is dropped."""
        with self._ready:
            dropped, self._slot = self._slot, (data, explanation)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="agent_otel-analysis", daemon=True)
                self._thread.start()
                if not self._registered:
                    self._registered = True
                    # atexit runs this before the providers' shutdown, because they were registered earlier.
                    atexit.register(self.drain)
            self._ready.notify_all()
        if dropped is not None:
            dropped[1].found(None)

    def drain(self, seconds: float = _EXIT_SECONDS) -> None:
        """Wait at most ``seconds`` until no payload waits; a payload that still waits then gets no breakdown."""
        with self._ready:
            self._ready.wait_for(lambda: self._slot is None and not self._busy, seconds)
            left, self._slot = self._slot, None
        if left is not None:
            left[1].found(None)

    def _work(self) -> None:
        while True:
            with self._ready:
                self._ready.wait_for(lambda: self._slot is not None)
                slot, self._slot, self._busy = self._slot, None, True
            started = time.perf_counter()
            if slot is not None:
                _analyse(*slot)
            took = time.perf_counter() - started
            del slot
            with self._ready:
                self._busy = False
                self._ready.notify_all()
            time.sleep(took / _SHARE)


def _analyse(data: Any, explanation: Explanation) -> None:
    """Analyse one payload."""
    found = None
    with errors.reported("analysis.text"):
        found = breakdown_text(data, explanation.tool_of, seen.__contains__, explanation.held)
    with errors.reported("analysis.found"):
        explanation.found(found)


_analyst = _Analyst()
fork.after_fork(_analyst.reset)
