"""Calls of hand-written tools at the gate: what they returned, and what their spans and metrics say, as JSON."""

from __future__ import annotations

import asyncio
import json
import os
from typing import TYPE_CHECKING, Any

from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import agent_otel
from agent_otel.core import step_handler
from agent_otel.core.types import Step
from agent_otel.remedies import ToolDeniedError, policy_values, use_policy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

exporter, points = InMemorySpanExporter(), InMemoryMetricReader()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
metrics.set_meter_provider(MeterProvider([points]))
SECRET = os.environ["CANARY"]
calls: list[Any] = []


@agent_otel.tool
def search(query: str, limit: int = 5, *, token: str = "") -> str:
    """Search with a token."""
    return f"{query} {limit} {token == SECRET}"


@agent_otel.tool
async def fetch(query: str, token: str = "") -> str:
    """Fetch with a token."""
    return f"{query} {token == SECRET}"


@agent_otel.tool
def plain(query: str) -> dict[str, str]:
    """Take no token."""
    return {"query": query}


@agent_otel.tool
def anything(*args: str, **more: str) -> str:
    """Take all arguments."""
    return f"{args} {more.get('token') == SECRET}"


@agent_otel.tool
def lines(query: str, token: str = "") -> Iterator[str]:
    """Yield lines."""
    yield query
    yield str(token == SECRET)


@agent_otel.tool
def loud(query: str, token: str = "") -> str:
    """Repeat the token."""
    return f"{query} {token}"


@agent_otel.tool
def broken(query: str, token: str = "") -> str:
    """Repeat the token in an exception."""
    raise ValueError(f"{query} {token}")


def secret_of(call: agent_otel.remedies.DispatchedCall) -> str:
    """Return the secret, and remember for which call."""
    calls.append([call.tool, call.arguments, call.agent, call.workflow, call.execution, call.attempt])
    return SECRET


async def later(call: Any) -> bool:
    """Approve all queries but one."""
    await asyncio.sleep(0)
    return bool(call.arguments.get("query") != "no")


def fails(_: Any) -> bool:
    """Fail."""
    raise KeyError(SECRET)


def policy(mode: str = "enforce", **more: Any) -> None:
    use_policy({"mode": mode, "rules": [{"tools": "*", **more}]})


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except ToolDeniedError as error:
        return ["raised", json.loads(str(error))]
    except ValueError as error:
        return ["ValueError", str(error)]


def by_hand(arguments: object) -> Any:
    """Return what a loop gives the model."""
    with agent_otel.tool_call("search", arguments) as call:
        return call.refused() or call.result(search.__wrapped__(**call.arguments))  # type: ignore[attr-defined]


async def in_a_loop() -> list[Any]:
    """Call a sync tool and an async one inside a running event loop."""
    return [search("no"), search("yes"), await fetch("no"), await fetch("yes")]


async def by_hand_later() -> Any:
    """Do the same as `by_hand` in an event loop."""
    with agent_otel.tool_call("search", {"query": "no"}) as call:
        return await call.arefused()


CASES: dict[str, Callable[[], Any]] = {}
INJECT: dict[str, Any] = {"inject": {"token": {"call": secret_of}}}


def case(name: str, call: Callable[[], Any], **more: Any) -> None:
    def run() -> Any:
        policy(**more)
        return outcome(call)

    CASES[name] = run


CASES["no policy yet"] = lambda: outcome(lambda: search("x"))
case("no rule", lambda: search("x"), tools="another")
case("injected", lambda: [search("x"), search("x", 7), search(query="x", token=SECRET[::-1]), anything("a")], **INJECT)
case("injected, async", lambda: asyncio.run(fetch("x")), **INJECT)
case("no such parameter", lambda: plain("x"), **INJECT)
case("a generator", lambda: list(lines("x")), **INJECT)
case("a generator that is denied", lambda: list(lines("x")), require={"query": "y"})
case("by hand", lambda: [by_hand({"query": "x"}), by_hand('{"query": "x", "token": "mine"}')], **INJECT)
case(
    "inside an argument",
    lambda: [
        by_hand({"query": [{"owner": owner, "force": force}]}) for owner, force in [("a", 0), ("b", 0), ("a", "yes")]
    ],
    require={"query": {"owner": "a"}},
    forbid={"query": {"force": True}},
)
case("by hand, unreadable", lambda: [by_hand("[1]"), by_hand('{"query": 1, "query": 2}'), by_hand(7)], **INJECT)
case("from the environment", lambda: search("x"), inject={"token": {"env": "CANARY"}})
case("not in the environment", lambda: search("x"), inject={"token": {"env": "NOT_SET"}})
case("not in the context", lambda: search("x"), inject={"token": {"context": "token"}})
case("a source that fails", lambda: search("x"), inject={"token": {"call": fails}})
case("an approval that fails", lambda: search("x"), approve=fails)
case("an approval that is not there", lambda: search("x"), approve="no_such_module:function")
case("approved", lambda: [search("no"), search("yes")], approve=later)
case("approved in a loop", lambda: asyncio.run(in_a_loop()), approve=later)
case("approved by hand, async", lambda: asyncio.run(by_hand_later()), approve=later)
case("a result with the secret", lambda: loud("x"), **INJECT)
case("an exception with the secret", lambda: broken("x"), **INJECT)
case("monitor", lambda: [search("no"), search("yes")], mode="monitor", approve=later, **INJECT)


def _from_the_context() -> Any:
    policy(inject={"token": {"context": "token"}})
    with policy_values(token=SECRET[::-1]), policy_values(token=SECRET):
        return search("x")


def _named() -> Any:
    use_policy({"rules": [{"workflow": "triage", "agent": "bot", "tools": "search", **INJECT}]})
    calls.clear()
    with agent_otel.execution("run-1", workflow="triage", agent="bot"):
        answers = [search("x")]
    with agent_otel.execution("run-2", workflow="triage", agent="other"):
        answers.append(search("x"))
    return [*answers, *calls]


def _retried() -> Any:
    use_policy({"rules": [{"workflow": "flow", "tools": "search", **INJECT}]})
    calls.clear()
    step = step_handler.begin_step(Step("mine", "activity", "flow", "run-3", attempt=2))
    answer = search("x")
    assert step is not None
    step.leave()
    return [answer, *calls]


CASES |= {"from the context": _from_the_context, "of a workflow": _named, "retried": _retried}


def measured(name: str) -> Any:
    exporter.clear()
    found = CASES[name]()
    spans = []
    for span in exporter.get_finished_spans():
        attributes = dict(span.attributes or {})
        if "tool.args_hash" not in attributes:
            continue  # the span around the execution
        spans.append(
            {
                "attributes": attributes,
                "events": [[event.name, dict(event.attributes or {})] for event in span.events],
                "status": span.status.description,
            }
        )
    return {"found": found, "spans": spans}


report = {name: measured(name) for name in CASES if not os.environ.get("ONLY") or name == os.environ["ONLY"]}
data = points.get_metrics_data()
print(json.dumps({"cases": report, "metrics": "" if data is None else data.to_json()}, default=repr))
