"""A summary and a reference instead of a large result: shape, counts, first failures, and the stored whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from agent_otel.remedies.claim_check import policy
from agent_otel.remedies.claim_check.serialization import raw_of
from agent_otel.remedies.claim_check.writer import Stored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from agent_otel.remedies.claim_check.serialization import Raw

_S = TypeVar("_S", bound="Callable[[Any], dict[str, Any]]")

FIRST_FAILURES: Final = 3
_MOST_KEYS: Final = 20
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
    raw = raw_of(value)
    handles = [handle for artifact in artifacts if (handle := _keep(raw_of(artifact), tool)) is not None]
    whole = _keep(raw, tool)
    answer = {"summary": summarise(value), "size_bytes": len(raw.data), "full_payload_id": whole}
    if handles:
        answer["artifact_ids"] = handles
    if handles or whole:
        following = handles[0] if handles else whole
        answer["next_action"] = {"tool": policy.GET_TOOL_RESULT, "arguments": {"ref": following}}
    return answer


def summary_of(value: Any) -> dict[str, Any]:
    """Return shape, counts and the first failures of a value, for a tool without its own summary."""
    summary: dict[str, Any] = {"shape": _shape(value)}
    if isinstance(value, dict):
        summary["counts"] = {str(key): len(each) for key, each in value.items() if isinstance(each, list | dict)}
    elif isinstance(value, list | tuple):
        summary["counts"] = {"items": len(value)}
    elif isinstance(value, str):
        summary["counts"] = {"characters": len(value), "lines": value.count("\n") + 1}
    failures = [each for rows in _lists(value) for each in rows if _has_failed(each)]
    if failures:
        summary["failures"] = len(failures)
        summary["first_failures"] = [_short(each) for each in failures[:FIRST_FAILURES]]
    return summary


def _shape(value: Any) -> Any:
    if isinstance(value, dict):
        keys = list(value)[:_MOST_KEYS]
        return {str(key): type(value[key]).__name__ for key in keys}
    if isinstance(value, list | tuple):
        return [_shape(value[0])] if value else []
    return type(value).__name__


def _lists(value: Any) -> list[Any]:
    if isinstance(value, list | tuple):
        return [value]
    return [each for each in value.values() if isinstance(each, list | tuple)] if isinstance(value, dict) else []


def _has_failed(row: Any) -> bool:
    if not isinstance(row, dict):
        return False
    states = (row.get(name) for name in _STATES)
    return bool(row.get("error")) or any(isinstance(state, str) and state.lower() in _FAILED for state in states)


def _short(row: dict[str, Any]) -> dict[str, Any]:
    """Return a failure without nested values and with texts of at most 200 characters."""
    return {
        key: value if not isinstance(value, str) else value[:200]
        for key, value in list(row.items())[:_MOST_KEYS]
        if not isinstance(value, list | dict)
    }


def _keep(raw: Raw, tool: str) -> str | None:
    check = policy.current()
    if check is None:
        return None
    outcome = check.keep(raw, tool, "summary")
    return str(outcome.reference) if isinstance(outcome, Stored) else None
