"""The model of the tests: it answers from a script, so that no key is needed and each run is the same."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

from agent_otel.testing import scripted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agent_otel.testing.servers.providers import ProvidersServer


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., ProvidersServer]]:
    """Return a function that starts a model with these replies, and points the SDKs at it."""
    with contextlib.ExitStack() as stack:

        def start(*replies: object) -> ProvidersServer:
            server = stack.enter_context(scripted(*replies))
            for name, value in server.environment.items():
                monkeypatch.setenv(name, value)
            return server

        yield start
