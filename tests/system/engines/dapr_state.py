"""A stand-in for the part of daprd's API that agents use beside workflows: its metadata and a state store in memory.

A real gRPC server on loopback, built on the service that the SDK ships, with daprd's limit on what it receives, and
the HTTP health check that the SDK's client waits for. The SDK's client finds them unasked.
"""

# ruff: noqa: ARG002, N802 - methods of the generated service
# mypy: disable-error-code="import-not-found,import-untyped,misc,unused-ignore"
# The SDK is not installed where types are checked.

from __future__ import annotations

import contextlib
import itertools
import threading
from concurrent import futures
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import grpc
from dapr.conf import settings
from dapr.proto.runtime.v1 import dapr_pb2_grpc, metadata_pb2, state_pb2
from google.protobuf import empty_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator

_PORTS = ("DAPR_RUNTIME_HOST", "DAPR_GRPC_PORT", "DAPR_HTTP_PORT")


@contextlib.contextmanager
def state_api(*, max_body_size: int = 4 * 1024 * 1024) -> Iterator[dict[str, bytes]]:
    """Run one on free ports, which become the SDK's defaults; yield what is stored. The size is in bytes."""
    stored: dict[str, bytes] = {}
    server = grpc.server(
        futures.ThreadPoolExecutor(16, "state"), options=[("grpc.max_receive_message_length", max_body_size)]
    )
    dapr_pb2_grpc.add_DaprServicer_to_server(_Service(stored), server)
    health = ThreadingHTTPServer(("127.0.0.1", 0), _Health)
    before = {name: getattr(settings, name) for name in _PORTS}
    settings.DAPR_RUNTIME_HOST = "127.0.0.1"
    settings.DAPR_GRPC_PORT = server.add_insecure_port("127.0.0.1:0")
    settings.DAPR_HTTP_PORT = health.server_port
    server.start()
    threading.Thread(target=health.serve_forever, daemon=True).start()
    try:
        yield stored
    finally:
        health.shutdown()
        health.server_close()
        server.stop(grace=1).wait()
        for name, value in before.items():
            setattr(settings, name, value)


class _Health(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        """Say that daprd is up."""
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Write nothing."""


class _Service(dapr_pb2_grpc.DaprServicer):
    """One state store; its name is not looked at. Etags are numbers, and a wrong one is refused."""

    def __init__(self, stored: dict[str, bytes]) -> None:
        self._stored = stored
        self._etags: dict[str, str] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def GetMetadata(self, request: Any, context: Any) -> Any:
        """Name the app, and no components."""
        return metadata_pb2.GetMetadataResponse(id="agents")

    def GetState(self, request: Any, context: Any) -> Any:
        """Return what is stored under a key."""
        with self._lock:
            found = self._stored.get(request.key, b"")
            return state_pb2.GetStateResponse(data=found, etag=self._etags.get(request.key, ""))

    def SaveState(self, request: Any, context: Any) -> Any:
        """Store under keys."""
        with self._lock:
            for state in request.states:
                if state.etag.value and state.etag.value != self._etags.get(state.key):
                    context.abort(grpc.StatusCode.ABORTED, "possible etag mismatch")
                self._stored[state.key] = state.value
                self._etags[state.key] = str(next(self._numbers))
        return empty_pb2.Empty()

    def DeleteState(self, request: Any, context: Any) -> Any:
        """Forget a key."""
        with self._lock:
            self._stored.pop(request.key, None)
            self._etags.pop(request.key, None)
        return empty_pb2.Empty()
