"""A real Temporal server: the CLI's, from PyPI, with its state in memory."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import grpc  # type: ignore[import-untyped, unused-ignore] # its stubs are a package of their own

from tests import environments
from tests.system.engines import starting

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEALTH = "/grpc.health.v1.Health/Check"
_FRONTEND = b"temporal.api.workflowservice.v1.WorkflowService"
_SERVING = b"\x08\x01"
_QUICKLY = [(f"grpc.{which}_reconnect_backoff_ms", 20) for which in ("initial", "min", "max")]


@dataclass(frozen=True)
class Temporal:
    """A server that answers; its namespace is ``default``."""

    #: What ``Client.connect`` takes, ``host:port``.
    address: str


@contextlib.contextmanager
def server(**dynamic_config: Any) -> Iterator[Temporal]:
    """Start one, with values of its dynamic configuration: ``server(**{"limit.blobSize.error": 4096})``.

    Sizes are bytes. The server asks for an error's limit only above that for a warning, which follows unless it is
    given, too. UnavailableError when the environment ``temporal`` cannot be made.
    """
    home = environments.environment("temporal")
    port = starting.free_port()
    warnings = {f"{key[:-5]}warn": value for key, value in dynamic_config.items() if key.endswith(".error")}
    chosen = {**warnings, **dynamic_config}.items()
    values = [f"--dynamic-config-value={key}={json.dumps(value)}" for key, value in chosen]
    address = f"127.0.0.1:{port}"
    options = ("--headless", "--ip", "127.0.0.1", "--port", str(port), "--log-level", "error", *values)
    with (
        starting.folder() as folder,
        grpc.insecure_channel(address, _QUICKLY) as channel,
        starting.process(
            home.program("temporal"),
            *("server", "start-dev", *options),
            answers=lambda: _serves(channel),
            env=home.environ({"HOME": str(folder)}),
            cwd=folder,
        ),
    ):
        yield Temporal(address)


def _serves(channel: Any) -> bool:
    """Ask for the frontend's health; the two messages are too small to need their generated classes."""
    with contextlib.suppress(grpc.RpcError):
        request = b"\n%c%b" % (len(_FRONTEND), _FRONTEND)
        return bool(channel.unary_unary(_HEALTH)(request, timeout=1) == _SERVING)
    return False
