"""The contract of a framework beside another instrumentation: what its class expects, in an order of activation."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from agent_otel.testing.servers.openai import OpenAIServer, tool_results
from tests.contract.cases import BROKEN, CANCELLED
from tests.contract.delivery import Delivery
from tests.contract.suite import QUIET, Contract, Runs
from tests.servers.otlp import OtlpReceiver

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.contract.cases import Json, Record
    from tests.environments import Environment
    from tests.system.coexistence.row import Row

#: What keeps the frameworks from calling home, but lets OpenAI's SDK trace, on which the others build.
_QUIET = {name: value for name, value in QUIET.items() if name != "OPENAI_AGENTS_DISABLE_TRACING"}
_EACH_CASE = (
    *("test_each_call_is_one_record", "test_bytes_are_those_on_the_wire", "test_metrics_count_each_call_once"),
    *("test_each_call_is_timed_once", "test_a_run_is_one_execution"),
)
_EACH_DELIVERY = ("test_bytes_delivered_are_those_on_the_wire", "test_cuts_are_counted_and_nothing_else")


def run(row: Row, order: Sequence[str], environment: Environment, folder: Path) -> Json:
    """Run the cases of the row's class in this order, and return the report with what the model was sent."""
    contract, plan = row.contract, folder / "plan.json"
    with contract.server(contract.decide) as server, OtlpReceiver() as receiver:
        variables = {name: value.format(receiver=receiver.http_endpoint) for name, value in row.variables.items()}
        plan.write_text(
            json.dumps(
                {
                    "order": [step for step in order if step != "ours"] if order[0] == "ours" else order,
                    "switches": row.switches,
                    "provides": row.provides,
                    "distributions": (*row.distributions, row.framework),
                    "agent": contract.agent,
                    "base_url": server.base_url,
                    "cases": {name: case.plan() for name, case in _class_of(row).cases().items()},
                }
            )
        )
        done = environment.run(
            "import runpy; runpy.run_module('tests.system.coexistence.child', run_name='__main__')",
            str(plan),
            env={**_QUIET, **contract.variables, **variables, **({"AGENT_OTEL": "1"} if order[0] == "ours" else {})},
            timeout=2 * contract.seconds,
            check=True,
        )
        report: Json = json.loads(done.stdout.splitlines()[-1])
        for span in (span for case in report["cases"].values() for span in case["spans"]):
            span.update({key: _without(row.endings, span[key]) for key in ("name", "parent") if span[key]})
        return {
            **report,
            "stderr": done.stderr,
            "sent": len(receiver.spans),
            "wire": contract.results(server) if contract.model else {},
            "requests": len(server.requests),
            "result_bytes": sum(map(_result_bytes, server.requests)) if _is_plain(contract, server) else None,
        }


def _without(endings: tuple[str, ...], name: str) -> str:
    return next((name.removesuffix(ending) for ending in endings if name.endswith(ending)), name)


def _is_plain(contract: type[Contract], server: Any) -> bool:
    """Return true where the requests hold results as OpenAI's API has them, and not as texts of the framework."""
    has_own = any("results" in vars(kind) for kind in contract.__mro__ if kind is not Contract)
    return isinstance(server, OpenAIServer) and not has_own


def _result_bytes(request: Json) -> int:
    return sum(len(text.encode()) for text in tool_results(request).values())


def verify(row: Row, alone: Json, report: Json) -> None:
    """Raise AssertionError where the agent differs from ``alone``, or the numbers from what its class expects."""
    contract = _class_of(row)()
    runs = Runs(report, alone, report["wire"], alone["wire"])
    for name in contract.cases():
        beside, without = report["cases"][name], alone["cases"][name]
        for key in ("said", "error", "origin", "messages"):
            assert beside[key] == without[key], f"{name}: {key}"
        for test in (*_EACH_CASE, *(_EACH_DELIVERY if isinstance(contract, Delivery) else ())):
            _hold(contract, test, runs, name)
        for spans in (beside["spans"], without["spans"]) if row.traces else ():
            assert any(span["scope"].startswith(row.traces) for span in spans), f"{name}: {row.peer} has no span"
    assert row.traces or all(side["seen"] or side["sent"] for side in (report, alone)), f"{row.peer} has no span"
    if "async" not in row.lost:  # the case with spans of the tool's own
        contract.test_spans_of_the_tool_are_children_of_its_span(runs)
    assert report["wire"] == alone["wire"]
    assert report["at_start"] == alone["at_start"]
    assert report["errors"] == {}
    assert report["stderr"].count("Traceback") == alone["stderr"].count("Traceback")
    if row.asks:
        _verify_requests(report)


def _hold(contract: Contract, test: str, runs: Runs, name: str) -> None:
    try:
        getattr(contract, test)(runs, name)
    except AssertionError as error:
        raise AssertionError(f"{name}, {test}: {error}") from error


def _verify_requests(report: Json) -> None:
    """Compare the requests that were measured with those that the model's server got."""
    sizes = [
        metric
        for case in report["cases"].values()
        for metric in case["metrics"]
        if metric["name"] == "agent_otel.model.request.size"
    ]
    for part in {metric["attributes"]["part"] for metric in sizes} or {"user"}:
        assert sum(m["count"] for m in sizes if m["attributes"]["part"] == part) == report["requests"], part
    if report["result_bytes"] is not None:
        counted = sum(m["sum"] for m in sizes if m["attributes"]["part"] == "tool_results")
        assert counted == report["result_bytes"]


def _class_of(row: Row) -> type[Contract]:
    """Return the row's class with its common cases, and with the spans that there are beside the other."""
    own: dict[str, Any] = {"row": row, "own": {}, "attributes": {}, "run_span": row.root, "run_spans": row.roots}
    spans = {"span": row.span, "scope": row.scope, "scopes": {}} if row.span else {}
    return type("Beside", (_Beside, row.contract), {**own, **spans})


class _Beside(Contract):
    """What the other's spans and metrics say in their own way."""

    row: ClassVar[Row]

    def on_span(self, record: Record) -> Record:
        """Return what the other's span says of an exception."""
        if record.error == CANCELLED and self.row.ends_cancelled:
            return record
        record = super().on_span(record)
        if self.row.error and record.error == BROKEN:
            record = replace(record, error=self.row.error)
        return replace(record, handed_back=None) if self.row.is_inner and record.error else record

    def test_each_call_is_one_record(self, runs: Runs, case_name: str) -> None:
        """Expect no span of a call that the other does not end."""
        if case_name in self.row.lost:
            assert not any("tool.args_hash" in span["attributes"] for span in runs.on["cases"][case_name]["spans"])
        else:
            super().test_each_call_is_one_record(runs, case_name)

    def test_spans_of_the_tool_are_children_of_its_span(self, runs: Runs) -> None:
        """Expect the other's span between the two where that is inside of this package's."""
        if not self.row.inner:
            super().test_spans_of_the_tool_are_children_of_its_span(runs)
            return
        spans = runs.on["cases"]["async"]["spans"]
        assert {span["parent"] for span in spans if span["name"] in self.inside} == {self.row.inner}

    def test_each_call_is_timed_once(self, runs: Runs, case_name: str) -> None:
        """Expect one duration for each call; another instrumentation's says of errors what it likes."""
        if not self.row.timed:
            super().test_each_call_is_timed_once(runs, case_name)
        named = (m for m in runs.on["cases"][case_name]["metrics"] if m["name"] == "gen_ai.execute_tool.duration")
        assert sum(metric["count"] for metric in named) == len(self.cases()[case_name].records)
