"""Instrumentation health: completeness of the other dashboards' data."""

from __future__ import annotations

from agent_otel import semconv
from agent_otel.alerts.promql import JOB
from agent_otel.semconv.types import prometheus_label
from dashboards import links
from dashboards.frame import Frame, Row, glance
from dashboards.panels import (
    COUNT,
    NONE_IS_GOOD,
    Line,
    events_of,
    graph_of,
    none_of,
    stat_of,
)
from dashboards.queries import RANGE, WINDOW, Scope, highest, legend, mean, most_often, or_zero
from dashboards.tables import Column, table_of

S = Scope({JOB: "job"})

_INSTANCE = "instance"
_MATCHED = (f'{semconv.TARGET}!="{semconv.UNMATCHED}"',)
_UNMATCHED = (f'{semconv.TARGET}="{semconv.UNMATCHED}"',)
_FULL = ((None, "green"), (0.8, "orange"), (1, "red"))
_SERIES = (None, "green"), (10_000, "orange"), (50_000, "red")

#: For each limited name a metric that has all of its values.
_NAMED = {
    semconv.GEN_AI_TOOL_NAME: (semconv.ARGS_SIZE, "_count"),
    semconv.AGENT_NAME: (semconv.TOOL_DURATION, "_count"),
    semconv.ERROR_TYPE: (semconv.TOOL_DURATION, "_count"),
    semconv.RUNTIME: (semconv.PAYLOAD_SIZE, "_count"),
    semconv.WORKFLOW_NAME: (semconv.PAYLOAD_SIZE, "_count"),
    semconv.ACTIVITY: (semconv.PAYLOAD_SIZE, "_count"),
    semconv.COMPONENT: (semconv.PAYLOAD_COMPONENT, ""),
    semconv.REQUEST_MODEL: (semconv.CONTEXT_NEAR, ""),
}


def _alive(by: str = "") -> str:
    grouping = f" by ({by})" if by else ""
    return f"count{grouping} ({S.select(semconv.BUILD_INFO)})"


def _integrations(matchers: tuple[str, ...], *by: str) -> str:
    info = S.select(semconv.INSTRUMENTATION_INFO, matchers=matchers)
    return f"count(count by ({', '.join(by)}) ({info}))"


def _named(name: str) -> str:
    """The largest number of distinct values in one process, of those that it may have."""
    metric, suffix = _NAMED[name]
    series = S.select(metric, suffix, (f'{prometheus_label(name)}!=""',))
    process = f"{JOB}, {_INSTANCE}"
    names = f"count by ({process}) (count by ({process}, {prometheus_label(name)}) ({series}))"
    return f"max({names}) / {semconv.NAME_LIMITS[name]}"


def _folded(name: str, over: str) -> str:
    """What was recorded under `_other`, because the limit of names was reached."""
    metric, suffix = _NAMED[name]
    return S.sum(metric, suffix, over=over, matchers=(f'{prometheus_label(name)}="{semconv.OTHER}"',))


def _all_folded() -> str:
    # The names whose folding hides a culprit. A sum over all would count one call several times.
    names = (semconv.GEN_AI_TOOL_NAME, semconv.WORKFLOW_NAME, semconv.ACTIVITY)
    return " + ".join(f"({or_zero(_folded(name, RANGE))})" for name in names)


_GLANCE = glance(
    stat_of(
        "Integrations unmatched",
        "Processes with an installed framework whose functions were not found: none of its calls are measured. Upgrade "
        "agent_otel, or pin the framework, and report the version.",
        most_often(
            f"count by ({semconv.INTEGRATION}) ({S.select(semconv.INSTRUMENTATION_INFO, matchers=_UNMATCHED)})",
            semconv.INTEGRATION,
        ),
        COUNT,
        NONE_IS_GOOD,
        who=legend(semconv.INTEGRATION),
        alerts=("AgentIntegrationUnmatched",),
    ),
    stat_of(
        "Internal errors",
        "The place in agent_otel with the most internal errors. Your program is not affected, but some numbers are "
        "missing. The log has one warning for each place; please report it.",
        most_often(S.sum(semconv.INTERNAL_ERRORS, by=(semconv.WHERE,)), semconv.WHERE),
        COUNT,
        none_of("error"),
        who=legend(semconv.WHERE),
        alerts=("AgentTelemetrySelfErrors",),
    ),
    stat_of(
        "Time series",
        "The job with the most time series of this package. Tens of thousands: names contain ids. See Names for the "
        "label at its limit.",
        highest(f'count by ({JOB}) ({{__name__=~"{semconv.SCOPE}_.+", {JOB}=~"$job"}})'),
        COUNT,
        _SERIES,
        who=legend(JOB),
    ),
)

_INTEGRATIONS = Row(
    "Integrations",
    (
        table_of(
            "Integrations",
            "Imported frameworks with their version and the wrapped function. `unmatched`: not measured. A framework "
            "that is missing here was not imported, or its integration is switched off.",
            {
                semconv.INTEGRATION: "Integration",
                semconv.VERSION: "Version",
                semconv.TARGET: "Wrapped",
            },
            [
                Column(
                    "Processes",
                    f"count by ({semconv.INTEGRATION}, {semconv.VERSION}, {semconv.TARGET}) "
                    f"({S.select(semconv.INSTRUMENTATION_INFO)})",
                    COUNT,
                )
            ],
            ("Processes",),
            span=16,
            widths={"Integration": 140, "Version": 100},  # leaves room for the wrapped function
        ),
        table_of(
            "Versions in use",
            "Versions of agent_otel and of Python. Use one version everywhere: numbers may have another meaning in "
            "another version.",
            {JOB: "Job", semconv.VERSION: "Version", semconv.PYTHON: "Python"},
            [
                Column(
                    "Processes",
                    f"count by ({JOB}, {semconv.VERSION}, {semconv.PYTHON}) ({S.select(semconv.BUILD_INFO)})",
                    COUNT,
                )
            ],
            ("Processes",),
            span=8,
            widths={"Version": 100, "Python": 95},
        ),
    ),
    open=True,
)

_JOBS = Row(
    "Jobs",
    (
        graph_of(
            "Processes by job",
            "Processes that report. A line that ends: the job stopped, or its metrics did. Agents that do not report "
            "appear on no other dashboard.",
            [Line(_alive(JOB), legend(JOB))],
            COUNT,
            whole=True,
        ),
    ),
)

_ERRORS = Row(
    "Errors and gaps",
    (
        events_of(
            "Internal errors by place",
            "Internal errors by place. From then on that stage is missing: `model_request` loses delivered sizes, a "
            "runtime's name its payloads.",
            [Line(S.events(semconv.INTERNAL_ERRORS, by=(semconv.WHERE,)), legend(semconv.WHERE), state="error")],
        ),
        graph_of(
            "Unmatched results of a model request",
            "Mean number of results in a request without a measured tool call. A constant level: a tool in another "
            "process. A rise: a tool was moved, or an integration no longer matches.",
            [
                Line(
                    mean(
                        S.sum(semconv.RESULTS_UNMATCHED, by=(JOB,), over=WINDOW),
                        S.sum(
                            semconv.REQUEST_SIZE,
                            "_count",
                            by=(JOB,),
                            over=WINDOW,
                            matchers=(f'{semconv.PART}="{semconv.SYSTEM}"',),
                        ),
                    ),
                    legend(JOB),
                )
            ],
            COUNT,
        ),
    ),
)

_NAMES = Row(
    "Names",
    (
        events_of(
            "Recorded under _other",
            "Calls and payloads whose names are above the limit. Their sum is right; their names are lost.",
            [Line(or_zero(_folded(name, WINDOW), WINDOW), name) for name in semconv.NAME_LIMITS],
        ),
    ),
)

_VOLUME = Row(
    "Volume",
    (
        graph_of(
            "Time series by job",
            "Time series of this package. They grow with tools, agents, workflows and processes up to the limits of "
            "names. Growth without end comes from a label of your scrape configuration.",
            [Line(f'count by ({JOB}) ({{__name__=~"{semconv.SCOPE}_.+", {JOB}=~"$job"}})', legend(JOB))],
            COUNT,
            whole=True,
        ),
    ),
)

DASHBOARD = Frame(
    uid=links.HEALTH,
    title="Agents: instrumentation health",
    description="Completeness of the other dashboards' data: wrapped frameworks, internal errors, missing names.",
    rows=(_GLANCE, _INTEGRATIONS, _JOBS, _ERRORS, _NAMES, _VOLUME),
    traces=False,
)
