"""Work that a freed object leaves behind, such as the end of a stream that its consumer has abandoned.

The garbage collector frees cycles in the middle of any code. That code may hold a lock that the work needs: one of this
package, of the OpenTelemetry SDK or of the Prometheus client. So work of a collection waits in a queue until the next
stream, model request or flush, or until the process exits.
"""

from __future__ import annotations

import atexit
import gc
import weakref
from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Any

from agent_otel._internal import errors, fork

if TYPE_CHECKING:
    from collections.abc import Callable

#: The phases of the collector, the current one last. No code in Python follows them: a signal handler could raise in
#: it, and Python discards what is raised in a callback of the collector.
_phases: OrderedDict[str, None] = OrderedDict(start=None, stop=None)
_follow: Any = _phases.move_to_end
_due: deque[Callable[[], object]] = deque()
_is_ready = False


def follow() -> None:
    """Follow the collector from now on; a second call does nothing."""
    if _follow not in gc.callbacks:
        gc.callbacks.append(_follow)


def at_end_of(value: object, work: Callable[..., object], *arguments: object) -> None:
    """Call a function when an object is freed, except at exit; the function passes what it does to `run`."""
    follow()
    weakref.finalize(value, work, *arguments).atexit = False


def run(work: Callable[[], object]) -> None:
    """Do the work of a freed object now, or later while the collector runs."""
    global _is_ready  # noqa: PLW0603 - registered once
    if not _is_collecting():
        work()
        return
    _due.append(work)
    if not _is_ready:
        _is_ready = True
        atexit.register(run_due)  # registered after the providers' own, this runs before them


def _is_collecting() -> bool:
    try:
        return next(reversed(_phases)) == "start"
    except errors.ours(RuntimeError):  # a collection began or ended between the two calls
        return _is_collecting()


def run_due() -> None:
    """Do all work that waits."""
    while _due:
        try:
            work = _due.popleft()
        except errors.ours(IndexError):  # another thread was faster
            return
        errors.guarded("collected")(work)()


# The parent itself ends its streams.
fork.after_fork(_due.clear)
