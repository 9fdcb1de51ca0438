"""The budget of a result: the limit of the weakest layer on its way, on the span, in a counter, and as the ceiling."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.servers.otlp import OtlpReceiver

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

# Temporal accepts payloads of 2 MiB, 2,097,152 bytes.
_RUN = """
import json
import agent_otel

@agent_otel.tool
def search(size):
    return "x" * size

def state(size):
    agent_otel.payload(b"x" * size, runtime="temporal", workflow="w", direction="input")

shown = []
with agent_otel.execution("run-1", workflow="w"):
    state(500_000)
    shown.append(search(100_000))
    state(600_000)  # grown by the result
    shown.append(search(200_000))
    state(1_000_000)  # grown by twice the result
    shown.append(search(300_000))
    shown.append(search(250_000))
shown.append(search(16_001))
print(json.dumps([text[:400] for text in shown]))
"""
_BUDGETS = [
    (2_097_152 - 500_000, "payload"),
    (2_097_152 - 600_000, "payload"),
    ((2_097_152 - 1_000_000) // 2, "payload"),
    ((2_097_152 - 1_000_000 - 2 * 300_000) // 2, "payload"),  # 248,576: less than the result
    (16_000, "default"),
]


def _run(environment: Environment, **more: str) -> tuple[list[str], list[tuple[object, object]], dict[str, float]]:
    """Return the beginnings of the results, the budgets on the spans, and the counters of results above them."""
    with OtlpReceiver() as receiver:
        env = {"AGENT_OTEL": "1", "OTEL_METRICS_EXPORTER": "otlp", **receiver.environment(), **more}
        child = environment.run(_RUN, env=env, check=True)
        tools = [span.attributes for span in receiver.spans if "tool.name" in span.attributes]
    budgets = [(span["tool.result.budget_bytes"], span["tool.result.budget_layer"]) for span in tools]
    over = {
        str(point.attributes["layer"]): point.value
        for point in receiver.latest("agent_otel.tool.results.over_budget")
        if point.value
    }
    return json.loads(child.stdout), budgets, over


@pytest.mark.shows("001.alert")
def test_the_weakest_layer_is_on_the_span_and_counts(environment: Callable[[str], Environment]) -> None:
    shown, budgets, over = _run(environment("bare"))

    assert shown == ["x" * 400] * 5
    assert budgets == _BUDGETS
    assert over == {"payload": 1, "default": 1}


@pytest.mark.parametrize(
    ("variables", "transport_bytes"),
    [
        ({"AWS_LAMBDA_FUNCTION_NAME": "tools"}, 6_291_456),
        ({"VERCEL": "1"}, 4_500_000),
        ({"FUNCTION_TARGET": "tools"}, 32_000_000),
        ({"AWS_LAMBDA_FUNCTION_NAME": "tools", "AGENT_OTEL_CAPS": "transport.message=1MB"}, 1_000_000),
    ],
)
@pytest.mark.shows("001.weakest_layer")
def test_the_response_of_the_platform_is_a_layer(
    environment: Callable[[str], Environment], variables: dict[str, str], transport_bytes: int
) -> None:
    _, budgets, over = _run(environment("bare"), **variables)

    assert budgets == [
        *(min((room, "payload"), (transport_bytes, "transport")) for room, _ in _BUDGETS[:4]),
        (transport_bytes, "transport"),
    ]
    assert over == {"payload": 1}


def test_a_ceiling_is_a_layer_of_its_own(environment: Callable[[str], Environment]) -> None:
    _, budgets, over = _run(environment("bare"), AGENT_OTEL_RESULT_CEILING_BYTES="400000")

    assert budgets == [(400_000, "ceiling")] * 3 + [_BUDGETS[3]] + [(400_000, "ceiling")]
    assert over == {"payload": 1}


@pytest.mark.shows("001.weakest_layer")
def test_the_automatic_ceiling_withholds_what_the_payload_cannot_carry(
    environment: Callable[[str], Environment],
) -> None:
    shown, budgets, over = _run(environment("bare"), AGENT_OTEL_RESULT_CEILING_BYTES="auto")

    assert [text[:1] for text in shown] == ["x", "x", "x", "{", "x"]
    assert '"limit_bytes": 248576' in shown[3]
    assert budgets == _BUDGETS
    assert over == {"default": 1}  # the error in place of the fourth result fits
