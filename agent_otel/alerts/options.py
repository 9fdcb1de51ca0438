"""Thresholds, windows and options of the rules: their meaning, their defaults and their valid values."""

from __future__ import annotations

import difflib
import re
import string
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple

from agent_otel.semconv.types import MONEY_BUCKETS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# Prometheus's own grammar (prometheus/common, model/time.go): each unit once, the largest first.
_DURATION = re.compile(r"(?:\d+y)?(?:\d+w)?(?:\d+d)?(?:\d+h)?(?:\d+m)?(?:\d+s)?(?:\d+ms)?")
_SECONDS = {"y": 31_536_000, "w": 604_800, "d": 86_400, "h": 3600, "m": 60, "s": 1, "ms": 0.001}
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(KiB|MiB|)")
_UNITS = {"": 1, "KiB": 1024, "MiB": 1024 * 1024}


class Kind(NamedTuple):
    """The unit of a threshold, the form of its text, its type, its valid values, and both in words."""

    unit: str
    form: re.Pattern[str]
    convert: Callable[[str], Any]
    is_valid: Callable[[Any], bool]
    expected: str

    def read(self, text: str) -> Any:
        """Return the value of a text; ValueError names the expected form."""
        value = self.convert(text) if self.form.fullmatch(text) else None
        if value is None or not self.is_valid(value):
            raise ValueError(self.expected)
        return value


def _thresholds(*kind: Any) -> Callable[[Any, str], Any]:
    """Return a function that makes a threshold of a kind from its default and its meaning."""
    return lambda default, meaning: field(default=default, metadata={"kind": Kind(*kind), "meaning": meaning})


def _one_of(unit: str, *bounds: float) -> Callable[[Any, str], Any]:
    """Return thresholds that are compared with buckets: Prometheus would round any other number up to one."""
    expected = f"one of {', '.join(f'{bound:g}' for bound in bounds)}"
    return _thresholds(unit, _NUMBER, float, bounds.__contains__, expected)


def _size(text: str) -> int:
    number, unit = re.findall(_SIZE, text)[0]
    return int(float(number) * _UNITS[unit])


_duration = _thresholds(
    "duration",
    _DURATION,
    str,
    lambda text: any(digit in text for digit in "123456789"),
    "a duration above 0 as Prometheus writes it, such as 15m, 1h30m or 1w",
)
_wait = _thresholds("duration", _DURATION, str, bool, "a duration as Prometheus writes it, such as 10m, or 0s")
_ratio = _thresholds(
    "ratio", _NUMBER, float, lambda value: 0 < value <= 1, "a ratio above 0 and not above 1, such as 0.2"
)
#: The buckets of daprd 1.18 below 1.
_dapr_ratio = _one_of("ratio", 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
_dollars = _one_of("dollars", *MONEY_BUCKETS)
_factor = _thresholds("factor", _NUMBER, float, lambda value: value > 1, "a factor above 1, such as 4")
_count = _thresholds("count", re.compile(r"\d+"), int, lambda value: value >= 1, "a whole number from 1 up")
_bytes = _thresholds("bytes", _SIZE, _size, lambda _: True, "a size such as 16000, 32KiB or 2MiB")


@dataclass(frozen=True)
class Thresholds:
    """Every threshold and window of the rules; `parse` makes one from text. Sizes are bytes, ratios 0 to 1.

    The name of a recorded series contains the window of its recording rule.
    """

    keep_firing: str = _duration("15m", "How long an alert on an event stays when its window is over.")
    counter_memory: str = _duration(
        "1h", "A counter that was not scraped for longer than this is taken for a new one that began at 0."
    )

    over_budget_window: str = _duration("15m", "Results above a known limit are counted over this window.")
    over_budget_min: int = _count(3, "So many of them in the window page.")
    over_default_window: str = _duration("15m", "The share of large results is taken over this window.")
    over_default_ratio: float = _ratio(0.5, "A larger share of large results than this alerts.")
    over_default_min_results: int = _count(10, "Results of a tool in the window for its share to count.")
    ceiling_window: str = _duration("1h", "The share of results that the ceiling replaces is taken over this.")
    ceiling_ratio: float = _ratio(0.2, "A larger share of them than this alerts.")
    ceiling_min_results: int = _count(20, "Results of a tool in the window for its share to count.")

    first_cut_window: str = _duration("15m", "Window in which a tool's first truncation alerts.")
    first_cut_history: str = _duration("1w", "A tool that was truncated in this time before does not alert.")
    first_cut_min_results: int = _count(100, "Results in that time that a tool needs to alert; with fewer, it is new.")

    answers_incomplete_window: str = _duration(
        "15m", "Answers that are built on a part of a result are counted over this window."
    )
    answers_incomplete_min: int = _count(3, "So many of them in the window page, or alert where the model was told,")
    answers_incomplete_ratio: float = _ratio(0.05, "if they are this share of the agent's answers, or")
    answers_told_ratio: float = _ratio(0.2, "this share where the model was told.")
    repeats_window: str = _duration("15m", "Repeated calls are counted over this window.")
    repeats_min: int = _count(20, "So many repeated calls of a tool in the window alert,")
    repeats_ratio: float = _ratio(0.5, "if they are at least this share of its calls.")
    costly_window: str = _duration("15m", "The mean cost of executions is taken over this window.")
    costly_history: str = _duration("1w", "The mean before is taken over this time.")
    costly_factor: float = _factor(5.0, "How many times the mean before alerts.")
    costly_min_executions: int = _count(20, "Executions in that time for its mean to count.")
    costly_dollars: float = _dollars(5.0, "An execution that costs more US dollars alerts.")

    invalid_arguments_window: str = _duration(
        "30m", "The share of calls with invalid arguments is taken over this window."
    )
    invalid_arguments_ratio: float = _ratio(0.1, "A larger share of them than this alerts, if it has risen.")
    invalid_arguments_factor: float = _factor(2.0, "How many times its average before it has to be.")
    invalid_arguments_history: str = _duration("1d", "The time before over which that average is taken.")
    invalid_arguments_min_calls: int = _count(10, "Calls of a tool in the window for its share to count.")

    p95_window: str = _duration("15m", "The 95th percentile of result sizes is taken over this window.")
    grown_factor: float = _factor(4.0, "How many times the earlier 95th percentile alerts.")
    grown_min_bytes: int = _bytes(16_000, "A 95th percentile below this is no matter how much it grew.")
    grown_min: int = _count(3, "So many results alert that a process found grown.")
    grown_min_results: int = _count(20, "Results of a tool in the window for its percentile to count.")
    grown_baseline_window: str = _duration(
        "1d", "The highest 95th percentile in a window of this length is what it is compared with."
    )
    grown_baseline_offset: str = _duration(
        "6d12h", "How long ago that window ends; with 1d and 6d12h it lies around the same hour last week."
    )
    grown_yesterday_offset: str = _duration(
        "12h", "Without results last week, how long ago the window ends; 12h lies around yesterday's hour."
    )
    grown_first_window: str = _duration(
        "12h", "Without results yesterday, the highest 95th percentile in a window of this length counts."
    )
    grown_first_offset: str = _duration("15m", "How long ago that window ends.")

    errors_window: str = _duration("30m", "The share of failed tool calls is taken over this window.")
    errors_ratio: float = _ratio(0.2, "A larger share of failed calls than this alerts.")
    errors_min_calls: int = _count(20, "Calls of a tool in the window for its share to count.")
    errors_for: str = _wait("10m", "How long the share has to be that large.")

    payload_near_ratio: float = _ratio(0.8, "A payload above this share of its cap alerts, if no forecast is known.")
    last_turns: int = _count(1, "So many turns left, or fewer, page.")
    few_turns: int = _count(2, "So many turns left, or fewer, alert.")
    payload_over_window: str = _duration("15m", "Payloads over their cap or refused are counted over this.")
    state_bytes: int = _bytes(10_000_000, "A larger state, in a store without a near cap, alerts.")
    state_window: str = _duration("15m", "Threads that have written much are counted over this window.")
    dapr_window: str = _duration("15m", "The fullest dispatch of daprd is looked for in this window.")
    dapr_ratio: float = _dapr_ratio(
        0.9, "A dispatch above this share of daprd's limit alerts; daprd stalls it above 0.95."
    )

    history_lost_window: str = _duration("15m", "Requests without history are counted over this window.")
    history_lost_min: int = _count(3, "So many of them in the window page.")
    context_near_window: str = _duration("15m", "Requests near the context window are counted over this.")
    context_near_min: int = _count(1, "So many of them in the window alert.")
    request_rejected_window: str = _duration("15m", "Requests that providers refuse are counted over this.")
    request_rejected_min: int = _count(1, "So many of them in the window page.")
    limit_hit_window: str = _duration("15m", "Calls skipped at a limit are counted over this window.")
    limit_hit_min: int = _count(1, "So many of them in the window alert.")
    denied_window: str = _duration("15m", "Calls that the policy denies are counted over this window.")
    denied_min: int = _count(1, "So many of them in the window alert.")
    claim_check_window: str = _duration("15m", "Operations on the claim store are counted over this window.")
    claim_check_min_errors: int = _count(3, "So many failed operations in the window alert,")
    claim_check_errors_ratio: float = _ratio(0.1, "if they are a larger share of all operations than this.")
    claim_check_for: str = _wait("1m", "How long that has to be so.")
    unresolved_window: str = _duration("15m", "References without a stored result are counted over this.")
    unresolved_min: int = _count(1, "So many of them in the window alert.")

    gone_steady_window: str = _duration(
        "1h", "A job that has reported for so long without a break is expected to go on."
    )
    gone_memory: str = _duration("1w", "For so long its silence alerts, unless it reports again.")
    gone_for: str = _wait("10m", "How long the telemetry has to be gone.")
    self_errors_window: str = _duration("1h", "Failures of agent_otel itself are counted over this window.")
    self_errors_min: int = _count(5, "So many of them in one place in the window alert.")
    unmatched_window: str = _duration("15m", "A framework that is not instrumented alerts for so long.")

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


#: Path of a runbook, relative to the folder that holds ``alerts``.
RUNBOOK = "alerts/runbooks/{alert}.md"

_MATCHER = r'\s*[a-zA-Z_]\w*\s*(?:=~|!~|!=|=)\s*"(?:[^"\\\n]|\\.)*"\s*'
_SELECTOR = re.compile(rf"{_MATCHER}(?:,{_MATCHER})*,?\s*")
_LABEL = re.compile(r"[a-zA-Z_]\w*")
_OURS = ("alertname", "cause", "component", "severity")


@dataclass(frozen=True)
class Options:
    """Options for writing rules; ValueError for a value that a rule file cannot hold."""

    #: Set to False for rulers that reject the field, such as Prometheus before 2.42 and vmalert before 1.92.
    keep_firing_for: bool = True
    #: Pattern of the annotation ``runbook_url``; ``{alert}`` stands for the alert's name.
    runbook_url: str = RUNBOOK
    #: Address of Grafana, the prefix of ``/d/agent-otel-…`` in links to dashboards. Links are relative when it is
    #: empty.
    dashboard_url: str = ""
    #: Labels that are added to every alert: ``{"team": "agents"}``.
    labels: Mapping[str, str] = field(default_factory=dict)
    #: Severities of alerts that differ from the shipped ones: ``{"AgentToolResultTooLarge": "critical"}``.
    severities: Mapping[str, str] = field(default_factory=dict)
    #: Matchers that are added to every selector: ``namespace="prod"``.
    selector: str = ""
    #: Labels to group by besides ``job``, such as ``("cluster", "namespace")``. Alerts and recorded series carry them.
    by: tuple[str, ...] = ()
    #: ``metadata`` of a PrometheusRule. An operator's ``ruleSelector`` selects by its labels.
    name: str = "agent-otel"
    namespace: str = ""
    metadata_labels: Mapping[str, str] = field(default_factory=lambda: {"app.kubernetes.io/name": "agent-otel"})

    def __post_init__(self) -> None:
        if self.matchers and not _SELECTOR.fullmatch(self.matchers):
            raise ValueError(f'selector: {self.selector!r} is not matchers such as namespace="prod",cluster=~"eu-.*"')
        for name in (*self.labels, *self.by):
            if not _LABEL.fullmatch(name):
                raise ValueError(f"{name!r} is not a name of a label")
        for name in self.labels:
            if name in _OURS:
                hint = "; use --severity AlertName=critical" if name == "severity" else ""
                raise ValueError(f"labels: {name!r} is set by the rules themselves{hint}")
        for name, severity in self.severities.items():
            if not severity or not severity.isprintable() or {"{", "}"} & {*severity}:
                raise ValueError(f"severities: {severity!r} of {name} is not a value such as critical")
        try:
            names = {name for _, name, _, _ in string.Formatter().parse(self.runbook_url) if name is not None}
        except ValueError:
            names = {""}
        if not names <= {"alert"}:
            raise ValueError(f"runbook_url: {self.runbook_url!r} may hold {{alert}} and no other braces")

    @property
    def matchers(self) -> str:
        """Return the selector without surrounding braces."""
        text = self.selector.strip()
        return text[1:-1].strip() if text.startswith("{") and text.endswith("}") else text
