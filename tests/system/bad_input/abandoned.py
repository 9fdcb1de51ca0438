"""A program that abandons streams in reference cycles, while the garbage collector runs as often as it can.

The collector ends the streams in the middle of any code, also of code that holds a lock. Prints what was counted.
"""

from __future__ import annotations

import faulthandler
import gc
import json
import random
import sys
import threading
from typing import TYPE_CHECKING, Any

from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from prometheus_client import REGISTRY

import agent_otel
from agent_otel._internal import errors
from agent_otel.core.types import ModelReader, ModelRequest, RequestPart
from agent_otel.integrations import preload
from agent_otel.integrations.wrap import stand_in, watched, wrapper_for

if TYPE_CHECKING:
    from collections.abc import Generator

THREADS = 4
TURNS = 100
TOOLS = [{"type": "function", "function": {"name": f"tool_{number}"}} for number in range(10)]


class Client:
    """A client of a model, whose responses are streams."""

    def request(self, tools: list[Any]) -> Generator[dict[str, str], None, None]:
        """Stream a response."""

        def stream() -> Generator[dict[str, str], None, None]:
            yield {"delta": tools[0]["function"]["name"]}
            yield {"delta": "b"}

        return stream()


@agent_otel.tool
def search(size: int) -> str:
    """Return so many bytes."""
    return "x" * size


@agent_otel.tool
def letters(size: int) -> Generator[str, None, None]:
    """Yield so many bytes."""
    for _ in range(size):
        yield "x"


def _request(invocation: Any) -> ModelRequest:
    parts = [RequestPart("tools", invocation.arg(0, "tools")), RequestPart("user", "text")]
    return ModelRequest(parts, model="model")


def _abandon(stream: Any) -> None:
    """Read one item, and leave the stream in a cycle."""
    next(stream)
    cycle: list[Any] = [stream]
    cycle.append(cycle)


def _work(client: Client) -> None:
    for turn in range(TURNS):
        with agent_otel.execution(f"run {turn % 10}"):
            _abandon(client.request(TOOLS[: random.randrange(1, 10)]))  # noqa: S311 - no secret
            _abandon(letters(5))
            search(20_000)


def main() -> None:
    """Abandon streams in all threads."""
    faulthandler.dump_traceback_later(240, exit=True)
    trace.set_tracer_provider(TracerProvider())
    metrics.set_meter_provider(MeterProvider([InMemoryMetricReader()]))
    preload.load()
    reader = ModelReader(_request, lambda _: None, lambda _: None, watched, outermost=True)
    original = Client.request
    setattr(Client, "request", stand_in(original, wrapper_for(reader, original), Client, "request"))  # noqa: B010
    client = Client()
    gc.set_threshold(1, 1, 1)
    threads = [threading.Thread(target=_work, args=(client,)) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gc.set_threshold(700, 10, 10)
    gc.collect()
    agent_otel.flush()
    counts = {
        name: REGISTRY.get_sample_value("agent_otel_tool_args_size_bytes_count", {"gen_ai_tool_name": name})
        for name in ("search", "letters")
    }
    json.dump({"counts": counts, "errors": dict(errors.errors)}, sys.stdout)


if __name__ == "__main__":
    main()
