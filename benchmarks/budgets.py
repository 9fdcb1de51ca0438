"""The budgets of the hot path, as a command: prints a table and exits with 1 where one is exceeded by 1.3 times.

``python -m benchmarks.budgets`` from the root of the repository, in an environment that has the package and rich. Five
processes measure everything, one after the other (``RUNS=1`` for one): the median counts, and the least and the most
are printed. ``... once`` is such a process; it prints its rows as JSON.
"""

from __future__ import annotations

import importlib
import json
import os
import statistics
import subprocess
import sys
import tracemalloc
from typing import TYPE_CHECKING, Any

os.environ["AGENT_OTEL"] = "1"
for variable in [name for name in os.environ if name.startswith(("OTEL_", "AGENT_OTEL_"))]:
    del os.environ[variable]
os.environ["AGENT_OTEL_METRICS"] = "prometheus"

import agent_otel
import agent_otel.auto
from agent_otel import settings
from agent_otel.core import remedy_hooks
from agent_otel.core.executions import Executions
from agent_otel.measure.breakdown.report import breakdown_text
from agent_otel.measure.size import size
from agent_otel.measure.truncation import find_cut
from benchmarks import carrying, clock, durable_runtimes, framework_imports, remedies, startup
from benchmarks.rows import Row, show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TITLE = "budgets (U = a 100-iteration loop in this process)"
US = 1 / 3.1  # one microsecond in U, on the server where the budgets were set
SMALL = "x" * 200
LARGE = "x" * 10_100_000  # no length at which a transport is known to cut
CJK = "字" * 350_000
PROSE = "the quick brown fox jumps over the lazy dog, line after line\n" * 20_000
ROWS = [{"number": i, "title": f"change {i}", "state": "open", "draft": False} for i in range(400)]  # as APIs answer
NODES = 1 + 400 * 5
PAGE = {"total": 210, "items": ROWS[:210]}  # 16 KB
DOCUMENTS = {"found": [{"id": f"doc {i}", "text": PROSE[:2_350], "score": i / 7} for i in range(420)]}  # 1 MB
MS = 1000 * US
MIB = 1024 * 1024
RESULTS = 100
RESULT = "x" * 20_000
RUNS = int(os.environ.get("RUNS", "5"))


def bare(query: str) -> str:
    """A tool that costs nothing."""
    return SMALL


def bare_large(query: str) -> str:
    """A tool that hands over 10 MB."""
    return LARGE


def overheads(measured_tool: Callable[[str], str], measured_large: Callable[[str], str]) -> tuple[float, float]:
    """What the measuring adds to a call that returns 200 B and to one that returns 10 MB."""
    took = clock.measure(
        {
            "bare": lambda: bare("where is it"),
            "small": lambda: measured_tool("where is it"),
            "large": lambda: measured_large("where is it"),
        }
    )
    return took["small"] - took["bare"], took["large"] - took["bare"]


def remedied(measured_tool: Callable[[str], str], variable: str, value: str) -> float:
    """What a remedy that does not act adds to the measuring of a call; the tool has been called before."""
    os.environ[variable] = value
    cached = (settings.current, remedy_hooks.result_remedies)
    for each in cached:
        each.cache_clear()
    with_remedy = agent_otel.tool(bare)
    with agent_otel.execution("run"):
        took = clock.measure(
            {"measured": lambda: measured_tool("where is it"), "remedied": lambda: with_remedy("where is it")}
        )
    del os.environ[variable]
    for each in cached:
        each.cache_clear()
    return took["remedied"] - took["measured"]


def hot_path() -> list[Row]:
    """Per call: without a recorded span, then with one."""
    small, large = agent_otel.tool(bare), agent_otel.tool(bare_large)
    silent, _ = overheads(small, large)
    ceiling = remedied(small, "AGENT_OTEL_RESULT_CEILING_BYTES", "64KiB")
    queue = remedied(small, "AGENT_OTEL_MAX_PARALLEL_TOOL_CALLS", "4")
    record_spans()
    spanned, spanned_large = overheads(small, large)
    return [
        Row("enabled, no span recorded, Prometheus sink, 200 B", 3.2, silent),
        Row("the same with a ceiling on results, beside it", 2 * US, ceiling),
        Row("the same with a queue of calls that does not wait, beside it", 50 * US, queue),
        Row("enabled, span recorded, Prometheus sink, 200 B", 24, spanned),
        Row("growth of that from 200 B to 10 MB of ASCII", 1.6, spanned_large - spanned),
    ]


def record_spans() -> None:
    """Give the program a TracerProvider whose spans go nowhere after they have been recorded and batched."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

    class Nowhere(SpanExporter):
        def export(self, spans: Any) -> SpanExportResult:
            return SpanExportResult.SUCCESS

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(Nowhere()))
    trace.set_tracer_provider(provider)


def otel_metrics() -> list[Row]:
    """A call with OpenTelemetry's metrics beside one with the cells, in a process whose metrics are nobody else's."""
    command = (sys.executable, "-m", "benchmarks.sinks", "ratio")
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    to_cells, to_least = map(float, done.stdout.split())
    return [
        Row("the same with the OTel metric sink, to the Prometheus sink", 1.5, to_cells, "x"),
        Row("the same, to the Prometheus sink and three records of the SDK itself", 1.05, to_least, "x"),
    ]


def measuring() -> list[Row]:
    """The pure functions."""
    took = clock.measure(
        {
            "cjk": lambda: size(CJK),
            "rows": lambda: size(ROWS, node_budget=NODES + 1),
            "cut": lambda: find_cut(PROSE),
            "cut small": lambda: find_cut(PROSE[:2_500]),
        },
        rounds=30,
    )
    return [
        Row("non-ASCII text, 1 MB: a byte", 0.0015 * US, took["cjk"] / len(CJK.encode())),
        Row("structured result: a node", 0.4 * US, took["rows"] / NODES),
        Row("truncation check, 1.2 MB", 5 * US, took["cut"]),
        Row("truncation check, 2.5 KB", 5 * US, took["cut small"]),
    ]


def structures() -> list[Row]:
    """Structured results where a fast encoder is in the process, as LangChain brings one, and beside `json`."""
    cases: dict[str, Any] = {"16 KB": PAGE, "1 MB": DOCUMENTS}
    budgets = {"16 KB": 25 * US, "1 MB": 800 * US}
    modules = {name: importlib.import_module(name) for name in ("orjson", "msgspec", "pydantic_core")}
    rows = []
    for encoder in (*modules, "no encoder"):
        sys.modules |= {name: module if name == encoder else None for name, module in modules.items()}  # type: ignore[misc]
        sizes = {f"size {name}": lambda value=value: size(value) for name, value in cases.items()}
        dumps = {f"json {name}": lambda value=value: json.dumps(value) for name, value in cases.items()}
        took = clock.measure({**sizes, **dumps}, rounds=30)
        for name in cases:
            own, peer = took[f"size {name}"], took[f"json {name}"]
            rows.append(Row(f"structured result of {name}, {encoder}", budgets[name], own))
            rows.append(Row(f"structured result of {name}, {encoder}, to json.dumps", 0.5, own / peer, "x"))
    return rows


def payloads() -> list[Row]:
    """A payload of a durable runtime that is far from its cap, beside what the sink takes to record it."""
    from agent_otel.core import step_handler
    from agent_otel.core.types import Payload, Step
    from agent_otel.telemetry.setup import telemetry

    step = Step("temporal", "call_model", "investigate", "0f8fad5b-d9cb-469f-a165-70867728950e")
    reading = Payload("input", 400_000, data="x")
    series = telemetry(workflow=step.workflow).metrics.payload("temporal", step.activity, "input")

    def record() -> None:
        series.payload(400_000, 2_097_152, 0.8, None)
        series.growth.record(0)

    took = clock.measure(
        {
            "payload": lambda: step_handler.payload(step, reading),
            "sink": record,
        },
        rounds=30,
    )
    return [Row("payload below the warn ratio, beside the sink", 5 * US, took["payload"] - took["sink"])]


def agent_state() -> str:
    """2 MiB of big strings: an agent that keeps each result cut for the model, and raw for its user interface."""
    messages, raw = [], []
    for number in range(29):
        call = f"call_{number}"
        text = f"result {number} " + PROSE[:40_000]
        asked = {"id": call, "type": "function", "function": {"name": "search_code", "arguments": '{"q": "x"}'}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [asked]})
        messages.append({"role": "tool", "tool_call_id": call, "content": text[:32_768] + "\n[truncated]"})
        raw.append({"id": call, "name": "search_code", "args": {"q": "x"}, "durationMs": 12, "result": text})
    return json.dumps({"messages": messages, "accumulatedToolCalls": raw, "turn": 5})


def many_nodes() -> str:
    """2 MiB of the rows of an API, 130,000 values."""
    rows = [{**row, "score": number * 1.37} for number, row in enumerate(ROWS * 60)]
    return json.dumps({"result": rows})


def nobody(call: str) -> None:
    """A ledger that knows no call."""


def breakdowns() -> list[Row]:
    """What analysing a payload costs: its own thread, the other threads, memory."""
    state, nodes = agent_state(), many_nodes()
    took = clock.measure(
        {"state": lambda: breakdown_text(state, nobody), "nodes": lambda: breakdown_text(nodes, nobody)}, rounds=30
    )
    tracemalloc.start()
    breakdown_text(state, nobody)
    breakdown_text(nodes, nobody)
    transient = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    waits = [clock.longest_wait(lambda: breakdown_text(nodes, nobody)) for _ in range(15)]
    return [
        Row("breakdown of 2 MiB, text-heavy", 8 * MS * len(state) / (2 * MIB), took["state"]),
        Row("breakdown of 2 MiB, many nodes", 40 * MS * len(nodes) / (2 * MIB), took["nodes"]),
        Row("breakdown of 2 MiB: longest wait of another thread", 15, min(waits), "ms"),
        Row("breakdown of 2 MiB: transient memory", 1, transient / 1e6, "MB"),
    ]


def requests() -> list[Row]:
    """A request for a model with 100 results of 20 KB: seen for the first time, and each turn again."""
    from agent_otel.core.executions import executions as ledger
    from agent_otel.core.thread import delivery
    from agent_otel.core.types import ModelRequest
    from agent_otel.integrations.request_bodies import chat
    from agent_otel.telemetry.setup import telemetry

    out = telemetry()
    ids = [f"call_{number}" for number in range(RESULTS)]
    answers = [{"role": "tool", "tool_call_id": call_id, "content": RESULT} for call_id in ids]
    body = {"messages": [{"role": "user", "content": "where is it"}, *answers]}
    runs = iter(range(1_000_000))

    def produced() -> str:
        """What the tools leave behind, which is no part of the request's cost."""
        run = f"run {next(runs)}"
        for call_id in ids:
            state, _ = ledger.began(run, "search", call_id, call_id)
            ledger.produced(state, "search", len(RESULT), call_id)
        return run

    def take(run: str) -> None:
        delivery.take(out, ModelRequest(chat(body), execution=run))

    def first() -> None:
        run = produced()
        take(run)
        ledger.finish(run)

    def before() -> None:
        ledger.finish(produced())

    def again(messages: int, size: int) -> Callable[[], None]:
        """The next request of a conversation of this many messages, half of them results of this size."""
        run = f"run of {messages}"
        held: list[dict[str, Any]] = [{"role": "user", "content": "where is it"}]
        for number in range(messages // 2):
            call = {"name": "search", "arguments": f'{{"query": "{number}"}}'}
            calls = [{"id": f"call_{number}", "type": "function", "function": call}]
            held.append({"role": "assistant", "content": None, "tool_calls": calls})
            held.append({"role": "tool", "tool_call_id": f"call_{number}", "content": "x" * size})
            state, _ = ledger.began(run, "search", f"{number}", f"call_{number}")
            ledger.produced(state, "search", size, f"call_{number}")
        request = {"messages": held}
        for _ in range(2):
            delivery.take(out, ModelRequest(chat(request), execution=run))
        return lambda: (delivery.take(out, ModelRequest(chat(request), execution=run)), None)[1]

    seen = produced()
    take(seen)
    cases = {"before": before, "first": first, "again": lambda: take(seen)}
    took = clock.measure({**cases, "200": again(200, 20_000), "2,000": again(2_000, 100)})
    return [
        Row("request of 200 messages, results of 20 KB, seen before", 200 * US, took["200"]),
        Row("request of 2,000 messages, seen before", 1000 * US, took["2,000"]),
        Row("request with 100 results of 20 KB, first seen", 1000 * US, took["first"] - took["before"]),
        Row("request with 100 results of 20 KB, seen before", 1000 * US, took["again"]),
    ]


def streams() -> list[Row]:
    """A chunk of a streamed response, as OpenAI's SDK hands it on."""
    from types import SimpleNamespace

    from agent_otel.core.thread.model_request import ModelVisit
    from agent_otel.core.types import ModelRequest
    from agent_otel.integrations.model_sdks import openai
    from agent_otel.integrations.wrap import watched

    delta = SimpleNamespace(content="word", function_call=None, refusal=None, role=None, tool_calls=None)
    choices = [SimpleNamespace(delta=delta, finish_reason=None, index=0, logprobs=None)]
    chunk = SimpleNamespace(id="chatcmpl-1", choices=choices, model="gpt", object="chat.completion.chunk", usage=None)

    def passed(chunks: list[Any]) -> Iterator[Any]:
        yield from chunks

    def read(chunks: list[Any]) -> None:
        visit = ModelVisit(openai.request, ModelRequest([]), "openai")
        for _ in watched(passed(chunks), visit):
            pass

    def bare(chunks: list[Any]) -> None:
        for _ in passed(chunks):
            pass

    chunks = [chunk] * 100
    took = clock.measure(
        {
            "none": lambda: read([]),
            "all": lambda: read(chunks),
            "bare": lambda: bare(chunks),
        }
    )
    return [Row("streamed response: a chunk", 1 * US, (took["all"] - took["none"] - took["bare"]) / len(chunks))]


def memory() -> list[Row]:
    """What is held."""
    tracemalloc.start()
    size(CJK)
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    size(CJK)
    transient = tracemalloc.get_traced_memory()[1] - before
    ledger = Executions()
    before = tracemalloc.get_traced_memory()[0]
    for execution in range(10_000):
        name = f"0f8fad5b-d9cb-469f-a165-{execution:012d}"
        for call in range(16):
            ledger.began(name, "search", f"{call:012x}", None)
    kept = tracemalloc.get_traced_memory()[0] - before
    ledger = Executions()
    before = tracemalloc.get_traced_memory()[0]
    for execution in range(10_000):
        state, _ = ledger.began(f"0f8fad5b-d9cb-469f-a165-{execution:012d}", "search", "5f2b", f"call_{execution}")
        ledger.produced(state, "search", 200, f"call_{execution}")
    each = (tracemalloc.get_traced_memory()[0] - before) / 10_000
    tracemalloc.stop()
    result = str(object())
    references = sys.getrefcount(result)
    agent_otel.tool(lambda query: result)("x")
    return [
        Row("non-ASCII text, 1 MB: transient memory", 0.6, transient / 1e6, "MB"),
        Row("ledger at 10,000 executions of 16 calls", 32, kept / 1e6, "MB"),
        Row("an open execution with a call and its result", 1.5, each / 1e3, "kB"),
        Row("references kept to a result", 0, sys.getrefcount(result) - references, ""),
    ]


def once() -> list[Row]:
    """Measure everything."""
    starts = [Row(what, budget, took) for what, budget, took in startup.rows()]
    imports = [Row(what, budget, took) for what, budget, took, _ in framework_imports.rows()]
    return [
        *starts,
        *imports,
        *hot_path(),
        *otel_metrics(),
        *measuring(),
        *payloads(),
        *breakdowns(),
        *requests(),
        *streams(),
        *memory(),
        *(Row(*row) for row in carrying.rows()),
        *(Row(*row) for row in remedies.rows()),
        *(Row(*row) for row in durable_runtimes.rows()),
        *structures(),
    ]


def run() -> dict[str, Row]:
    """Measure everything in a process of its own; return the rows by what they measure."""
    command = (sys.executable, "-m", "benchmarks.budgets", "once")
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return {what: Row(what, *rest) for what, *rest in json.loads(done.stdout.splitlines()[-1])}


def main() -> int:
    """Measure everything several times, and print the medians with the least and the most."""
    runs = [run() for _ in range(RUNS)]
    rows = []
    for what, row in runs[0].items():
        found = [each[what].measured for each in runs if what in each]
        spread = f"{min(found):.4g} to {max(found):.4g}"
        rows.append(Row(what, row.budget, statistics.median(found), row.unit, spread))
    return show(TITLE, rows)


if __name__ == "__main__":
    if sys.argv[1:] == ["once"]:
        print(json.dumps([(row.what, row.budget, row.measured, row.unit) for row in once()]))
    else:
        sys.exit(main())
