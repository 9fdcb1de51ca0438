"""What an export of the rules may add to them, besides the thresholds."""

from __future__ import annotations

import re
import string
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Where the runbooks are, from the folder that holds ``alerts``.
RUNBOOK = "alerts/runbooks/{alert}.md"

_MATCHER = r'\s*[a-zA-Z_]\w*\s*(?:=~|!~|!=|=)\s*"(?:[^"\\\n]|\\.)*"\s*'
_SELECTOR = re.compile(rf"{_MATCHER}(?:,{_MATCHER})*,?\s*")
_LABEL = re.compile(r"[a-zA-Z_]\w*")
_OURS = ("alertname", "component", "severity")


@dataclass(frozen=True)
class Options:
    """How rules are written; ValueError when a value cannot stand in a rule file."""

    #: Off for rulers that refuse the field, such as Prometheus before 2.42 and vmalert before 1.92.
    keep_firing_for: bool = True
    #: What ``runbook_url`` is, with ``{alert}`` for the alert's name.
    runbook_url: str = RUNBOOK
    #: What stands before ``/d/agent-otel-…`` in links to dashboards: the address of Grafana. Relative without.
    dashboard_url: str = ""
    #: Labels that every alert gets besides its own: ``{"team": "agents"}``.
    labels: Mapping[str, str] = field(default_factory=dict)
    #: Matchers for every series that is read: ``namespace="prod"``.
    selector: str = ""
    #: Labels to group by besides ``job``, such as ``("cluster", "namespace")``; alerts and recorded series have them.
    by: tuple[str, ...] = ()
    #: ``metadata`` of a PrometheusRule; its labels are what an operator's ``ruleSelector`` asks for.
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
                raise ValueError(f"labels: {name!r} is set by the rules themselves")
        try:
            names = {name for _, name, _, _ in string.Formatter().parse(self.runbook_url) if name is not None}
        except ValueError:
            names = {""}
        if not names <= {"alert"}:
            raise ValueError(f"runbook_url: {self.runbook_url!r} may hold {{alert}} and no other braces")

    @property
    def matchers(self) -> str:
        """The selector without the braces that it may have been given with."""
        text = self.selector.strip()
        return text[1:-1].strip() if text.startswith("{") and text.endswith("}") else text
