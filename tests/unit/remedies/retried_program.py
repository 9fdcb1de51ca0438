"""Calls in two attempts of a step, and what ran of them, as JSON."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import agent_otel
from agent_otel.core import step_handler
from agent_otel.core.types import Step

if TYPE_CHECKING:
    from collections.abc import Callable

exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
ran: list[str] = []


@agent_otel.tool
def send(text: str) -> str:
    """Send a mail."""
    ran.append(text)
    return f"sent {text} as number {len(ran)}"


@agent_otel.tool
def look(text: str):  # type: ignore[no-untyped-def] # noqa: ANN201 - an object, which no annotation names
    """Return an object."""
    ran.append(text)
    return {"number": len(ran)}


@agent_otel.tool
def rows(text: str) -> list[int]:
    """Return a list, which is not stored."""
    ran.append(text)
    return [len(ran)]


@agent_otel.tool
def odd(text: str):  # type: ignore[no-untyped-def] # noqa: ANN201 - an object, which no annotation names
    """Return an object whose JSON would be another."""
    ran.append(text)
    return {1: len(ran), "pair": (1, 2)}


@agent_otel.tool
def large(text: str) -> str:
    """Return a text that the claim check stores."""
    ran.append(text)
    return "line\n" * 20_000


@agent_otel.tool
def large_object(text: str):  # type: ignore[no-untyped-def] # noqa: ANN201 - an object, which no annotation names
    """Return an object that the claim check stores."""
    ran.append(text)
    return {"rows": ["x" * 100] * 1_000}


@agent_otel.tool
async def later(text: str) -> str:
    """Send a mail, async."""
    ran.append(text)
    return f"sent {text} as number {len(ran)}"


@agent_otel.tool
def broken(text: str) -> str:
    """Fail the first time."""
    ran.append(text)
    if len(ran) == 1:
        raise ValueError(text)
    return "sent"


def twice() -> Any:
    """Make two equal calls, and one that is another."""
    return [send("a"), send("a"), send("b")]


def attempt(number: int, call: Callable[[], Any], execution: str) -> Any:
    step = step_handler.begin_step(Step("mine", "mail", "flow", execution, attempt=number))
    assert step is not None
    try:
        return call()
    except ValueError as error:
        return repr(error)
    finally:
        step.leave()


def attempts(name: str, call: Callable[[], Any]) -> Any:
    ran.clear()
    exporter.clear()
    answers = [attempt(number, call, f"run-{name}") for number in (1, 2, 3)]
    answered = [
        [dict(event.attributes or {}) for event in span.events if event.name == "tool_call"]
        for span in exporter.get_finished_spans()
    ]
    return {
        "answers": answers,
        "ran": list(ran),
        "answered": sum(event == [{"phase": "answered"}] for event in answered),
    }


numbers = iter(range(100))
CASES: dict[str, Callable[[], Any]] = {
    "equal calls": twice,
    "an object": lambda: look("a"),
    "a list": lambda: rows("a"),
    "no JSON": lambda: repr(odd("a")),
    "a large text": lambda: [(text := large("a"))[:4], len(text) < 40_000, text.count("claim:v2:")],
    "a large object": lambda: [type(found := large_object("a")).__name__, sorted(found)],
    "async": lambda: asyncio.run(later("a")),
    "a failure": lambda: broken("a"),
    "other arguments": lambda: send(str(next(numbers))),
}
print(json.dumps({name: attempts(name, call) for name, call in CASES.items()}))
