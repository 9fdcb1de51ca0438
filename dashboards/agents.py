"""Agents at a glance: what fires, the worst of each kind, and a line for each job, workflow and agent."""

from __future__ import annotations

from agent_otel import semconv
from agent_otel.alerts.promql import JOB, share_or_none
from agent_otel.alerts.rules import UNTOLD
from dashboards import links
from dashboards.forecast import LARGEST, filled
from dashboards.frame import FIRING, Frame, Row, processes
from dashboards.panels import (
    BYTES,
    COUNT,
    FEW_IS_GOOD,
    MONEY,
    NO_RUNTIME,
    NONE_IS_GOOD,
    SHARE,
    TOKENS,
    Line,
    events_of,
    graph_of,
    none_of,
    stat_of,
)
from dashboards.payload import FEW, NO_GROWTH
from dashboards.payload_parts import NEAR
from dashboards.queries import (
    AGENT,
    RANGE,
    RUN,
    TOOL,
    WINDOW,
    WORKFLOW,
    Scope,
    highest,
    legend,
    lowest,
    most_often,
    named,
    top,
)
from dashboards.tables import Column, table_of
from dashboards.tools_parts import FAILED, FAILURE

S = Scope({JOB: "job", WORKFLOW: "workflow", AGENT: "agent"})

_LINE = (JOB, WORKFLOW, AGENT)
_TURNS = f"(last_over_time({S.select(semconv.TURNS_LEFT)}[{RANGE}]))"
_STUCK = f"sum by ({', '.join(_LINE)}) ({S.select(semconv.STUCK)})"
_LARGEST = LARGEST.format(by=WORKFLOW, series=S.select(semconv.PAYLOAD_LARGEST), over=WINDOW)
_CALLS = S.sum(semconv.TOOL_DURATION, "_count", by=_LINE)
_FAILED_CALLS = S.sum(semconv.TOOL_DURATION, "_count", by=_LINE, matchers=FAILURE)
_STORE_FAILS = S.sum(semconv.CLAIM_CHECK_OPERATIONS, by=(JOB,), matchers=(f'{semconv.RESULT}!="ok"',))

_TO_WORKFLOW = links.of_workflow(links.field(WORKFLOW))
_TO_AGENT = links.of_agent(links.field(AGENT))
_TO_TOOL = links.of_tool(links.field(TOOL))

_ALERT_LABELS = {
    "severity": "Severity",
    "alertname": "Alert",
    TOOL: "Tool",
    WORKFLOW: "Workflow",
    AGENT: "Agent",
    JOB: "Job",
}
_BY_ALERT = ", ".join(_ALERT_LABELS)

_NOW = Row(
    "At a glance",
    (
        table_of(
            "Firing alerts",
            "Alerts of this package that fire now, the oldest last. Each has a runbook with the first step. Empty: none"
            " fires, or the rules of the folder alerts are not loaded.",
            _ALERT_LABELS,
            [
                Column(
                    "Since",
                    f"1000 * max by ({_BY_ALERT}) (ALERTS_FOR_STATE) and on ({_BY_ALERT}) group by ({_BY_ALERT}) "
                    f'({FIRING.removesuffix("}")},severity!="info",{JOB}=~"$job"}})',
                    "dateTimeFromNow",
                )
            ],
            ("Since",),
            height=4,
            links={"Tool": links.of_tool(links.cell("Tool")), "Workflow": links.of_workflow(links.cell("Workflow"))},
            empty="no alert fires",
        ),
        processes().span(6),
        stat_of(
            "Worst payload",
            "The workflow whose largest payload has the most of its cap. From 80 % on the next turn may be the last: "
            "click it for what fills it.",
            highest(filled(S, WORKFLOW)),
            SHARE,
            NEAR,
            who=legend(WORKFLOW),
            alerts=("AgentWorkflowPayloadNearCap", "AgentWorkflowPayloadOverCap"),
            links=_TO_WORKFLOW,
            empty=NO_RUNTIME,
        ),
        stat_of(
            "Fewest turns left",
            "The workflow with the fewest turns left to its cap. Below 3: end or compact the execution, or store its "
            "results and carry references.",
            lowest(f"min by ({WORKFLOW}) {_TURNS}"),
            COUNT,
            FEW,
            who=legend(WORKFLOW),
            alerts=("AgentWorkflowPayloadNearCap",),
            links=_TO_WORKFLOW,
            empty=NO_GROWTH,
        ),
        stat_of(
            "Incomplete answers",
            "The tool with the most final answers that stand on a part of its result, of which the model was not told. "
            "The alert counts the same.",
            most_often(S.sum(semconv.ANSWERS_INCOMPLETE, by=(TOOL,), matchers=UNTOLD), TOOL),
            COUNT,
            FEW_IS_GOOD,
            who=legend(TOOL),
            alerts=("AgentAnswersIncomplete",),
            links=_TO_TOOL,
        ),
        stat_of(
            "Lost histories",
            "The agent with the most requests that lack the results of its tools. Check the checkpointer and the ids.",
            named(most_often(S.sum(semconv.HISTORY_LOST, by=(AGENT,)), AGENT), AGENT),
            COUNT,
            NONE_IS_GOOD,
            who=legend(AGENT),
            alerts=("AgentHistoryLost",),
            links=_TO_AGENT,
        ),
        stat_of(
            "Claim store",
            "The job with the most failed operations on the claim store. Check the store of AGENT_OTEL_CLAIM_CHECK.",
            most_often(_STORE_FAILS, JOB),
            COUNT,
            FEW_IS_GOOD,
            who=legend(JOB),
            alerts=("AgentClaimCheckFailing",),
        ),
        stat_of(
            "Repeats",
            "The tool with the most calls that repeat arguments or a result of a call before: the agent may loop.",
            most_often(S.sum(semconv.TOOL_REPEATS, by=(TOOL,)), TOOL),
            COUNT,
            FEW_IS_GOOD,
            who=legend(TOOL),
            alerts=("AgentRepeatsItself",),
            links=_TO_TOOL,
        ),
        stat_of(
            "Money an hour",
            "The workflow and agent with the costliest executions, in US dollars an hour of the time range. Empty: no "
            "model has a price.",
            highest(f"3600 * {S.sum(semconv.EXECUTION_PRICE, '_sum', by=RUN, function='rate')}"),
            MONEY,
            who=legend(*RUN),
            alerts=("AgentExecutionCostly",),
            links=_TO_AGENT,
        ),
    ),
    open=True,
)

_PAYLOAD = (links.to_dashboard(links.PAYLOAD, "Payloads of this workflow", workflow=links.cell("Workflow")),)
_EXECUTIONS = (
    links.to_dashboard(
        links.EXECUTIONS, "These executions", workflow=links.cell("Workflow"), agent=links.cell("Agent")
    ),
)
_RESULTS = (links.to_dashboard(links.TOOLS, "Tool results"),)

_LINES = Row(
    "Jobs, workflows and agents",
    (
        table_of(
            "Jobs, workflows and agents",
            "A line for each job, workflow and agent, the most dangerous first; click a number for its dashboard. A "
            "cell without data is empty.",
            {JOB: "Job", WORKFLOW: "Workflow", AGENT: "Agent"},
            [
                Column("Stuck", _STUCK, COUNT, none_of("stuck"), _PAYLOAD),
                Column("Cap used", filled(S, *_LINE), SHARE, NEAR, _PAYLOAD),
                Column("Turns left", f"min by ({', '.join(_LINE)}) {_TURNS}", COUNT, FEW, _PAYLOAD),
                Column(
                    "Incomplete",
                    S.sum(semconv.ANSWERS_INCOMPLETE, by=_LINE, matchers=UNTOLD),
                    COUNT,
                    FEW_IS_GOOD,
                    _RESULTS,
                ),
                Column("Lost", S.sum(semconv.HISTORY_LOST, by=_LINE), COUNT, NONE_IS_GOOD, _EXECUTIONS),
                Column("Repeats", S.sum(semconv.TOOL_REPEATS, by=_LINE), COUNT, FEW_IS_GOOD, _RESULTS),
                Column("Failed", share_or_none(_FAILED_CALLS, _CALLS), SHARE, FAILED, _RESULTS),
                Column("Tool calls", S.sum(semconv.ARGS_SIZE, "_count", by=_LINE), COUNT, links=_RESULTS),
                Column("Executions", S.sum(semconv.EXECUTION_TOOL_CALLS, "_count", by=_LINE), COUNT, links=_EXECUTIONS),
                Column("Tokens", S.sum(semconv.EXECUTION_TOKENS, "_sum", by=_LINE), TOKENS, links=_EXECUTIONS),
                Column("Money", S.sum(semconv.EXECUTION_PRICE, "_sum", by=_LINE), MONEY, links=_EXECUTIONS),
            ],
            ("Stuck", "Cap used", "Incomplete"),
            height=7,
            links={
                "Workflow": links.of_workflow(links.cell("Workflow")),
                "Agent": links.of_agent(links.cell("Agent")),
            },
        ),
    ),
    open=True,
)

_OVER_TIME = Row(
    "Over time",
    (
        graph_of(
            "Largest payload by workflow",
            "Exact bytes of the largest payload of a workflow. A line that only rises ends at the cap: end or compact "
            "its executions.",
            [Line(top(_LARGEST), legend(WORKFLOW))],
            BYTES,
            links=_TO_WORKFLOW,
            empty=NO_RUNTIME,
        ),
        events_of(
            "Failed calls by agent",
            "Tool calls that ended in an error. One agent: its tools fail. All agents at once: the network or a key.",
            [
                Line(
                    top(S.events(semconv.TOOL_DURATION, "_count", by=(AGENT,), matchers=FAILURE)),
                    legend(AGENT),
                    state="error",
                )
            ],
            links=_TO_AGENT,
        ),
    ),
)

DASHBOARD = Frame(
    uid=links.AGENTS,
    title="Agents: at a glance",
    description="What fires, the worst of each kind, and a line for each job, workflow and agent.",
    rows=(_NOW, _LINES, _OVER_TIME),
    variables={
        "workflow": (semconv.EXECUTION_TOOL_CALLS, semconv.WORKFLOW_NAME),
        "agent": (semconv.EXECUTION_TOOL_CALLS, semconv.AGENT_NAME),
    },
)
