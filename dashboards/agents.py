"""Agents at a glance: a line for each workflow and agent, which leads to the dashboards with the details."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_otel import semconv
from agent_otel.alerts.promql import JOB, share, share_or_none
from dashboards import links
from dashboards.forecast import room, turns_left
from dashboards.frame import Frame, Row, glance
from dashboards.panels import (
    BYTES,
    COUNT,
    FEW_IS_GOOD,
    NO_RUNTIME,
    SHARE,
    TOKENS,
    Line,
    events_of,
    graph_of,
    none_of,
    stat_of,
)
from dashboards.payload import FEW, NO_GROWTH, ROOM
from dashboards.payload_parts import NEAR
from dashboards.queries import (
    AGENT,
    RANGE,
    RUN,
    TOOL,
    WINDOW,
    WORKFLOW,
    Scope,
    drawn,
    highest,
    legend,
    lowest,
    most_often,
    named,
    top,
)
from dashboards.tables import Column, table_of
from dashboards.tools_parts import CUT, FAILED, FAILURE

if TYPE_CHECKING:
    from agent_otel.semconv.types import Metric

S = Scope({JOB: "job", WORKFLOW: "workflow", AGENT: "agent"})

_LINE = f"{WORKFLOW}, {AGENT}"


def _seen(by: str, series: str) -> str:
    return f"group by ({by}) (last_over_time({series}[{RANGE}]))"


def _runs(scope: Scope) -> str:
    return _seen(_LINE, scope.select(semconv.EXECUTION_TOOL_CALLS, "_count"))


#: The workflows and agents whose executions ended in the time range.
_RUNS = _runs(S)
#: The other agents that called a tool, and the other workflows that carried a payload.
_CALLERS = (
    f"{_seen(AGENT, S.select(semconv.TOOL_DURATION, '_count'))} "
    f"unless on ({AGENT}) {_runs(Scope({JOB: 'job', AGENT: 'agent'}))}"
)
_CARRIERS = (
    f"{_seen(WORKFLOW, S.select(semconv.UTILIZATION, '_count'))} "
    f"unless on ({WORKFLOW}) {_runs(Scope({JOB: 'job', WORKFLOW: 'workflow'}))}"
)
#: The agents and the tools that they called.
_TOOLS = _seen(f"{JOB}, {AGENT}, {TOOL}", S.select(semconv.TOOL_DURATION, "_count"))


def _of_workflow(value: str) -> str:
    """Return the value of a workflow on each of its lines."""
    return f"({_RUNS} or {_CARRIERS}) * on ({WORKFLOW}) group_left () ({value})"


def _of_agent(value: str) -> str:
    """Return the value of an agent on each of its lines."""
    return f"({_RUNS} or {_CALLERS}) * on ({AGENT}) group_left () ({value})"


def _of_tools(metric: Metric, suffix: str = "") -> str:
    """Return the sum of a counter over the tools that an agent called. Agents that share a tool share its counts."""
    counted = S.sum(metric, suffix, by=(JOB, TOOL))
    return f"sum by ({AGENT}) ({_TOOLS} * on ({JOB}, {TOOL}) group_left () ({counted}))"


_FAILED_CALLS = S.sum(semconv.TOOL_DURATION, "_count", by=(AGENT,), matchers=FAILURE)
_CALLS = S.sum(semconv.TOOL_DURATION, "_count", by=(AGENT,))
_WORST = S.quantile(1, semconv.UTILIZATION, by=(WORKFLOW,))

_TO_WORKFLOW = links.of_workflow(links.field(WORKFLOW))
_TO_AGENT = links.of_agent(links.field(AGENT))
_TO_TOOL = links.of_tool(links.field(TOOL))

_GLANCE = glance(
    stat_of(
        "Worst payload",
        "The workflow whose payload came nearest to its cap, as the upper bound of its bucket. From 80 % on the next "
        "turn may be the last: click it for what fills it.",
        highest(drawn(_WORST)),
        SHARE,
        NEAR,
        who=legend(WORKFLOW),
        alerts=("AgentWorkflowPayloadNearCap", "AgentWorkflowPayloadOverCap"),
        links=_TO_WORKFLOW,
        empty=NO_RUNTIME,
    ),
    stat_of(
        "Fewest turns left",
        "The workflow with the fewest turns left to its cap at the mean growth. Below 3: drop old results from the "
        "state, or store them and carry a reference.",
        lowest(turns_left(S)),
        COUNT,
        FEW,
        who=legend(WORKFLOW),
        alerts=("AgentWorkflowPayloadNearCap",),
        links=_TO_WORKFLOW,
        empty=NO_GROWTH,
    ),
    stat_of(
        "Calls that failed",
        "The agent with the most tool calls that ended in an error. Click it for its executions, and see Errors and "
        "latency of the tools. No data: another instrumentation emits the durations.",
        named(most_often(_FAILED_CALLS, AGENT, S.sum(semconv.TOOL_DURATION, "_count")), AGENT),
        COUNT,
        none_of("error"),
        who=legend(AGENT),
        alerts=("AgentToolErrorRateHigh",),
        links=_TO_AGENT,
    ),
    stat_of(
        "Truncated results",
        "The tool with the most results of which the model sees only a part. Click it for the layer that truncates: "
        "some of the limits can be configured.",
        most_often(S.sum(semconv.RESULTS_TRUNCATED, by=(TOOL,)), TOOL),
        COUNT,
        FEW_IS_GOOD,
        who=legend(TOOL),
        alerts=("AgentToolFirstTruncation",),
        links=_TO_TOOL,
    ),
    stat_of(
        "Answers from a part",
        "The tool after whose incomplete results the agent most often gave a final answer. Give the tool a cursor and "
        "describe it.",
        most_often(S.sum(semconv.ANSWERS_INCOMPLETE, by=(TOOL,)), TOOL),
        COUNT,
        FEW_IS_GOOD,
        who=legend(TOOL),
        alerts=("AgentAnswersIncomplete",),
        links=_TO_TOOL,
    ),
    stat_of(
        "Longest executions",
        "The workflow and agent with the most tool calls in an execution, 5 % of the executions having more. Far more "
        "than its other executions make: some loop; set a limit.",
        highest(drawn(S.quantile(0.95, semconv.EXECUTION_TOOL_CALLS, by=RUN))),
        COUNT,
        who=legend(*RUN),
        alerts=("AgentLimitHit",),
        links=_TO_AGENT,
    ),
)

_PAYLOAD = (links.to_dashboard(links.PAYLOAD, "Payloads of this workflow", workflow=links.cell("Workflow")),)
_EXECUTIONS = (
    links.to_dashboard(
        links.EXECUTIONS, "These executions", workflow=links.cell("Workflow"), agent=links.cell("Agent")
    ),
)
_RESULTS = (links.to_dashboard(links.TOOLS, "Tool results"),)

_LINES = Row(
    "Workflows and agents",
    (
        table_of(
            "Workflows and agents",
            "A line for each workflow and agent, the most dangerous first; click a number for its dashboard. Cap used, "
            "room and turns are of the workflow. Failed, truncated and answers are of the tools that the agent calls, "
            "also where another agent shares them.",
            {WORKFLOW: "Workflow", AGENT: "Agent"},
            [
                Column(
                    "Stuck",
                    _of_workflow(S.sum(semconv.STUCK_RETRIES, by=(WORKFLOW,))),
                    COUNT,
                    none_of("stuck"),
                    _PAYLOAD,
                ),
                Column(
                    "Rejected",
                    _of_workflow(S.sum(semconv.PAYLOADS_REJECTED, by=(WORKFLOW,))),
                    COUNT,
                    none_of("rejected"),
                    _PAYLOAD,
                ),
                Column("Cap used", _of_workflow(drawn(_WORST)), SHARE, NEAR, _PAYLOAD),
                Column("Room left", _of_workflow(f"min by ({WORKFLOW}) ({room(S, 1)})"), BYTES, ROOM, _PAYLOAD),
                Column("Turns left", _of_workflow(f"min by ({WORKFLOW}) ({turns_left(S)})"), COUNT, FEW, _PAYLOAD),
                Column(
                    "Truncated",
                    _of_agent(
                        share(_of_tools(semconv.RESULTS_TRUNCATED), _of_tools(semconv.RESULT_SIZE, "_count")),
                    ),
                    SHARE,
                    CUT,
                    _RESULTS,
                ),
                Column(
                    "From a part",
                    _of_agent(_of_tools(semconv.ANSWERS_INCOMPLETE)),
                    COUNT,
                    FEW_IS_GOOD,
                    _RESULTS,
                ),
                Column("Failed", _of_agent(share_or_none(_FAILED_CALLS, _CALLS)), SHARE, FAILED, _RESULTS),
                Column("Executions", S.sum(semconv.EXECUTION_TOOL_CALLS, "_count", by=RUN), COUNT, links=_EXECUTIONS),
                Column("Tool calls", S.sum(semconv.EXECUTION_TOOL_CALLS, "_sum", by=RUN), COUNT, links=_EXECUTIONS),
                Column("Tokens", S.sum(semconv.EXECUTION_TOKENS, "_sum", by=RUN), TOKENS, links=_EXECUTIONS),
            ],
            ("Stuck", "Rejected", "Cap used", "Truncated"),
            height=12,
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
            "Worst payload by workflow",
            "Share of the cap that the largest payload of a workflow reached. A line that only rises ends at the cap: "
            "end or compact its executions.",
            [Line(top(drawn(S.quantile(1, semconv.UTILIZATION, by=(WORKFLOW,), over=WINDOW))), legend(WORKFLOW))],
            SHARE,
            steps=NEAR,
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
    description="A line for each workflow and agent: room and turns left, truncated results, failures, calls, tokens.",
    rows=(_GLANCE, _LINES, _OVER_TIME),
    variables={
        "workflow": (semconv.EXECUTION_TOOL_CALLS, semconv.WORKFLOW_NAME),
        "agent": (semconv.EXECUTION_TOOL_CALLS, semconv.AGENT_NAME),
    },
)
