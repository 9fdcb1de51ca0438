"""Bytes that a remedy keeps from the model are counted once, and never below 0."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from agent_otel import semconv
from agent_otel.core.cost.model_tokens import of_request, removed
from agent_otel.settings import Settings
from agent_otel.telemetry.setup import Telemetry
from agent_otel.telemetry.sinks.otel import OTelSink

if TYPE_CHECKING:
    import pytest


def _counted(reader: InMemoryMetricReader) -> dict[str, int]:
    """Return the sums of removed bytes by strategy."""
    data: Any = reader.get_metrics_data()
    return {
        point.attributes[semconv.STRATEGY]: point.value
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if metric.name == "agent_otel.context.removed"
        for point in metric.data.data_points
    }


def _telemetry() -> tuple[Telemetry, InMemoryMetricReader]:
    of_request({})  # forgets what another test has removed
    reader = InMemoryMetricReader()
    return Telemetry(Settings(), None, [OTelSink(MeterProvider([reader]).get_meter("test"))]), reader


def test_bytes_that_were_counted_before_are_not_counted_again(caplog: pytest.LogCaptureFixture) -> None:
    out, reader = _telemetry()
    removed(out, "trim", 1_000)
    removed(out, "trim", 1_500, counted_bytes=1_000)
    removed(out, "trim", 900, counted_bytes=1_500)  # fewer than before: nothing to count
    removed(out, "compact", 10)
    assert {"trim": 1_500, "compact": 10} == _counted(reader)
    assert "" == caplog.text  # a counter logs an amount below 0
    assert {"trim": 900, "compact": 10, "ceiling": 7} == of_request({"ceiling": 7})


def test_a_request_has_the_bytes_of_its_results_and_its_own_once() -> None:
    out, _ = _telemetry()
    assert {"claim_check": 5} == of_request({"claim_check": 5})
    removed(out, "claim_check", 20)
    assert {"claim_check": 25} == of_request({"claim_check": 5})
    assert {"claim_check": 5} == of_request({"claim_check": 5})


def test_a_replacement_that_is_larger_than_the_result_removes_nothing() -> None:
    out, reader = _telemetry()
    out.metrics.remedied("search", "claim_check", -300)
    assert {"claim_check": 0} == _counted(reader)
    out.metrics.remedied("search", "claim_check", 200)
    assert {"claim_check": 200} == _counted(reader)
