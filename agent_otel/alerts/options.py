"""Options of an export of the rules, besides the thresholds."""

from __future__ import annotations

import re
import string
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Path of a runbook, relative to the folder that holds ``alerts``.
RUNBOOK = "alerts/runbooks/{alert}.md"

_MATCHER = r'\s*[a-zA-Z_]\w*\s*(?:=~|!~|!=|=)\s*"(?:[^"\\\n]|\\.)*"\s*'
_SELECTOR = re.compile(rf"{_MATCHER}(?:,{_MATCHER})*,?\s*")
_LABEL = re.compile(r"[a-zA-Z_]\w*")
_OURS = ("alertname", "component", "severity")


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
