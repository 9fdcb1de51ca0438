"""Anthropic's client, where requests leave for the model, and its tool runner; both majors."""

# ruff: noqa: D102 - a test's name and body say it
from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import pytest

from agent_otel.testing.servers.anthropic import CACHED_TOKENS, AnthropicServer
from tests.contract.cases import CANCELLED, KEY, KEY_BYTES, Case, Cut, Record, failed, looked_up
from tests.contract.delivery import WHOLE, Delivery
from tests.contract.toolbox import LOOKUP_BYTES
from tests.rows import each_row

if TYPE_CHECKING:
    from tests.contract.suite import Runs

# {"name":"lookup","input_schema":{"type":"object"}}, and the list's brackets
TOOLS_BYTES = 50 + 2


class TestAnthropic(Delivery):
    """anthropic 2."""

    agent = "anthropic_client"
    environment = "anthropic"
    server = AnthropicServer
    integrations: ClassVar = {"anthropic": ["anthropic._base_client:SyncAPIClient.request"]}
    attributes: ClassVar = {"gen_ai.conversation.id": "run-1"}
    outer = False
    imports_us = True
    own: ClassVar = {
        "two megabytes": WHOLE,
        "blocks": looked_up("lookup", "call_20", "sync", setting="blocks"),
        "plain data": looked_up("lookup", "call_21", setting="plain"),
        "raw": looked_up("lookup", "call_22", "sync", setting="raw"),
        "parsed": looked_up("lookup", "call_23", "sync", setting="parse"),
        "streamed": looked_up("lookup", "call_24", "sync", setting="stream"),
        "streamed by event": looked_up("lookup", "call_25", "stream", setting="events"),
        "beta": looked_up("lookup", "call_26", setting="beta"),
        "beta, raw": looked_up("lookup", "call_27", "sync", setting="beta raw"),
        "beta, parsed": looked_up("lookup", "call_28", "sync", setting="beta parse"),
        "beta, streamed": looked_up("lookup", "call_29", "stream", setting="beta stream"),
        "cut by the program": looked_up("lookup", "call_30", setting="cut"),
    }
    # 100 letters: g r ö ß e : and a blank are 9 bytes, 93 times ß 186.
    cuts: ClassVar = {"cut by the program": (Cut("lookup", "model_request", "shrunk", 195),)}

    @each_row("name", [name for name in own if name not in ("two megabytes", "cut by the program")])
    def test_each_part_of_a_request_is_measured_once(self, runs: Runs, name: str) -> None:
        prompt = len(self.cases()[name].plan()["prompt"].encode())
        found = {
            metric["attributes"]["part"]: (metric["count"], metric["sum"])
            for metric in runs.on["cases"][name]["metrics"]
            if metric["name"] == "agent_otel.model.request.size"
        }
        assert found == {
            "system": (2, 2 * 11),
            "user": (2, 2 * prompt),
            "tools": (2, 2 * TOOLS_BYTES),
            "assistant": (2, 0),
            "tool_arguments": (2, KEY_BYTES),
            "tool_results": (2, LOOKUP_BYTES),
        }

    @each_row("name", ["sync", "async", "parsed", "stream", "raw"])
    def test_cached_tokens_are_counted(self, runs: Runs, name: str) -> None:
        found = [m for m in runs.on["cases"][name]["metrics"] if m["name"] == "agent_otel.model.cached_tokens"]
        assert sum(metric["sum"] for metric in found) == 2 * CACHED_TOKENS


@pytest.mark.weekly
class TestAnthropicOld(TestAnthropic):
    """anthropic 0.125."""

    environment = "anthropic-0.125"


class TestRunner(Delivery):
    """The tool runner of anthropic 2, whose own span of a call is open around it."""

    agent = "anthropic_runner"
    environment = "anthropic"
    server = AnthropicServer
    integrations: ClassVar = {
        "anthropic": [
            "anthropic._base_client:SyncAPIClient.request",
            "anthropic.lib.tools._beta_runner:BaseSyncToolRunner._run_tool",
            "anthropic.lib.tools._toolsets._runnable:BetaRunnableToolset.tool_result",
        ],
    }
    span = "anthropic.custom_tool_use {tool}"
    scope = "com.anthropic.sdk.python"
    outer = False
    reads_failures = True
    origin = None
    own: ClassVar = {
        "two megabytes": WHOLE,
        "a class of its own": looked_up("builtin", "call_20"),
        "a class of its own, sync": looked_up("builtin", "call_21", "sync"),
        "streamed": looked_up("lookup", "call_22", "sync", setting="stream"),
        "blocks": looked_up("blocks", "call_23"),
        "refused by the tool": failed("refused", "call_24", error="anthropic.lib.tools._beta_functions.ToolError"),
        "eager": looked_up("lookup", "call_25", "stream", setting="eager"),
        "of a toolset": replace(looked_up("lookup", "call_27"), tools=("browser",)),
        "of a toolset, sync": replace(looked_up("lookup", "call_28", "sync"), tools=("browser",)),
        "unknown": Case(("big",), (("call_26", "made_up", KEY),), (), setting="unknown"),
    }

    def on_span(self, record: Record) -> Record:
        error = None if record.error in (None, CANCELLED) else "tool_error"
        return replace(record, error=error)


class TestRunnerOld(TestRunner):
    """The tool runner of anthropic 0.125, which has no spans, nor anything to run while the model is speaking."""

    environment = "anthropic-0.125"
    integrations: ClassVar = {
        "anthropic": [
            "anthropic._base_client:SyncAPIClient.request",
            "anthropic.lib.tools._beta_runner:BaseToolRunner.__init__",
        ],
    }
    span = "execute_tool {tool}"
    scope = "agent_otel"
    own: ClassVar = {name: case for name, case in TestRunner.own.items() if name != "eager" and "toolset" not in name}

    def on_span(self, record: Record) -> Record:
        return record


del Delivery
