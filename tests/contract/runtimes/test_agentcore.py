"""Amazon Bedrock AgentCore Runtime, whose application is called over HTTP as the service calls it, and its callers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from tests.environments import Environment

#: What `tests.contract.test_drift` looks for.
integrations = {
    "bedrock-agentcore": ["bedrock_agentcore.runtime.app:BedrockAgentCoreApp._handle_invocation"],
    "bedrock": ["botocore.client:BaseClient._make_request"],
}

ENVIRONMENT = "bedrock-agentcore"

_PROGRAM = """
import json, logging, sys
sys.path.insert(0, {root!r})
from tests.contract.child import Telemetry
telemetry = Telemetry()
from bedrock_agentcore.runtime import BedrockAgentCoreApp
from starlette.testclient import TestClient

app = BedrockAgentCoreApp()
app.logger.setLevel(logging.CRITICAL)

@app.entrypoint
def clerk(payload):
    if payload.get("fail"):
        raise ValueError("no")
    if payload.get("stream"):
        return iter_letters(payload["n"])
    return {{"letters": "x" * payload["n"]}}

def iter_letters(n):
    for _ in range(n):
        yield "x"

client, seen = TestClient(app), []
headers = {{"X-Amzn-Bedrock-AgentCore-Runtime-Session-Id": "session-1"}}
for given in ({{"n": 2000, "text": "größe"}}, {{"n": 3, "fail": True}}, {{"n": 5, "stream": True}}, "no JSON {{"):
    body = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    answer = client.post("/invocations", content=body.encode(), headers=headers)
    points = [
        [point["attributes"], point["count"], point["sum"]]
        for point in telemetry.metrics()
        if point["name"] == "agent_otel.workflow.payload.size" and point["count"]
    ]
    seen.append([answer.status_code, len(body.encode()), len(answer.content), points])
from agent_otel._internal import errors
from agent_otel.telemetry.setup import integrations
print(json.dumps([seen, integrations(), dict(errors.errors)]))
"""


def test_requests_and_answers_are_payloads(
    environment: Callable[[str], Environment], request: pytest.FixtureRequest
) -> None:
    """An answer with an error has a size, too, and a streamed one that of all its chunks."""
    code = _PROGRAM.format(root=str(request.config.rootpath))
    done = environment(ENVIRONMENT).run(code, env={"AGENT_OTEL": "1"}, timeout=110, check=True)
    seen, matched, errors = json.loads(done.stdout.splitlines()[-1])
    assert {} == errors
    assert integrations["bedrock-agentcore"] == matched["bedrock-agentcore"]
    assert [200, 500, 200, 400] == [status for status, _, _, _ in seen]
    # Five times `data: "x"` and two line ends.
    assert seen[2][2] == 5 * 11
    for _, sent, answered, points in seen:
        read = {attributes["direction"]: (count, size) for attributes, count, size in points}
        assert {"input": (1, sent), "output": (1, answered)} == read
        assert {("agentcore", "clerk")} == {
            (attributes["workflow.runtime"], attributes["gen_ai.workflow.name"]) for attributes, _, _ in points
        }


_CALLER = """
import json, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
sys.path.insert(0, {root!r})
from tests.contract.child import Telemetry
telemetry = Telemetry()
import boto3
from botocore.config import Config

class Service(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        received.append([self.path, len(body)])
        n = json.loads(body).get("n")
        self.send_response(200 if n else 400)
        self.send_header("Content-Type", "application/json")
        if n and n > 1000:
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for _ in range(n // 1000):
                self.wfile.write(b"3e8\\r\\n" + b"x" * 1000 + b"\\r\\n")
            self.wfile.write(b"0\\r\\n\\r\\n")
            return
        answer = b"y" * n if n else b'{{"message":"no"}}'
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass

def lines(stream):
    return sum(len(chunk) for chunk in stream.iter_chunks())

def closed(stream):
    read = len(stream.read(100))
    stream.close()
    return read

received, seen = [], []
server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
Thread(target=server.serve_forever, daemon=True).start()
client = boto3.client(
    "bedrock-agentcore", region_name="eu-central-1", aws_access_key_id="a", aws_secret_access_key="b",
    endpoint_url=f"http://127.0.0.1:{{server.server_port}}", config=Config(retries={{"total_max_attempts": 1}}),
)
arn = "arn:aws:bedrock-agentcore:eu-central-1:123456789012:runtime/clerk-AbC123"
for given, read in (
    ({{"n": 300, "text": "größe"}}, lambda stream: len(stream.read())),
    ({{"n": 50_000}}, lines),
    ({{"n": 50_000}}, closed),
    ({{"n": 0}}, lambda stream: 0),
):
    try:
        payload = json.dumps(given, ensure_ascii=False).encode()
        answer = client.invoke_agent_runtime(agentRuntimeArn=arn, runtimeSessionId="s" * 33, payload=payload)
        said = read(answer["response"])
    except client.exceptions.ClientError as error:
        said = str(type(error).__name__)
    points = [
        [point["attributes"], point["count"], point["sum"]]
        for point in telemetry.metrics()
        if point["name"] == "agent_otel.workflow.payload.size" and point["count"]
    ]
    seen.append([said, points])
from agent_otel._internal import errors
from agent_otel.telemetry.setup import integrations
print(json.dumps([received, seen, integrations(), dict(errors.errors)]))
"""


def test_a_callers_requests_and_answers_are_payloads(
    environment: Callable[[str], Environment], request: pytest.FixtureRequest
) -> None:
    """An answer has the bytes that the program has read of it, whole, in chunks or in part; an error all of them."""
    code = _CALLER.format(root=str(request.config.rootpath))
    done = environment(ENVIRONMENT).run(code, env={"AGENT_OTEL": "1"}, timeout=110, check=True)
    received, seen, matched, errors = json.loads(done.stdout.splitlines()[-1])
    assert {} == errors
    assert set(integrations["bedrock"]) <= set(matched["bedrock"])
    assert all(path.endswith("runtime%2Fclerk-AbC123/invocations") for path, _ in received)
    assert [300, 50_000, 100, "ClientError"] == [said for said, _ in seen]
    for (_, sent), (said, points), answered in zip(received, seen, (300, 50_000, 100, 16), strict=True):
        read = {attributes["direction"]: (count, size) for attributes, count, size in points}
        assert {"input": (1, sent), "output": (1, answered)} == read, said
        assert {("agentcore", "clerk-AbC123")} == {
            (attributes["workflow.runtime"], attributes["gen_ai.workflow.name"]) for attributes, _, _ in points
        }
