"""Receivers and programs for the tests of what goes out."""

import socket
from collections.abc import Callable, Iterator

import pytest

from tests.environments import Environment
from tests.servers.otlp import OtlpReceiver

#: A hand-written loop: the cheapest real way through the doors, and the same in every environment.
CALL = """
import agent_otel

def call(name, result, arguments=None, **more):
    with agent_otel.tool_call(name, {} if arguments is None else arguments, **more) as running:
        return running.result(result)

def fail(name, error):
    try:
        with agent_otel.tool_call(name, {}):
            raise error
    except type(error) as caught:
        assert caught is error
"""


@pytest.fixture
def receiver() -> Iterator[OtlpReceiver]:
    """Return a collector that keeps what it gets."""
    with OtlpReceiver() as running:
        yield running


@pytest.fixture
def hanging() -> Iterator[OtlpReceiver]:
    """Return a collector that accepts and never answers."""
    with OtlpReceiver(hang=True) as running:
        yield running


@pytest.fixture
def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@pytest.fixture(params=["bare", "oldest"])
def both_ends(request: pytest.FixtureRequest, environment: Callable[[str], Environment]) -> Environment:
    """Return the newest and then the oldest OpenTelemetry and prometheus_client."""
    return environment(request.param)
