"""The wait of a sync call for a slot, in a thread of a pool whose other threads may all wait for one as well.

The call that has the slot may be a coroutine that needs a thread of the same pool, for example to look a host up. When
all threads of a pool wait and the pool has work left, one of the calls runs without a slot, because otherwise none of
them would ever run.
"""

from __future__ import annotations

import threading
from concurrent.futures import TimeoutError as FutureTimeoutError
from concurrent.futures import thread as pools
from typing import TYPE_CHECKING, Any, Final, TypeVar
from weakref import WeakSet

from agent_otel._internal import errors, fork

if TYPE_CHECKING:
    from concurrent.futures import Future

_T = TypeVar("_T")

#: Seconds between two looks at the pool, and the looks in a row that have to find it without a free thread.
_SECONDS: Final = 0.5
_LOOKS: Final = 4
_SAID: Final = (
    "AGENT_OTEL_MAX_PARALLEL_TOOL_CALLS: a call runs at once, because all threads of its pool wait for the call that "
    "runs, which may wait for a thread itself. Make the event loop's executor larger, or the tools async."
)


class _Blocked:
    """The threads that wait for a slot."""

    def __init__(self) -> None:
        self.reset()
        fork.after_fork(self.reset)

    def reset(self) -> None:
        """Forget all threads; a forked child calls this."""
        self.lock = threading.Lock()
        self.threads: WeakSet[threading.Thread] = WeakSet()


_blocked: Final = _Blocked()


def wait(waiter: Future[_T]) -> _T | None:
    """Block until the future is done; return None where the threads of the pool wait for each other."""
    thread = threading.current_thread()
    if thread is threading.main_thread():
        return waiter.result()
    looks = 0
    with _blocked.lock:
        _blocked.threads.add(thread)
    try:
        while True:
            try:
                return waiter.result(_SECONDS)
            except FutureTimeoutError:
                looks = looks + 1 if _is_starved(thread) else 0
            if looks >= _LOOKS and _leaves(thread, waiter):
                return None
    finally:
        with _blocked.lock:
            _blocked.threads.discard(thread)


def _leaves(thread: threading.Thread, waiter: Future[Any]) -> bool:
    """Give up the place in the queue of calls, unless another thread of the pool has just done so."""
    with _blocked.lock:
        if not _is_starved(thread) or not waiter.cancel():
            return False
        _blocked.threads.discard(thread)
    errors.warn_once("starved threads", _SAID)
    return True


def _is_starved(thread: threading.Thread) -> bool:
    """Return True when all threads of the thread's pool wait for slots, and the pool has work left."""
    queues = getattr(pools, "_threads_queues", {})  # a pool registers a thread after its start
    work = queues.get(thread)
    try:
        others = [other for other, own in list(queues.items()) if own is work]
    except RuntimeError:  # another pool has started a thread meanwhile
        return False
    return work is not None and not work.empty() and all(other in _blocked.threads for other in others)
