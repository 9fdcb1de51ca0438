"""Amazon Bedrock AgentCore Runtime, whose application is called over HTTP as the service calls it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from tests.environments import Environment

#: What `tests.contract.test_drift` looks for.
integrations = {"bedrock-agentcore": ["bedrock_agentcore.runtime.app:BedrockAgentCoreApp._handle_invocation"]}

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
    done = environment("bedrock-agentcore").run(code, env={"AGENT_OTEL": "1"}, timeout=110, check=True)
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
