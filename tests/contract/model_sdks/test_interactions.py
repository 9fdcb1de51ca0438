"""Google's interactions, in each style in which its client makes one, against a server of that API."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agent_otel.testing.servers.scripted import Answer, ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.testing.servers.scripted import Endpoint, Json, Reply
    from tests.environments import Environment

integrations = {"google-genai": ["google.genai._gaos.interactions:Interactions.create"]}

PROGRAM = """
import asyncio, json, sys
import agent_otel
from google import genai
from google.genai import types
from tests.contract.child import Messages, Telemetry

RESULT = "x" * 3000
STEPS = [
    {"type": "user_input", "content": [{"type": "text", "text": "go"}]},
    {"type": "function_call", "id": "call_1", "name": "search", "arguments": {}},
    {"type": "function_result", "call_id": "call_1", "name": "search", "result": RESULT},
]
TOOL = {"type": "function", "name": "search"}
asked = dict(model="gemini-scripted", input=STEPS, system_instruction="Be kind.", tools=[TOOL], store=False)
later = dict(model="gemini-scripted", input=STEPS[2:], previous_interaction_id="int_0")
loop = asyncio.new_event_loop()
client = genai.Client(api_key="scripted", http_options=types.HttpOptions(base_url=sys.argv[1]))

async def streamed():
    return [event async for event in await client.aio.interactions.create(**asked, stream=True)]

async def abandoned():
    stream = await client.aio.interactions.create(**asked, stream=True)
    async for _ in stream:
        break
    await stream.close()

STYLES = {
    "sync": lambda: client.interactions.create(**asked),
    "async": lambda: loop.run_until_complete(client.aio.interactions.create(**asked)),
    "streamed": lambda: list(client.interactions.create(**asked, stream=True)),
    "streamed, async": lambda: loop.run_until_complete(streamed()),
    "abandoned": lambda: loop.run_until_complete(abandoned()),
    "raw": lambda: client.interactions.with_raw_response.create(**asked).parse(),
    "thinking": lambda: client.interactions.create(**{**asked, "input": [STEPS[0], thought, *STEPS[1:]]}),
    "continued": lambda: client.interactions.create(**later),
    "refused": lambda: client.interactions.create(**{**asked, "model": "refused"}),
}
found, messages, telemetry = {}, Messages(), Telemetry()
thought = client.interactions.create(**asked).steps[0]  # an object of the SDK's
for name, style in STYLES.items():
    telemetry.metrics()
    with agent_otel.execution(name):
        with agent_otel.tool_call("search", {}, call_id="call_1") as call:
            call.result(RESULT)
        try:
            style()
        except Exception as error:
            assert name == "refused", error
    found[name] = telemetry.metrics()
from agent_otel._internal import errors
print(json.dumps([found, dict(errors.errors), messages.take()]))
"""

_USAGE = {"total_input_tokens": 40, "total_output_tokens": 4, "total_thought_tokens": 3, "total_cached_tokens": 5}
_THOUGHT = {"type": "thought", "signature": "c2ln", "summary": [{"type": "text", "text": "Hm."}]}
_SAID = {"type": "model_output", "content": [{"type": "text", "text": "done"}]}


def _interaction(status: str = "completed", **more: Any) -> Json:
    times = {"created": "2026-11-01T00:00:00Z", "updated": "2026-11-01T00:00:00Z"}
    return {"id": "int_1", "object": "interaction", "model": "gemini-scripted", "status": status, **times, **more}


def _answer(request: Json, _: Reply) -> Answer:
    if request["model"] == "refused":
        return Answer(b'{"error": {"code": "invalid", "message": "refused"}}', status=400)
    whole = _interaction(steps=[_THOUGHT, _SAID], usage=_USAGE)
    if not request.get("stream"):
        return Answer(json.dumps(whole).encode())
    events = [
        {"event_type": "interaction.created", "interaction": _interaction("in_progress")},
        {"event_type": "step.start", "index": 0, "step": {"type": "model_output"}},
        {"event_type": "step.delta", "index": 0, "delta": {"type": "text", "text": "done"}},
        {"event_type": "step.stop", "index": 0},
        {"event_type": "interaction.completed", "interaction": whole},
    ]
    return Answer((f"data: {json.dumps(event)}\n\n".encode() for event in events), "text/event-stream")


class _Server(ScriptedServer):
    def endpoints(self) -> dict[str, Endpoint]:
        """Return the only endpoint."""
        return {"/*/interactions": _answer}

    def messages(self, request: Json) -> list[Json]:
        """Return no messages: each answer is the same."""
        del request
        return []


#: Bytes of a request with the whole history, and of one that goes on; the tool is {"type":"function","name":"search"}.
WHOLE = {"system": 8, "user": 2, "tools": 35 + 2, "assistant": 0, "tool_arguments": 2, "tool_results": 3000}
THINKING = {**WHOLE, "assistant": len(json.dumps([_THOUGHT], separators=(",", ":")))}
CONTINUED = {**dict.fromkeys(WHOLE, 0), "tool_results": 3000}


def test_each_style_is_one_request(environment: Callable[[str], Environment]) -> None:
    with _Server(lambda _: "done") as server:
        done = environment("google-genai").run(PROGRAM, server.url, env={"AGENT_OTEL": "1"}, check=True)
        assert len(server.requests) == 10
    found, errors, messages = json.loads(done.stdout.splitlines()[-1])
    refusal = "The provider of refused refused a request: other. Further ones are only counted."
    assert (errors, messages) == ({}, [refusal])
    for style, metrics in found.items():
        sizes = {
            metric["attributes"]["part"]: (metric["count"], metric["sum"])
            for metric in metrics
            if metric["name"] == "agent_otel.model.request.size"
        }
        expected = {"continued": CONTINUED, "thinking": THINKING}.get(style, WHOLE)
        assert sizes == {part: (1, size) for part, size in expected.items()}, style
        delivered = [m["sum"] for m in metrics if m["name"] == "agent_otel.tool.result.delivered"]
        assert delivered == [3000], style
        cached = sum(m["sum"] for m in metrics if m["name"].startswith("agent_otel.model.cached_tokens"))
        assert cached == (0 if style in {"abandoned", "raw", "refused"} else 5), style
