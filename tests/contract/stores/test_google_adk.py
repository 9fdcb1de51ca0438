"""Sessions of Google's Agent Development Kit in SQLite, and on Vertex AI as a scripted service has it."""

# ruff: noqa: D102 - a test's name and body say it
from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from agent_otel.testing.servers.providers import GeminiServer
from tests.contract.stores.model import decide
from tests.contract.stores.suite import LETTERS, StoreContract
from tests.contract.toolbox import GEMINI

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.contract.runtimes.suite import Runs
    from tests.environments import Environment

MIB = 1024 * 1024
#: What `tests.contract.test_drift` looks for.
integrations = {"google-adk": ["google.adk.sessions.vertex_ai_session_service:VertexAiSessionService.append_event"]}


class TestGoogleAdkSessions(StoreContract):
    """google-adk 2.13: the question, the call, its result and the answer are an event each."""

    program = "google_adk"
    environment = "google-adk-sessions"
    runtime = "google-adk"
    integrations: ClassVar[dict[str, list[str]]] = {
        "google-adk": [
            "google.adk.sessions.database_session_service:DatabaseSessionService.append_event",
            "google.adk.sessions.sqlite_session_service:SqliteSessionService.append_event",
            "google.adk.sessions.schemas.shared:DynamicJSON.process_bind_param",
        ],
    }
    cases: ClassVar[dict[str, Any]] = {
        "events": {"letters": LETTERS},
        "sqlite": {"letters": LETTERS, "beside": 0},
        "large": {"letters": [MIB, MIB, 10]},
    }
    writes = 4
    #: The states of the application, the user and the session, which are empty.
    beside = 3 * len("{}")

    def test_whose_bytes_they_are_and_which_are_there_twice(self, runs: Runs) -> None:
        session = [said for said in self.told(runs, "large") if "workflow.payload.largest_path" in said][-1]
        assert session["workflow.payload.direction"] == "history"
        assert session["workflow.payload.bytes"] == runs.on["cases"]["large"]["said"]["sizes"][1] + self.beside
        assert session["workflow.payload.largest_tool"] == "search"
        assert session["workflow.payload.duplicate_bytes"] == pytest.approx(MIB, rel=0.001)


del StoreContract

_VERTEX = """
import asyncio, json, os, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
sys.path.insert(0, {root!r})
from tests.contract.child import Telemetry
from tests.contract.runtimes.child import settle
telemetry, case, sent, answered, events = Telemetry(), {{}}, [], [], []

class Service(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if len(sent) == 1 and not events[1:]:
            events.append(None)  # the second event is refused once
            return self.answer(429, {{"error": {{"code": 429, "message": "later", "status": "RESOURCE_EXHAUSTED"}}}})
        sent.append(len(body))
        events.append({{"name": f"reasoningEngines/7/sessions/s1/events/{{len(sent)}}", **json.loads(body)}})
        self.answer(200, {{}})

    def do_GET(self):
        session = {{"name": "reasoningEngines/7/sessions/s1", "userId": "user", "updateTime": "2026-11-01T00:00:00Z"}}
        listed = {{"sessionEvents": [event for event in events if event]}}
        answered.append(self.answer(200, listed if "/events" in self.path else session))

    def answer(self, status, value):
        text = json.dumps(value, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
        return len(text)

    def log_message(self, *_):
        pass

server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
Thread(target=server.serve_forever, daemon=True).start()
os.environ.update(GOOGLE_API_KEY="scripted", GOOGLE_GEMINI_BASE_URL={base_url!r})
from google.adk.agents import LlmAgent
from google.adk.models.google_llm import Gemini
from google.adk.runners import Runner
from google.adk.sessions.vertex_ai_session_service import VertexAiSessionService
from google.genai import types

class Sessions(VertexAiSessionService):
    def _api_client_http_options_override(self):
        return types.HttpOptions(base_url=f"http://127.0.0.1:{{server.server_port}}")

def search(n: int) -> str:
    "Find so many letters."
    return "é" * n

async def main():
    service = Sessions(agent_engine_id="7", express_mode_api_key="scripted")
    runner = Runner(
        agent=LlmAgent(name="clerk", model=Gemini(model={model!r}), tools=[search]), app_name="7",
        session_service=service,
    )
    said = []
    for n in (1000, 2000):
        message = types.Content(role="user", parts=[types.Part.from_text(text=f"é {{n}}")])
        async for event in runner.run_async(new_message=message, user_id="user", session_id="s1"):
            said += [part.text for part in event.content.parts if part.text] if event.content else []
    return said

said = asyncio.run(main())
settle(telemetry, case)
from agent_otel._internal import errors
print(json.dumps([said, sent, answered, case["metrics"], dict(errors.errors)]))
"""


def test_events_on_vertex_ai_are_the_bodies_of_their_requests(
    environment: Callable[[str], Environment], request: pytest.FixtureRequest
) -> None:
    """An event that is sent again counts once; a run begins with what the service answers."""
    with GeminiServer(decide) as server:
        code = _VERTEX.format(root=str(request.config.rootpath), base_url=server.base_url, model=GEMINI)
        done = environment("google-adk-sessions").run(code, env={"AGENT_OTEL": "1"}, timeout=110, check=True)
    said, sent, answered, metrics, errors = json.loads(done.stdout.splitlines()[-1])

    assert ({}, ["done", "done"]) == (errors, said)
    assert 8 == len(sent)
    assert [(8, sum(sent))] == _sizes(metrics, "payload")
    # The first run begins with no event, the second with the session and its events.
    assert [(1, sum(answered[2:]))] == _sizes(metrics, "history")


def _sizes(metrics: list[dict[str, Any]], kind: str) -> list[tuple[int, float]]:
    return [
        (metric["count"], metric["sum"])
        for metric in metrics
        if metric["name"] == f"agent_otel.workflow.{kind}.size"
        and metric["attributes"]["workflow.runtime"] == "google-adk"
    ]
