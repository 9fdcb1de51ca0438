"""A server that gives one answer to everything: what stands behind a wrong address."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from agent_otel.testing.servers.scripted import Serving

if TYPE_CHECKING:
    from collections.abc import Mapping


class Other(Serving):
    """The server, on a free port of 127.0.0.1 while the ``with`` block lasts."""

    def __init__(self, status: int, headers: Mapping[str, str], body: str) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
                """Write nothing."""

        super().__init__(lambda: ThreadingHTTPServer(("127.0.0.1", 0), Handler))
