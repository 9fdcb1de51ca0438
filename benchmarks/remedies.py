"""What the remedies cost: the claim check, which children have on, and the views of a history.

``python -m benchmarks.remedies views SHAPE...``, ``… first SHAPE...``, ``… alone``, ``… requests`` and
``… claim-check URL`` are the children; they print their figures as JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import children, clock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agent_otel.remedies.history.request_rewriter import Views

_MS = 1000 / 3.1  # in U, on the server where the budgets were set
_VIEWS = 5 * _MS
_STORED = {"file": 15 * _MS, "Redis": 25 * _MS}
_STALL_MS = 5.0
_ROUNDS = 40
_REMOVED_BYTES = 100_000  # at least, by each view
_CALLS = 100
_RESULT = json.dumps([{"number": n, "title": f"change {n}", "state": "open", "draft": False} for n in range(300)])
_SOURCE = "".join(f'    if token == "{n}":\n        return parsed["{n}"]\n' for n in range(100))
_MIB = "x" * (1024 * 1024)

Row = tuple[str, float, float, str]
"""What, the budget, what was measured, the unit."""


def rows() -> Iterator[Row]:
    """Every budget of the remedies. Where there is no Redis to be had, its rows are left out, and that is said."""
    from tests.environments import environment

    plain = [shape for shape in SHAPES if shape != "langchain"]
    for child, what in (("views", "views of 200 messages, 2 MB"), ("first", "the same, results never met before")):
        shapes = _child(sys.executable, child, *plain)
        shapes |= _child(str(environment("langchain").python), child, "langchain")
        for shape, took in shapes.items():
            yield f"{what}: {shape}", _VIEWS, took, "U"
    for remedy, took in _child(sys.executable, "alone").items():
        yield f"results never met before, one remedy: {remedy}", _VIEWS, took, "U"
    for remedy, took in _child(sys.executable, "requests").items():
        yield f"the same messages: {remedy}", _VIEWS, took, "U"
    with tempfile.TemporaryDirectory() as folder:
        yield from _stored("file", Path(folder).as_uri())
    with _redis() as url:
        if url is not None:
            yield from _stored("Redis", url)


@contextlib.contextmanager
def _redis() -> Iterator[str | None]:
    from tests.interpreters import UnavailableError
    from tests.system.engines import redis, starting

    with contextlib.ExitStack() as stack:
        try:
            folder = stack.enter_context(starting.folder())
            url = stack.enter_context(redis.server(folder / "redis"))
        except UnavailableError as error:
            print(f"no Redis: {error}", file=sys.stderr)
            yield None
        else:
            yield url


def _stored(store: str, url: str) -> Iterator[Row]:
    took = _child(sys.executable, "claim-check", url)
    for kind in ("sync", "async"):
        yield f"claim check of 1 MiB, {store}, {kind} tool", _STORED[store], took[kind], "U"
    yield f"claim check of 1 MiB, {store}: longest wait of the event loop", _STALL_MS, took["stall"], "ms"


def _child(python: str, *arguments: str) -> dict[str, float]:
    measured: dict[str, float] = json.loads(children.last_line(python, "-m", "benchmarks.remedies", *arguments))
    return measured


# --- views ---------------------------------------------------------------------------------------------------------


def calls() -> Iterator[tuple[str, dict[str, Any], str]]:
    """Id, arguments and result of each call; one in four writes a file of 5 KB, and all return 19 KB.

    A result has a slash and an R, with which a text may have any kind of reference.
    """
    for number in range(_CALLS):
        arguments = {"path": f"src/{number}.py"}
        if number % 4 == 0:
            arguments["content"] = (_SOURCE[number:] + _SOURCE)[:5_000]
        yield f"call_{number}", arguments, f"{number} src/README {_RESULT}"[:19_000]


def _chat() -> Iterator[Any]:
    for call, arguments, result in calls():
        function = {"name": "work", "arguments": json.dumps(arguments)}
        yield {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": call, "type": "function", "function": function}],
        }
        yield {"role": "tool", "tool_call_id": call, "content": result}


def _responses() -> Iterator[Any]:
    for call, arguments, result in calls():
        yield {"type": "function_call", "call_id": call, "name": "work", "arguments": json.dumps(arguments)}
        yield {"type": "function_call_output", "call_id": call, "output": result}


def _anthropic() -> Iterator[Any]:
    for call, arguments, result in calls():
        said = {"type": "text", "text": "I work."}
        asked = {"type": "tool_use", "id": call, "name": "work", "input": arguments}
        answer = {"type": "tool_result", "tool_use_id": call, "content": [{"type": "text", "text": result}]}
        yield {"role": "assistant", "content": [said, asked]}
        yield {"role": "user", "content": [answer]}


def _gemini() -> Iterator[Any]:
    for _, arguments, result in calls():
        response = {"name": "work", "response": {"result": result}}
        yield {"role": "model", "parts": [{"functionCall": {"name": "work", "args": arguments}}]}
        yield {"role": "user", "parts": [{"functionResponse": response}]}


def _converse() -> Iterator[Any]:
    for call, arguments, result in calls():
        asked = {"toolUse": {"toolUseId": call, "name": "work", "input": arguments}}
        answer = {"toolResult": {"toolUseId": call, "status": "success", "content": [{"text": result}]}}
        yield {"role": "assistant", "content": [{"text": "I work."}, asked]}
        yield {"role": "user", "content": [answer]}


def _langchain() -> Iterator[Any]:
    from langchain_core.messages import AIMessage, ToolMessage  # type: ignore[import-not-found,unused-ignore]

    for call, arguments, result in calls():
        asked = {"id": call, "name": "work", "args": arguments, "type": "tool_call"}
        raw = {"id": call, "type": "function", "function": {"name": "work", "arguments": json.dumps(arguments)}}
        yield AIMessage(content="", id=f"ai-{call}", tool_calls=[asked], additional_kwargs={"tool_calls": [raw]})
        yield ToolMessage(content=result, tool_call_id=call, id=f"tool-{call}")


SHAPES: dict[str, Callable[[], Iterator[Any]]] = {
    "chat": _chat,
    "responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "converse": _converse,
    "langchain": _langchain,
}


def views(*shapes: str) -> dict[str, float]:
    """Trimming, compaction and deduplication of a history in one reading, in U, by shape."""
    from agent_otel.remedies.history.argument_compaction import ABOVE_BYTES, LargeArguments
    from agent_otel.remedies.history.request_rewriter import Views

    wanted, large = Views(), LargeArguments(ABOVE_BYTES)
    histories = {shape: list(SHAPES[shape]()) for shape in shapes}
    for shape, messages in histories.items():
        removed_bytes = wanted.of(messages, large).removed_bytes
        if removed_bytes["trim"] < _REMOVED_BYTES or removed_bytes["compact"] < _REMOVED_BYTES:
            raise SystemExit(f"{shape}: nothing was to be done: {removed_bytes}")
    took = clock.measure({shape: lambda m=m: wanted.of(m, large) for shape, m in histories.items()})  # type: ignore[misc]
    return {shape: took[shape] for shape in shapes}


def first(*shapes: str) -> dict[str, float]:
    """The same in a process that has none of the results before, such as one that takes a conversation up, in U."""
    from agent_otel.remedies.history.request_rewriter import Views

    return _never_met({shape: (shape, Views()) for shape in shapes})


def alone() -> dict[str, float]:
    """Each of the views alone in such a process, for OpenAI's chat, in U."""
    from agent_otel.remedies.history.request_rewriter import Views

    views = (Views(compact=False, deduplicate=False), Views(trim=False, deduplicate=False), Views(False, False))
    return _never_met(
        {name: ("chat", one) for name, one in zip(("trim", "compact", "deduplicate"), views, strict=True)}
    )


def _never_met(cases: dict[str, tuple[str, Views]]) -> dict[str, float]:
    from agent_otel.remedies.history.argument_compaction import ABOVE_BYTES, LargeArguments
    from agent_otel.remedies.history.trimming import _found

    unit = clock.measure({})["seconds per U"]
    best = dict.fromkeys(cases, float("inf"))
    gc.disable()
    for _ in range(_ROUNDS):
        for name, (shape, wanted) in cases.items():
            messages, large = list(SHAPES[shape]()), LargeArguments(ABOVE_BYTES)  # with texts that have no hash yet
            _found.clear()
            started = time.thread_time()
            wanted.of(messages, large)
            best[name] = min(best[name], time.thread_time() - started)
    return {name: took / unit for name, took in best.items()}


def requests() -> dict[str, float]:
    """What the other remedies read of the same request of OpenAI's chat, in U."""
    from agent_otel.remedies.claim_check.dialogue import mentions
    from agent_otel.remedies.history.request_rewriter import is_due
    from agent_otel.remedies.history.summarizer import weigh

    messages = list(_chat())
    took = clock.measure(
        {
            "a limit that was reached": lambda: is_due(messages, {"tool_calls": 200}),
            "a reference of the claim check": lambda: mentions(messages),
            "tokens for a summary": lambda: [weigh(message) for message in messages],
        }
    )
    took.pop("seconds per U")
    return took


# --- claim check ---------------------------------------------------------------------------------------------------


def claim_check(url: str) -> dict[str, float]:
    """What storing adds to a call that returns 1 MiB, in U of the caller's time, and milliseconds of an event loop."""
    os.environ |= {
        "AGENT_OTEL": "1",
        "AGENT_OTEL_METRICS": "prometheus",
        "AGENT_OTEL_CLAIM_CHECK_KEY": "a key of a benchmark",
    }
    os.environ |= {"AGENT_OTEL_CLAIM_CHECK": url, "AGENT_OTEL_CLAIM_CHECK_BUDGET": "5"}
    import agent_otel
    import agent_otel.auto

    @agent_otel.tool
    def blocking(number: int) -> str:
        return _MIB

    @agent_otel.tool
    async def later(number: int) -> str:
        return _MIB

    unit = clock.measure({}, rounds=_ROUNDS)["seconds per U"]
    if clock.CORES:
        os.sched_setaffinity(0, clock.CORES)  # the workers' threads are part of it
    with agent_otel.execution("run"):
        sync = min(_seconds(lambda: _is_stored(blocking(7))) for _ in range(_ROUNDS))
        took, stalls = zip(*(asyncio.run(_awaited(later)) for _ in range(_ROUNDS)), strict=True)
    return {"sync": sync / unit, "async": min(took) / unit, "stall": min(stalls) * 1000}


def _seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def _is_stored(result: str) -> None:
    if "the whole is stored" not in result[-1000:]:
        raise SystemExit(f"not stored: {result[-1000:]}")


async def _awaited(tool: Callable[[int], Any]) -> tuple[float, float]:
    """Seconds of one call, and the longest that another task had to wait for its turn meanwhile."""
    running = asyncio.ensure_future(tool(7))
    started = before = time.perf_counter()
    longest = 0.0
    while not running.done():
        await asyncio.sleep(0)
        now = time.perf_counter()
        longest, before = max(longest, now - before), now
    _is_stored(await running)
    return time.perf_counter() - started, longest


if __name__ == "__main__":
    what, *arguments = sys.argv[1:]
    parts: dict[str, Callable[..., dict[str, float]]] = {
        "views": views,
        "first": first,
        "alone": alone,
        "requests": requests,
        "claim-check": claim_check,
    }
    print(json.dumps(parts[what](*arguments)))
