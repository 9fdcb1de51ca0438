"""Sessions over WebSockets: what a model gets of each result, against a scripted server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.contract.toolbox import LOOKUP_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

#: What `tests.contract.test_drift` looks for.
integrations = {
    "openai": [
        "openai.resources.realtime.realtime:AsyncRealtimeConnection.send",
        "openai.resources.responses.responses:AsyncResponsesConnection.send",
    ],
    "google-genai": ["google.genai.live:AsyncSession.send_tool_response"],
}

_PROGRAM = """
import asyncio, json, sys, threading
sys.path.insert(0, {root!r})
from tests.contract import toolbox
from tests.contract.child import Telemetry
telemetry = Telemetry()
import agent_otel, openai
from websockets.sync.server import serve

received = []

def answer(socket):
    for message in socket:
        received.append(json.loads(message))
        call = {{"type": "response.function_call_arguments.done", "call_id": "call_1", "name": "lookup"}}
        if received[-1]["type"] == "response.create" and len(received) == 1:
            socket.send(json.dumps({{**call, "arguments": "{{}}"}}))
        elif received[-1]["type"] == "response.create":
            socket.send(json.dumps({{"type": "response.done", "response": {{}}}}))

def output(event, cut):
    with agent_otel.tool_call(event.name, event.arguments, call_id=event.call_id) as measured:
        text = measured.result(toolbox.lookup("größe"))
    return {{"type": "function_call_output", "call_id": event.call_id, "output": text[:cut]}}

def talk(url, cut):
    client = openai.OpenAI(api_key="scripted", websocket_base_url=url)
    with agent_otel.execution("sync"), client.realtime.connect(model="scripted") as connection:
        connection.response.create()
        for event in connection:
            if event.type == "response.done":
                return
            connection.conversation.item.create(item=output(event, cut))
            connection.response.create()

def respond(url, cut):
    client = openai.OpenAI(api_key="scripted", websocket_base_url=url)
    with agent_otel.execution("responses"), client.responses.connect() as connection:
        connection.response.create(model="scripted", input="go")
        for event in connection:
            if event.type == "response.done":
                return
            connection.response.create(model="scripted", input=[output(event, cut)], previous_response_id="r")

async def atalk(url, cut):
    client = openai.AsyncOpenAI(api_key="scripted", websocket_base_url=url)
    with agent_otel.execution("async"):
        async with client.realtime.connect(model="scripted") as connection:
            await connection.response.create()
            async for event in connection:
                if event.type == "response.done":
                    return
                await connection.conversation.item.create(item=output(event, cut))
                await connection.response.create()

with serve(answer, "127.0.0.1", 0) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = "ws://127.0.0.1:%d/v1" % server.socket.getsockname()[1]
    if {mode!r} == "async":
        asyncio.run(atalk(url, {cut}))
    else:
        {{"sync": talk, "responses": respond}}[{mode!r}](url, {cut})
    server.shutdown()
items = [message.get("item") or message.get("input", ["go"])[0] for message in received]
sent = [item["output"] for item in items if isinstance(item, dict)]
from agent_otel._internal import errors
print(json.dumps([sent, telemetry.metrics(), dict(errors.errors)]))
"""


#: The session's own class on a socket without TLS, which `connect` of the SDK does not allow.
_LIVE = """
import asyncio, json, sys, threading
sys.path.insert(0, {root!r})
from tests.contract import toolbox
from tests.contract.child import Telemetry
telemetry = Telemetry()
import agent_otel
from google import genai
from google.genai import live, types
from websockets.asyncio.client import connect
from websockets.sync.server import serve

received = []

def answer(socket):
    for message in socket:
        received.append(json.loads(message))
        call = {{"id": "call_1", "name": "lookup", "args": {{}}}}
        content = {{"serverContent": {{"modelTurn": {{"parts": [{{"text": "done"}}]}}, "turnComplete": True}}}}
        asks = "client_content" in received[-1]
        socket.send(json.dumps({{"toolCall": {{"functionCalls": [call]}}}} if asks else content))

async def talk(url):
    client = genai.Client(api_key="scripted")
    async with connect(url) as socket:
        session = live.AsyncSession(api_client=client._api_client, websocket=socket)
        with agent_otel.execution("live"):
            await session.send_client_content(turns={{"parts": [{{"text": "go"}}]}})
            async for chunk in session.receive():
                for call in chunk.tool_call.function_calls if chunk.tool_call else ():
                    with agent_otel.tool_call(call.name, call.args, call_id=call.id) as measured:
                        text = measured.result(toolbox.lookup("größe"))
                    response = types.FunctionResponse(id=call.id, name=call.name, response={{"result": text[:{cut}]}})
                    await session.send_tool_response(function_responses=response)

with serve(answer, "127.0.0.1", 0) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    asyncio.run(talk("ws://127.0.0.1:%d" % server.socket.getsockname()[1]))
    server.shutdown()
sent = [message["tool_response"]["functionResponses"][0]["response"]["result"] for message in received[1:]]
from agent_otel._internal import errors
print(json.dumps([sent, telemetry.metrics(), dict(errors.errors)]))
"""


@pytest.mark.parametrize("cut", [None, 500])
def test_what_a_session_of_gemini_live_sends_of_a_result_is_delivered(
    environment: Callable[[str], Environment], request: pytest.FixtureRequest, cut: int | None
) -> None:
    code = _LIVE.format(root=str(request.config.rootpath), cut=cut)
    _check(environment("google-genai").run(code, env={"AGENT_OTEL": "1"}, check=True).stdout, cut)


@pytest.mark.parametrize(("mode", "cut"), [("sync", None), ("async", 500), ("responses", 500)])
def test_what_a_realtime_session_sends_of_a_result_is_delivered(
    environment: Callable[[str], Environment], request: pytest.FixtureRequest, mode: str, cut: int | None
) -> None:
    code = _PROGRAM.format(root=str(request.config.rootpath), mode=mode, cut=cut)
    _check(environment("openai-agents").run(code, env={"AGENT_OTEL": "1"}, check=True).stdout, cut)


def _check(printed: str, cut: int | None) -> None:
    sent, metrics, errors = json.loads(printed.splitlines()[-1])

    assert errors == {}
    assert len(sent) == 1
    assert (len(sent[0].encode()) == LOOKUP_BYTES) == (cut is None)
    counted = {
        metric["name"]: metric["sum"]
        for metric in metrics
        if metric["attributes"].get("gen_ai.tool.name") == "lookup" and metric["sum"]
    }
    assert counted["agent_otel.tool.result.size"] == LOOKUP_BYTES
    assert counted["agent_otel.tool.result.delivered"] == len(sent[0].encode())
    assert counted.get("agent_otel.tool.results.truncated", 0) == (cut is not None)
