"""A recording of one test: what the agents did, and assertions about it.

A failure names the tool, the bytes, the layer and what to do. The package measures into memory for the time of the
test, with fresh state and without a collector. The program's own providers get the spans and metrics as they do in
production. No provider is built from ``OTEL_*`` variables, and nothing listens on a port.
"""

from __future__ import annotations

import contextlib
import functools
import json
import re
import uuid
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from opentelemetry import metrics, trace

from agent_otel import semconv, settings
from agent_otel._bootstrap import startup
from agent_otel._internal import __version__, env
from agent_otel.caps import payload_caps
from agent_otel.core import execution_context, switches, tool_names
from agent_otel.core.executions import executions
from agent_otel.core.payload_cap import cap_for
from agent_otel.core.thread.fragments import round_counts
from agent_otel.core.thread.tool_definitions import definitions, drift
from agent_otel.integrations import preload
from agent_otel.measure.forecast import turns_to_cap
from agent_otel.semconv.types import COUNTER
from agent_otel.settings.kinds import SIZE
from agent_otel.telemetry import setup
from agent_otel.telemetry.sinks import Series, Sink
from agent_otel.telemetry.sinks.otel import OTelSink

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from agent_otel.semconv.types import Metric
    from agent_otel.telemetry.sinks import Exemplar

#: Parts of a request that an agent carries from turn to turn.
_CARRIED: Final = (semconv.USER, semconv.ASSISTANT, semconv.TOOL_CALL_ARGUMENTS, semconv.TOOL_RESULTS)
_BY_LAYER: Final = {
    semconv.LAYER_TOOL: "the tool itself cuts: let it return pages with a cursor, or a summary and a handle",
    semconv.LAYER_FRAMEWORK: "the framework cuts: raise its limit, or let the tool return pages below it",
    semconv.LAYER_MODEL_REQUEST: (
        "the code between the framework and the model's SDK cuts: look for a slice of the text or a trimmed message"
    ),
}
#: Follow-ups of a cut result or a page by which the agent gets the rest.
_GOOD_FOLLOWUPS: Final = (semconv.PAGINATED, semconv.NARROWED)
_FEWEST: Final = 3  # turns: fewer show no growth
_MOST: Final = 10_000  # turns after which a continuation ends
_REPEATED: Final = 3  # growths that the continuation repeats
#: Boundaries that a state crosses in each turn, by the direction of a payload that was measured there.
_BOUNDARIES: Final[dict[str, tuple[str, ...]]] = {
    semconv.INPUT: ("activity_input",),
    semconv.OUTPUT: ("activity_output",),
    semconv.STATE: ("state",),
    semconv.MESSAGE: ("message",),
    semconv.HISTORY: ("history",),
}
_ANY: Final = tuple(boundary for boundaries in _BOUNDARIES.values() for boundary in boundaries)
#: Metrics of a tool that are counted by a label: the field, and the label.
_COUNTED: Final = {
    semconv.TOOL_FOLLOWUPS: ("followups", semconv.OUTCOME),
    semconv.RESULTS_OVER_BUDGET: ("over_budget", semconv.LAYER),
    semconv.ANSWERS_INCOMPLETE: ("incomplete_answers", semconv.REASON),
}
_UNSAFE: Final = re.compile(r"[^\w.-]")
_ROOT: Final = "$"


@contextlib.contextmanager
def record(contracts: Path | None = None, *, update: bool = False) -> Iterator[AgentRun]:
    """Measure all agents of this process inside the block, whatever the thread or the task.

    ``contracts`` is the folder of the snapshots that `AgentRun.assert_contract` compares with; ``update`` writes them.
    The package is activated if it is not active yet, and measures nothing between the blocks in that case.

    Raises:
        RuntimeError: ``AGENT_OTEL`` switches the package off.
    """
    activate()
    was_enabled, chosen, sink = switches.enabled, settings.current(), MemorySink()
    if not _open:  # drop what earlier tests have left: executions, and what was learned of tools
        for memory in (executions, drift, definitions, round_counts, tool_names):
            memory.reset()
    before = setup.resolved, execution_context.default
    _open.append(sink)
    try:
        tracer = None if chosen.spans == "off" else trace.get_tracer(semconv.SCOPE, __version__)
        of_program = [] if chosen.metrics == "off" else [_meters()]
        setup.resolved = setup.Telemetry(chosen, tracer, [*_open, *of_program])
        execution_context.default = f"test-{uuid.uuid4().hex}"
        switches.enabled = True
        yield AgentRun(sink, contracts, update=update)
    finally:
        setup.resolved, execution_context.default = before
        switches.enabled = was_enabled
        _open.remove(sink)


def activate() -> None:
    """Activate the package if it is not active, measuring inside recordings only, and load what measures.

    Raises:
        RuntimeError: ``AGENT_OTEL`` switches the package off.
    """
    if not env.active:
        startup.activate()
        switches.enabled = False
    if not env.active:
        raise RuntimeError("AGENT_OTEL switches agent_otel off: unset it for tests that use agent_run")
    preload.load()


@functools.lru_cache(maxsize=1)
def _meters() -> Sink:
    """Return the sink of the program's MeterProvider; it records nothing until the program sets one."""
    return OTelSink(metrics.get_meter(semconv.SCOPE, __version__))


class Reading(NamedTuple):
    """A recorded value with its metric and the values of the metric's labels; an absent label is empty."""

    metric: Metric
    labels: tuple[str, ...]
    value: float


@dataclass(slots=True, eq=False)
class _Kept(Series):
    """A series that appends to the readings of its sink."""

    readings: list[Reading]
    metric: Metric
    labels: tuple[str, ...]

    def add(self, value: float, exemplar: Exemplar | None = None) -> None:  # noqa: ARG002 - of the interface
        if value or self.metric.kind != COUNTER:  # a counter is created at 0
            self.readings.append(Reading(self.metric, self.labels, value))


class MemorySink(Sink):
    """A sink with all readings of one recording."""

    def __init__(self) -> None:
        super().__init__()
        self.readings: list[Reading] = []

    def declare(self, metric: Metric) -> Callable[[tuple[str, ...]], Series]:
        """Return the function that returns the series with label values."""
        return functools.partial(_Kept, self.readings, metric)

    def of(self, metric: Metric) -> list[Reading]:
        """Return the readings of a metric, in the order in which they were recorded."""
        return [reading for reading in self.readings if reading.metric is metric]


#: The recordings that are open in this process, the innermost last.
_open: list[MemorySink] = []


class AgentRun:
    """The tools, the model requests and the payloads of all agents that ran since the recording began."""

    def __init__(self, sink: MemorySink, contracts: Path | None, *, update: bool) -> None:
        self._sink = sink
        self._contracts = contracts
        self._update = update

    @property
    def tools(self) -> Tools:
        """The figures of each tool by name, so far."""
        found = Tools()
        for reading in list(self._sink.readings):
            if reading.metric.labels[:1] == (semconv.GEN_AI_TOOL_NAME,):
                found.setdefault(reading.labels[0], Tool(reading.labels[0])).take(reading)
        return found

    @property
    def request_bytes(self) -> list[int]:
        """Bytes of each model request, without its system prompt and its definitions of tools."""
        sizes: dict[str, list[int]] = {part: [] for part in _CARRIED}
        for reading in self._sink.of(semconv.REQUEST_SIZE):
            if reading.labels[0] in sizes:
                sizes[reading.labels[0]].append(int(reading.value))
        return [sum(parts) for parts in zip(*sizes.values(), strict=False)]

    @property
    def payload_bytes(self) -> dict[tuple[str, str, str, str], list[int]]:
        """Bytes of the payloads in their order, by runtime, workflow, activity and direction."""
        found: dict[tuple[str, str, str, str], list[int]] = {}
        for reading in [*self._sink.of(semconv.PAYLOAD_SIZE), *self._sink.of(semconv.HISTORY_SIZE)]:
            labels = dict(zip(reading.metric.labels, reading.labels, strict=True))
            # A history has no activity and no direction among its labels.
            boundary = labels.get(semconv.ACTIVITY, ""), labels.get(semconv.DIRECTION, semconv.HISTORY)
            key = labels[semconv.RUNTIME], labels[semconv.WORKFLOW_NAME], *boundary
            found.setdefault(key, []).append(int(reading.value))
        return found

    def assert_no_cuts(self, tool: str | None = None) -> None:
        """Fail when a model got less of a result than there was; results that a remedy replaced do not count."""
        __tracebackhide__ = True
        cuts = [
            f"{one.name}: {_described(cut)}; {_BY_LAYER[cut.layer]}" for one in self._called(tool) for cut in one.cuts
        ]
        _fail_if(cuts, f"{len(cuts)} results were cut:")

    def assert_within(self, budget: int | str | None = None, tool: str | None = None) -> None:
        """Fail when a result is larger than a budget (``16_000`` or ``16KiB``).

        Without a budget, the limit of the weakest layer on the result's way counts.
        """
        __tracebackhide__ = True
        if budget is None:
            over = [
                f"{one.name}: {times} results above the budget of the layer {layer!r}, the largest has "
                f"{one.max_result_bytes:,} bytes"
                for one in self._called(tool)
                for layer, times in one.over_budget.items()
            ]
        else:
            most = SIZE.parse(budget) if isinstance(budget, str) else budget
            over = [
                f"{one.name}: {one.max_result_bytes:,} bytes in the largest of {len(one.sizes)} results, "
                f"{most:,} are the budget"
                for one in self._called(tool)
                if one.max_result_bytes > most
            ]
        _fail_if(over, "Results are over their budget:", "let the tool return pages or a summary and a handle")

    def assert_no_repeats(self, tool: str | None = None) -> None:
        """Fail when a tool was called again with the same arguments in one execution."""
        __tracebackhide__ = True
        repeated = [
            f"{one.name}: {one.repeats} of {one.calls} calls repeat an earlier one"
            for one in self._called(tool)
            if one.repeats
        ]
        advice = "look at what the first call returned: an agent repeats a call whose result it cannot use or lost"
        _fail_if(repeated, "Calls were repeated:", advice)

    def assert_paginated_after_cut(self, tool: str | None = None) -> None:
        """Fail when the agent had a cut result or a page, and did not ask for the rest or for less.

        A test without a cut result or a page passes.
        """
        __tracebackhide__ = True
        ignored = []
        for one in self._called(tool):
            followed = sum(one.followups.get(outcome, 0) for outcome in _GOOD_FOLLOWUPS)
            bad = {outcome: times for outcome, times in one.followups.items() if outcome not in _GOOD_FOLLOWUPS}
            if bad or (one.cuts and not followed) or one.incomplete_answers:
                did = ", ".join(f"{times} times {outcome}" for outcome, times in bad.items()) or "no call followed"
                ignored.append(f"{one.name}: {_cuts(one)}, {did}")
        advice = "return an opaque cursor, and let the tool's description name it"
        _fail_if(ignored, "The agent did not ask for the rest of a result:", advice)

    def assert_answer_complete(self) -> None:
        """Fail when a final answer was given while the model had only a part of a result."""
        __tracebackhide__ = True
        tools = self._called(None)
        self._requests(1)
        built_on = [
            f"{one.name}: {times} answers on a part of a result ({reason}); {_cuts(one)}"
            for one in tools
            for reason, times in one.incomplete_answers.items()
        ]
        advice = "the agent has to get the rest before it answers: pages with a cursor, or get_tool_result"
        _fail_if(built_on, "An answer was built on a fragment:", advice)

    def assert_history_complete(self) -> None:
        """Fail when a model request lacks messages of earlier turns. The test needs at least two model requests."""
        __tracebackhide__ = True
        self._requests(2)
        faults = (
            (semconv.HISTORY_LOST, "requests had none of the earlier turns' messages"),
            (semconv.HISTORY_DROPPED, "bytes of earlier messages were left out by a window"),
            (semconv.TASKS_DROPPED, "times the user's task, the first message, was left out"),
        )
        sums = [(int(sum(reading.value for reading in self._sink.of(metric))), what) for metric, what in faults]
        lost = [f"{times:,} {what}" for times, what in sums if times]
        undelivered = [one.name for one in self.tools.values() if semconv.UNDELIVERED in one.incomplete_answers]
        lost += [f"{name}: its result is in no model request" for name in undelivered]
        sizes = " → ".join(f"{size:,}" for size in self.request_bytes)
        advice = f"append what was fetched to the messages that are sent; bytes of the requests: {sizes}"
        _fail_if(lost, "The history is incomplete:", advice)

    def assert_turns_to_cap(self, runtime: str, at_least: int, *, variant: str | None = None) -> None:
        """Fail when a state that grows as in this test has fewer turns left under the runtime's caps.

        The test makes three turns or more. The sizes are those of the payloads of this runtime, else those of another
        runtime or of ``agent_otel.payload``, else those of the model requests. ``variant`` names the runtime's
        database, broker or plan where its caps depend on it.
        """
        __tracebackhide__ = True
        measured = self._growing(runtime)
        _fail_if(
            self._seen(when=not measured), f"No state was seen in {_FEWEST} turns:", "let the test make more turns"
        )
        outlooks = [(outlook_of(sizes, runtime, variant, boundaries), source) for source, sizes, boundaries in measured]
        found = [(outlook, source) for outlook, source in outlooks if outlook is not None and outlook.turns < at_least]
        if not found:
            return
        outlook, source = min(found, key=lambda one: one[0].turns)
        shown = " → ".join(f"{size:,}" for size in outlook.sizes[-4:])
        kind = "all payloads of an execution together" if outlook.stored_bytes else "one payload"
        largest = sorted(self.tools.values(), key=lambda one: -one.bytes)[:3]
        lines = [
            f"{source}: {shown} bytes in the last turns",
            f"cap of {outlook.boundary}: {outlook.cap_bytes:,} bytes for {kind}",
            *(f"{one.name}: {one.bytes:,} bytes in {one.calls} calls" for one in largest if one.bytes),
        ]
        advice = "keep whole results out of the state (AGENT_OTEL_CLAIM_CHECK), and each of them in it once"
        _fail_if(lines, f"{runtime} has room for {outlook.turns} more turns, {at_least} are wanted:", advice)

    def assert_contract(self, tool: str) -> None:
        """Fail when the keys of a tool's results, or the properties of its definition, differ from the snapshot.

        ``pytest --agent-otel-update`` writes the snapshot, into the folder ``agent_otel_contracts`` beside the test.
        """
        __tracebackhide__ = True
        self._called(tool)
        if self._contracts is None:
            raise ValueError("name the folder of the snapshots: record(contracts=Path(...))")
        file, now = self._contracts / f"{_UNSAFE.sub('_', tool)}.json", _contract(tool)
        if self._update:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(now, indent=2, sort_keys=True) + "\n", encoding="utf-8")
            return
        missing = [] if file.exists() else [str(file)]
        _fail_if(missing, f"{tool} has no snapshot:", "run pytest --agent-otel-update, and commit the file")
        before: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        differences = [*_arguments(before["arguments"], now["arguments"]), *_results(before["result"], now["result"])]
        advice = f"if the change is meant, run pytest --agent-otel-update and commit {file}"
        _fail_if(differences, f"{tool} is not as its snapshot:", advice)

    def _called(self, tool: str | None) -> list[Tool]:
        """Return the tools that were called, or this one; fail where there is none, because nothing would be tested."""
        __tracebackhide__ = True
        tools = self.tools
        called = [one for one in tools.values() if one.calls and tool in (None, one.name)]
        what = "no tool call" if tool is None else f"no call of {tool!r}"
        advice = "a hand-written loop puts agent_otel.tool or agent_otel.tool_call around its handlers"
        _fail_if(self._seen(when=not called), f"The test has {what}, so that nothing is tested:", advice)
        return called

    def _requests(self, fewest: int) -> None:
        __tracebackhide__ = True
        count = len(self.request_bytes)
        advice = "call a model through its SDK, such as one that python -m agent_otel.testing serve answers"
        _fail_if(self._seen(when=count < fewest), f"The test has {count} model requests and needs {fewest}:", advice)

    def _seen(self, *, when: bool) -> list[str]:
        """Return what the test has done, for a failure."""
        calls = ", ".join(f"{one.calls} of {one.name}" for one in self.tools.values() if one.calls) or "none"
        patched = ", ".join(sorted(setup.integrations())) or "none"
        seen = f"tool calls: {calls}; model requests: {len(self.request_bytes)}; integrations in use: {patched}"
        return [seen] if when else []

    def _growing(self, runtime: str) -> list[tuple[str, list[int], tuple[str, ...]]]:
        """Return the states that were seen in three turns: a source, the bytes in each turn, and the boundaries."""
        states = [(place, sizes) for place, sizes in self.payload_bytes.items() if len(sizes) >= _FEWEST]
        own = [(place, sizes, _BOUNDARIES.get(place[3], ())) for place, sizes in states if place[0] == runtime]
        if not own and states:
            own = [(*max(states, key=lambda one: one[1][-1]), _ANY)]
        if own:
            return [(" ".join(filter(None, place)), sizes, boundaries) for place, sizes, boundaries in own]
        requests = self.request_bytes
        return [("model requests", requests, _ANY)] if len(requests) >= _FEWEST else []


def _cuts(tool: Tool) -> str:
    return "; ".join(map(_described, tool.cuts)) or f"results of {tool.max_result_bytes:,} bytes at most"


def _described(cut: Cut) -> str:
    of = "a result" if cut.result_bytes is None else f"a result of {cut.result_bytes:,} bytes"
    to = "" if cut.left_bytes is None else f" to {cut.left_bytes:,} bytes"
    return f"{of} was cut{to} by the layer {cut.layer!r} ({cut.reason})"


def _fail_if(lines: Sequence[str], what: str, advice: str = "") -> None:
    """Raise an AssertionError with one line for each finding, and what to do; do nothing without a finding."""
    __tracebackhide__ = True
    if lines:
        raise AssertionError("\n  ".join([what, *lines, *([advice] if advice else [])]))


@dataclass(frozen=True, slots=True)
class Cut:
    """A truncation: the layer that cut, and how it is known; bytes of the result, and of the part that is left.

    ``result_bytes`` is None for a cut on the way to the model, ``left_bytes`` for a cut before that.
    """

    layer: str
    reason: str
    result_bytes: int | None = None
    left_bytes: int | None = None


@dataclass(slots=True)
class Tool:
    """The figures of one tool in a recording. Sizes are UTF-8 bytes of the results as the handler returned them.

    ``cuts`` are the truncations that nothing announces; ``remedied`` counts the results that a remedy replaced.
    ``delivered_bytes`` are those that models were sent, each result once. ``followups`` maps what the agent did after a
    cut or a page (`paginated`, `narrowed`, `repeated`, `ignored`) to a number of times.
    """

    name: str
    calls: int = 0
    sizes: list[int] = field(default_factory=list)
    cuts: list[Cut] = field(default_factory=list)
    repeats: int = 0
    remedied: int = 0
    delivered_bytes: int = 0
    followups: dict[str, int] = field(default_factory=dict)
    over_budget: dict[str, int] = field(default_factory=dict)
    incomplete_answers: dict[str, int] = field(default_factory=dict)
    _last_delivered: int = 0

    @property
    def bytes(self) -> int:
        """Bytes of all results."""
        return sum(self.sizes)

    @property
    def max_result_bytes(self) -> int:
        """Bytes of the largest result; 0 when no call returned one."""
        return max(self.sizes, default=0)

    def take(self, reading: Reading) -> None:
        """Add a reading."""
        metric, value = reading.metric, int(reading.value)
        labels = dict(zip(metric.labels, reading.labels, strict=True))
        if metric is semconv.ARGS_SIZE:
            self.calls += 1
        elif metric is semconv.RESULT_SIZE:
            self.sizes.append(value)
        elif metric is semconv.RESULT_DELIVERED:
            self.delivered_bytes += value
            self._last_delivered = value
        elif metric is semconv.TOOL_REPEATS:
            self.repeats += value
        elif metric is semconv.RESULTS_TRUNCATED:
            self._cut(labels[semconv.LAYER], labels[semconv.REASON])
        elif metric in _COUNTED:
            name, label = _COUNTED[metric]
            counts: dict[str, int] = getattr(self, name)
            counts[labels[label]] = counts.get(labels[label], 0) + value

    def _cut(self, layer: str, reason: str) -> None:
        if layer == semconv.LAYER_REMEDY:
            self.remedied += 1
        elif layer == semconv.LAYER_MODEL_REQUEST:
            self.cuts.append(Cut(layer, reason, None, self._last_delivered))
        else:
            self.cuts.append(Cut(layer, reason, self.sizes[-1] if self.sizes else None))


class Tools(dict[str, Tool]):
    """The tools of a recording by name."""

    def __missing__(self, name: str) -> Tool:
        """Raise a KeyError that names the tools that were called."""
        raise KeyError(f"no call of {name!r} was recorded; called: {', '.join(sorted(self)) or 'no tool'}")


# The turns that a growing state has left under the caps of a durable runtime, from its sizes in a test's few turns.
# Two ways are taken, and the smaller result counts: the forecast of the alerts, and a continuation that repeats the
# last growths until a cap is met. The continuation also meets the caps of everything that a runtime stores of an
# execution (the history of Temporal), which a state reaches long before a payload is large.


class Outlook(NamedTuple):
    """The turns that a state has left: ``turns`` more stay at or under the cap of a boundary.

    ``sizes`` are the bytes of the state in the turns of the test. ``stored_bytes`` is how many bytes a byte of the
    state adds to a cumulative cap in each turn, 0 where the cap is that of a single payload.
    """

    turns: int
    boundary: str
    cap_bytes: int
    stored_bytes: int
    sizes: tuple[int, ...]


def outlook_of(
    sizes: Sequence[int], runtime: str, variant: str | None = None, boundaries: Sequence[str] = _ANY
) -> Outlook | None:
    """Return the outlook of a state at the boundary that it meets first; None where it meets no cap.

    Raises:
        ValueError: no cap of the runtime is known.
    """
    rows = [cap for cap in payload_caps() if cap.runtime == runtime]
    if not rows and all(configured != runtime for configured, _, _ in settings.current().caps):
        names = ", ".join(sorted({cap.runtime for cap in payload_caps()}))
        raise ValueError(f"no cap of {runtime!r} is known; set AGENT_OTEL_CAPS={runtime}.payload=2MiB, or name {names}")
    found = []
    for boundary in boundaries:
        cap = cap_for(runtime, boundary, variant=variant)
        if cap is None:
            continue
        is_cumulative = boundary == semconv.HISTORY or any(row.cumulative for row in rows if row.boundary == boundary)
        # A history holds the input and the output of each activity, a stored state the state alone.
        stored = (2 if boundary == semconv.HISTORY else 1) * is_cumulative
        forecast = None if stored else turns_to_cap(sizes, cap.bytes)
        turns = min(_MOST if forecast is None else forecast, _continued(sizes, cap.bytes, stored))
        found.append(Outlook(turns, boundary, cap.bytes, stored, tuple(sizes)))
    if not found and rows:
        variants = ", ".join(sorted({cap.variant for cap in rows if cap.variant and cap.bytes is not None}))
        if variants and variant is None:
            raise ValueError(f"the caps of {runtime!r} depend on its variant; name one: {variants}")
    nearest = min(found, key=lambda one: one.turns, default=None)
    return nearest if nearest is not None and nearest.turns < _MOST else None


def _continued(sizes: Sequence[int], cap_bytes: int, stored: int) -> int:
    """Return the number of turns under the cap, where the last growths come again and again; at most ``_MOST``."""
    growths = [after - before for before, after in pairwise(sizes)][-_REPEATED:]
    size, total = sizes[-1], stored * sum(sizes)
    for turns in range(_MOST):
        size = max(0, size + growths[turns % len(growths)])
        total += stored * size
        if (total if stored else size) > cap_bytes:
            return turns
    return _MOST


# Snapshots of tools: the keys of their results and the properties of their arguments, one JSON file for each tool. A
# file holds names and types, no value. Keys that are data (numbers, ids) are ``*``.


def _contract(tool: str) -> dict[str, Any]:
    keys = drift.keys(tool)
    return {
        "tool": tool,
        "arguments": definitions.schema(tool),
        "result": {
            at or _ROOT: {"always": sorted(always), "sometimes": sorted(ever - always)}
            for at, (always, ever) in keys.items()
        },
    }


def _arguments(before: dict[str, str] | None, now: dict[str, str] | None) -> Iterator[str]:
    """Yield the differences of a definition; a test whose requests define no tool has none to compare."""
    if before is None or now is None:
        if before is not None:
            yield "no model request of this test defined it, the snapshot has its arguments"
        elif now is not None:
            yield "the snapshot has no arguments, a model request of this test defined them"
        return
    for path in sorted(before.keys() | now.keys()):
        if path not in now:
            yield f"argument {path!r} is gone"
        elif path not in before:
            yield f"argument {path!r} is new ({_type(now[path])})"
        elif before[path] != now[path]:
            yield f"argument {path!r} was {_type(before[path])} and is {_type(now[path])}"


def _type(kind: str) -> str:
    name = kind.removesuffix("!") or "of any type"
    return f"{name}, required" if kind.endswith("!") else name


def _results(before: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    """Yield the keys that every result had and one lacks, and the keys that no result had.

    An object that no result of this test holds, such as the elements of an empty list, is not compared.
    """
    if before and not now:
        yield "its results have no keys, those of the snapshot had"
    for at, keys in now.items():
        known = before.get(at)
        place = "" if at == _ROOT else f"{at}."
        if known is None:
            yield f"the object {at!r} is new, with {', '.join(keys['always'])}"
            continue
        allowed = {*known["always"], *known["sometimes"]}
        yield from (f"key {place + key!r} is missing" for key in known["always"] if key not in keys["always"])
        yield from (
            f"key {place + key!r} is new" for key in (*keys["always"], *keys["sometimes"]) if key not in allowed
        )
