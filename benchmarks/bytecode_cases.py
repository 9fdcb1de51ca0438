"""The calls of ``benchmarks.bytecodes``: ``python -m benchmarks.bytecode_cases FUNCTION ARGUMENT`` counts some."""

from __future__ import annotations

import functools
import json
import os
import sys
from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

TEXT = "found three lamps in Berlin, each with its price\n"
ROWS = [{"number": number, "title": f"change {number}", "state": "open", "draft": False} for number in range(220)]


def executed(call: Callable[[], object], warm: int = 30) -> int:
    """Return the bytecodes of a call, the minimum of three after ``warm`` calls."""
    for _ in range(warm):
        call()
    return min(_traced(call) for _ in range(3))


def _traced(call: Callable[[], object]) -> int:
    counted = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal counted
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        counted += event == "opcode"
        return trace

    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(None)
    return counted


def hand_written(sink: str) -> dict[str, float]:
    """Return the counts of calls of decorated tools and of ``tool_call``, with spans that are recorded."""
    os.environ |= {"AGENT_OTEL": "1", "AGENT_OTEL_METRICS": sink}
    from opentelemetry import metrics, trace
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider

    import agent_otel

    trace.set_tracer_provider(TracerProvider())
    if sink == "otel":
        metrics.set_meter_provider(MeterProvider([InMemoryMetricReader()]))
    text, page, ids = TEXT * 330, json.dumps({"items": ROWS, "next": "abc"}), count()

    @agent_otel.tool
    def plain(query: str) -> str:
        return text

    found: dict[str, float] = {"a text call": executed(lambda: plain("where"))}

    def returning(*results: object) -> Callable[[], object]:
        """Return a function that calls a tool with an id. The tool returns the results in turns."""
        numbers, name = count(), f"tool {next(ids)}"

        def call() -> None:
            with agent_otel.tool_call(name, {"query": "where"}, call_id=f"call_{next(ids)}") as made:
                made.result(results[next(numbers) % len(results)])

        return call

    shapes = (json.dumps({f"key_{number}": ROWS[:number]}) for number in range(3))
    with agent_otel.execution("one"):
        found["a text call with an id"] = executed(returning(text))
        found["a 16 KB dictionary with an id"] = executed(returning({"items": ROWS}))
        found["a 16 KB JSON text with an id"] = executed(returning(json.dumps(ROWS)))
        found["the same, of a tool that pages"] = executed(returning(page))
        found["the same, after other shapes"] = executed(returning(*shapes, json.dumps(ROWS)), 31)
        found["a 1 MB dictionary with an id"] = executed(returning({"items": ROWS * 65}), 3)
    return found


def langchain(peer: str) -> dict[str, float]:
    """Return the count that an instrumentation adds to a call of a LangChain tool."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider

    from benchmarks.peer import PEERS, invoke

    trace.set_tracer_provider(TracerProvider())
    before = executed(invoke(TEXT * 330))
    PEERS[peer]()
    return {"text": executed(invoke(TEXT * 330)) - before}


ANSWER = {
    "id": "1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "done"}}],
}


def _turn(number: int) -> list[Any]:
    function = {"name": "search", "arguments": f'{{"q": {number}}}'}
    call = {"id": f"call_{number}", "type": "function", "function": function}
    result = {"role": "tool", "tool_call_id": call["id"], "content": f"{number}: {TEXT * 40}"}
    return [{"role": "assistant", "content": None, "tool_calls": [call]}, result]


def openai(kind: str) -> dict[str, float]:
    """Return the counts of a request with one new turn after 2, 10 and 40 others.

    ``kind`` is `off`, `measured` (this process measured the results) or `restored` (another process did).
    """
    import httpx
    from openai import OpenAI  # type: ignore[import-not-found,unused-ignore]

    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=ANSWER))
    client = OpenAI(api_key="none", base_url="http://127.0.0.1:1", http_client=httpx.Client(transport=transport))
    if kind != "off":
        import agent_otel.auto
    found: dict[str, float] = {}
    for turns in (2, 10, 40):
        messages: list[Any] = [{"role": "user", "content": f"find it in {turns} turns"}]
        for number in range(turns + 3):
            if kind == "measured":
                with agent_otel.tool_call("search", {"q": number}, call_id=f"call_{number}") as made:
                    made.result(f"{number}: {TEXT * 40}")
            messages += _turn(number)
            if kind == "measured" or number >= turns:
                call = functools.partial(client.chat.completions.create, model="m", messages=messages)
                found[f"{turns} turns"] = _traced(call)
    return found


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](sys.argv[2])))
