"""How the environment becomes settings."""

from __future__ import annotations

import logging
from dataclasses import fields

import pytest

from agent_otel import _shield, settings
from agent_otel.settings import Settings


@pytest.fixture(autouse=True)
def _nothing_said_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_shield, "_said", set())


def test_an_empty_environment_gives_the_defaults() -> None:
    none: frozenset[str] = frozenset()
    assert Settings("auto", "auto", None, "0.0.0.0", True, none, 16000, "", 64, False, False) == settings.load({})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("16000", 16000),
        ("32KiB", 32768),
        ("2 MiB", 2097152),
        ("1.5mib", 1572864),
        ("64kb", 64000),
        ("1GiB", 1073741824),
        ("10B", 10),
    ],
)
def test_sizes(text: str, expected: int) -> None:
    assert expected == settings.load({"AGENT_OTEL_LARGE_RESULT_BYTES": text}).large_result_bytes


@pytest.mark.parametrize(
    ("variable", "text", "name", "expected"),
    [
        ("AGENT_OTEL_SPANS", "Enrich", "spans", "enrich"),
        ("AGENT_OTEL_METRICS", " both ", "metrics", "both"),
        ("AGENT_OTEL_PROMETHEUS_PORT", "9464", "prometheus_port", 9464),
        ("AGENT_OTEL_SDK", "off", "sdk", False),
        (
            "AGENT_OTEL_DISABLED_INTEGRATIONS",
            "LangGraph, mcp,,",
            "disabled_integrations",
            frozenset({"langgraph", "mcp"}),
        ),
        ("AGENT_OTEL_FLUSH_ON_SIGTERM", "YES", "flush_on_sigterm", True),
        ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "SPAN_AND_EVENT", "capture_content", True),
        ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "EVENT_ONLY", "capture_content", False),
        ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true", "capture_content", True),
    ],
)
def test_values(variable: str, text: str, name: str, expected: object) -> None:
    assert expected == getattr(settings.load({variable: text}), name)


WRONG = {
    "AGENT_OTEL_SPANS": "maybe",
    "AGENT_OTEL_METRICS": "statsd",
    "AGENT_OTEL_PROMETHEUS_PORT": "99999",
    "AGENT_OTEL_SDK": "2",
    "AGENT_OTEL_LARGE_RESULT_BYTES": "lots",
    "AGENT_OTEL_FLUSH_ON_SIGTERM": "perhaps",
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "some",
}


@pytest.mark.parametrize(("variable", "text"), WRONG.items())
def test_a_wrong_value_is_one_warning_and_the_default(
    variable: str, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "agent_otel")
    assert settings.load({}) == settings.load({variable: text}) == settings.load({variable: text})
    assert 1 == len(caplog.records)
    assert f"{variable}={text!r}" in caplog.messages[0]


def test_every_setting_says_what_it_means() -> None:
    for item in fields(Settings):
        assert item.metadata["variable"].startswith(("AGENT_OTEL_", "OTEL_"))
        assert item.metadata["meaning"].endswith(".")
