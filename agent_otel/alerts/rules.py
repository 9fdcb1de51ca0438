"""The rules as data: recorded series and alerts, in the groups of the rule files.

An alert is critical when a user was harmed, or will be within the hour, by proof and not by likeness. It is a warning
when somebody should look today.
``rules.yaml`` has their texts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from agent_otel import semconv
from agent_otel.alerts import promql
from agent_otel.alerts.options import seconds
from agent_otel.alerts.promql import JOB, Events, Query

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agent_otel.alerts.options import Options, Thresholds
    from agent_otel.alerts.promql import Recording

_AGENT: Final = (semconv.AGENT_NAME,)
_TOOL: Final = (semconv.GEN_AI_TOOL_NAME, *_AGENT)
_RUN: Final = (semconv.WORKFLOW_NAME, *_AGENT)
_WORKFLOW: Final = (semconv.RUNTIME, *_RUN)
#: Labels to group by, by their names in the rules.
_LABELS: Final = {
    "agent": _AGENT,
    "tool": _TOOL,
    "run": _RUN,
    "model": (semconv.REQUEST_MODEL, *_AGENT),
    "workflow": _WORKFLOW,
    "directed": (*_WORKFLOW, semconv.DIRECTION),
    "boundary": (*_WORKFLOW, semconv.ACTIVITY, semconv.DIRECTION),
    "cap": (semconv.RUNTIME, semconv.DIRECTION),
    "integration": (semconv.INTEGRATION, semconv.VERSION),
    "job": (),
}

# daprd's own histograms (1.17.7 and newer), payload ÷ --max-body-size, and their labels: dapr/dapr,
# pkg/diagnostics/workflow_monitoring.go.
DAPR_WORKFLOW: Final = "dapr_runtime_workflow_payload_size_ratio"
DAPR_ACTIVITY: Final = "dapr_runtime_workflow_activity_payload_size_ratio"
DAPR_LABELS: Final = ("app_id", "namespace", "workflow_name", "activity_name")


@dataclass(frozen=True)
class Alert:
    """An alert; its texts are Prometheus's templates. ``dashboard`` is a path in Grafana, with labels as variables."""

    name: str
    severity: str
    expr: str
    summary: str
    #: The first step, the size and its limit, and since when.
    description: str
    #: A TraceQL query for the calls, the requests or the executions.
    traces: str
    dashboard: str
    #: Time that the expression has to be true before the alert fires (``for``).
    wait: str = ""
    #: Time that the alert stays after its expression is false (``keep_firing_for``), so that single events do not flap.
    keep: str = ""
    #: Recorded series that ``expr`` reads.
    reads: tuple[Recording, ...] = ()
    #: Distinguishes rules of the same name and severity.
    cause: str = ""


# --- templates ---------------------------------------------------------------------------------------------------


def _link(uid: str, **variables: str) -> str:
    """Return a path to a dashboard; ``variables`` maps each variable to the label that gives its value."""
    query = (f"var-{name}={{{{ $labels.{label} | urlquery }}}}" for name, label in variables.items())
    return f"/d/{uid}?{'&'.join(query)}"


def _began(alert: str, labels: Iterable[str]) -> str:
    """Return a template with the time at which an alert of these labels began."""
    names = tuple(labels)
    series = f'ALERTS_FOR_STATE{{alertname=\\"{alert}\\", {", ".join(f"{name}=%q" for name in names)}}}'
    values = " ".join(f"$labels.{name}" for name in names)
    time = '{{ with . | first }}{{ (. | value | toTime).Format "15:04" }}{{ end }}'
    return f'{{{{ with printf "{series}" {values} | query }}}}{time}{{{{ else }}}}now{{{{ end }}}}'


class _Pieces(dict[str, str]):
    """The templates that texts name; every other name is a label, after ``of_`` a label that a series may lack."""

    def __missing__(self, name: str) -> str:
        label, is_optional = name.removeprefix("of_"), name.startswith("of_")
        of_label = f"{{{{ with $labels.{label} }}}} of {{{{ . }}}}{{{{ end }}}}"
        return _PIECES.get(name) or (of_label if is_optional else f"{{{{ $labels.{name} }}}}")


# --- expressions -------------------------------------------------------------------------------------------------

#: Histograms that are read by their fullest bucket: the labels to group by, and the ones of this package's series.
_FULLEST: Final = {
    DAPR_WORKFLOW: (DAPR_LABELS[:3], ()),
    DAPR_ACTIVITY: (DAPR_LABELS, ()),
    semconv.EXECUTION_PRICE.exposed_name: (_RUN, semconv.EXECUTION_PRICE.prometheus_labels),
}
_THRESHOLD: Final = re.compile(r"<(\w+)(%|/300s)?>")
_TERM: Final = re.compile(r"\{([^{}]+)\}")
#: Whom alerts are about, by the names in the rules: the beginning of the summary, labels, dashboard with its variables.
#: Then templates, counters, and series that are recorded for expressions.
_WHO, _PIECES, _counters, _RECORDED, _groups = yaml.safe_load_all(
    Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
)
#: The rules of each group of the files. Rules of one name differ in their severity or their condition. Prometheus
#: evaluates a group in order. Mimir and Grafana Cloud refuse one with more than 20 rules, by default. No group reads
#: the records of another.
GROUPS: Final[dict[str, list[dict[str, Any]]]] = _groups


def _events(metric: str, by: Iterable[str] = ("tool",), matchers: Iterable[str] = (), **named: str) -> Events:
    labels = tuple(label for name in by for label in _LABELS.get(name, (name,)))
    return Events(getattr(semconv, metric), labels, tuple(matchers), **named)


EVENTS: Final = {name: _events(**row) for name, row in _counters.items()}
#: The definition of an incomplete answer, also of tiles and columns.
UNTOLD: Final = EVENTS["untold"].matchers


def _with_values(thresholds: Thresholds, text: str) -> str:
    """Return a text with the values of thresholds for their names."""

    def value(match: re.Match[str]) -> str:
        value = getattr(thresholds, match[1])
        if match[2] == "/300s":
            return str(max(1, int(seconds(value)) // 300))
        return f"{value * 100:g}%" if match[2] else f"{value:g}" if isinstance(value, float) else str(value)

    return _THRESHOLD.sub(value, text)


def _expression(query: Query, text: str) -> str:
    """Return an expression of ``rules.yaml``; the head of that file explains the terms."""
    return _TERM.sub(lambda match: _term(query, *match[1].split(":")), _with_values(query.thresholds, text))


def _term(query: Query, name: str, *given: str) -> str:
    kind, _, rest = name.rpartition(" ")
    if kind == "by":
        return query.by(*_LABELS[rest])
    if name.isupper():
        part = "bucket" if given == ("bucket",) else ""
        return query.series(getattr(semconv, name), *(() if part else given), part=part)
    if name in _RECORDED:
        row, least = _RECORDED[name], given
        expr, of = _expression(query, row["expr"]), EVENTS.get(row["of"])
        operations = _with_values(query.thresholds, row["operations"])
        found = query.record(of.series if of else row["of"], operations, _LABELS[row["by"]], expr)
    else:
        window, least = getattr(query.thresholds, given[0]), given[1:]
        part, _, whole = rest.partition("/")
        if kind == "fullest":
            return query.fullest(rest, window, *_FULLEST[rest])
        if whole:
            return query.share(EVENTS[part], EVENTS[whole], window, or_none=least == ("or_none",))
        found = query.count(EVENTS[part], window)
        if kind == "most":
            found = f"max by ({query.by(*_TOOL)}) ({found})"
    return promql.at_least(found, int(getattr(query.thresholds, least[0], 1))) if least else found


# --- alerts ------------------------------------------------------------------------------------------------------


def alert(said: Mapping[str, Any], thresholds: Thresholds, options: Options) -> Alert:
    """Return the alert of a rule in an export."""
    query, who = Query(thresholds, options), _WHO[said["who"]]
    _expression(query, said.get("reads", ""))
    expr = _expression(query, said["expr"])
    name, labels = said["name"], (JOB, *who["labels"], *said.get("by", ()))
    shown = {**who, "variables": {JOB: JOB}, **said} if "dashboard" in said else who

    def text(said: str) -> str:
        return _with_values(thresholds, said.format_map(_Pieces()))

    return Alert(
        name,
        options.severities.get(name, said["severity"]),
        expr,
        text(f"{who['text']}: {said['what']}"),
        f"{text(said['first'])} {text(said['size'])}. Since {_began(name, labels)}.",
        text(f"{{{{ {said['traces']} }}}}") if "traces" in said else "",
        _link(f"agent-otel-{shown['dashboard']}", **shown["variables"]),
        wait=getattr(thresholds, said["wait"]) if "wait" in said else "",
        keep=thresholds.keep_firing if said.get("event", True) and "wait" not in said else "",
        reads=tuple(query.recorded.values()),
        cause=said.get("cause", ""),
    )
