"""Whoever sets up OpenTelemetry, and whenever: a tool call is one span at the user's exporter."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests import environments
from tests.environments import Environment
from tests.patience import communicate
from tests.unit._bootstrap.conftest import Maker, site_packages

_PROVIDER = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
"""
_TOOL = """
from langchain_core.tools import tool

@tool
def shout(text: str) -> str:
    "Say it louder."
    return text.upper()
"""
_CALL = """
assert "HI" == shout.invoke({"text": "hi"})
"""
_REPORT = """
print(*[span.name for span in exporter.get_finished_spans()])
"""


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(_PROVIDER + _TOOL + _CALL, id="before the framework's import"),
        pytest.param(_TOOL + _PROVIDER + _CALL, id="after the framework's import"),
        pytest.param(_TOOL + _CALL + _PROVIDER + _CALL, id="after a first call"),
    ],
)
def test_the_users_provider(environment: Callable[[str], Environment], program: str) -> None:
    run = environment("langchain").run(program + _REPORT, env={"AGENT_OTEL": "1"})

    assert ("execute_tool shout\n", "", 0) == (run.stdout, run.stderr, run.returncode)


@pytest.mark.parametrize("switch", [{}, {"AGENT_OTEL": "1"}])
def test_the_provider_of_opentelemetry_instrument(
    environment: Callable[[str], Environment], switch: dict[str, str]
) -> None:
    servers = environment("servers")
    exporters = {"OTEL_TRACES_EXPORTER": "console", "OTEL_METRICS_EXPORTER": "none", "OTEL_LOGS_EXPORTER": "none"}
    command = (str(servers.program("opentelemetry-instrument")), str(servers.python), "-c", _TOOL + _CALL)
    with servers.start(*command, env={**exporters, **switch}) as child:
        out, complaints = communicate(child, 60)

    assert ("", 0) == (complaints, child.returncode)
    assert 1 == out.count('"name": "execute_tool shout"')


def test_nothing_is_exported_and_nobody_notices(environment: Callable[[str], Environment]) -> None:
    run = environment("langchain").run(_TOOL + _CALL + "print(42)", env={"AGENT_OTEL": "1"})

    assert ("42\n", "", 0) == (run.stdout, run.stderr, run.returncode)


def test_without_opentelemetry_there_is_one_warning_and_the_right_result(make: Maker, wheel: Path) -> None:
    made = make("3.11", "langchain-core==1.7.2", purpose="missing")
    environments.uv("pip", "install", "--no-deps", "--python", str(made.python), str(wheel))
    run = made.run(_TOOL + _CALL + _CALL + "print(42)", env={"AGENT_OTEL": "1"})

    assert not list(site_packages(made).glob("opentelemetry"))
    assert ("42\n", 0) == (run.stdout, run.returncode)
    assert 1 == len(run.stderr.splitlines())
    assert run.stderr.startswith("agent_otel cannot measure anything: ModuleNotFoundError at ")
