"""Recording rules and alerts over the metrics of the catalogue, as data, and the files generated from them.

``agent-otel alerts export`` prints the text of ``render(Thresholds.parse({"large_results_window": "30m"}),
Options(by=("cluster",)), "operator")``. `files` returns the files of the repository's folder ``alerts``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent_otel.alerts.options import Options, Thresholds
from agent_otel.alerts.promql import Recording
from agent_otel.alerts.rendering import FORMATS, MIMIR, OPERATOR, alerts, page, recordings, render, uses
from agent_otel.alerts.rules import Alert

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "ALERTS",
    "FORMATS",
    "RECORDINGS",
    "Alert",
    "Options",
    "Recording",
    "Thresholds",
    "alerts",
    "files",
    "recordings",
    "render",
    "uses",
]

#: The shipped rules: default thresholds and options.
ALERTS: Final = alerts(Thresholds(), Options())
RECORDINGS: Final = recordings(Thresholds(), Options())


def files(runbooks: Mapping[str, str]) -> dict[str, str]:
    """Return the generated files of the repository: path -> text; the alerts hold these short forms of runbooks."""
    old = Options(keep_firing_for=False)
    return {
        "alerts/agent-otel.rules.yaml": render(runbooks=runbooks),
        "alerts/agent-otel.rules.no-keep-firing.yaml": render(options=old, runbooks=runbooks),
        "alerts/kubernetes/agent-otel.prometheusrule.yaml": render(form=OPERATOR, runbooks=runbooks),
        "alerts/mimir/agent-otel.rules.yaml": render(form=MIMIR, runbooks=runbooks),
        "alerts/thresholds.md": page(),
    }
