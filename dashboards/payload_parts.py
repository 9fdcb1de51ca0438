"""Workflow payload, detail rows: the contents of payloads, their boundaries, and the runtime's own metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_otel import semconv
from agent_otel.alerts.promql import JOB, share
from agent_otel.alerts.rules import DAPR_ACTIVITY, DAPR_LABELS, DAPR_WORKFLOW
from agent_otel.settings import Settings
from dashboards import links
from dashboards.forecast import DIRECTION, LARGEST, PER_WORKFLOW, cap
from dashboards.frame import Row
from dashboards.panels import (
    BYTES,
    COUNT,
    NO_RUNTIME,
    SHARE,
    Line,
    bars_of,
    events_of,
    graph_of,
    none_of,
)
from dashboards.queries import ACTIVITY, RANGE, RUNTIME, TOOL, WINDOW, WORKFLOW, Scope, drawn, largest, legend, worst
from dashboards.tables import Column, table_of, traces_of

if TYPE_CHECKING:
    from agent_otel.semconv.types import Metric

S = Scope({JOB: "job", WORKFLOW: "workflow", TOOL: "tool"})
#: The breakdown of a payload among all tools is wanted whole where shares are taken.
_WHOLE = Scope({JOB: "job", WORKFLOW: "workflow"})

NEAR_RATIO = Settings().payload_near_ratio
NEAR = ((None, "green"), (NEAR_RATIO, "orange"), (1, "red"))
_HISTORY = (f'{DIRECTION}="{semconv.HISTORY}"',)
LINKS = links.of_workflow(links.field(WORKFLOW))
_TOOL_LINKS = (links.to_dashboard(links.TOOLS, "This tool's results", tool=links.field(TOOL)),)


def caps_in_use(sizes: Metric, *by: str, matchers: tuple[str, ...]) -> str:
    """Return the caps of the runtimes that the chosen workflows use."""
    used = f"group by ({RUNTIME}) (last_over_time({S.select(sizes, '_count')}[{WINDOW}]))"
    return f"{cap(S, RUNTIME, *by, matchers=matchers, over=WINDOW)} and on ({RUNTIME}) {used}"


def _filled(*by: str) -> str:
    return _WHOLE.sum(semconv.PAYLOAD_COMPONENT, by=by, over=WINDOW, function="rate")


FILL = Row(
    "What fills it",
    (
        bars_of(
            "Bytes by tool",
            "Bytes of payloads by the tool whose results they are; `_other`: messages, settings and wrapping. Give "
            "the top tool pages or a filter, or store its results.",
            worst(S.sum(semconv.PAYLOAD_BY_TOOL, by=(WORKFLOW, TOOL))),
            legend(TOOL, WORKFLOW),
            BYTES,
            links=_TOOL_LINKS,
        ),
        graph_of(
            "Share of duplicate bytes",
            "Duplicate bytes ÷ all bytes of a payload. Above 10 %: the state holds a result beside the message with "
            "the same result, often once truncated. Keep one.",
            [
                Line(
                    share(
                        _WHOLE.sum(semconv.PAYLOAD_DUPLICATE, by=(WORKFLOW,), over=WINDOW, function="rate"),
                        _WHOLE.sum(semconv.PAYLOAD_BY_TOOL, by=(WORKFLOW,), over=WINDOW, function="rate"),
                    ),
                    legend(WORKFLOW),
                )
            ],
            SHARE,
            steps=((None, "green"), (0.1, "orange")),
            links=LINKS,
        ),
        bars_of(
            "Bytes by JSON path",
            "Paths with the most bytes in the time range, over all analysed payloads. A path on top of every "
            "workflow belongs to the framework; on top of one, to your state.",
            worst(_WHOLE.sum(semconv.PAYLOAD_COMPONENT, by=(WORKFLOW, semconv.COMPONENT))),
            legend(semconv.COMPONENT, WORKFLOW),
            BYTES,
        ),
        bars_of(
            "Dead weight",
            "Bytes of analysed payloads that no model request of their execution held, by JSON path. Take the path out "
            "of the state, or keep a reference to a store in it.",
            worst(_WHOLE.sum(semconv.PAYLOAD_UNREAD, by=(WORKFLOW, semconv.COMPONENT))),
            legend(semconv.COMPONENT, WORKFLOW),
            BYTES,
            span=24,
        ),
    ),
)


def _of_boundary(metric: Metric, suffix: str = "") -> str:
    return S.sum(metric, suffix, by=(*PER_WORKFLOW, ACTIVITY, DIRECTION))


_LARGEST = LARGEST.format(
    by=", ".join((*PER_WORKFLOW, ACTIVITY, DIRECTION)), series=S.select(semconv.PAYLOAD_LARGEST), over=RANGE
)

BOUNDARIES = Row(
    "By runtime and activity",
    (
        table_of(
            "Boundaries",
            "Each place where a runtime serialises a value, in the time range, the most dangerous first. Near, over or "
            "rejected beside a small p95: single executions only.",
            {RUNTIME: "Runtime", WORKFLOW: "Workflow", ACTIVITY: "Activity", DIRECTION: "Direction"},
            [
                Column("Stuck", _of_boundary(semconv.STUCK_RETRIES), COUNT, none_of("stuck")),
                Column("Rejected", _of_boundary(semconv.PAYLOADS_REJECTED), COUNT, none_of("rejected")),
                Column("Over cap", _of_boundary(semconv.PAYLOAD_OVER_CAP), COUNT, none_of("over")),
                Column("Near cap", _of_boundary(semconv.PAYLOAD_NEAR_CAP), COUNT, none_of("near")),
                Column(
                    "Largest",
                    _LARGEST,
                    BYTES,
                ),
                Column(
                    "p95",
                    drawn(S.quantile(0.95, semconv.PAYLOAD_SIZE, by=(*PER_WORKFLOW, ACTIVITY, DIRECTION))),
                    BYTES,
                ),
                Column("Payloads", _of_boundary(semconv.PAYLOAD_SIZE, "_count"), COUNT),
                Column("Bytes", _of_boundary(semconv.PAYLOAD_SIZE, "_sum"), BYTES),
            ],
            ("Stuck", "Rejected", "Over cap", "Near cap", "Largest"),
            links={"Workflow": links.of_workflow(links.cell("Workflow"))},
            empty=NO_RUNTIME,
        ),
        events_of(
            "Near and over the cap",
            f"Payloads from {NEAR_RATIO:.0%} of their cap up to it, and above it. Over the cap without rejections: "
            "the engine's real cap is higher; set AGENT_OTEL_CAPS.",
            [
                Line(S.events(semconv.PAYLOAD_NEAR_CAP, by=PER_WORKFLOW), f"near {legend(*PER_WORKFLOW)}"),
                Line(S.events(semconv.PAYLOAD_OVER_CAP, by=PER_WORKFLOW), f"over {legend(*PER_WORKFLOW)}"),
            ],
            links=LINKS,
        ),
        events_of(
            "Rejections and stuck retries",
            "Rejected payloads, and those that were sent again. Stuck retries that go on occupy a worker and cannot "
            "succeed: terminate the executions.",
            [
                Line(S.events(semconv.PAYLOADS_REJECTED, by=PER_WORKFLOW), f"rejected {legend(*PER_WORKFLOW)}"),
                Line(S.events(semconv.STUCK_RETRIES, by=PER_WORKFLOW), f"stuck {legend(*PER_WORKFLOW)}"),
            ],
            links=LINKS,
        ),
    ),
)

HISTORIES = Row(
    "Cumulative history",
    (
        graph_of(
            "Size of the history, p95, and its cap",
            "Cumulative history of a run, for runtimes with a cap on it. It only grows: continue as new, or start a "
            "child workflow, before it reaches the dashed line.",
            [
                Line(S.quantile(0.95, semconv.HISTORY_SIZE, by=PER_WORKFLOW, over=WINDOW), legend(*PER_WORKFLOW)),
                Line(
                    caps_in_use(semconv.HISTORY_SIZE, matchers=_HISTORY),
                    f"cap {legend(RUNTIME)}",
                    limit=True,
                ),
            ],
            BYTES,
            logarithmic=True,
            links=LINKS,
        ),
    ),
)


# The sidecar is scraped as another job than the agent.
_APP, _, _DAPR_NAME, _DAPR_STEP = DAPR_LABELS
_DAPR_ONLY = (f'{RUNTIME}="dapr"',)
_DAPR_STALL = ((None, "green"), (0.8, "orange"), (0.95, "red"))
DAPR = Row(
    "Dapr's own metrics",
    (
        graph_of(
            "Worst turn: Dapr's ratio beside ours",
            "daprd's ratio (1.17.7 and later): bytes sent to a worker in one turn ÷ --max-body-size. Above 95 % the "
            "workflow stalls without an error. Ours: each payload ÷ its own cap, which is 2 MiB for an activity's "
            "input whatever --max-body-size is. Only Dapr's is high: workers without agent_otel.",
            [
                Line(
                    largest(DAPR_WORKFLOW, _APP, _DAPR_NAME),
                    f"dapr {legend(_APP, _DAPR_NAME)}",
                ),
                Line(
                    S.quantile(1, semconv.UTILIZATION, by=(WORKFLOW,), over=WINDOW, matchers=_DAPR_ONLY),
                    f"agent_otel {legend(WORKFLOW)}",
                ),
            ],
            SHARE,
            steps=_DAPR_STALL,
        ),
        graph_of(
            "Worst activity, by Dapr",
            "Bytes that daprd sends to one activity ÷ --max-body-size. The top activity receives too much input: "
            "pass a reference instead.",
            [
                Line(
                    largest(DAPR_ACTIVITY, _DAPR_NAME, _DAPR_STEP),
                    legend(_DAPR_NAME, _DAPR_STEP),
                )
            ],
            SHARE,
            steps=_DAPR_STALL,
        ),
    ),
)

TRACES = Row(
    "Traces of large payloads",
    (
        traces_of(
            "Steps near their cap",
            f"Spans of steps whose payload reached {NEAR_RATIO:.0%} of its cap or more, from the data source chosen "
            "as Tempo; empty without one. Each names the path and the tool that fill it.",
            f"{{ span.{semconv.PAYLOAD_UTILIZATION} >= {NEAR_RATIO} }} | select(span.{semconv.WORKFLOW_NAME}, "
            f"span.{semconv.PAYLOAD_UTILIZATION}, span.{semconv.PAYLOAD_LARGEST_TOOL}, "
            f"span.{semconv.PAYLOAD_LARGEST_PATH})",
        ),
    ),
)
