"""Thresholds and windows of the alerts: the meaning and the valid values of each."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from agent_otel.semconv.types import UTILIZATION_BUCKETS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# Prometheus's own grammar (prometheus/common, model/time.go): each unit once, the largest first.
_DURATION = re.compile(r"(?:\d+y)?(?:\d+w)?(?:\d+d)?(?:\d+h)?(?:\d+m)?(?:\d+s)?(?:\d+ms)?")
_SECONDS = {"y": 31_536_000, "w": 604_800, "d": 86_400, "h": 3600, "m": 60, "s": 1, "ms": 0.001}
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(|KiB|MiB)")
_UNITS = {"": 1, "KiB": 1024, "MiB": 1024 * 1024}


@dataclass(frozen=True)
class Kind:
    """The unit of a threshold and the function that parses its value; its ValueError names the expected form."""

    unit: str
    read: Callable[[str], Any]


def _duration(text: str) -> str:
    if not _DURATION.fullmatch(text) or not any(digit in text for digit in "123456789"):
        raise ValueError("a duration above 0 as Prometheus writes it, such as 15m, 1h30m or 1w")
    return text


def _wait(text: str) -> str:
    if not text or not _DURATION.fullmatch(text):
        raise ValueError("a duration as Prometheus writes it, such as 10m, or 0s")
    return text


def _ratio(text: str) -> float:
    if not _NUMBER.fullmatch(text) or not 0 < float(text) <= 1:
        raise ValueError("a ratio above 0 and not above 1, such as 0.2")
    return float(text)


def _utilization(text: str) -> float:
    # A histogram has no more resolution than its buckets: Prometheus would silently round any other number up to one.
    bounds = [bound for bound in UTILIZATION_BUCKETS if bound < 1]
    if not _NUMBER.fullmatch(text) or float(text) not in bounds:
        raise ValueError(f"one of {', '.join(f'{bound:g}' for bound in bounds)}")
    return float(text)


def _dapr_ratio(text: str) -> float:
    # The buckets of daprd 1.18 below 1.
    bounds = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
    if not _NUMBER.fullmatch(text) or float(text) not in bounds:
        raise ValueError(f"one of {', '.join(f'{bound:g}' for bound in bounds)}")
    return float(text)


def _factor(text: str) -> float:
    if not _NUMBER.fullmatch(text) or not float(text) > 1:
        raise ValueError("a factor above 1, such as 4")
    return float(text)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ValueError("a whole number from 1 up")
    return int(text)


def _bytes(text: str) -> int:
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError("a size such as 16000, 32KiB or 2MiB")
    return int(float(match[1]) * _UNITS[match[2]])


DURATION = Kind("duration", _duration)
WAIT = Kind("duration", _wait)
RATIO = Kind("ratio", _ratio)
UTILIZATION = Kind("ratio", _utilization)
DAPR_RATIO = Kind("ratio", _dapr_ratio)
FACTOR = Kind("factor", _factor)
COUNT = Kind("count", _count)
BYTES = Kind("bytes", _bytes)


def _threshold(kind: Kind, default: Any, meaning: str) -> Any:
    return field(default=default, metadata={"kind": kind, "meaning": meaning})


@dataclass(frozen=True)
class Thresholds:
    """Every threshold and window of the rules; `parse` makes one from text. Sizes are bytes, ratios 0 to 1.

    The name of a recorded series contains the window of its recording rule.
    """

    keep_firing: str = _threshold(DURATION, "15m", "How long an alert on an event stays when its window is over.")
    counter_memory: str = _threshold(
        DURATION, "1h", "A counter that was not scraped for longer than this is taken for a new one that began at 0."
    )

    large_results_window: str = _threshold(DURATION, "15m", "Large results are counted over this window.")
    large_results_min: int = _threshold(COUNT, 1, "So many large results of a tool in the window alert.")
    over_budget_window: str = _threshold(DURATION, "15m", "Results above their budget are counted over this window.")
    mostly_large_window: str = _threshold(DURATION, "1h", "The share of large results is taken over this window.")
    mostly_large_ratio: float = _threshold(RATIO, 0.5, "A larger share of large results than this alerts.")
    mostly_large_min_results: int = _threshold(COUNT, 10, "Results of a tool in the window for its share to count.")
    mostly_large_for: str = _threshold(WAIT, "15m", "How long the share has to be that large.")

    truncated_window: str = _threshold(DURATION, "1h", "The share of truncated results is computed over this window.")
    truncated_ratio: float = _threshold(RATIO, 0.5, "A larger share of truncated results alerts.")
    truncated_min_results: int = _threshold(COUNT, 20, "Results of a tool in the window for its share to count.")
    truncated_for: str = _threshold(WAIT, "30m", "How long the share has to be that large.")
    first_cut_window: str = _threshold(DURATION, "15m", "Window in which a tool's first truncation alerts.")
    first_cut_history: str = _threshold(DURATION, "1w", "A tool that was truncated in this time before does not alert.")
    first_cut_min_results: int = _threshold(
        COUNT, 20, "Results in that time that a tool needs to alert; with fewer, it is new."
    )

    json_cut_window: str = _threshold(DURATION, "30m", "The share of results with cut JSON is taken over this.")
    json_cut_ratio: float = _threshold(RATIO, 0.9, "A share of results with cut JSON from here on alerts.")
    json_cut_min_results: int = _threshold(COUNT, 3, "Results of a tool in the window for its share to count.")
    json_cut_for: str = _threshold(WAIT, "10m", "How long the share has to be that large.")

    answers_incomplete_window: str = _threshold(
        DURATION, "15m", "Answers that are built on a part of a result are counted over this window."
    )
    answers_incomplete_min: int = _threshold(COUNT, 1, "So many of them in the window alert.")

    invalid_arguments_window: str = _threshold(
        DURATION, "30m", "The share of calls with invalid arguments is taken over this window."
    )
    invalid_arguments_ratio: float = _threshold(RATIO, 0.1, "A larger share of them than this alerts, if it has risen.")
    invalid_arguments_factor: float = _threshold(FACTOR, 2.0, "How many times its average before it has to be.")
    invalid_arguments_history: str = _threshold(DURATION, "1d", "The time before over which that average is taken.")
    invalid_arguments_min_calls: int = _threshold(COUNT, 10, "Calls of a tool in the window for its share to count.")
    schema_changed_window: str = _threshold(DURATION, "15m", "Changes of definitions are counted over this window.")
    schema_new_window: str = _threshold(DURATION, "1h", "A definition that is new alerts for so long.")
    schema_new_history: str = _threshold(DURATION, "1w", "A definition that was used in this time before is not new.")
    schema_changed_min: int = _threshold(COUNT, 1, "So many of them in the window alert.")

    p95_window: str = _threshold(DURATION, "1h", "The 95th percentile of result sizes is taken over this window.")
    grown_factor: float = _threshold(FACTOR, 4.0, "How many times the earlier 95th percentile alerts.")
    grown_min_bytes: int = _threshold(BYTES, 16_000, "A 95th percentile below this is no matter how much it grew.")
    grown_min_results: int = _threshold(COUNT, 20, "Results of a tool in the window for its percentile to count.")
    grown_baseline_window: str = _threshold(
        DURATION, "1d", "The highest 95th percentile in a window of this length is what it is compared with."
    )
    grown_baseline_offset: str = _threshold(
        DURATION, "6d12h", "How long ago that window ends; with 1d and 6d12h it lies around the same hour last week."
    )
    grown_yesterday_offset: str = _threshold(
        DURATION, "12h", "Without results last week, how long ago the window ends; 12h lies around yesterday's hour."
    )
    grown_first_window: str = _threshold(
        DURATION, "10h", "Without results yesterday, the highest 95th percentile in a window of this length counts."
    )
    grown_first_offset: str = _threshold(DURATION, "2h", "How long ago that window ends.")
    grown_for: str = _threshold(WAIT, "15m", "How long the 95th percentile has to be that large.")

    errors_window: str = _threshold(DURATION, "30m", "The share of failed tool calls is taken over this window.")
    errors_ratio: float = _threshold(RATIO, 0.2, "A larger share of failed calls than this alerts.")
    errors_min_calls: int = _threshold(COUNT, 20, "Calls of a tool in the window for its share to count.")
    errors_for: str = _threshold(WAIT, "10m", "How long the share has to be that large.")

    payload_window: str = _threshold(DURATION, "15m", "The fullest payload is looked for in this window.")
    payload_near_ratio: float = _threshold(
        UTILIZATION, 0.8, "A payload above this share of its cap alerts, if AGENT_OTEL_PAYLOAD_NEAR_RATIO is no more."
    )
    payload_over_window: str = _threshold(DURATION, "15m", "Payloads over their cap or refused are counted over this.")
    few_turns_window: str = _threshold(DURATION, "15m", "Executions with few turns left are counted over this window.")
    growth_window: str = _threshold(DURATION, "1h", "The growth per turn is averaged over this window.")
    stuck_retries_window: str = _threshold(DURATION, "15m", "Retries that cannot succeed are counted over this window.")
    dapr_window: str = _threshold(DURATION, "15m", "The fullest dispatch of daprd is looked for in this window.")
    dapr_ratio: float = _threshold(
        DAPR_RATIO, 0.9, "A dispatch above this share of daprd's limit alerts; daprd stalls it above 0.95."
    )

    history_lost_window: str = _threshold(DURATION, "15m", "Requests without history are counted over this window.")
    history_lost_min: int = _threshold(COUNT, 1, "So many of them in the window alert.")
    task_dropped_window: str = _threshold(DURATION, "15m", "Conversations without their task are counted over this.")
    task_dropped_min: int = _threshold(COUNT, 1, "So many of them in the window alert.")
    context_near_window: str = _threshold(DURATION, "15m", "Requests near the context window are counted over this.")
    context_near_min: int = _threshold(COUNT, 1, "So many of them in the window alert.")
    context_rejected_window: str = _threshold(DURATION, "15m", "Requests that are too long are counted over this.")
    context_rejected_min: int = _threshold(COUNT, 1, "So many of them in the window alert.")
    limit_hit_window: str = _threshold(DURATION, "15m", "Calls skipped at a limit are counted over this window.")
    limit_hit_min: int = _threshold(COUNT, 1, "So many of them in the window alert.")
    denied_window: str = _threshold(DURATION, "15m", "Calls that the policy denies are counted over this window.")
    denied_min: int = _threshold(COUNT, 1, "So many of them in the window alert.")
    claim_check_window: str = _threshold(DURATION, "15m", "Operations on the claim store are counted over this window.")
    claim_check_min_errors: int = _threshold(COUNT, 3, "So many failed operations in the window alert,")
    claim_check_errors_ratio: float = _threshold(RATIO, 0.1, "if they are a larger share of all operations than this.")
    claim_check_for: str = _threshold(WAIT, "5m", "How long that has to be so.")
    unresolved_window: str = _threshold(DURATION, "15m", "References without a stored result are counted over this.")
    unresolved_min: int = _threshold(COUNT, 1, "So many of them in the window alert.")

    gone_steady_window: str = _threshold(
        DURATION, "1h", "A job that has reported for so long without a break is expected to go on."
    )
    gone_memory: str = _threshold(DURATION, "1w", "For so long its silence alerts, unless it reports again.")
    gone_for: str = _threshold(WAIT, "10m", "How long the telemetry has to be gone.")
    self_errors_window: str = _threshold(DURATION, "1h", "Failures of agent_otel itself are counted over this window.")
    self_errors_min: int = _threshold(COUNT, 5, "So many of them in one place in the window alert.")
    unmatched_window: str = _threshold(DURATION, "15m", "A framework that is not instrumented alerts for so long.")

    @classmethod
    def parse(cls, values: Mapping[str, object]) -> Thresholds:
        """Return the defaults with these values, as text or as the numbers of a YAML file.

        ValueError names the unknown threshold, or the invalid value and the expected form.
        """
        known = {item.name: item.metadata["kind"] for item in fields(cls)}
        chosen: dict[str, Any] = {}
        for name, value in values.items():
            if name not in known:
                near = difflib.get_close_matches(str(name), known, n=1)
                raise ValueError(f"unknown threshold {name!r}" + (f"; is it {near[0]!r}?" if near else ""))
            if isinstance(value, bool) or not isinstance(value, str | int | float):
                raise ValueError(f"{name}: {value!r} is neither text nor a number")  # noqa: TRY004 - bad input is one error
            try:
                chosen[name] = known[name].read(str(value).strip())
            except ValueError as expected:
                raise ValueError(f"{name}: {value!r} is not {expected}") from None
        return cls(**chosen)


def seconds(duration: str) -> float:
    """Return the seconds of a duration that `Thresholds` has accepted."""
    return sum(int(number) * _SECONDS[unit] for number, unit in re.findall(r"(\d+)([a-z]+)", duration))
