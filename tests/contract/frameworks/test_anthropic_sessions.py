"""The tools of a session of Anthropic's managed agents, run by the SDK's runner, against a server of that API."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from tests.contract.cases import BROKEN, KEY
from tests.contract.toolbox import LOOKUP, LOOKUP_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

integrations = {
    "anthropic": [
        "anthropic.lib.tools._beta_session_runner:SessionToolRunner._call_tool",
        "anthropic.resources.beta.sessions.events:Events.send",
    ]
}

PROGRAM = """
import asyncio, json, sys
import agent_otel, anthropic
from tests.contract import toolbox
from tests.contract.child import Messages, Telemetry

async def main():
    client = anthropic.AsyncAnthropic(base_url=sys.argv[1], api_key="scripted", max_retries=0)
    tools = [anthropic.beta_async_tool(toolbox.lookup_later), anthropic.beta_tool(toolbox.broken)]
    async for call in client.beta.sessions.events.tool_runner("session_1", tools=tools):
        seen.append((call.name, call.posted, call.is_error))
    content = [{"type": "text", "text": "a" * 70}]
    own = {"type": "user.custom_tool_result", "custom_tool_use_id": "call_2", "content": content}
    with agent_otel.tool_call("own", {}, call_id="call_2") as call:
        call.result("a" * 70)
    await client.beta.sessions.events.send("session_1", events=[own])

seen, messages, telemetry = [], Messages(), Telemetry()
asyncio.run(main())
spans = [span["attributes"] for span in telemetry.spans() if "tool.args_hash" in span["attributes"]]
print(json.dumps([seen, spans, telemetry.metrics(), messages.take()]))
"""

_CALLS = [
    {
        "type": "agent.custom_tool_use",
        "id": f"call_{number}",
        "name": name,
        "input": KEY,
        "processed_at": "2026-11-01T00:00:00Z",
    }
    for number, name in enumerate(("lookup_later", "broken"))
]
_IN_THE_END = {"type": "session.status_terminated", "id": "event_9", "processed_at": "2026-11-01T00:00:00Z"}


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.sent: list[Any] = []
        self.answered = Event()


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        """Answer with no history, or with the stream of the calls; it ends when each has a result."""
        if not self.path.partition("?")[0].endswith("/stream"):
            self._answer({"data": [], "next_page": None})
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for event in _CALLS:
            self._write(event)
        self.server.answered.wait(20)
        self._write(_IN_THE_END)

    def do_POST(self) -> None:
        """Take events."""
        events = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["events"]
        self.server.sent += events
        self._answer({"data": events})
        if len(self.server.sent) == len(_CALLS):
            self.server.answered.set()

    def _answer(self, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _write(self, event: Any) -> None:
        self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
        self.wfile.flush()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def test_each_call_is_one_record_and_what_is_sent_is_delivered(environment: Callable[[str], Environment]) -> None:
    with _Server() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        done = environment("anthropic").run(PROGRAM, url, env={"AGENT_OTEL": "1"}, check=True)
        server.shutdown()
    seen, spans, metrics, messages = json.loads(done.stdout.splitlines()[-1])
    assert messages == []
    assert seen == [["lookup_later", True, False], ["broken", True, True]]
    told = [event["content"][0]["text"] for event in server.sent]
    assert told[0] == LOOKUP
    kept = ("gen_ai.tool.call.id", "tool.name", "tool.result.bytes")
    assert [tuple(span.get(key) for key in kept) for span in spans] == [
        ("call_0", "lookup_later", LOOKUP_BYTES),
        ("call_1", "broken", None),
        ("call_2", "own", 70),
    ]
    assert spans[1]["tool.result.handed_back_bytes"] == len(told[1].encode())
    assert [span.get("gen_ai.conversation.id") for span in spans] == ["session_1", "session_1", None]
    timed = (m["attributes"] for m in metrics if m["name"] == "gen_ai.execute_tool.duration")
    # The SDK's own span of a call, which is open around it, says "tool_error".
    assert {each["gen_ai.tool.name"]: each.get("error.type") for each in timed} == {
        "lookup_later": None,
        "broken": BROKEN,
        "own": None,
    }
    delivered = (m for m in metrics if m["name"] == "agent_otel.tool.result.delivered")
    assert {metric["attributes"]["gen_ai.tool.name"]: metric["sum"] for metric in delivered if metric["sum"]} == {
        "lookup_later": LOOKUP_BYTES,
        "broken": len(told[1].encode()),
        "own": 70,
    }
