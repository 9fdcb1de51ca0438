"""Recording rules and alerts over the metrics of the catalogue, as data, and the files generated from them.

``agent-otel alerts export`` prints the text of ``render(Thresholds.parse({"large_results_window": "30m"}),
Options(by=("cluster",)), "operator")``.
"""

from __future__ import annotations

from typing import Final

from agent_otel.alerts.options import Options, Thresholds
from agent_otel.alerts.promql import Recording
from agent_otel.alerts.rendering import FORMATS, alerts, recordings, render, uses
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
    "recordings",
    "render",
    "uses",
]

#: The shipped rules: default thresholds and options.
ALERTS: Final = alerts(Thresholds(), Options())
RECORDINGS: Final = recordings(Thresholds(), Options())
