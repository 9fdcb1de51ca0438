"""Where a click leads: from a tool to its payloads, from a workflow to its executions, from a tile to its alert."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from agent_otel import semconv

if TYPE_CHECKING:
    from collections.abc import Mapping

AGENTS = "agent-otel-agents"
TOOLS = "agent-otel-tools"
PAYLOAD = "agent-otel-payload"
EXECUTIONS = "agent-otel-executions"
HEALTH = "agent-otel-health"

#: Names of the variables that hold a data source of traces; both may be left empty.
TEMPO = "traces"
JAEGER = "jaeger"


@dataclass(frozen=True)
class Link:
    """A link that a value of a panel offers."""

    title: str
    url: str


def to_dashboard(uid: str, title: str, **values: str) -> Link:
    """Lead to a dashboard over the same time, with some variables set; `keep_variables` adds all others."""
    given = "".join(f"var-{name}={value}&" for name, value in values.items())
    return Link(title, f"/d/{uid}?{given}${{__url_time_range}}")


def keep_variables(node: Any, own: tuple[str, ...], theirs: Mapping[str, tuple[str, ...]]) -> None:
    """Make each link to a dashboard keep the variables that both have and that the link does not set.

    ``own`` are the variables of the dashboard that ``node`` is of, ``theirs`` those of each dashboard, by its uid.
    """
    if isinstance(node, list):
        for item in node:
            keep_variables(item, own, theirs)
    if not isinstance(node, dict):
        return
    path, _, query = str(node.get("url", "")).partition("?")
    if path.startswith("/d/"):
        shared = [name for name in own if name in theirs[path.removeprefix("/d/")] and f"var-{name}=" not in query]
        node["url"] = f"{path}?{''.join(f'${{{name}:queryparam}}&' for name in shared)}{query}"
    for value in node.values():
        keep_variables(value, own, theirs)


def to_alert(name: str) -> Link:
    """Lead to an alert in Grafana, which shows its runbook; an export with ``--runbook-url`` leads to the runbook."""
    return Link(f"Runbook: {name}", f"/alerting/list?search={name}")


def to_tempo(title: str, query: str) -> Link:
    """Lead to the traces that a TraceQL query finds in Tempo."""
    return _to_explore(f"{title} in Tempo", TEMPO, "tempo", {"queryType": "traceql", "query": query, "limit": 20})


def to_jaeger(title: str, **search: str) -> Link:
    """Lead to the traces that Jaeger finds by ``operation`` or ``tags``, where the service is still to be chosen."""
    return _to_explore(f"{title} in Jaeger", JAEGER, "jaeger", {"queryType": "search", **search})


def _to_explore(title: str, variable: str, kind: str, query: dict[str, object]) -> Link:
    source = f"${{{variable}}}"
    pane = {
        "datasource": source,
        "queries": [{"refId": "A", "datasource": {"type": kind, "uid": source}, **query}],
        "range": {"from": "${__from}", "to": "${__to}"},
    }
    panes = quote(json.dumps({"traces": pane}, separators=(",", ":")), safe="${}:,[]")
    return Link(title, f"/explore?schemaVersion=1&panes={panes}")


def field(name: str) -> str:
    """Return the value of a label where a link starts, in a graph or a bar gauge."""
    return f"${{__field.labels.{name}:percentencode}}"


def cell(column: str) -> str:
    """Return the value of another column of the row where a link starts; its name is one word."""
    return f"${{__data.fields.{column}:percentencode}}"


def of_agent(name: str) -> tuple[Link, ...]:
    """Lead from an agent to its executions."""
    return (to_dashboard(EXECUTIONS, "Its executions", agent=name),)


def of_tool(name: str) -> tuple[Link, ...]:
    """Lead from a tool to the payloads that carry its results, and to the traces of its calls."""
    span = f'span.{semconv.TOOL_NAME} = "{name}"'
    return (
        to_dashboard(PAYLOAD, "Payloads that carry this tool's results", tool=name),
        to_dashboard(TOOLS, "This tool alone", tool=name),
        to_tempo("Its calls", f"{{ {span} }} | select(span.{semconv.RESULT_BYTES})"),
        to_jaeger("Its calls", operation=f"{semconv.EXECUTE_TOOL} {name}"),
    )


def of_workflow(name: str) -> tuple[Link, ...]:
    """Lead from a workflow to its executions, and to the traces of its steps."""
    span = f'span.{semconv.WORKFLOW_NAME} = "{name}"'
    size = f"span.{semconv.PAYLOAD_BYTES} > 0"
    return (
        to_dashboard(EXECUTIONS, "Its executions", workflow=name),
        to_dashboard(PAYLOAD, "This workflow alone", workflow=name),
        to_tempo("Its steps", f"{{ {span} && {size} }} | select(span.{semconv.PAYLOAD_UTILIZATION})"),
        to_jaeger("Its steps", tags=f'{semconv.WORKFLOW_NAME}="{name}"'),
    )
