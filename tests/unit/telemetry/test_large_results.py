"""The log record of a large result: one per tool and hour, with what an engineer looks for, and no content."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.servers.otlp import OtlpReceiver
from tests.unit.telemetry.conftest import CALL

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

_PROGRAM = (
    CALL
    + """
import json, logging, time

class Kept(logging.Handler):
    def emit(self, record):
        fields = {key: value for key, value in vars(record).items() if "." in key or key == "trace_id"}
        kept.append([record.name, record.levelname, record.getMessage(), fields])

kept = []
logging.getLogger("agent_otel").addHandler(Kept())
call("search", "x" * 16_000)
call("search", "x" * 16_001, {"q": "canary"})
call("search", "x" * 400_000)
call("fetch", "y" * 300_000)
now = time.monotonic
time.monotonic = lambda: now() + 3_601
call("search", "x" * 20_000)
print(json.dumps(kept))
"""
)


@pytest.mark.parametrize("setting", ["", "off"], ids=["default", "off"])
@pytest.mark.shows("001.large_result_log")
def test_one_record_for_each_tool_and_hour(environment: Callable[[str], Environment], setting: str) -> None:
    with OtlpReceiver() as receiver:
        env = {"AGENT_OTEL": "1", **receiver.environment(), "AGENT_OTEL_LOG_LARGE_RESULTS": setting}
        child = environment("bare").run(_PROGRAM, env=env, check=True)
    kept = json.loads(child.stdout)

    if setting:
        assert kept == []
        return
    assert "canary" not in child.stdout
    large = [span for span in receiver.spans if span.attributes["tool.result.bytes"] in {16_001, 300_000, 20_000}]
    expected = [
        {
            "event.name": "tool.large_result",
            "tool.name": span.attributes["tool.name"],
            "tool.result.bytes": span.attributes["tool.result.bytes"],
            "tool.result.budget_bytes": 16_000,
            "tool.result.budget_layer": "default",
            "tool.args_hash": span.attributes["tool.args_hash"],
            "trace_id": span.trace_id,
        }
        for span in large
    ]
    assert [fields for *_, fields in kept] == expected
    first = expected[0]
    text = (
        "tool.large_result tool.name=search tool.result.bytes=16001 tool.result.budget_bytes=16000 "
        f"tool.result.budget_layer=default tool.args_hash={first['tool.args_hash']} trace_id={first['trace_id']}"
    )
    assert kept[0][:3] == ["agent_otel", "WARNING", text]


def test_a_program_without_logging_gets_no_line(environment: Callable[[str], Environment]) -> None:
    child = environment("bare").run(
        CALL + "call('search', 'x' * 300_000)", env={"AGENT_OTEL": "1", "AGENT_OTEL_LOG_LARGE_RESULTS": ""}, check=True
    )

    assert ("", "") == (child.stdout, child.stderr)
