"""The contract that every integration keeps: one base class with all cases, a few lines for each integration.

An integration runs in two child processes, in an environment with its real framework, through its own agent loop,
against a scripted model over real HTTP: one with the switch on from the start, one with it off and then late. What is
expected of a case stands in it, by hand; what the model saw is taken from the wire.
"""

# ruff: noqa: D102 - a test's name and body say it
from __future__ import annotations

import itertools
import json
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import pytest

from agent_otel import semconv
from agent_otel.integrations.registry import INTEGRATIONS
from agent_otel.semconv.types import GAUGE
from agent_otel.testing.servers.openai import OpenAIServer
from tests.contract import script
from tests.contract.cases import BROKEN, CANCELLED, KEY, WIRE, Case, Cut, Json, Record, failed, looked_up
from tests.contract.toolbox import LOOKUP_BYTES
from tests.rows import each_row

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agent_otel.testing.servers.openai import Reply
    from agent_otel.testing.servers.scripted import ScriptedServer
    from tests.environments import Environment

#: Functions of the core that are made to raise, one after the other.
CORE = (
    "agent_otel.core.tool_invocation:ToolInvocation.__init__",
    "agent_otel.core.tool_invocation:ToolInvocation.read",
    "agent_otel.core.tool_visit:finish",
    "agent_otel.core.tool_invocation:size",
    "agent_otel.core.tool_invocation:digest_arguments",
    "agent_otel.telemetry.spans:open_tool_span",
)


@dataclass
class Runs:
    """What the two children reported, and what the model was sent meanwhile, by call id."""

    on: Json
    off: Json
    wire: Json
    wire_off: Json
    requests: list[Json] = field(default_factory=list)


class Contract:
    """All cases. A subclass names the agent under ``agents/``, the environment and what is matched in it."""

    agent: ClassVar[str]
    environment: ClassVar[str]
    #: Integration -> ``module:first target`` of the candidate that must match; nothing else may.
    integrations: ClassVar[dict[str, list[str]]]
    #: The agent's name on the records of its own tools.
    agent_name: ClassVar[str | None] = None
    #: Attributes that every record's span has besides.
    attributes: ClassVar[Json] = {}
    span: ClassVar[str] = "execute_tool {tool}"
    scope: ClassVar[str] = "agent_otel"
    #: Scopes of other cases' spans: of calls for which the framework does not get as far as its own span.
    scopes: ClassVar[dict[str, str]] = {}
    modes: ClassVar[tuple[str, ...]] = ("sync", "async", "stream")
    #: Where the tool's exception stands in what the agent's caller gets; None when it becomes text for the model.
    origin: ClassVar[int | None] = 0
    #: What the agent says in the end after an error that it does not raise.
    said_of_errors: ClassVar[str | None] = "done"
    #: What ``error.type`` says of the toolbox's exception.
    flagged: ClassVar[str] = BROKEN
    #: Whether there is an outer function, which hands back.
    outer: ClassVar[bool] = True
    #: Whether the text that the framework makes of an exception is read without an outer function.
    reads_failures: ClassVar[bool] = False
    #: Spans that others open right inside of the tool's: here that of the tool itself.
    inside: ClassVar[tuple[str, ...]] = ("looking up",)
    #: Variables of both children.
    variables: ClassVar[dict[str, str]] = {}
    #: Seconds that a child may take.
    seconds: ClassVar[float] = 60
    #: What the framework loads itself of what we need.
    loads: ClassVar[tuple[str, ...]] = ()
    #: Whether the agent imports us itself, and names its executions.
    imports_us: ClassVar[bool] = False
    #: Whether the framework knows the ids by which the model asks for calls.
    knows_ids: ClassVar[bool] = True
    #: Whether the model gets the results, over the wire.
    model: ClassVar[bool] = True
    #: The name of the span of the agent's run where no span is open; None where the framework opens one itself.
    run_span: ClassVar[str | None] = None
    #: The names of the spans of other cases' runs, empty for none.
    run_spans: ClassVar[dict[str, str]] = {}
    #: Whether the framework has agents whose runs are executions.
    has_runs: ClassVar[bool] = False
    #: Cases of calls outside of a run, which nothing names.
    unnamed: ClassVar[tuple[str, ...]] = ()
    #: Calls that executions count and that have no record, by case: those that wait. Those of no run are negative.
    waiting: ClassVar[dict[str, int]] = {}
    own: ClassVar[dict[str, Case]] = {}
    #: The scripted model that it talks to.
    server: ClassVar[type[OpenAIServer | ScriptedServer]] = OpenAIServer
    #: Cases whose results the framework hands on in another form than the tool's, which it does not tell.
    reformatted: ClassVar[tuple[str, ...]] = ()
    #: True where the texts of failures are known to be measured and found in requests.
    tells_failures: ClassVar[bool] = False
    #: Cuts that only children of the tool's span tell of, by case.
    cuts: ClassVar[dict[str, tuple[Cut, ...]]] = {}

    @classmethod
    def cases(cls) -> dict[str, Case]:
        """Return the cases of this integration; the first one also serves where any call will do."""
        raises: Json = {
            "error": cls.flagged,
            "said": cls.said_of_errors if cls.origin is None else None,
            "origin": cls.origin,
        }
        if cls.origin is not None:
            raises["unsent"] = ("call_5", "call_6")
        found = {
            "async": looked_up("lookup_later", "call_1"),
            "sync in async": looked_up("lookup", "call_2"),
            "sync": looked_up("lookup", "call_3", "sync"),
            "stream": looked_up("lookup", "call_4", "stream"),
            "raises in async": failed("broken_later", "call_5", **raises),
            "raises in sync": failed("broken", "call_6", "sync", **raises),
            "parallel": Case(
                ("lookup_later", "big"),
                (("call_7", "lookup_later", KEY), ("call_8", "big", {"n": 4321})),
                (Record("lookup_later", "call_7", LOOKUP_BYTES), Record("big", "call_8", 4321, args=10)),
            ),
            "cancelled": failed("linger", "call_9", "cancel", CANCELLED, said=None, unsent=("call_9",)),
            "unicode": Case(("big",), (("call_10", "big", {"n": 0}),), (Record("big", "call_10", 0, args=7),)),
            **cls.own,
        }
        return {name: case for name, case in found.items() if case.mode in (*cls.modes, "cancel")}

    @staticmethod
    def decide(request: Json) -> Reply:
        """Return what the model says to a request."""
        return script.decide(request)

    @classmethod
    def results(cls, server: OpenAIServer | ScriptedServer) -> dict[str, str]:
        """Return what the model was sent of each call's result."""
        return server.tool_results()

    @classmethod
    def run_children(cls, environment: Environment, folder: Path) -> Runs:
        """Run both children against a scripted model each."""
        old = _distribution_info(folder / "old", cls.integrations, "0.0.1")
        plan = folder / "plan.json"
        cases = {name: case.plan() for name, case in cls.cases().items()}
        plan.write_text(json.dumps({"cases": cases, "integrations": cls.integrations, "broken": CORE, "old": str(old)}))
        reports, servers = {}, {}
        for mode in ("off", "on"):
            with cls.server(cls.decide) as server:
                done = environment.run(
                    "import runpy; runpy.run_module('tests.contract.child', run_name='__main__')",
                    mode,
                    cls.agent,
                    server.base_url,
                    str(plan),
                    env={**QUIET, **cls.variables, **({"AGENT_OTEL": "1"} if mode == "on" else {})},
                    timeout=cls.seconds,
                    check=True,
                )
                reports[mode], servers[mode] = json.loads(done.stdout.splitlines()[-1]), server
        return Runs(
            reports["on"],
            reports["off"],
            cls.results(servers["on"]),
            cls.results(servers["off"]),
            servers["on"].requests,
        )

    # --- every case ---------------------------------------------------------------------------------------------

    def test_caller_and_model_get_what_they_get_without_us(self, runs: Runs, case_name: str) -> None:
        case, with_us, without = self.cases()[case_name], runs.on["cases"][case_name], runs.off["cases"][case_name]
        if self.model or case.said != "done":
            assert with_us["said"] == case.said, with_us["error"]
        else:
            assert len(with_us["said"].encode()) == sum(self.expected(r, runs).produced or 0 for r in case.records)
        assert [with_us[key] for key in ("said", "error", "origin")] == list(without.values())
        assert with_us["origin"] == case.origin
        for call_id, _, _ in case.calls:
            sent = self.model and call_id not in case.unsent
            assert (call_id in runs.wire) == sent
            texts = [wire.get(call_id) for wire in (runs.wire, runs.wire_off)]
            # What stands in place of a result may name a file, another one each time.
            with_us, without = [text and len(text) for text in texts] if case_name in self.cuts else texts
            assert with_us == without

    @pytest.mark.shows("001.attributes")
    def test_each_call_is_one_record(self, runs: Runs, case_name: str) -> None:
        case, spans = self.cases()[case_name], runs.on["cases"][case_name]["spans"]
        found = [span for span in spans if "tool.args_hash" in span["attributes"]]
        read = sorted((self.read(span["attributes"]) for span in found), key=str)
        expected = (self.on_span(self.expected(record, runs)) for record in case.records)
        assert read == sorted(expected, key=str)
        for span in found:
            name = self.span if span["scope"] == self.scope else "execute_tool {tool}"
            assert span["name"] == name.format(tool=span["attributes"]["tool.name"])
            assert span["scope"] == self.scopes.get(case_name, self.scope)
            assert span["attributes"].items() >= self.attributes.items()
            if span["scope"] == "agent_otel":
                assert (span["status"] == "ERROR") == ("error.type" in span["attributes"])
        beside = [span["name"] for span in spans if span["scope"] == "agent_otel" and span not in found]
        beside = [name for name in beside if name != self.root(case_name)]
        answers = {name for name in beside if name.startswith("answer_incomplete ")}
        cut_tools = {cut.tool for cut in self.cuts_told(case_name)} | {one.tool for one in case.records if one.cut}
        assert answers <= {f"answer_incomplete {tool}" for tool in cut_tools}
        left = sorted(name for name in beside if name not in answers)
        assert left == sorted(f"tool_result_truncated {cut.tool}" for cut in self.cuts_told(case_name))

    def test_a_run_is_one_execution(self, runs: Runs, case_name: str) -> None:
        """Nested agents belong to the outermost run."""
        found = [m for m in runs.on["cases"][case_name]["metrics"] if m["name"] == "agent_otel.execution.tool_calls"]
        counted = len(self.cases()[case_name].records) + self.waiting.get(case_name, 0)
        calls = counted if self.has_runs or self.imports_us else 0
        assert (sum(m["count"] for m in found), sum(m["sum"] for m in found)) == (int(calls > 0), calls)

    def test_a_run_has_one_agent_and_one_workflow(self, runs: Runs, case_name: str) -> None:
        """All of its series and spans have the same two names."""
        found = runs.on["cases"][case_name]
        moved = [(m["name"], m["attributes"]) for m in found["metrics"] if m["sum"] and _of_run(m["name"])]
        spans = [(span["name"], span["attributes"]) for span in found["spans"] if span["scope"] == "agent_otel"]
        names: dict[tuple[str | None, str | None], list[str]] = {}
        for name, labels in (*moved, *spans):
            names.setdefault((labels.get("gen_ai.agent.name"), labels.get("gen_ai.workflow.name")), []).append(name)
        if self.has_runs or not self.agent_name:
            assert len(names) <= 1, str(names)
        if self.agent_name and self.has_runs and case_name not in (*self.run_spans, *self.unnamed):
            assert all(all(pair) for pair in names), "a team has its own name"
            if case_name == next(iter(self.cases())):
                assert set(names) == {(self.agent_name, self.agent_name)}

    def test_a_run_is_one_trace(self, runs: Runs, case_name: str) -> None:
        spans, root = runs.on["cases"][case_name]["spans"], self.root(case_name)
        run = [span for span in spans if span["name"].startswith("invoke_") and span["scope"] == "agent_otel"]
        assert [(span["name"], span["parent"]) for span in run] == ([(root, None)] if root else [])
        if self.has_runs or self.imports_us:
            assert len({span["trace"] for span in spans if span["scope"] == "agent_otel"}) <= 1

    @classmethod
    def root(cls, case_name: str) -> str | None:
        """Return the name of the span around a run."""
        return cls.run_spans.get(case_name, cls.run_span) or ("invoke_workflow" if cls.imports_us else None)

    def cuts_told(self, case_name: str) -> list[Cut]:
        """Return the cuts that a child of a tool's span tells of."""
        records = self.cases()[case_name].records
        behind = [Cut(r.tool, *r.cut, r.handed_back or 0) for r in records if r.cut and r.cut[0] == "framework"]
        return [*behind, *self.cuts.get(case_name, ())]

    def expected(self, record: Record, runs: Runs) -> Record:
        """Return a record with what only this integration or the wire can say."""
        if record.handed_back == WIRE:
            is_read = self.outer or self.reads_failures
            told = len(runs.wire[str(record.call_id)].encode()) if is_read else None
            record = replace(record, handed_back=told)
        call_id = record.call_id if self.knows_ids else None
        agent = self.agent_name if record.agent is None else record.agent
        return replace(record, call_id=call_id, agent=(self.agent_name and agent) or None)

    def read(self, attributes: Json) -> Record:
        """Return what a span says of its call."""
        return _read(attributes)

    def on_span(self, record: Record) -> Record:
        """Return what a record's span says, where it is another's, who ends it with words of its own.

        A call that is cancelled has not failed there.
        """
        is_foreign = self.scope != "agent_otel" and record.error == CANCELLED
        return replace(record, error=None) if is_foreign else record

    def test_spans_of_the_tool_are_children_of_its_span(self, runs: Runs) -> None:
        parents = {
            span["parent"]
            for case in ("async", "parallel")
            for span in runs.on["cases"].get(case, {"spans": ()})["spans"]
            if span["name"] in self.inside
        }
        assert parents == {self.span.format(tool="lookup_later") for _ in self.inside}

    def test_bytes_are_those_on_the_wire(self, runs: Runs, case_name: str) -> None:
        for span in runs.on["cases"][case_name]["spans"]:
            attributes = span["attributes"]
            is_told = case_name not in self.cuts and case_name not in self.reformatted
            text = runs.wire.get(attributes.get("gen_ai.tool.call.id")) if is_told else None
            size = attributes.get("tool.result.handed_back_bytes", attributes.get("tool.result.bytes"))
            if "tool.args_hash" in attributes and text is not None and size is not None:
                assert size == len(text.encode())

    def test_metrics_count_each_call_once(self, runs: Runs, case_name: str) -> None:
        records = [self.expected(record, runs) for record in self.cases()[case_name].records]
        metrics = runs.on["cases"][case_name]["metrics"]
        sizes = [metric for metric in metrics if not metric["attributes"].get("error.type")]
        assert _sums(sizes, "agent_otel.tool.result.size") == +_total(records, "produced")
        failures = [metric for metric in metrics if metric["attributes"].get("error.type")]
        # The text about a cancelled call is measured only where a framework hands it back.
        failed = (record for record in records if record.error)
        broken = {record.tool for record in failed if record.error != CANCELLED or record.handed_back is not None}
        measured = _sums(failures, "agent_otel.tool.result.size").keys()
        assert measured == broken if self.tells_failures else measured <= broken
        assert _sums(metrics, "agent_otel.tool.args.size") == _total(records, "args")

    @pytest.mark.shows("001.attributes")
    def test_each_call_is_timed_once(self, runs: Runs, case_name: str) -> None:
        records = [self.expected(record, runs) for record in self.cases()[case_name].records]
        metrics = runs.on["cases"][case_name]["metrics"]
        calls = [m for m in metrics if m["name"] == "gen_ai.execute_tool.duration"]
        assert sum(m["count"] for m in calls) == len(records)
        errors = Counter(m["attributes"]["error.type"] for m in calls if m["attributes"].get("error.type"))
        assert set(errors) == {record.error for record in records if record.error}

    def test_nothing_is_said_or_swallowed(self, runs: Runs, case_name: str) -> None:
        assert runs.on["cases"][case_name]["messages"] == []

    def said(self, runs: Runs) -> str | None:
        """What the first case says, without us."""
        said: str | None = next(iter(runs.off["cases"].values()))["said"]
        return said

    # --- how it is put in and taken out ---------------------------------------------------------------------------

    def test_nothing_of_ours_is_loaded_while_the_switch_is_off(self, runs: Runs) -> None:
        """Expect what reads the switch on Python 3.15 at most."""
        if not self.imports_us:
            assert [name for name in runs.off["loaded"] if name != "agent_otel_startup"] == [*self.loads]

    def test_three_activations_wrap_once(self, runs: Runs) -> None:
        for name, targets in self.integrations.items():
            assert set(targets) <= set(runs.on["integrations"][name])
        assert set(runs.on["depths"].values()) <= {1}
        assert bool(runs.on["depths"]) == bool(self.integrations)
        assert runs.on["errors"] == {}

    def test_too_old_a_framework_is_left_alone_with_one_warning(self, runs: Runs) -> None:
        if not self.integrations:
            return
        step = runs.off["too old"]
        assert step["said"] == self.said(runs)
        assert step["same"]
        if not self.imports_us:  # the model's SDK, whose requests show the calls, and MCP servers are instrumented
            tools = (span for span in step["spans"] if not span["name"].startswith("tools/call "))
            assert [s for s in tools if _HASH in s["attributes"] and _SEEN_AT not in s["attributes"]] == []
        for distribution in _distributions(self.integrations):
            (said,) = (text for text in step["messages"] if text.startswith(f"{distribution} 0.0.1 "))
            assert "is not instrumented" in said

    def test_late_activation_wraps_what_is_there(self, runs: Runs) -> None:
        step = runs.off["late"]
        assert step["said"] == self.said(runs)
        assert set(step["depths"].values()) <= {1}
        assert step["same"] == (not self.integrations)
        assert [span["name"] for span in step["spans"] if "tool.args_hash" in span["attributes"]] == [
            self.span.format(tool=next(iter(self.cases().values())).tools[0])
        ]
        assert step["messages"] == []

    def test_functions_look_the_same_wrapped(self, runs: Runs) -> None:
        """Copying, pickling, inspecting, subclassing: see `tests.contract.likeness`."""
        assert runs.off["late"]["faces"] == []

    def test_taking_out_restores_the_originals_and_it_can_be_put_in_again(self, runs: Runs) -> None:
        step = runs.off["taken out"]
        assert step["said"] == self.said(runs)
        assert step["same"]
        assert [span for span in step["spans"] if "tool.args_hash" in span["attributes"]] == []
        again = [span for span in runs.off["again"]["spans"] if "tool.args_hash" in span["attributes"]]
        assert len(again) == 1

    @each_row("place", CORE)
    def test_our_own_failure_is_not_the_tool_s(self, runs: Runs, place: str) -> None:
        (broken,) = (broken for broken in runs.on["broken"] if broken["place"] == place)
        assert [result["said"] for result in broken["results"]] == [self.said(runs)] * 2
        assert broken["errors"] >= 2, "two calls, so at least two failures are counted"
        assert len(broken["messages"]) == len(set(broken["messages"])) >= 1, "logged once per place"

    def test_without_the_library_nothing_is_said(
        self, environment: Callable[[str], Environment], tmp_path: Path
    ) -> None:
        modules = self.shadow(tmp_path)
        done = environment("bare").run(
            f"""
            import importlib, sys
            for module in {modules}:
                try:
                    importlib.import_module(module)
                except ModuleNotFoundError as error:
                    assert f"{{module}}.".startswith(f"{{error.name}}.")
                    sys.modules.pop(module.split(".")[0], None)  # a namespace that others have a part of
                else:
                    raise AssertionError(module)
            sys.path.insert(0, {str(tmp_path)!r})  # the program has modules of these names
            for module in {modules}:
                importlib.import_module(module)
            """,
            env={"AGENT_OTEL": "1"},
            check=True,
        )
        assert done.stdout + done.stderr == ""

    def test_a_shadow_of_the_library_gets_one_warning(
        self, environment: Callable[[str], Environment], tmp_path: Path
    ) -> None:
        modules = self.shadow(tmp_path)
        done = environment(self.environment).run(
            f"""
            import importlib, sys
            sys.path.insert(0, {str(tmp_path)!r})
            for module in {modules}:
                sys.modules.pop(module.split(".")[0], None)  # a namespace that is there from the start
            for module in {modules}:
                importlib.import_module(module)
            print("works")
            """,
            env={"AGENT_OTEL": "1", **self.variables},
            check=True,
        )
        assert done.stdout == "works\n"
        warned = sorted(line.split()[0] for line in done.stderr.splitlines() if "is not instrumented" in line)
        assert warned == sorted(_distributions(self.integrations))

    def shadow(self, folder: Path) -> list[str]:
        """Put empty modules with the names of the wrapped ones into a folder; their names."""
        targets = itertools.chain.from_iterable(self.integrations.values())
        modules = sorted({target.partition(":")[0] for target in targets})
        for module in modules:
            path = folder.joinpath(*module.split("."))
            path.parent.mkdir(parents=True, exist_ok=True)
            for package in path.relative_to(folder).parents[:-1]:
                (folder / package / "__init__.py").touch()
            path.with_suffix(".py").touch()
        return modules


_HASH, _SEEN_AT = "tool.args_hash", "tool.result.seen_at"
QUIET = {
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "LANGSMITH_TRACING": "false",
    "FASTMCP_CHECK_FOR_UPDATES": "off",
    "CREWAI_DISABLE_TELEMETRY": "true",
}
"""What keeps the frameworks from calling home."""


def _read(attributes: Json) -> Record:
    layer = attributes.get("tool.result.truncation.layer")
    assert attributes["gen_ai.tool.name"] == attributes["tool.name"]
    assert attributes["gen_ai.operation.name"] == "execute_tool"
    assert ("tool.result.truncated" in attributes) == ("tool.result.bytes" in attributes)
    assert attributes.get("tool.result.truncated", False) == (layer is not None)
    return Record(
        attributes["tool.name"],
        attributes.get("gen_ai.tool.call.id"),
        attributes.get("tool.result.bytes"),
        attributes.get("tool.result.handed_back_bytes"),
        attributes.get("tool.result.structured_bytes"),
        attributes.get("error.type"),
        (layer, attributes["tool.result.truncation.reason"]) if layer else None,
        attributes["tool.args.bytes"],
        attributes.get("agent_otel.sub_agent", attributes.get("gen_ai.agent.name")),
    )


def _of_run(name: str) -> bool:
    """Return true for a metric of ours that a run moves, and that does not keep its value after it."""
    metric = semconv.METRICS.get(name) if name.startswith("agent_otel.") else None
    return metric is not None and metric.is_of_run and metric.kind != GAUGE


def _sums(metrics: list[Json], name: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for metric in metrics:
        if metric["name"] == name:
            found[metric["attributes"]["gen_ai.tool.name"]] += metric["sum"]
    return +found


def _total(records: list[Record], station: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for record in records:
        found[record.tool] += getattr(record, station) or 0
    return found


def _distributions(integrations: dict[str, list[str]]) -> set[str]:
    return {integration.distribution for integration in INTEGRATIONS if integration.name in integrations}


def _distribution_info(folder: Path, integrations: dict[str, list[str]], version: str) -> Path:
    """Make a folder that claims these distributions to be of this version, when it stands in front."""
    for distribution in _distributions(integrations):
        info = folder / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True, exist_ok=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
    return folder
