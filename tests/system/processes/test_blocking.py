"""The event loop: nothing of ours blocks it, in first calls or later, as `blockbuster` checks on a real agent."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel.testing.servers.openai import OpenAIServer
from tests.contract import script
from tests.servers.otlp import OtlpReceiver

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.environments import Environment

_PROGRAM = "import runpy; runpy.run_module('tests.system.processes.blocking_program', run_name='__main__')"
_CALLS = Counter({"lookup_later": 3, "lookup": 3, "big": 3, "table": 3})
_RESULTS, _PAYLOADS = "agent_otel.tool.result.size", "agent_otel.workflow.payload.size"
_CLAIM = {
    "AGENT_OTEL_CLAIM_CHECK_BUDGET": "60",
    "AGENT_OTEL_CLAIM_CHECK_BYTES": "10000",
    "AGENT_OTEL_CLAIM_CHECK_KEY": "0123456789abcdef0123456789abcdef",
}
_CASES = {
    "prometheus": {},
    "otel": {},
    "both": {},
    "off": {},
    "both, memory": {"AGENT_OTEL_CLAIM_CHECK": "memory:", **_CLAIM},
    "both, file": {"AGENT_OTEL_CLAIM_CHECK": "file://{folder}", **_CLAIM},
}


def _run(environment: Environment, env: dict[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Run the program; return its report, and the results that the model was sent by call id."""
    with OpenAIServer(script.decide) as server:
        child = environment.run(_PROGRAM, server.base_url, env=env, check=True)
    return json.loads(child.stdout.splitlines()[-1]), server.tool_results()


@pytest.fixture(scope="module")
def without_us(environment: Callable[[str], Environment]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the report and the results of a run with the switch off."""
    return _run(environment("pydantic-ai"), {})


@pytest.mark.parametrize("case", _CASES)
def test_nothing_blocks_the_event_loop(
    environment: Callable[[str], Environment],
    without_us: tuple[dict[str, Any], dict[str, str]],
    tmp_path: Path,
    case: str,
) -> None:
    sink = case.partition(",")[0]
    with OtlpReceiver() as receiver:
        env = {
            "AGENT_OTEL": "1",
            "AGENT_OTEL_METRICS": sink,
            **receiver.environment(),
            **{name: value.format(folder=tmp_path) for name, value in _CASES[case].items()},
        }
        report, results = _run(environment("pydantic-ai"), env)

    assert report["refused"] == []
    assert report["errors"] == {}
    assert report["said"] == ["done"] * 3
    assert Counter(s.attributes["tool.name"] for s in receiver.spans if "tool.args_hash" in s.attributes) == _CALLS
    pushed = {name: sum(p.count for p in receiver.points if p.name == name) for name in (_RESULTS, _PAYLOADS)}
    scraped = {name: report["counted"].get(f"{name.replace('.', '_')}_bytes_count", 0) for name in pushed}
    assert pushed == ({_RESULTS: 12, _PAYLOADS: 3} if sink in ("otel", "both") else {_RESULTS: 0, _PAYLOADS: 0})
    assert scraped == ({_RESULTS: 12, _PAYLOADS: 3} if sink in ("prometheus", "both") else {_RESULTS: 0, _PAYLOADS: 0})
    assert without_us[0]["refused"] == []
    stored = {call for call, text in results.items() if "claim:" in text}
    assert stored == ({call for call in results if call[-1] in "34"} if "," in case else set())
    assert {**results, **{call: without_us[1][call] for call in stored}} == without_us[1]
