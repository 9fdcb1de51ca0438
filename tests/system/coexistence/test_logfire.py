"""Beside Logfire, which sets proxies of its own as providers: they are the program's, and no others are built."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.servers.otlp import OtlpReceiver
from tests.system.coexistence.conftest import BYTES, OURS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

_PROGRAM = """
import logfire
from langchain_core.tools import tool

logfire.configure(send_to_logfire=False, console=False, inspect_arguments=False)

@tool
def shout(text: str) -> str:
    "Say it louder."
    return text.upper()

with logfire.span("a run"):
    for _ in range(3):
        assert "HI" == shout.invoke({"text": "hi"})
"""


@pytest.mark.parametrize("metrics", ["otlp", ""], ids=["metrics named", "endpoint only"])
def test_logfire(environment: Callable[[str], Environment], metrics: str) -> None:
    with OtlpReceiver() as receiver:
        env = {"AGENT_OTEL": "1", **receiver.environment(), "OTEL_METRICS_EXPORTER": metrics}
        child = environment("logfire").run(_PROGRAM, env=env, check=True)

    assert ("", "") == (child.stdout, child.stderr)
    assert {"execute_tool shout": 3, "a run": 1} == Counter(span.name for span in receiver.spans)
    assert [2, 2, 2] == [span.attributes[BYTES] for span in receiver.spans if span.scope == OURS]
    run = next(span for span in receiver.spans if span.name == "a run")
    assert {run.span_id} == {span.parent_span_id for span in receiver.spans if span.scope == OURS}
    assert [3] == [point.count for point in receiver.latest("agent_otel.tool.result.size")]
