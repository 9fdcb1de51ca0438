"""Agents that answer from a part of a result, and agents that get the rest first, over real SDKs and frameworks."""

from __future__ import annotations

import importlib
import json
from typing import TYPE_CHECKING, Any

from tests.contract.child import LOOP
from tests.contract.script import prompt

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.contract.child import Telemetry

Json = dict[str, Any]

ROWS = [{"id": number, "name": f"row {number}"} for number in range(400)]
CUT_BYTES = 2_000


def search(query: str, cursor: str = "") -> str:
    """Return what the query names: JSON that is cut, a page, or all of a small result."""
    if query == "cut":
        return json.dumps(ROWS)[:CUT_BYTES]
    if query == "page":
        return json.dumps({"items": ROWS[:3], **({} if cursor == "last" else {"next_cursor": "last"})})
    if query == "elsewhere":
        return json.dumps({"items": ROWS[:3], "next": "cursor-of-page-2"})
    return json.dumps(ROWS[:2])


def read(query: str) -> str:
    """Return a small result, or the last page."""
    return json.dumps({"items": ROWS[3:]}) if query == "cursor-of-page-2" else f"All of {query}."


#: By task the calls; the first letter of their ids is the turn. The number of the task is added.
TASKS: dict[str, tuple[tuple[str, str, Mapping[str, str]], ...]] = {
    "whole": (("a1", "search", {"query": "row"}),),
    "cut": (("a1", "search", {"query": "cut"}),),
    "cut and another tool": (("a1", "search", {"query": "cut"}), ("b1", "read", {"query": "row"})),
    "cut beside a whole one": (("a1", "search", {"query": "cut"}), ("a2", "search", {"query": "row"})),
    "cut and narrowed": (("a1", "search", {"query": "cut"}), ("b1", "search", {"query": "cut row 7"})),
    "cut and repeated": (("a1", "search", {"query": "cut"}), ("b1", "search", {"query": "cut"})),
    "a page": (("a1", "search", {"query": "page"}),),
    "all pages": (("a1", "search", {"query": "page"}), ("b1", "search", {"query": "page", "cursor": "last"})),
    "the last page by another tool": (
        ("a1", "search", {"query": "elsewhere"}),
        ("b1", "read", {"query": "cursor-of-page-2"}),
    ),
    "not the last page": (("a1", "search", {"query": "elsewhere"}), ("b1", "read", {"query": "row"})),
    "cut and another question": (("a1", "search", {"query": "cut"}), ("b1", "search", {"query": "row"})),
}


def main(agent_and_mode: str, url: str, telemetry: Telemetry) -> Json:
    """Run each task with an agent of the contract suite, inside a span that stands for another instrumentation's.

    Return what was counted and which events there are, by task.
    """
    from opentelemetry import trace

    name, _, mode = agent_and_mode.partition(",")
    mode, _, setting = mode.partition(" ")
    agent: Any = importlib.import_module(f"tests.contract.agents.{name}")
    report: Json = {}
    for number, (task, calls) in enumerate(TASKS.items()):
        if task == "cut and repeated" and name == "ollama_client":
            continue  # its scripted server tells calls apart by their arguments
        with trace.get_tracer("program").start_as_current_span("agent"):
            # Some of the agents have one thread for all runs, in which no id may be used twice.
            asked = prompt(*((f"{call_id}{number}", tool, dict(some)) for call_id, tool, some in calls))
            arguments = (url, [search, read], asked, setting)
            if mode == "sync":
                agent.run(*arguments)
            else:
                LOOP.run_until_complete((agent.astream if mode == "stream" else agent.arun)(*arguments))
        report[task] = _told(telemetry)
    return report


def _told(telemetry: Telemetry) -> Json:
    """Return what was counted since the last time by tool and reason, and the events by the names of their spans."""
    counted = incomplete(telemetry)
    spans = telemetry.spans()
    events = [[span["name"], each["attributes"]] for span in spans for each in span["events"]]
    return {
        "counted": counted,
        "events": events,
        "children": [span["name"] for span in spans if span["name"].startswith("answer_incomplete")],
        "outcomes": [span["attributes"]["tool.followup"] for span in spans if "tool.followup" in span["attributes"]],
    }


def incomplete(telemetry: Telemetry) -> Json:
    """Return which answers were counted as incomplete since the last time, by tool and reason."""
    return {
        f"{metric['attributes']['gen_ai.tool.name']} {metric['attributes']['reason']}": metric["sum"]
        for metric in telemetry.metrics()
        if metric["name"] == "agent_otel.answers.incomplete" and metric["sum"]
    }
