"""The key of `tool.args_hash`: what a hash in a trace gives away, and which processes agree on it."""

from __future__ import annotations

import hmac
import json
from hashlib import blake2b
from typing import TYPE_CHECKING

import pytest

from tests.unit.telemetry.conftest import CALL
from tests.unit.telemetry.test_spans import PROVIDERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

_KEY = "q1Zk0mX7uB2rT9vL4sYc"
_ARGUMENTS = {"card": "4000000000000002", "pin": "0000"}
_PROGRAM = """
provide()
with agent_otel.execution("run-1"):
    for _ in range(2):
        call("pay", "ok", {"pin": "0000", "card": "4000000000000002"})
from prometheus_client import generate_latest
lines = generate_latest().decode().splitlines()
repeats = [line for line in lines if line.startswith("agent_otel_tool_repeats_total{")]
print(json.dumps([[span[2]["tool.args_hash"] for span in spans()[1:]], repeats]))
"""


def _hashes(environment: Environment, **env: str) -> list[str]:
    child = environment.run(CALL + PROVIDERS + _PROGRAM, env={"AGENT_OTEL": "1", **env}, check=True)
    hashes, repeats = json.loads(child.stdout)
    assert 'agent_otel_tool_repeats_total{by="arguments",gen_ai_tool_name="pay"} 1.0' == repeats[0]
    assert "" == child.stderr
    return list(hashes)


def _canonical() -> bytes:
    return json.dumps(_ARGUMENTS, sort_keys=True, separators=(",", ":")).encode()


@pytest.mark.shows("001.args_hash")
def test_processes_with_the_same_key_agree(environment: Callable[[str], Environment]) -> None:
    expected = blake2b(_canonical(), digest_size=6, key=_KEY.encode()).hexdigest()

    assert [expected] * 2 == _hashes(environment("bare"), AGENT_OTEL_HASH_KEY=_KEY)
    assert [expected] * 2 == _hashes(environment("bare"), AGENT_OTEL_HASH_KEY=_KEY)


def test_processes_with_the_same_key_of_the_claim_check_agree(environment: Callable[[str], Environment]) -> None:
    own = hmac.new(_KEY.encode(), b"tool.args_hash", "sha256").digest()
    expected = blake2b(_canonical(), digest_size=6, key=own).hexdigest()
    found = _hashes(environment("bare"), AGENT_OTEL_CLAIM_CHECK_KEY=f"{_KEY}, {'o' * 32}")
    assert [expected] * 2 == found


def test_without_a_key_each_process_has_its_own(environment: Callable[[str], Environment]) -> None:
    """The arguments cannot be guessed from the hash, and a repeat in the same process is still a repeat."""
    first, second = _hashes(environment("bare")), _hashes(environment("bare"))

    assert [first[0]] * 2 == first
    assert [second[0]] * 2 == second
    assert 3 == len({first[0], second[0], blake2b(_canonical(), digest_size=6).hexdigest()})
