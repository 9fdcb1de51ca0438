"""The headers of model requests: the same with the package off and on, unless the environment asks for an exporter."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

_ANTHROPIC = """
import contextlib, sys
import anthropic
client = anthropic.Anthropic(base_url=sys.argv[1], api_key="scripted", max_retries=0)
with contextlib.suppress(anthropic.BadRequestError):
    client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "hello"}])
"""
_OPENAI = """
import contextlib, sys
import openai
client = openai.OpenAI(base_url=sys.argv[1], api_key="scripted", max_retries=0)
with contextlib.suppress(openai.BadRequestError):
    client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hello"}])
"""


@pytest.mark.parametrize(("name", "program"), [("anthropic", _ANTHROPIC), ("openai-agents", _OPENAI)])
def test_a_request_has_the_same_headers(environment: Callable[[str], Environment], name: str, program: str) -> None:
    got: list[tuple[list[tuple[str, str]], bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            got.append(([item for item in self.headers.items() if item[0].lower() != "host"], body))
            self.send_response(400)
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for env in ({}, {"AGENT_OTEL": "1"}):
            environment(name).run(program, f"http://127.0.0.1:{server.server_port}", env=env, check=True)
        server.shutdown()
    off, on = got
    assert off == on
    assert "traceparent" not in {key.lower() for key, _ in on[0]}
