"""The model's context window as a layer of the budget: half of what is left of it, in the bytes of the run's tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_otel import semconv
from agent_otel.core.execution_state import ContextUse, ExecutionState
from agent_otel.core.executions import Executions
from agent_otel.core.payload_cap import budget_of
from agent_otel.settings import Settings

if TYPE_CHECKING:
    from agent_otel.core.payload_cap import Budget


def budget(tokens: int, window: int | None, request_bytes: int, *handed: int) -> Budget:
    execution = ExecutionState()
    execution.context, execution.context_bytes = ContextUse(tokens, window), request_bytes
    for result_bytes in handed:
        Executions().handed_on(execution, result_bytes)
    return budget_of(execution, Settings())


@pytest.mark.shows("001.weakest_layer")
def test_half_of_what_is_left_of_the_window_is_a_layer() -> None:
    # 60,000 of 100,000 tokens are left, each of them 3 bytes.
    assert budget(40_000, 100_000, 120_000) == (90_000, semconv.CONTEXT)


def test_results_since_the_last_request_take_of_it() -> None:
    assert budget(40_000, 100_000, 120_000, 100_000, 20_000) == (30_000, semconv.CONTEXT)


def test_nothing_is_left_of_a_full_window() -> None:
    assert budget(100_001, 100_000, 300_000) == (0, semconv.CONTEXT)
    assert budget(40_000, 100_000, 120_000, 1_000_000) == (0, semconv.CONTEXT)


def test_without_a_window_it_is_no_layer() -> None:
    assert budget(40_000, None, 120_000) == (16_000, semconv.DEFAULT)
    assert budget_of(ExecutionState(), Settings()) == (16_000, semconv.DEFAULT)
