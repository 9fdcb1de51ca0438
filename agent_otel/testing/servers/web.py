"""The HTTP part that the local servers share: exact paths, request bodies in, whole or streamed answers out."""

from __future__ import annotations

import functools
import gzip
import socketserver
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True)
class Answer:
    """An answer of a route: bytes are sent with their length, an iterable is streamed until it ends."""

    body: bytes | Iterable[bytes]
    content_type: str = "application/json"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


Route = Callable[[bytes], Answer]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, routes: Mapping[str, Route]) -> None:
        self.routes = routes
        super().__init__(("127.0.0.1", port), _Handler)

    def route(self, path: str) -> Route | None:
        """Return the route of a path: the one with this path, else the first whose pattern matches it."""
        matching = (route for pattern, route in self.routes.items() if "*" in pattern and fnmatchcase(path, pattern))
        return self.routes.get(path) or next(matching, None)

    def server_bind(self) -> None:
        # HTTPServer would look its own name up, which takes seconds on a machine without a resolver.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "127.0.0.1", self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        # A client that leaves in the middle of an answer is a case under test, not a fault of this server.
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    # Headers and body are two writes; with Nagle's algorithm each answer would wait 40 ms for an acknowledgement.
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        route = self.server.route(self.path.partition("?")[0])
        self._send(Answer(b"{}", status=404) if route is None else route(body))

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if isinstance(answer.body, bytes):
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)
            return
        self.send_header("Connection", "close")
        self.end_headers()
        for chunk in answer.body:
            self.wfile.write(chunk)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Write nothing: standard error belongs to the program that is being watched."""


class Serving:
    """A server that runs on 127.0.0.1 in a thread for as long as the ``with`` block lasts.

    ``bind`` makes the server; it is called when the address is needed.
    """

    def __init__(self, bind: Callable[[], HTTPServer]) -> None:
        self._bind = bind
        self._thread: threading.Thread | None = None

    @functools.cached_property
    def _server(self) -> HTTPServer:
        return self._bind()

    @property
    def url(self) -> str:
        """The address without a path, such as ``http://127.0.0.1:40001``."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        if self._thread is not None:
            self._thread.join()


class LoopbackServer(Serving):
    """An HTTP server on 127.0.0.1 with these routes, a ``*`` in a path for any text; port 0 takes a free one."""

    def __init__(self, routes: Mapping[str, Route], port: int = 0) -> None:
        self.routes = routes
        super().__init__(lambda: _Server(port, routes))
