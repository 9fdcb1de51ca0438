"""Results that the model gets in part, results that it never gets, and lists that tools seem to cut."""

from __future__ import annotations

import re
import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from agent_otel import semconv
from agent_otel._internal import fork
from agent_otel._internal.object_kinds import fields
from agent_otel.core.execution_state import Followed, Fragment, Lacking
from agent_otel.core.executions import executions
from agent_otel.measure.size import block_text
from agent_otel.measure.truncation.paging import PAGING, SELF_DESCRIBING, asks_for_a_page, cursors, named, next_page

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agent_otel.core.execution_state import ExecutionState, SeenCall
    from agent_otel.core.types import Remedied
    from agent_otel.telemetry.setup import Telemetry

#: Model requests after which a truncated result without a follow-up counts as ignored.
_IGNORED_AFTER = 3
#: Values of next pages that an execution keeps.
_MOST_CURSORS = 16
#: Names of arguments that limit a result and name nothing.
_LIMITS: Final = ("limit", "count", "size", "page_size", "pageSize", "per_page", "max", "max_results", "top", "top_k")
_QUOTES: Final = "\"'`()[]{},;"
_THING: Final = re.compile(r"[\w*][./@:_-][\w*]|\d")
_LONGEST_ARGUMENT: Final = 2048


def cut_attributes(cuts: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return the span attributes of the last cut, and all cuts when there are several."""
    layer, why = cuts[-1]
    attributes: dict[str, Any] = {semconv.TRUNCATION_LAYER: layer, semconv.TRUNCATION_REASON: why}
    if len(cuts) > 1:
        attributes[semconv.TRUNCATION_CUTS] = [" ".join(cut) for cut in cuts]
    return attributes


def note(
    call: SeenCall, cuts: Iterable[tuple[str, str]], result_bytes: int, handed: int | None, remedied: Remedied | None
) -> str | None:
    """Keep the part that the model gets of a result; return how that is known, None when the result is whole.

    ``cuts`` are layers and reasons, the latest last. ``remedied`` is the replacement that a remedy has made.
    """
    known = [cut for cut in cuts if cut[1] != semconv.SUSPECTED]
    if not known:
        return None
    # A model that answers from the view of a stored result has chosen not to read on.
    is_stored = remedied is not None and remedied.ref is not None
    others = [cut for cut in known if cut[0] != semconv.LAYER_REMEDY] if is_stored else known
    layer, reason = (others or known)[-1]
    whole = -1 if layer == semconv.LAYER_TOOL else result_bytes
    shown = result_bytes if handed is None else handed
    fragment = Fragment(reason, shown, whole, call.span, is_open=bool(others))
    executions.partly_shown(call, fragment)
    if remedied is not None:
        fragment.removed = remedied.reason, max(result_bytes - remedied.bytes, 0)
    return reason


def cursors_of(value: object) -> tuple[int, ...]:
    """Return hashes of the values that name the next page."""
    return tuple(map(hash, cursors(value)))


def invite(
    state: ExecutionState, tool: str, arguments: object, next_pages: Iterable[int] | None, fragment: Fragment | None
) -> None:
    """Record that a result invites a call of its tool about its subject, or of any with a value of its next page."""
    vars(state).setdefault("followed", {})[tool] = Followed(*_subject(arguments))
    for each in next_pages or ():
        offered = state.cursors = state.cursors or {}
        offered[each] = (tool, fragment)
        if len(offered) > _MOST_CURSORS:
            offered.pop(next(iter(offered)), None)


def follow_up(state: ExecutionState, tool: str, arguments: object, *, repeated: bool) -> tuple[str | None, str | None]:
    """Return how a call follows up an earlier result, and the tool of that result; None and None where it does not."""
    offered = state.cursors
    named_page = next((each for each in map(hash, next_page(arguments)) if each in offered), None) if offered else None
    if offered and named_page is not None:
        earlier, fragment = offered.pop(named_page)
        is_expected = _is_expected(state, earlier, None)
        if fragment is not None and earlier != tool:
            fragment.followed_by = tool
        if is_expected:
            return semconv.PAGINATED, earlier
    if not _is_expected(state, tool, None if repeated else arguments):
        return None, None
    if repeated:
        return semconv.REPEATED, tool
    return (semconv.PAGINATED if asks_for_a_page(arguments) else semconv.NARROWED), tool


def _is_expected(state: ExecutionState, tool: str, arguments: object) -> bool:
    """Return true for the first call of this tool after the request that `invite` waits for."""
    followed = state.followed.get(tool) if state.followed else None
    if followed is None or (not followed.requests and state.streams):
        return False
    if arguments is not None:
        things, words = _subject(arguments)
        # A later call names one of the same things, or has all the words and adds a filter.
        if followed.things.isdisjoint(things) and not followed.words <= words:
            return False
    return (state.followed or {}).pop(tool, None) is not None


def _subject(arguments: object) -> tuple[frozenset[int], frozenset[int]]:
    """Return the things that a call names, and its words, without the arguments that choose a page.

    Paths, addresses, names with a number and numbers themselves name things. A query of an address is a filter.
    """
    known = {name: value for name, value in named(arguments).items() if name not in PAGING and name not in _LIMITS}
    texts = [(name, str(value)) for name, value in known.items() if type(value) is str or type(value) is int]
    words = [(name, word) for name, text in texts for word in text[:_LONGEST_ARGUMENT].split()]
    things = {word.strip(_QUOTES).split("?")[0] for _, word in words if _THING.search(word)}
    return frozenset(map(hash, things)), frozenset(map(hash, words))


def is_ignored(state: ExecutionState, tool: str) -> bool:
    """Return true when a follow-up of this tool was expected, which is then expected no longer."""
    return state.followed is not None and state.followed.pop(tool, None) is not None


def pass_by(out: Telemetry, state: ExecutionState) -> None:
    """Count a request for each tool with results that expect a follow-up, and the tools that are now ignored."""
    for followed in list((state.followed or {}).values()):
        followed.requests += 1
    count_ignored(out, state, _IGNORED_AFTER)


def count_ignored(out: Telemetry, state: ExecutionState, after: int = -1) -> None:
    """Count the tools with results that no call has followed up: at the end of a run, or after so many requests."""
    for tool, followed in list((state.followed or {}).items()):
        if followed.requests > after and is_ignored(state, tool):
            out.metrics.record(semconv.TOOL_FOLLOWUPS, 1, tool, semconv.IGNORED)


def read_on(out: Telemetry, state: ExecutionState, tool: str) -> None:
    """Record that the model has read on in a stored result of a tool; only its first page is a follow-up."""
    if _is_expected(state, tool, None):
        out.metrics.record(semconv.TOOL_FOLLOWUPS, 1, tool, semconv.PAGINATED)


# Results that the model is owed: a request of the same tools and agent must hold a passage of one of the latest two.
# A call owes its result to the requests that follow it. System prompts and the texts of users take no part. A request
# that lacks the result is a lost history if it follows the call in the same context. In another context it may be a
# branch beside the call. Then only later requests, or the end of the run, show that no request ever held the result.
_LATEST = 2  # a request must hold one of so many results: a frozen history has only older ones
_PASSED = 8  # requests without a result, after which no branch beside the call explains them
_EMPTY_BYTES = 16  # below them, a result that had passages has been emptied

#: The last request in this context: a call has it from there.
last_request: ContextVar[object | None] = ContextVar("agent_otel_last_request", default=None)


def lacking(execution: ExecutionState, owner: int, *, has_call: bool) -> tuple[list[SeenCall], int]:
    """Return the owed results that a request lacks, and the number of requests that are known by now to have lost them.

    ``owner`` is a hash of the tools and the agent. A window or a compaction may leave out a result once where it keeps
    the call.
    """
    results = [call for call in executions.results(execution) if call.owed_to == owner]
    unsure = _still_due(execution.unsure)
    if not results or not all(map(_is_due, results[-_LATEST:])):
        execution.unsure, execution.has_lost = unsure, False
        return [], 0
    call, mark = results[-1], last_request.get()
    is_sequel = mark is not None and call.mark is mark
    execution.unsure = unsure = (*unsure, Lacking(call, has_call))
    is_second = execution.has_lost or len(unsure) > 1
    if (is_sequel and (is_second or not has_call)) or len(unsure) >= _PASSED:
        execution.unsure, execution.has_lost = (), True
        return [each for each in results if _is_due(each)], len(unsure)
    return [], 0


def count_lost(out: Telemetry, execution: ExecutionState) -> None:
    """Count the requests that are known, at the end of their run, to have lost results."""
    unsure, execution.unsure = _still_due(execution.unsure), ()
    if unsure and not (len(unsure) == 1 and unsure[0].has_call):
        out.metrics.record(semconv.HISTORY_LOST, len(unsure))


def _still_due(unsure: tuple[Lacking, ...]) -> tuple[Lacking, ...]:
    return tuple(one for one in unsure if _is_due(one.call)) if unsure else ()


def _is_due(call: SeenCall) -> bool:
    """Return true while no request has held a passage of a result."""
    if call.delivered < 0:
        return not call.is_held
    return call.most_delivered < _EMPTY_BYTES


# Tools that return exactly a round number of rows or lines again and again: ``rows[:50]``, or ``head -n 100``. The
# process keeps four integers for each tool. A number that the arguments contain is the caller's own limit.

#: Results of the same number after which a tool is suspected: with a total that is above the number, and without.
BELOW_TOTAL: Final = 3
WITHOUT_TOTAL: Final = 4
#: Results of a tool that are all counted; after them, one of so many.
ALL_OF: Final = 16
SAMPLED: Final = 8
#: A list of ten or twenty is often all that there is.
FEWEST: Final = 50
_FEWEST_BELOW_TOTAL: Final = 10
#: Lines are counted in texts of up to so many characters.
LONGEST: Final = 64 * 1024
_MOST_TOOLS: Final = 100
_MOST_KEYS: Final = 16


class RoundCounts:
    """The numbers of items of the first hundred tools: the largest, results that had it, the last one's digest."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Drop all numbers and renew the lock, for a forked child."""
        self._lock = threading.Lock()
        self.tools: dict[str, tuple[int, int, int, int]] = {}
        self.counted = 0

    def __len__(self) -> int:
        return len(self.tools)

    def note(self, tool: str, value: Any, arguments: Any, below_total: int, digest: str | None) -> bool:
        """Record a result; return True if the tool seems to cut each one at the same number of items.

        ``below_total`` is the number of items where a total is larger, -1 for a page, else 0. ``digest`` is the hash of
        the arguments: one that comes again proves nothing.
        """
        if below_total < 0:
            return False
        with self._lock:
            largest, times, last, seen = self.tools.get(tool, (0, 0, 0, 0))
            if seen == 0 and len(self.tools) >= _MOST_TOOLS:
                return False
            seen += 1
            if not below_total and seen > ALL_OF and seen % SAMPLED:
                self.tools[tool] = largest, times, last, seen
                return False
            self.counted += 1
            items = below_total or _items(value)
            if items > largest:
                largest, times, last = items, 0, 0
            this = hash((digest, type(value) is str and len(value)))
            if items == largest and (below_total or this != last):
                times, last = times + 1, this
            elif below_total:
                times = 0
            self.tools[tool] = largest, times, last, seen
        fewest, enough = (_FEWEST_BELOW_TOTAL, BELOW_TOTAL) if below_total else (FEWEST, WITHOUT_TOTAL)
        return (
            items == largest
            and times >= enough
            and items >= fewest
            # A number that programmers use as a limit: a multiple of 10 or 25, or a power of two.
            and not (items % 10 and items % 25 and items & (items - 1))
            # An argument that is this number, or a list of so many.
            and not any(
                (type(value) is list and len(value) == items)
                or (type(value) in {int, str} and value in {items, str(items)})
                for value in named(arguments).values()
            )
        )


def _items(value: Any) -> int:
    """Return the number of lines of a text, or of items of a list, or of the only list of an object."""
    if type(value) is list and len(value) == 1:
        value = value[0] if type(value[0]) is str else block_text(value[0])
    if type(value) is str:
        return value.count("\n") + (value[-1:] != "\n") if len(value) <= LONGEST else 0
    if type(value) is list:
        return len(value)
    if type(value) is not dict or len(value) > _MOST_KEYS:
        return 0
    known = fields(value)
    if not known.keys().isdisjoint(SELF_DESCRIBING):
        return 0
    lists = [len(part) for part in known.values() if type(part) is list]
    return lists[0] if len(lists) == 1 else 0


round_counts = RoundCounts()
fork.after_fork(round_counts.reset)
