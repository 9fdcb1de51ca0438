"""A ceiling and a policy in sessions of LiveKit Agents and in pipelines of Pipecat."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel.testing.servers.openai import OpenAIServer
from tests.contract import script

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.environments import Environment

_PROGRAM = """
from __future__ import annotations
import asyncio, importlib, json, sys
sys.path.insert(0, {root!r})
agent = importlib.import_module("tests.contract.agents.{agent}")
from tests.contract import toolbox
ran = []

def big(n: int) -> str:
    "Return so many letters."
    ran.append("big")
    return toolbox.big(n)

def lookup(key: str) -> str:
    "Look a record up."
    ran.append("lookup")
    return toolbox.lookup(key)

said = asyncio.run(agent.arun({base_url!r}, [big, lookup], {prompt!r}, ""))
from agent_otel._internal import errors
print(json.dumps([said, ran, dict(errors.errors)]))
"""


@pytest.mark.parametrize(("agent", "name"), [("livekit_agents", "livekit-agents"), ("pipecat", "pipecat")])
def test_the_model_gets_the_replacement(
    environment: Callable[[str], Environment],
    request: pytest.FixtureRequest,
    tmp_path: Path,
    agent: str,
    name: str,
) -> None:
    """The policy knows one of two tools, whose result is too large."""
    calls = (("call_1", "big", {"n": 5000}), ("call_2", "lookup", {"key": "a"}))
    policy = tmp_path / "policy.toml"
    policy.write_text('[[rules]]\ntools = "big"\n')
    variables = {"AGENT_OTEL": "1", "AGENT_OTEL_RESULT_CEILING_BYTES": "4000", "AGENT_OTEL_TOOL_POLICY": str(policy)}
    with OpenAIServer(script.decide) as model:
        code = _PROGRAM.format(
            root=str(request.config.rootpath), agent=agent, base_url=model.base_url, prompt=script.prompt(*calls)
        )
        done = environment(name).run(code, env=variables, timeout=110, check=True)
        texts = model.tool_results()
    said, ran, errors = json.loads(done.stdout.splitlines()[-1])
    assert ("done", ["big"], {}) == (said, ran, errors)
    withheld, denied = (_read(texts[call_id]) for call_id in ("call_1", "call_2"))
    assert ("result_too_large", 5000, 4000) == (withheld["error"], withheld["size_bytes"], withheld["limit_bytes"])
    assert "lookup" in json.dumps(denied)
    assert "ß" not in json.dumps(denied, ensure_ascii=False)


def _read(text: str) -> Any:
    """Return the object in a result; Pipecat writes a text as JSON."""
    value = json.loads(text)
    return json.loads(value) if isinstance(value, str) else value
