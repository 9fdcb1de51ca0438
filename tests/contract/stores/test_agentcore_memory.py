"""Events of AgentCore Memory over HTTP: the SDK's client, its session manager for Strands, LangGraph's saver."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from agent_otel.testing.servers.openai import OpenAIServer
from tests.contract.stores.model import decide

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from tests.environments import Environment

MEMORY = "notes-AbCdEf1234"

_SERVICE = """
import json, os, sys
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
sys.path.insert(0, {root!r})
from tests.contract.child import Telemetry
from tests.contract.runtimes.child import settle
telemetry, case, received, events = Telemetry(), {{}}, [], []

def is_wanted(event, path, given):
    wanted = given.get("filter", {{}}).get("eventMetadata", ())
    known = event.get("metadata", {{}})
    return path.endswith("/" + event["sessionId"]) and all(
        each["operator"] == "EQUALS_TO" and known.get(each["left"]["metadataKey"]) == each["right"]["metadataValue"]
        for each in wanted
    )

class Service(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        given = json.loads(body)
        status, answer = 200, {{"events": [each for each in events[::-1] if is_wanted(each, self.path, given)]}}
        if self.path.endswith("/events"):
            status = 400 if given["sessionId"] == "refused" else 201
            answer = {{**given, "eventId": f"0000{{len(events)}}#ab", "memoryId": "{memory}"}}
            received.append([given["sessionId"], status, len(body)])
            events.append(answer)
            answer = {{"event": answer}}
        text = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass

server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
Thread(target=server.serve_forever, daemon=True).start()
os.environ.update(
    AWS_ACCESS_KEY_ID="a", AWS_SECRET_ACCESS_KEY="b", AWS_DEFAULT_REGION="eu-central-1",
    AWS_ENDPOINT_URL_BEDROCK_AGENTCORE=f"http://127.0.0.1:{{server.server_port}}",
)
"""
_PROGRAM = """
from bedrock_agentcore.memory import MemoryClient
from bedrock_agentcore.memory.integrations.strands.config import AgentCoreMemoryConfig
from bedrock_agentcore.memory.integrations.strands.session_manager import AgentCoreMemorySessionManager
from botocore.exceptions import ClientError
from strands import Agent, tool
from strands.models.openai import OpenAIModel

client = MemoryClient(region_name="eu-central-1")
for session in ("plain", "refused"):
    try:
        client.create_event("{memory}", "user", session, [("é" * 700, "USER")])
    except ClientError:
        pass

@tool
def search(n: int) -> str:
    "Find so many letters."
    return "x" * n

model = OpenAIModel(client_args=dict(base_url={base_url!r}, api_key="scripted", max_retries=0), model_id="scripted")
said = []
for n in (3000, 4000):
    config = AgentCoreMemoryConfig(memory_id="{memory}", session_id="strands", actor_id="user")
    manager = AgentCoreMemorySessionManager(config, region_name="eu-central-1")
    agent = Agent(model=model, tools=[search], name="clerk", callback_handler=None, session_manager=manager)
    said.append(str(agent(f"Find {{n}}.")).strip())
settle(telemetry, case)
from agent_otel._internal import errors
print(json.dumps([received, said, case["metrics"], dict(errors.errors)]))
"""


def test_events_are_payloads_of_their_session(
    environment: Callable[[str], Environment], request: pytest.FixtureRequest
) -> None:
    """Each counts once, whatever calls botocore's client; what the service refuses is not stored."""
    with OpenAIServer(decide) as server:
        code = (_SERVICE + _PROGRAM).format(root=str(request.config.rootpath), base_url=server.base_url, memory=MEMORY)
        done = environment("strands-sessions").run(code, env={"AGENT_OTEL": "1"}, timeout=110, check=True)
    received, said, metrics, errors = json.loads(done.stdout.splitlines()[-1])

    assert {} == errors
    assert ["done", "done"] == said
    stored = {
        session: [size for name, status, size in received if (name, status) == (session, 201)]
        for session in ("plain", "refused", "strands")
    }
    assert [1, 0] == [len(stored["plain"]), len(stored["refused"])]
    assert sum(stored["strands"]) > 2 * 7000  # in each run the question, the call, its result and the answer
    sizes = [metric for metric in metrics if metric["name"] == "agent_otel.workflow.payload.size"]
    assert {("agentcore", "state")} == {
        (metric["attributes"]["workflow.runtime"], metric["attributes"]["direction"]) for metric in sizes
    }
    counted = {metric["attributes"]["gen_ai.workflow.name"]: (metric["count"], metric["sum"]) for metric in sizes}
    assert stored["plain"][0] <= counted[MEMORY][1]
    every = stored["plain"] + stored["strands"]
    assert (len(every), sum(every)) == tuple(map(sum, zip(*counted.values(), strict=True)))


_FIELDS = """
import boto3
from datetime import datetime

client = boto3.client("bedrock-agentcore")
fields = {{
    "memoryId": "{memory}", "actorId": "sessionId", "sessionId": "own", "eventTimestamp": datetime(2026, 1, 1),
    "payload": [
        {{"blob": {{"sessionId": "stored"}}}},
        {{"conversational": {{"role": "USER", "content": {{"text": '{{"sessionId": "said"}}' + "é" * 200}}}}}},
    ],
}}
for names in (list(fields), list(fields)[::-1]):
    client.create_event(**{{name: fields[name] for name in names}})
settle(telemetry, case)
from agent_otel._internal import errors
print(json.dumps([case["spans"], dict(errors.errors)]))
"""


def test_a_field_of_what_is_stored_is_not_the_session(
    environment: Callable[[str], Environment], request: pytest.FixtureRequest
) -> None:
    """A program's own call may write the payload before the session."""
    code = (_SERVICE + _FIELDS).format(root=str(request.config.rootpath), memory=MEMORY)
    env = {"AGENT_OTEL": "1", "AGENT_OTEL_CAPS": "agentcore.state=1KiB"}
    done = environment("strands-sessions").run(code, env=env, timeout=110, check=True)
    spans, errors = json.loads(done.stdout.splitlines()[-1])
    assert {} == errors
    assert ["own", "own"] == [span["attributes"]["workflow.execution.id"] for span in spans]


_SAVER = """
from typing import TypedDict
from langchain_core.messages import HumanMessage
from langgraph.graph import StateGraph
from langgraph_checkpoint_aws import AgentCoreMemorySaver
from tests.contract.stores.programs.langgraph_graph import graph

app = graph().compile(checkpointer=AgentCoreMemorySaver("{memory}", region_name="eu-central-1"))
app.name = "clerk"
config = {{"configurable": {{"thread_id": "thread", "actor_id": "user"}}}}
said = [len(app.invoke({{"messages": [HumanMessage(n)]}}, config, durability="sync")["messages"]) for n in ("9", "7")]
wide = StateGraph(TypedDict("Wide", {{f"field{{n}}": str for n in range(150)}}))
wide.add_node("fill", lambda _: {{f"field{{n}}": "x" * n for n in range(150)}})
wide.set_entry_point("fill")
app = wide.compile(checkpointer=app.checkpointer)
app.name = "filler"
app.invoke({{"field0": "y"}}, {{"configurable": {{"thread_id": "wide", "actor_id": "user"}}}}, durability="sync")
settle(telemetry, case)
from agent_otel._internal import errors
print(json.dumps([received, said, case["metrics"], dict(errors.errors)]))
"""


def test_an_event_of_a_saver_is_one_of_langgraph(
    environment: Callable[[str], Environment], request: pytest.FixtureRequest
) -> None:
    """It counts as what the service gets, and not a second time as an event of the memory.

    The saver makes two events of a checkpoint of more than 100 channels: one payload.
    """
    code = (_SERVICE + _SAVER).format(root=str(request.config.rootpath), memory=MEMORY)
    done = environment("langgraph-aws").run(code, env={"AGENT_OTEL": "1"}, timeout=110, check=True)
    received, said, metrics, errors = json.loads(done.stdout.splitlines()[-1])

    assert {} == errors
    assert [3, 6] == said
    sizes = [metric for metric in metrics if metric["name"] == "agent_otel.workflow.payload.size"]
    assert {"langgraph"} == {metric["attributes"]["workflow.runtime"] for metric in sizes}
    events = len(received) - 1, sum(size for _, _, size in received)
    assert events == (sum(metric["count"] for metric in sizes), sum(metric["sum"] for metric in sizes))
