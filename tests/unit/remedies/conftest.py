"""Settings of one test, and nothing left of them after it."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

import pytest

from agent_otel import settings
from agent_otel.core import execution_context, remedy_hooks
from agent_otel.integrations import preload  # noqa: F401 - remedies register with the core
from agent_otel.remedies import backpressure, limits, pagination
from agent_otel.remedies.claim_check import payload_store, policy
from agent_otel.remedies.dispatch_policy import source
from agent_otel.remedies.history.request_rewriter import Requests
from agent_otel.remedies.tool_results import Remedies

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def set_variables(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Set variables, and read the settings anew; each test begins and ends with nothing kept."""
    cached = (
        *(settings.current, remedy_hooks.result_remedies, remedy_hooks.skips_calls, policy.current, pagination.signer),
        *(source.current, backpressure.current, remedy_hooks.backpressure, limits.current),
    )

    def forget() -> None:
        for each in cached:
            each.cache_clear()
        execution_context.loop.set(None)  # a model request in a test's own context begins one

    def set_them(**variables: str) -> None:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        forget()

    # Stores of another test's payloads may be there still, until the garbage collector has met them.
    monkeypatch.setattr(payload_store, "opened", weakref.WeakSet())
    # As a process registers them that has the settings from its start.
    monkeypatch.setattr(remedy_hooks, "make_result_remedies", Remedies)
    monkeypatch.setattr(remedy_hooks, "make_request_remedies", Requests)
    monkeypatch.setattr(remedy_hooks, "make_backpressure", backpressure.current)
    forget()
    yield set_them
    limits.token_counter(None)
    monkeypatch.undo()
    forget()
