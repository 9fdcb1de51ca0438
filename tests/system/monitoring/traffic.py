"""Traffic of one process of agents in simulated time: ``traffic.py <number of the process> <file for its samples>``.

Everything that is measured is measured by the product, at its doors; only the clock of the samples is not the real one.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import itertools
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import prometheus_client
from prometheus_client import GC_COLLECTOR, PLATFORM_COLLECTOR, PROCESS_COLLECTOR, CollectorRegistry, Histogram

import agent_otel
from agent_otel import semconv
from agent_otel.core import handler
from agent_otel.core.cost import models
from agent_otel.core.types import Invocation, ModelReader
from agent_otel.remedies.claim_check.envelope import Claims, Origin
from agent_otel.remedies.claim_check.reader import ClaimReader
from agent_otel.remedies.claim_check.stores import NotFoundError, open_store
from agent_otel.remedies.claim_check.writer import ClaimWriter, Stored
from agent_otel.telemetry.setup import telemetry
from tests.system.monitoring.exposing import Samples, Target
from tests.system.monitoring.simulated import DAPRD, PROCESSES, RESEARCH, START, STEP_SECONDS, SUPPORT
from tests.system.monitoring.transcript import MODEL, WINDOW, Transcript

#: What goes on over some steps: it is continued once in each.
Work: TypeAlias = Iterator[None]

_KB = 1013  # a round size could be that of a known cut
_PATIENCE_SECONDS = 30.0
_DAPR_BODY_BYTES = 4 * 1024 * 1024  # daprd's --max-body-size
_HISTORY_TO_INPUT = 1.8
_DAPR_ACTIVITY_BYTES = 2 * 1024 * 1024
_DAPR_BUCKETS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0, 1.5, 2.0)  # of daprd 1.18
_GROWN_ORDER = 4750
_REFUSED = "trying to send message larger than max (2359767 vs. 2097152)"

sidecar = CollectorRegistry()
_dapr_names = ("app_id", "namespace", "workflow_name")
_workflow_ratio = Histogram(
    "dapr_runtime_workflow_payload_size_ratio",
    "Workflow payload size as a fraction of the configured gRPC max body size.",
    _dapr_names,
    registry=sidecar,
    buckets=_DAPR_BUCKETS,
)
_activity_ratio = Histogram(
    "dapr_runtime_workflow_activity_payload_size_ratio",
    "Activity payload size as a fraction of the configured gRPC max body size.",
    (*_dapr_names, "activity_name"),
    registry=sidecar,
    buckets=_DAPR_BUCKETS,
)


def text(size: int, seed: object) -> str:
    """A text of so many bytes, no part of which stands in the text of another seed."""
    return random.Random(str(seed)).randbytes(size // 2).hex()  # noqa: S311 - the same text each time


def dispatched(workflow: str, activity: str, payload_bytes: int) -> None:
    """What daprd measures of an activity's input, and of the history that it stands in with what else there is."""
    labels = (SUPPORT, "default", workflow)
    _workflow_ratio.labels(*labels).observe(_HISTORY_TO_INPUT * payload_bytes / _DAPR_BODY_BYTES)
    _activity_ratio.labels(*labels, activity).observe(payload_bytes / _DAPR_BODY_BYTES)


def answer_ticket(number: int) -> Work:
    """Six turns with results that grow; now and then one is cut, fails, or is asked for again."""
    ticket = f"ticket-{number}"
    with agent_otel.execution(ticket, workflow="answer_ticket", agent="support"):
        talk = Transcript("dapr", "answer_ticket", "support", ticket)
        for turn in range(6):
            found = text(2 * _KB * (turn + 1), (ticket, turn, "search"))
            talk.use("search_tickets", {"query": "refund", "page": turn % 4}, found, seconds=0.012 * (turn == 2))
            if turn == 1 or (turn == 2 and number % 3 == 0):
                talk.use("read_document", {"id": number}, text(30 * _KB, ticket) + "\n... [output truncated]")
            elif turn == 2 and number % 3 == 1:
                talk.use("read_document", {"id": number, "section": "refunds"}, text(3 * _KB, (ticket, "section")))
            elif turn == 3 and number % 8:
                talk.fail("read_document", {"id": number + 1}, TimeoutError("no answer"), seconds=0.045)
            elif turn == 4:
                customer = {"id": number, "name": "Ada", "notes": text(4 * _KB, (ticket, "notes"))}
                talk.use("lookup_customer", {"id": number}, customer if number < 50 else {**customer, "vip": True})
            talk.ask(cached_tokens=800 * turn)
            size = talk.carry("plan", "input")
            dispatched("answer_ticket", "plan", size)
            talk.carry("plan", "output")
            yield
        talk.carry(None, "output")


def read_attachments(number: int) -> Work:
    """Turns that carry each attachment twice, until daprd's scheduler refuses what the next activity is given."""
    name = f"attachments-{number}"
    with agent_otel.execution(name, workflow="read_attachments", agent="reader"):
        talk = Transcript("dapr", "read_attachments", "reader", name)
        for turn in range(6):
            attachment = text(180 * _KB, (name, turn))
            talk.use("read_attachment", {"number": turn}, attachment, seconds=0.022, twice=True)
            talk.ask(cached_tokens=1200)
            size = talk.carry("summarise", "input")
            dispatched("read_attachments", "summarise", size)
            yield
        assert size > _DAPR_ACTIVITY_BYTES, size
        for _ in range(4):
            talk.refused("summarise", "input", size, _REFUSED)
            yield


def export_report(number: int) -> Work:
    """A tool that the ceiling stands before, and one that only its framework cuts."""
    name = f"report-{number}"
    with agent_otel.execution(name, workflow="export_report", agent="support"):
        talk = Transcript("dapr", "export_report", "support", name)
        talk.use("export_report", {"format": "csv"}, text((700 if number % 20 == 3 else 200) * _KB, name))
        rows = text(40 * _KB, (name, "rows"))
        talk.use_framework("search_tickets", {"report": number}, rows, rows[: 25 * _KB])
        for turn in range(4):  # nobody asks for the rest
            talk.ask(is_final=not turn)
        yield


@agent_otel.tool(agent="support")
def check_status(order: int) -> str:
    """Look an order up."""
    return f'{{"order": {order}, "status": "open"}}'


@agent_otel.tool(agent="support")
def delete_order(order: int) -> str:
    """Delete an order, which the policy allows to no agent."""
    raise AssertionError(order)


@agent_otel.tool(name="check_status", agent="support")
async def check_slowly(order: int) -> str:
    """Look an order up, and wait for it: later orders have grown."""
    await asyncio.sleep(0.004)
    return f'{{"order": {order}, "status": "{"open" if order < _GROWN_ORDER else text(5 * _KB, order)}"}}'


async def check_two(order: int) -> None:
    """Two calls at once, of which the second waits for its turn."""
    await asyncio.gather(check_slowly(order=4711), check_slowly(order=order))


def loop(number: int) -> Work:
    """An agent that asks the same again and again, until it meets the limit, and for what it may not do."""
    agent_otel.remedies.use_policy({"rules": [{"tools": "check_status"}]})
    with agent_otel.execution(f"loop-{number}", workflow="answer_ticket", agent="support"):
        delete_order(order=4711)
        asyncio.run(check_two(4700 + number))
        for _ in range(3):
            for _ in range(15):
                check_status(order=4711)
            yield


def research(number: int) -> Work:
    """Twelve turns over pages of every size and fate, on a runtime that keeps the history."""
    name = f"research-{number}"
    with agent_otel.execution(name, workflow="research", agent="researcher"):
        talk = Transcript("temporal", "research", "researcher", name)
        history_bytes = 40 * _KB
        for turn in range(12):
            hits = {"hits": [text(900, (name, turn, hit)) for hit in range(5)], "next_cursor": f"page-{turn + 1}"}
            talk.use("web_search", {"query": "bytes", "cursor": f"page-{turn}" if turn else ""}, hits)
            page = text(4 * _KB * (turn + 1) ** 2 // 4, (name, turn, "page"))
            cut = _ends_of_pages[turn % len(_ends_of_pages)]
            talk.use("fetch_page", {"url": turn}, cut(page), seconds=0.015 * (turn % 4), delivered=_clip)
            if turn == 8:
                talk.use("fetch_page", {"url": "dataset"}, text(500 * _KB, (name, "dataset")))
            if turn % 5 == 3:
                talk.fail("fetch_page", {"url": "example"}, ValueError("no such page"))
            talk.ask(cached_tokens=2000 * turn)
            history_bytes += talk.carry("browse", "output")
            talk.note_history(history_bytes)
            yield
        talk.carry(None, "output")


_ends_of_pages: tuple[Callable[[str], str], ...] = (
    str,
    lambda page: page + "\n...5000 bytes truncated...",
    lambda page: f'{{"title": "A page", "body": "{page}',
    str,
    lambda page: f"Output too large (2 MB). Full output saved to: /tmp/page\n{page[:2000]}",
)


def _clip(page: str) -> str:
    return page[:90_000]


def compare(number: int) -> Work:
    """Sources that are carried whole: the payload grows by a steady step and stays below its cap, barely."""
    name = f"compare-{number}"
    with agent_otel.execution(name, workflow="compare_sources", agent="researcher"):
        talk = Transcript("temporal", "compare_sources", "researcher", name)
        for turn in range(8):
            talk.use("fetch_source", {"number": turn}, text(225 * _KB, (name, turn)), seconds=0.03)
            talk.ask(cached_tokens=500)
            talk.carry("compare", "input")
            yield


def mishap(number: int) -> Work:
    """What goes wrong in conversations, and in the product."""
    name = f"mishap-{number}"
    Transcript("temporal", "research", "reader", name).redefine({"query": {}, "x" * (1 + number % 7): {}})
    with agent_otel.execution(name, workflow="research", agent="researcher"):
        Transcript("temporal", "research", "reader", name).chat_in_a_window()
        talk = Transcript("temporal", "research", "researcher", name)
        talk.use("web_search", {"query": number}, text(3 * _KB, name))
        talk.ask()
        yield
        talk.use("web_search", {"query": -number}, text(10_000, (name, "as long as a known cap")))
        talk.ask()
        talk.clear()
        talk.ask()
        talk.answer_a_stranger()
        talk.ask()
        talk.ask_with_everything_twice()
        talk.refuse("web_search", {"quary": number})
        yield
        talk.forget()
        talk.exceed()
        agent_otel.payload(text(20 * _KB, name), runtime="langgraph", activity="answer", direction="state")
        # A reader that fails on its framework's call is a failure of the product, which nobody else is to notice.
        handler.enter_model(ModelReader(_fail), Invocation(None, (), {}))
        telemetry().metrics.record(semconv.CONTEXT_SUMMARIES, 1, semconv.MADE)
        telemetry().metrics.record(semconv.CONTEXT_SUMMARIES, 1, semconv.FAILED)
        yield


def _fail(*_: object) -> None:
    raise KeyError("messages")


def read_again(folder: Path) -> Work:
    """What is read from the claim check's store, and a store that cannot be written to."""
    claims = Claims(open_store("memory:"), key="secret", report=_report)
    writer, reader = ClaimWriter(claims, budget=_PATIENCE_SECONDS), ClaimReader(claims, timeout=_PATIENCE_SECONDS)
    (folder / "no-folder").write_text("a file, where a folder should be")
    unwritable = ClaimWriter(Claims(open_store(f"file://{folder / 'no-folder'}"), key="secret", report=_report))
    for call in itertools.count():
        origin = Origin("research-0", "research-0", "browse", "download", f"call-{call}")
        stored = writer.put(text(20 * _KB * (call % 4 + 1), call), origin)
        assert isinstance(stored, Stored), stored
        reference = str(stored.reference)
        reader.resolve(reference, caller="research-0")
        if call % 20 == 10:
            unwritable.put("lost", origin)
            with contextlib.suppress(NotFoundError):
                reader.resolve(reference, caller="somebody-else")
            reader.delete(reference, caller="research-0")
            with contextlib.suppress(NotFoundError):
                reader.resolve(reference, caller="research-0")
        yield


def _report(operation: str, result: str, size: int, seconds: float) -> None:
    telemetry().metrics.claim_check(operation, result, size, seconds)


#: What begins at which step, and again after how many.
_SCHEDULE: dict[str, tuple[tuple[Callable[[int], Work], int, int], ...]] = {
    SUPPORT: (
        (answer_ticket, 0, 4),
        (read_attachments, 6, 30),
        (export_report, 3, 10),
        (loop, 12, 40),
    ),
    RESEARCH: ((research, 0, 6), (compare, 4, 24), (mishap, 2, 16)),
}


def run(number: int, file: Path) -> None:
    """Run one process from its first step to its last, and write what was scraped."""
    process = PROCESSES[number]
    started = START + process.first * STEP_SECONDS
    prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
    for collector in (GC_COLLECTOR, PLATFORM_COLLECTOR, PROCESS_COLLECTOR):
        prometheus_client.REGISTRY.unregister(collector)
    telemetry().metrics.record(semconv.PROCESS_START, started)
    # As the table of genai-prices has it: another process would read it, in a time of its own.
    models.models._known[MODEL] = models.ModelFacts(WINDOW, ((0, 2.5e-6, 1.25e-6, 2.5e-6, 1e-5),))
    targets = [Target(prometheus_client.REGISTRY, process.job, process.instance, started)]
    going: list[tuple[contextvars.Context, Work]] = []
    if process.job == SUPPORT:
        targets.append(Target(sidecar, DAPRD, "support-0:9090", started))
        handler.report_integration("langgraph", "1.2.22", "langgraph.prebuilt.tool_node:ToolNode._run_one")
    else:
        going.append((contextvars.copy_context(), read_again(file.parent)))
        handler.report_integration("openai-agents", "9.0.0", "unmatched")
    samples = Samples()
    for step in range(process.first, process.end):
        for begin, first, period in _SCHEDULE[process.job]:
            if step >= first and (step - first) % period == 0:
                going.append((contextvars.copy_context(), begin(step)))
        # Each execution goes on in a context of its own, as tasks of an event loop do, until there is no more of it.
        going = [(context, work) for context, work in going if context.run(next, work, work) is not work]
        for target in targets:
            samples.scrape(target, START + step * STEP_SECONDS)
    samples.write(file)


if __name__ == "__main__":
    run(int(sys.argv[1]), Path(sys.argv[2]))
