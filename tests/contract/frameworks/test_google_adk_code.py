"""The code in a model's answer, which a code executor of Google's Agent Development Kit runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.environments import Environment

integrations = {"google-adk": ["google.adk.code_executors.base_code_executor:BaseCodeExecutor.__init__"]}

PROGRAM = """
import asyncio, json, os
from google.adk.agents import LlmAgent
from google.adk.code_executors.unsafe_local_code_executor import UnsafeLocalCodeExecutor
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types
from tests.contract.child import Telemetry

CODE = "open({file!r}, 'w').close(); print('y' * 100)"
FAILING = "raise ValueError('no')"

class Model(BaseLlm):
    code: str
    requests: list = []

    async def generate_content_async(self, request, stream=False):
        self.requests.append(request.model_dump_json())
        text = f"```python\\n{{self.code}}\\n```" if len(self.requests) == 1 else "done"
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]))

async def main(code):
    model = Model(model="gemini-scripted", code=code, requests=[])
    runner = InMemoryRunner(LlmAgent(name="clerk", model=model, code_executor=UnsafeLocalCodeExecutor()))
    session = await runner.session_service.create_session(app_name=runner.app_name, user_id="user-1")
    message = types.Content(role="user", parts=[types.Part(text="hi")])
    async for _ in runner.run_async(user_id="user-1", session_id=session.id, new_message=message):
        pass
    return "tool_denied" in model.requests[1]

telemetry = Telemetry()
report = []
for code in (CODE, FAILING):
    is_told = asyncio.run(main(code))
    spans = [span["attributes"] for span in telemetry.spans() if "tool.args_hash" in span["attributes"]]
    names = ("tool.name", "gen_ai.agent.name", "tool.args.bytes", "error.type")
    read = [[span.get(name) for name in names] + ["tool.result.bytes" in span] for span in spans]
    report.append([os.path.exists({file!r}), read, is_told])
print(json.dumps(report))
"""


def _run(environment: Environment, file: Path, **env: str) -> Any:
    done = environment.run(PROGRAM.format(file=str(file)), env={"AGENT_OTEL": "1", **env}, check=True)
    assert "agent_otel failed" not in done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", ["google-adk", "google-adk-1.15"])
def test_code_is_one_call(environment: Callable[[str], Environment], tmp_path: Path, name: str) -> None:
    file = tmp_path / "ran"
    arguments = len('{"code":"' + f"open('{file}', 'w').close(); print('y' * 100)" + '"}')
    assert _run(environment(name), file) == [
        [True, [["execute_code", "clerk", arguments, None, True]], False],
        [True, [["execute_code", "clerk", 33, "tool_error", True]], False],
    ]


@pytest.mark.parametrize("name", ["google-adk", "google-adk-1.15"])
def test_no_code_runs_that_the_policy_denies(
    environment: Callable[[str], Environment], tmp_path: Path, name: str
) -> None:
    policy, file = tmp_path / "policy.toml", tmp_path / "ran"
    policy.write_text('[[rules]]\ntools = "lookup"\n')
    arguments = len('{"code":"' + f"open('{file}', 'w').close(); print('y' * 100)" + '"}')
    assert _run(environment(name), file, AGENT_OTEL_TOOL_POLICY=str(policy)) == [
        [False, [["execute_code", "clerk", arguments, "tool_denied", False]], True],
        [False, [["execute_code", "clerk", 33, "tool_denied", False]], True],
    ]
