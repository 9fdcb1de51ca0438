"""A summary and a reference instead of a large result: shape, counts, first failures, and the stored whole."""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, TypeVar

from agent_otel._internal.object_kinds import class_of, elements, is_dict, is_empty, plain_text, shape_of
from agent_otel.measure.preview import LONGEST_NAME, preview
from agent_otel.remedies.claim_check import policy
from agent_otel.remedies.claim_check.serialization import size_up_to
from agent_otel.remedies.claim_check.writer import MAX_BYTES, Stored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


_S = TypeVar("_S", bound="Callable[[Any], dict[str, Any]]")

FIRST_FAILURES: Final = 3
_MOST_KEYS: Final = 20
_MOST_LEVELS: Final = 8
_MOST_ROWS: Final = 10_000
_SHOWN_CHARACTERS: Final = 200
_FAILED: Final = frozenset({"error", "errors", "failed", "failure", "fail", "timeout", "cancelled"})
_STATES: Final = ("status", "state", "outcome", "conclusion", "result")

_summaries: dict[str, Callable[[Any], dict[str, Any]]] = {}


def result_summary(tool: str) -> Callable[[_S], _S]:
    """Register the function that summarises this tool's results: it takes a result and returns a JSON object."""

    def register(function: _S) -> _S:
        _summaries[tool] = function
        return function

    return register


def summarize_result(value: Any, *, tool: str, artifacts: Iterable[Any] = ()) -> dict[str, Any]:
    """Return a summary of a result, and a reference to the whole in the claim store.

    ``summary`` is the return value of the tool's own function, else shape, counts and the first failures.
    ``full_payload_id`` is the reference, None when the result could not be stored. Each of ``artifacts`` is stored
    separately, so that the model reads one per call; ``next_action`` is the call that reads the first. Raises what the
    tool's function raises.
    """
    summarise = _summaries.get(tool, summary_of)
    handles = [str(kept.reference) for artifact in artifacts if (kept := _keep(artifact, tool)) is not None]
    stored = _keep(value, tool)
    whole = None if stored is None else str(stored.reference)
    size_bytes = size_up_to(value, MAX_BYTES).bytes if stored is None else stored.size
    answer = {"summary": summarise(value), "size_bytes": size_bytes, "full_payload_id": whole}
    if handles:
        answer["artifact_ids"] = handles
    if handles or whole:
        following = handles[0] if handles else whole
        answer["next_action"] = {"tool": policy.GET_TOOL_RESULT, "arguments": {"ref": following}}
    return answer


def summary_of(value: Any) -> dict[str, Any]:
    """Return shape, counts and the first failures of a value, for a tool without its own summary.

    Failures are counted in the first 10,000 rows. No code of a value runs.
    """
    summary: dict[str, Any] = {"shape": _shape(value)}
    members = _first(value, _MOST_KEYS)
    text = plain_text(value)
    if is_dict(value):
        summary["counts"] = {key: _count(each) for key, each in members.items() if _is_listed(each) or is_dict(each)}
    elif _is_listed(value):
        summary["counts"] = {"items": _count(value)}
    elif text is not None:
        summary["counts"] = {"characters": len(text), "lines": text.count("\n") + 1}
    lists = [value] if _is_listed(value) else [each for each in members.values() if _is_listed(each)]
    rows = islice(chain.from_iterable(shape_of(type(each)).read(each) for each in lists), _MOST_ROWS)
    failures = [each for each in rows if _has_failed(each)]
    if failures:
        summary["failures"] = len(failures)
        summary["first_failures"] = [_short(each) for each in failures[:FIRST_FAILURES]]
    return summary


def _first(value: Any, most: int) -> dict[str, Any]:
    """Return the first members of a dictionary, with keys as text; nothing for any other value."""
    items = islice(dict.items(value), most) if is_dict(value) else ()
    return {key if type(key) is str else preview(key, LONGEST_NAME): each for key, each in items}


def _is_listed(value: Any) -> bool:
    return issubclass(type(value), list | tuple)


def _count(value: Any) -> int:
    return shape_of(type(value)).length(value)


def _shape(value: Any, levels: int = _MOST_LEVELS) -> Any:
    if is_dict(value):
        return {key: class_of(each) for key, each in _first(value, _MOST_KEYS).items()}
    if _is_listed(value) and levels:
        return [_shape(each, levels - 1) for each in elements(shape_of(type(value)), value, 1)]
    return class_of(value)


def _has_failed(row: Any) -> bool:
    if type(row) is not dict:
        return False
    states = (plain_text(row.get(name)) for name in _STATES)
    return not is_empty(row.get("error")) or any(state is not None and state.lower() in _FAILED for state in states)


def _short(row: dict[str, Any]) -> dict[str, Any]:
    """Return a failure without nested values and with texts of at most 200 characters."""
    return {
        key: each[:_SHOWN_CHARACTERS] if type(each) is str else each
        for key, each in _first(row, _MOST_KEYS).items()
        if each is None or type(each) in (str, int, float, bool)
    }


def _keep(value: Any, tool: str) -> Stored | None:
    check = policy.current()
    outcome = None if check is None else check.keep(value, tool, "summary")
    return outcome if isinstance(outcome, Stored) else None
