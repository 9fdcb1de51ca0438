"""How a program switches on the instrumentations that have no instrumentor of OpenTelemetry's kind."""

# In its environment each library is there, and where types are checked it is not.
# mypy: disable-error-code="import-not-found,import-untyped,misc,unused-ignore"

from __future__ import annotations

import functools
import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.contract.child import Telemetry

#: Names of spans that do not go through OpenTelemetry's provider of the program.
SEEN: list[str] = []


def logfire(parts: str, telemetry: Telemetry) -> None:
    """Let Logfire set the providers, and instrument these libraries."""
    import logfire

    logfire.configure(
        send_to_logfire=False,
        console=False,
        inspect_arguments=False,
        additional_span_processors=[telemetry.processor],
        metrics=logfire.MetricsOptions(additional_readers=[telemetry.reader]),
    )
    for part in parts.split(","):
        getattr(logfire, f"instrument_{part}")()


def pydantic_ai(_: str, __: Telemetry) -> None:
    """Let all agents trace themselves."""
    from pydantic_ai import Agent

    Agent.instrument_all()


def mlflow(flavors: str, _: Telemetry) -> None:
    """Log runs of these libraries."""
    for flavor in flavors.split(","):
        importlib.import_module(f"mlflow.{flavor}").autolog()


def traceloop(_: str, __: Telemetry) -> None:
    """Instrument all that Traceloop's SDK knows."""
    from traceloop.sdk import Traceloop

    Traceloop.init(disable_batch=True)


def processor(path: str, _: Telemetry) -> None:
    """Let a span processor of another rewrite spans before they are kept."""
    from opentelemetry import trace

    module, name = path.rsplit(".", 1)
    every: Any = trace.get_tracer_provider()._active_span_processor  # type: ignore[attr-defined]
    every._span_processors = (getattr(importlib.import_module(module), name)(), *every._span_processors)


def langfuse_openai(_: str, __: Telemetry) -> None:
    """Make a client, and replace the methods of OpenAI's SDK, which the import does."""
    from langfuse import Langfuse

    Langfuse()
    importlib.import_module("langfuse.openai")


def langsmith(library: str, _: Telemetry) -> None:
    """Wrap all clients of OpenAI's SDK, or trace the runs of openai-agents."""
    if library == "openai_agents":
        from agents import add_trace_processor
        from langsmith.integrations.openai_agents_sdk import OpenAIAgentsTracingProcessor

        add_trace_processor(OpenAIAgentsTracingProcessor())
        return
    import openai
    from langsmith.wrappers import wrap_openai

    for kind in (openai.OpenAI, openai.AsyncOpenAI):
        _wrap_made(kind, wrap_openai)


def _wrap_made(kind: Any, wrap: Callable[[Any], object]) -> None:
    """Wrap each client of this class when it has been made."""
    make = kind.__init__

    @functools.wraps(make)
    def made(self: Any, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        wrap(self)

    kind.__init__ = made


def ddtrace(libraries: str, _: Telemetry) -> None:
    """Patch these libraries, and keep traces from the agent, which is not there."""
    import ddtrace
    from ddtrace.trace import TraceFilter, tracer

    class Kept(TraceFilter):  # type: ignore[misc]
        def process_trace(self, trace: list[Any]) -> None:
            SEEN.extend(span.name for span in trace)

    tracer.configure(trace_processors=[Kept()])
    ddtrace.patch(**dict.fromkeys(libraries.split(","), True))


def flush() -> None:
    """Wait for what is sent in the background."""
    runs = sys.modules.get("langsmith.run_trees")
    if runs is not None:
        runs.get_cached_client().flush()
    if "mlflow" in sys.modules:
        importlib.import_module("mlflow").flush_trace_async_logging()
