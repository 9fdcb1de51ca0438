"""Types of rules: alerts with their texts, and recorded series."""

from __future__ import annotations

import re
import string
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agent_otel import semconv
from agent_otel.semconv.types import prometheus_label

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


JOB = "job"
CRITICAL = "critical"
WARNING = "warning"
INFO = "info"
#: Label value that distinguishes these alerts from all others, for routes and silences.
COMPONENT = "agent_otel"


@dataclass(frozen=True)
class Recording:
    """A series that Prometheus computes once for alerts and panels; as text its name, for the expressions over it."""

    record: str
    expr: str
    #: Recorded series that ``expr`` reads, and that stand before it.
    reads: tuple[Recording, ...] = ()

    def __str__(self) -> str:
        return self.record


@dataclass(frozen=True)
class Alert:
    """An alert; its texts are Prometheus's templates. ``dashboard`` is a path in Grafana, with labels as variables."""

    name: str
    severity: str
    expr: str
    summary: str
    description: str
    dashboard: str
    #: Time that the expression has to be true before the alert fires (``for``).
    wait: str = ""
    #: Time that the alert stays after its expression is false (``keep_firing_for``), so that single events do not flap.
    keep: str = ""
    #: Recorded series that ``expr`` reads.
    reads: tuple[Recording, ...] = ()


def in_order(recordings: Iterable[Recording]) -> tuple[Recording, ...]:
    """Return these recorded series and those that they read, each once and after those that it reads."""
    return tuple({recording.record: recording for recording in _with_sources(recordings)}.values())


def _with_sources(recordings: Iterable[Recording]) -> Iterator[Recording]:
    for recording in recordings:
        yield from _with_sources(recording.reads)
        yield recording


def value_of(name: str) -> str:
    """Return the template of a label's value, by the attribute's name."""
    return f"{{{{ $labels.{prometheus_label(name)} }}}}"


#: Part of a sentence, after its subject; some series have no job.
IN_JOB = "{{ with $labels.job }} in job {{ . }}{{ end }}"
TOOL = value_of(semconv.GEN_AI_TOOL_NAME)
WORKFLOW = value_of(semconv.WORKFLOW_NAME)
RUNTIME = value_of(semconv.RUNTIME)
DIRECTION = value_of(semconv.DIRECTION)
ACTIVITY = f"{{{{ with $labels.{prometheus_label(semconv.ACTIVITY)} }}}} of activity {{{{ . }}}}{{{{ end }}}}"
COUNT = '{{ $value | printf "%.0f" }}'
SHARE = "{{ $value | humanizePercentage }}"
BYTES = "{{ $value | humanize1024 }}B"


def link(uid: str, **variables: str) -> str:
    """Return a path to a dashboard; ``variables`` maps each variable to the label whose value it takes."""
    query = "&".join(
        f"var-{name}={{{{ $labels.{prometheus_label(of)} | urlquery }}}}" for name, of in variables.items()
    )
    return f"/d/{uid}?{query}"


def on_tools() -> str:
    """Return the path of the tool results dashboard, for the tool of the alert."""
    return link("agent-otel-tools", job=JOB, tool=semconv.GEN_AI_TOOL_NAME)


def on_payload() -> str:
    """Return the path of the payload dashboard, for the workflow of the alert."""
    return link("agent-otel-payload", job=JOB, workflow=semconv.WORKFLOW_NAME)


def on_executions() -> str:
    """Return the path of the dashboard of executions, the claim check and limits."""
    return link("agent-otel-executions", job=JOB)


def on_health() -> str:
    """Return the path of the dashboard of this package's own telemetry."""
    return link("agent-otel-health", job=JOB)


#: Path of a runbook, relative to the folder that holds ``alerts``.
RUNBOOK = "alerts/runbooks/{alert}.md"

_MATCHER = r'\s*[a-zA-Z_]\w*\s*(?:=~|!~|!=|=)\s*"(?:[^"\\\n]|\\.)*"\s*'
_SELECTOR = re.compile(rf"{_MATCHER}(?:,{_MATCHER})*,?\s*")
_LABEL = re.compile(r"[a-zA-Z_]\w*")
_OURS = ("alertname", "component", "severity")

# Options of an export of the rules, besides the thresholds.


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
