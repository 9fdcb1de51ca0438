"""Common base of the scripted servers: requests are kept as they came, and a decider sees them in OpenAI's shape.

A decider that is written for one provider's API serves them all: each server shows it a request as messages with roles,
the tools' results by call id among them.
"""

from __future__ import annotations

import functools
import gzip
import json
import socketserver
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from agent_otel.testing.servers.replies import Decider, Json, Reply, tool_results

if TYPE_CHECKING:
    from typing_extensions import Self


__all__ = ["Decider", "Endpoint", "Json", "RefusedError", "Reply", "ScriptedServer", "result"]

# The HTTP part that the local servers share: exact paths, request bodies in, whole or streamed answers out.


@dataclass(frozen=True)
class Answer:
    """An answer of a route: bytes are sent with their length, a dictionary as JSON; an iterable is streamed."""

    body: Json | bytes | Iterable[bytes]
    content_type: str = "application/json"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


Endpoint: TypeAlias = Callable[[Json, Reply], Answer]


class RefusedError(Exception):
    """Raised by a decider for a request that the provider refuses, such as with 429 and the header ``retry-after``.

    ``body`` is sent as JSON, or as it is where it is text, such as a proxy's HTML.
    """

    def __init__(
        self, status: int = 429, headers: Mapping[str, str] | None = None, body: Mapping[str, Any] | str | None = None
    ) -> None:
        super().__init__(status)
        text = body if isinstance(body, str) else json.dumps(body or {"error": {"message": "refused"}})
        kind = "text/html" if text.startswith("<") else "text/event-stream" if status == 200 else "application/json"  # noqa: PLR2004
        self.answer = Answer(text.encode(), kind, status, headers or {})


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


class ScriptedServer(LoopbackServer):
    """A server of a provider's endpoints; ``requests`` holds every body that it got, parsed."""

    #: The variables that point a client at this server, with ``{url}`` in their values.
    variables: ClassVar[Mapping[str, str]] = {}

    def __init__(self, decider: Decider, port: int = 0) -> None:
        self.requests: list[Json] = []
        self._decider = decider
        super().__init__({path: self._route(endpoint) for path, endpoint in self.endpoints().items()}, port)

    def endpoints(self) -> Mapping[str, Endpoint]:
        """Return the endpoints by path; ``*`` in a path stands for any text."""
        raise NotImplementedError

    @property
    def base_url(self) -> str:
        """The base URL for a client."""
        return self.url

    @property
    def environment(self) -> dict[str, str]:
        """The variables that point a client at this server."""
        return {name: value.format(url=self.url) for name, value in self.variables.items()}

    def messages(self, request: Json) -> list[Json]:
        """Return a request's messages in the shape of OpenAI's chat completions, which many providers have."""
        messages: list[Json] = request.get("messages") or []
        return messages

    def seen(self, request: Json) -> Json:
        """Return the request that the decider gets."""
        return {"messages": self.messages(request), "model": request.get("model")}

    def replied(self, request: Json, reply: Reply) -> None:
        """Take note of the model's reply."""

    def tool_results(self) -> dict[str, str]:
        """Return the tool results by call id over all requests, each as it was sent last."""
        return {call: text for request in self.requests for call, text in tool_results(self.seen(request)).items()}

    def _route(self, endpoint: Endpoint) -> Route:
        def answer(body: bytes) -> Answer:
            request = json.loads(body)
            self.requests.append(request)
            try:
                reply = self._decider(self.seen(request))
            except RefusedError as refused:
                return refused.answer
            except Exception as error:
                # 400 and not 500: clients retry a 500, and a fault in a script should show at once.
                message = f"the script failed, {type(error).__name__}: {error}"
                return Answer({"error": {"message": message}}, status=400)
            self.replied(request, reply)
            return endpoint(request, reply)

        return answer


def answer(request: Json, whole: Json, events: Iterable[Json | str]) -> Answer:
    """Return a whole answer, or the events of a stream where the request asks for one."""
    return Answer(map(_event, events), "text/event-stream") if request.get("stream") else Answer(whole)


def _event(event: Json | str) -> bytes:
    """Return a server-sent event, which has a name where it has a type."""
    if isinstance(event, str):
        return f"data: {event}\n\n".encode()
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {json.dumps(event)}\n\n".encode()


def result(call_id: str, content: object) -> Json:
    """Return a tool's result as a message of OpenAI's."""
    return {"role": "tool", "tool_call_id": call_id, "content": content}


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
        self._send(Answer({}, status=404) if route is None else route(body))

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        body = json.dumps(answer.body).encode() if isinstance(answer.body, dict) else answer.body
        self.send_header(*(("Content-Length", str(len(body))) if isinstance(body, bytes) else ("Connection", "close")))
        self.end_headers()
        for chunk in (body,) if isinstance(body, bytes) else body:
            self.wfile.write(chunk)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Write nothing: standard error belongs to the program that is being watched."""
