"""The child process of the contract suite: runs cases with one framework and prints what came of them as JSON.

``python -m tests.contract.child on|off <agent> <base URL> <file>``; the file holds the cases as JSON.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.contract import likeness, toolbox

if TYPE_CHECKING:
    from collections.abc import Callable

Json = dict[str, Any]

# One loop for all cases, because model clients are kept from one run to the next.
LOOP = asyncio.new_event_loop()
asyncio.set_event_loop(LOOP)


class Messages(logging.Handler):
    """What the product logs, and OpenTelemetry, which complains of contexts that are left in the wrong place."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []
        for name in ("agent_otel", "opentelemetry"):
            logging.getLogger(name).addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a message."""
        self.texts.append(record.getMessage())

    def take(self) -> list[str]:
        """What was logged since the last time."""
        taken, self.texts = self.texts, []
        return taken


class Telemetry:
    """Providers that keep what they get in memory; metrics are read as what was added since the last time.

    With ``is_owner`` false, another instrumentation sets the providers and is given `processor` and `reader`.
    """

    def __init__(self, *, is_owner: bool = True) -> None:
        from opentelemetry import metrics, trace
        from opentelemetry.sdk.metrics import Counter, Histogram, MeterProvider, ObservableCounter
        from opentelemetry.sdk.metrics.export import AggregationTemporality, InMemoryMetricReader
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

        delta = AggregationTemporality.DELTA
        self._spans = InMemorySpanExporter()
        self.reader = InMemoryMetricReader(
            preferred_temporality=dict.fromkeys((Counter, Histogram, ObservableCounter), delta)
        )
        self.processor = SimpleSpanProcessor(self._spans)
        if is_owner:
            provider = TracerProvider()
            provider.add_span_processor(self.processor)
            trace.set_tracer_provider(provider)
            metrics.set_meter_provider(MeterProvider([self.reader]))

    def spans(self, *, chats: bool = False) -> list[Json]:
        """Return and forget the ended spans. ``chats`` includes model requests."""
        spans = self._spans.get_finished_spans()
        self._spans.clear()
        names = {span.context.span_id: span.name for span in spans if span.context}
        return [
            {
                "name": span.name,
                "kind": span.kind.name,
                "scope": span.instrumentation_scope.name if span.instrumentation_scope else "",
                "parent": names.get(span.parent.span_id) if span.parent else None,
                "trace": span.context.trace_id if span.context else None,
                "status": span.status.status_code.name,
                "attributes": dict(span.attributes or {}),
                "events": [{"name": e.name, "attributes": dict(e.attributes or {})} for e in span.events],
            }
            for span in spans
            if chats or not (span.kind.name == "CLIENT" and span.name.startswith("chat"))
        ]

    def metrics(self) -> list[Json]:
        """Return what has been recorded since the last time."""
        data = self.reader.get_metrics_data()
        return [
            {
                "name": metric.name,
                "attributes": dict(point.attributes or {}),
                "count": getattr(point, "count", None),
                "sum": getattr(point, "sum", getattr(point, "value", None)),
            }
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
            for point in metric.data.data_points
        ]


def run(agent: Any, base_url: str, case: Json) -> Json:
    """Run one case and say what its caller got."""
    toolbox.lingering = asyncio.Event()
    tools = [getattr(agent, "TOOLS", {}).get(name) or getattr(toolbox, name) for name in case["tools"]]
    given = (base_url, tools, case["prompt"], case["setting"])
    try:
        if case["mode"] == "sync":
            said = agent.run(*given)
        elif case["mode"] == "cancel":
            said = LOOP.run_until_complete(_cancelled(agent.arun(*given)))
        else:
            said = LOOP.run_until_complete((agent.astream if case["mode"] == "stream" else agent.arun)(*given))
    except (Exception, asyncio.CancelledError) as error:
        chain: list[BaseException] = []
        now: BaseException | None = error
        while now is not None:
            chain.append(now)
            now = now.__cause__
        return {
            "said": None,
            "error": f"{type(error).__name__}: {error}",
            "origin": next((depth for depth, link in enumerate(chain) if link is toolbox.BROKEN), None),
        }
    return {"said": said, "error": None, "origin": None}


async def _cancelled(running: Any) -> Any:
    task = asyncio.ensure_future(running)
    await asyncio.wait_for(toolbox.lingering.wait(), 200)
    task.cancel()
    try:
        return await task
    finally:
        await asyncio.sleep(0.05)


#: Functions that are wrapped only while a dispatch policy is set.
WITH_A_POLICY = ("BaseTool._parse_input", "FunctionCall._build_entrypoint_args")


def targets(integrations: dict[str, list[str]]) -> dict[str, Any]:
    """Every function that the matched candidates wrap, as it stands in its class or module."""
    from agent_otel.integrations.registry import INTEGRATIONS

    found = {}
    for integration in INTEGRATIONS:
        sites = integration.whole().sites if integration.name in integrations else ()
        for candidate in (candidate for site in sites for candidate in site.candidates):
            if f"{candidate.module}:{candidate.wraps[0].target}" not in integrations.get(integration.name, ()):
                continue
            for wrap in candidate.wraps:
                if wrap.target in WITH_A_POLICY:
                    continue
                parent: Any = sys.modules[candidate.module]
                *path, attribute = wrap.target.split(".")
                for name in path:
                    parent = getattr(parent, name)
                found[f"{candidate.module}:{wrap.target}"] = (parent, attribute)
    return found


def faces(places: dict[str, Any]) -> dict[str, Json]:
    """What others can see of a function, and do with it."""
    return {target: likeness.of_place(*place) for target, place in places.items()}


def _unlike(before: dict[str, Json], now: dict[str, Json]) -> list[str]:
    """What is not as it was."""
    return [
        f"{target} {key}: {said!r}, not {before[target][key]!r}"
        for target, face in now.items()
        for key, said in face.items()
        if said != before[target][key]
    ]


def depths(places: dict[str, Any], originals: dict[str, Any] | None = None) -> dict[str, Any]:
    """How often each function is wrapped; with the originals, whether the innermost is the very same."""
    from agent_otel.integrations.patching import _MARK

    found: dict[str, Any] = {}
    for target, (parent, attribute) in places.items():
        value, depth = inspect.getattr_static(parent, attribute), 0
        while getattr(value, _MARK, False):
            value, depth = _function(value).__wrapped__, depth + 1
        is_original = originals is None or _function(value) is _function(originals[target])
        found[target] = depth if is_original else f"{depth}, not the original"
    return found


def _function(value: Any) -> Any:
    """The function of a static or class method."""
    return value.__func__ if type(value) in (staticmethod, classmethod) else value


def loaded() -> list[str]:
    """Which modules of ours, and of what we need to wrap, are there."""
    ours = [name for name in sys.modules if name.startswith("agent_otel") or name == "wrapt"]
    return sorted(ours)


def put_in() -> None:
    """Activate: as an instrumentor of OpenTelemetry's, where there are such."""
    instrumentor = _instrumentor()
    if instrumentor is not None:
        instrumentor.instrument()
    else:
        from agent_otel._bootstrap import startup

        startup.activate()


def take_out() -> None:
    """Undo it on the same way."""
    instrumentor = _instrumentor()
    if instrumentor is not None and instrumentor.is_instrumented_by_opentelemetry:
        instrumentor.uninstrument()
    else:
        from agent_otel._bootstrap import startup

        startup.deactivate()


def _instrumentor() -> Any:
    try:
        from agent_otel._bootstrap.otel_instrumentor import AgentOtelInstrumentor
    except ImportError:
        return None
    return AgentOtelInstrumentor()


def on(agent_name: str, base_url: str, plan: Json) -> Json:
    """Switched on from the start, three times over."""
    messages = Messages()
    from agent_otel._internal import errors

    importlib.import_module("agent_otel.auto")
    put_in()
    telemetry = Telemetry()
    agent = importlib.import_module(f"tests.contract.agents.{agent_name}")
    cases = {}
    for name, case in plan["cases"].items():
        telemetry.spans()
        telemetry.metrics()
        cases[name] = run(agent, base_url, case)
        cases[name].update(spans=telemetry.spans(), metrics=telemetry.metrics(), messages=messages.take())
    from agent_otel.telemetry.setup import integrations

    return {
        "cases": cases,
        "depths": depths(targets(plan["integrations"])),
        "integrations": integrations(),
        "errors": dict(errors.errors),
        "broken": [break_core(place, agent, base_url, plan, messages) for place in plan["broken"]],
    }


def break_core(place: str, agent: Any, base_url: str, plan: Json, messages: Messages) -> Json:
    """Make a function of ours raise, and run the first case twice."""
    from agent_otel._internal import errors

    module_name, _, path = place.partition(":")
    parent: Any = importlib.import_module(module_name)
    *owners, attribute = path.split(".")
    for owner in owners:
        parent = getattr(parent, owner)
    original = vars(parent)[attribute]

    def fail(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError(place)

    before = sum(errors.errors.values())
    errors._said.clear()
    setattr(parent, attribute, fail)
    try:
        case = next(iter(plan["cases"].values()))
        results = [run(agent, base_url, case) for _ in range(2)]
    finally:
        setattr(parent, attribute, original)
    return {
        "place": place,
        "results": results,
        "errors": sum(errors.errors.values()) - before,
        "messages": messages.take(),
    }


def off(agent_name: str, base_url: str, plan: Json) -> Json:
    """Switched off, then too old a framework, then switched on late, then taken out again."""
    agent = importlib.import_module(f"tests.contract.agents.{agent_name}")
    report: Json = {"cases": {name: run(agent, base_url, case) for name, case in plan["cases"].items()}}
    report["loaded"] = loaded()
    places = targets(plan["integrations"])
    originals = {target: inspect.getattr_static(*place) for target, place in places.items()}
    before = faces(places)
    telemetry = Telemetry()
    messages = Messages()
    case = next(iter(plan["cases"].values()))

    def step(name: str, prepare: Callable[[], None]) -> None:
        prepare()
        outcome = run(agent, base_url, case)
        report[name] = {
            **outcome,
            "spans": telemetry.spans(),
            "depths": depths(places, originals) if name == "late" else None,
            "same": all(inspect.getattr_static(*places[target]) is originals[target] for target in places),
            "faces": _unlike(before, faces(places)) if name == "late" else None,
            "messages": messages.take(),
        }

    def activate() -> None:
        os.environ["AGENT_OTEL"] = "1"
        importlib.import_module("agent_otel.auto")

    def too_old() -> None:
        sys.path.insert(0, plan["old"])
        importlib.invalidate_caches()
        # The version is read beside the package; SDKs find their own files there, too.
        files = {}
        packages = {place.partition(".")[0].partition(":")[0] for place in places}
        for name, module in list(sys.modules.items()):
            file = vars(module).get("__file__")
            if name.partition(".")[0] in packages and type(file) is str:
                files[module] = file
                end = "/__init__.py" if "__path__" in vars(module) else ".py"
                module.__file__ = f"{plan['old']}/{name.replace('.', '/')}{end}"
        activate()
        for module, file in files.items():
            module.__file__ = file

    def late() -> None:
        take_out()
        sys.path.remove(plan["old"])
        importlib.invalidate_caches()
        put_in()

    if plan["integrations"]:
        step("too old", too_old)
    else:
        activate()
    step("late", late if plan["integrations"] else put_in)
    step("taken out", take_out)
    step("again", put_in)
    return report


if __name__ == "__main__":
    mode, agent_name, base_url, file = sys.argv[1:]
    print(json.dumps({"on": on, "off": off}[mode](agent_name, base_url, json.loads(Path(file).read_text()))))
