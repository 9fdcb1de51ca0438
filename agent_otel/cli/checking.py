"""Checks that a Prometheus has this package's rules and metrics in the shipped form."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from agent_otel import semconv
from agent_otel.semconv.types import HISTOGRAM, prometheus_label

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agent_otel.cli.prometheus import Prometheus
    from agent_otel.semconv.types import Metric

OK: Final = "ok"
MISSING: Final = "missing"
CHANGED: Final = "changed"
FAILING: Final = "failing"
PRESENT: Final = "present"
WRONG_LABELS: Final = "wrong labels"
NO_BUCKETS: Final = "no buckets"

#: Second part of a metric's name -> the group that shows it, and the event that creates the metric.
_GROUPS: Final = {
    "tool": ("tools", "a tool call"),
    "execute_tool": ("tools", "a tool call"),
    "model": ("model requests", "a request through a model's SDK"),
    "execution": ("executions", "a finished execution"),
    "workflow": ("payloads", "a durable runtime"),
    "claim_check": ("remedies", "a remedy that is switched on"),
    "context": ("remedies", "a remedy that is switched on"),
    "limits": ("remedies", "a remedy that is switched on"),
}
_ITSELF: Final = ("agent_otel itself", "a tool call")
#: Labels that may be empty on every series; Prometheus treats an empty label as absent.
_MAY_BE_EMPTY: Final = frozenset({
    semconv.AGENT_NAME, semconv.WORKFLOW_NAME, semconv.ACTIVITY, semconv.ERROR_TYPE, semconv.VERSION,
    semconv.TARGET, semconv.SCALES_TO_ZERO,
})  # fmt: skip
_UNITS: Final = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800, "y": 31536000}


@dataclass(frozen=True)
class Rule:
    """A shipped rule: an alert, or a recording rule. Waits are in seconds."""

    name: str
    alerts: bool
    expression: str
    wait_seconds: float = 0.0
    severity: str = ""


@dataclass(frozen=True)
class RuleFound:
    """The state of one shipped rule in the ruler."""

    name: str
    state: str
    detail: str = ""


@dataclass(frozen=True)
class MetricFound:
    """The state of one of this package's metrics in the store."""

    name: str
    state: str
    group: str
    detail: str = ""


@dataclass(frozen=True)
class Alert:
    """A pending or firing alert of this package."""

    name: str
    state: str
    labels: dict[str, str]
    since: str
    summary: str


@dataclass
class Report:
    """The result of a check; ``problems`` lists what does not work."""

    server: str
    version: str
    url: str
    rules: list[RuleFound] = field(default_factory=list)
    metrics: list[MetricFound] = field(default_factory=list)
    alerts: list[Alert] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """True when rules and metrics work."""
        return not self.problems

    def as_json(self) -> dict[str, Any]:
        """Return the report as a dictionary for JSON."""
        return {"ok": self.ok, **asdict(self)}


def check(store: Prometheus, ruler: Prometheus, shipped: Sequence[Rule], seconds: float) -> Report:
    """Query a store for metrics of the last ``seconds`` and a ruler for rules; often both are one server."""
    store.check()
    name, version = store.version()
    report = Report(name, version, store.url)
    _check_rules(report, ruler, shipped)
    _check_metrics(report, store, seconds)
    return report


def rules_of(groups: Iterable[Mapping[str, Any]]) -> list[Rule]:
    """Return the rules of a rule file's groups."""
    return [
        Rule(
            name=str(rule.get("alert") or rule.get("record")),
            alerts="alert" in rule,
            expression=str(rule["expr"]),
            wait_seconds=seconds_of(str(rule.get("for") or "0s")),
            severity=str((rule.get("labels") or {}).get("severity") or ""),
        )
        for group in groups
        for rule in group["rules"]
    ]


def seconds_of(duration: str) -> float:
    """Return the seconds of a Prometheus duration such as ``1h30m``; ValueError for anything else."""
    if not re.fullmatch(r"(?:\d+(?:ms|[smhdwy]))+|0", duration):
        raise ValueError(f"{duration!r} is no duration such as 15m or 1h30m")
    return sum(int(number) * _UNITS[unit] for number, unit in re.findall(r"(\d+)(ms|[smhdwy])", duration))


def _check_rules(report: Report, ruler: Prometheus, shipped: Sequence[Rule]) -> None:
    loaded = ruler.rules()
    wanted = Counter((rule.name, rule.alerts) for rule in shipped)
    for rule in shipped:
        named = [one for one in loaded if (one.get("name"), one.get("type") == "alerting") == (rule.name, rule.alerts)]
        found = _rule_found(ruler, rule, named, times=wanted[rule.name, rule.alerts])
        report.rules.append(found)
    states = Counter(found.state for found in report.rules)
    if shipped and states[MISSING] == len(shipped):
        report.problems.append(f"none of the {len(shipped)} rules is loaded" + _where_rules_are(report.server))
    elif states[MISSING]:
        report.problems.append(f"{states[MISSING]} of the {len(shipped)} rules are not loaded")
    if states[FAILING]:
        report.problems.append(f"{states[FAILING]} rules fail when they are evaluated")
    names = {rule.name for rule in shipped if rule.alerts}
    report.alerts += [
        _alert(one, alert) for one in loaded if one.get("name") in names for alert in one.get("alerts") or []
    ]


def _where_rules_are(server: str) -> str:
    return (
        ": VictoriaMetrics has none of its own, give vmalert's address as --rules-url"
        if server.startswith("Vict")
        else ""
    )


def _rule_found(ruler: Prometheus, rule: Rule, named: Sequence[Mapping[str, Any]], *, times: int) -> RuleFound:
    if not named:
        return RuleFound(rule.name, MISSING)
    failing = [str(one.get("lastError") or "") for one in named if one.get("health") == "err"]
    if failing:
        return RuleFound(rule.name, FAILING, failing[0][:300])
    apart = [_differences(ruler, rule, one) for one in named]
    if all(apart):
        return RuleFound(rule.name, CHANGED, min(apart, key=len))
    more = f"loaded {len(named)} times" if len(named) > times else ""
    waits = "not evaluated yet" if any(one.get("health") == "unknown" for one in named) else ""
    return RuleFound(rule.name, OK, ", ".join(text for text in (more, waits) if text))


def _differences(ruler: Prometheus, rule: Rule, loaded: Mapping[str, Any]) -> str:
    told = []
    if not _same(ruler, rule.expression, str(loaded.get("query") or "")):
        told.append("its expression")
    if rule.alerts and float(loaded.get("duration") or 0) != rule.wait_seconds:
        told.append(f"for: {float(loaded.get('duration') or 0):.0f} s instead of {rule.wait_seconds:.0f} s")
    severity = str((loaded.get("labels") or {}).get("severity") or "")
    if severity != rule.severity:
        told.append(f"severity: {severity or 'none'} instead of {rule.severity or 'none'}")
    return ", ".join(told)


def _same(ruler: Prometheus, ours: str, theirs: str) -> bool:
    """Return True when two expressions differ in layout only; Prometheus formats the expressions that it loads."""
    if _squeezed(ours) == _squeezed(theirs):
        return True
    formatted = ruler.formatted(ours)
    return formatted is not None and formatted == ruler.formatted(theirs)


def _squeezed(expression: str) -> str:
    """Return the expression without comments and blanks, except in quotes."""
    parts = re.findall(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|`[^`]*`|#[^\n]*|\s+|[^"\'`#\s]+', expression)
    return "".join(part for part in parts if not part.isspace() and not part.startswith("#"))


def _alert(rule: Mapping[str, Any], alert: Mapping[str, Any]) -> Alert:
    labels = {key: str(value) for key, value in (alert.get("labels") or {}).items() if key != "alertname"}
    summary = str((alert.get("annotations") or {}).get("summary") or "")
    return Alert(str(rule["name"]), str(alert.get("state") or ""), labels, str(alert.get("activeAt") or ""), summary)


def _check_metrics(report: Report, store: Prometheus, seconds: float) -> None:
    names = set(store.metrics(_selector(), seconds))
    untranslated = sorted(name for name in names if name.startswith(tuple(semconv.METRICS)))
    for metric in semconv.METRICS.values():
        report.metrics.append(_metric_found(store, metric, names, seconds))
    wrong, native = (
        [found for found in report.metrics if found.state == state] for state in (WRONG_LABELS, NO_BUCKETS)
    )
    if untranslated:
        report.problems.append(
            f"{len(untranslated)} metrics came by OTLP with dots in their names, such as {untranslated[0]}; dashboards "
            "and rules want underscores and units: translation_strategy UnderscoreEscapingWithSuffixes of Prometheus, "
            "-opentelemetry.usePrometheusNaming of VictoriaMetrics"
        )
    elif not any(found.state != MISSING for found in report.metrics):
        report.problems.append("there is no metric of agent_otel: is the agent scraped, and has it called a tool?")
    if wrong:
        example = f"{wrong[0].name} has {wrong[0].detail}"
        report.problems.append(f"{len(wrong)} metrics lack labels ({example}): does a relabelling drop them?")
    if native:
        report.problems.append(
            f"{len(native)} histograms have no classic buckets, such as {native[0].name}; dashboards and rules read "
            "these: scrape with always_scrape_classic_histograms and without convert_classic_histograms_to_nhcb, push "
            "without OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION, and drop no series by its name"
        )


def _metric_found(store: Prometheus, metric: Metric, names: set[str], seconds: float) -> MetricFound:
    group, needs = _group(metric)
    exposed = metric.exposed_name
    # A native histogram is stored under the metric's name, without ``_count`` and other parts.
    there = [name for name in (f"{exposed}_count", exposed) if name in names]
    if not there:
        return MetricFound(exposed, MISSING, group, f"needs {needs}")
    labels = store.labels(f'{{__name__="{there[0]}"}}', seconds)
    always = (prometheus_label(label) for label in metric.labels if label not in _MAY_BE_EMPTY)
    lacks = sorted(label for label in always if label not in labels)
    if lacks:
        return MetricFound(exposed, WRONG_LABELS, group, f"no {', '.join(lacks)}")
    if metric.kind == HISTOGRAM and f"{exposed}_bucket" not in names:
        return MetricFound(exposed, NO_BUCKETS, group, "no classic buckets")
    return MetricFound(exposed, PRESENT, group)


def _group(metric: Metric) -> tuple[str, str]:
    return _GROUPS.get(metric.name.split(".")[1], _ITSELF)


def _selector() -> str:
    first = sorted({metric.name.split(".")[0] for metric in semconv.METRICS.values()})
    return f'{{__name__=~"({"|".join(first)})[._].+"}}'
