"""Recording rules and alerts over the metrics of the catalogue, as data, and the files generated from them.

``agent-otel alerts export`` prints the text of ``render(Thresholds.parse({"large_results_window": "30m"}),
Options(by=("cluster",)), "operator")``. `files` returns the files of the repository's folder ``alerts``.
"""

from __future__ import annotations

from typing import Final

from agent_otel.alerts.options import Options, Thresholds
from agent_otel.alerts.promql import Recording
from agent_otel.alerts.rendering import FORMATS, MIMIR, OPERATOR, alerts, page, recordings, render, uses
from agent_otel.alerts.rules import Alert

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


def files() -> dict[str, str]:
    """Return the generated files of the repository: path -> text."""
    return {
        "alerts/agent-otel.rules.yaml": render(),
        "alerts/agent-otel.rules.no-keep-firing.yaml": render(options=Options(keep_firing_for=False)),
        "alerts/kubernetes/agent-otel.prometheusrule.yaml": render(form=OPERATOR),
        "alerts/mimir/agent-otel.rules.yaml": render(form=MIMIR),
        "alerts/thresholds.md": page(),
    }
