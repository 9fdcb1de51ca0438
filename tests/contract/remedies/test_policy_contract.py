"""A dispatch policy: calls that it does not allow are answered and not run, and injected arguments show nowhere."""

# ruff: noqa: D102 - a test's name and body say it
from __future__ import annotations

import json
from typing import TYPE_CHECKING, ClassVar

import pytest

from agent_otel import semconv
from tests.contract.remedies.suite import Carrier, Case, Remedies, Seen
from tests.contract.remedies.tools import CANARY
from tests.rows import each_row

if TYPE_CHECKING:
    from pathlib import Path

POLICY = """
[[rules]]
tools = "fetch"
forbid = { key = "secret*" }

[[rules]]
tools = ["fetch_*"]
require = { key = ["one", "two", "three"] }
inject = { token = { env = "CANARY_TOKEN" } }
approve = "tests.contract.remedies.tools:approve"
"""
CALLS = (
    ("call_1", "fetch", {"key": "plain"}),
    ("call_2", "fetch", {"key": "secret 1"}),
    ("call_3", "big", {"n": 10}),
    ("call_4", "fetch_as", {"key": "one"}),
    ("call_5", "fetch_as", {"key": "two", "token": "the model's"}),
    ("call_6", "fetch_as", {"key": "three"}),
    ("call_7", "fetch_as", {"key": "four"}),
)
FORBIDDEN = "The policy forbids this value of `key`. Do not try to get around it."
NOT_ALLOWED = "The policy of this agent does not allow this tool. Do not call it again; answer without it."
NOT_APPROVED = "This call was not approved. Do not call it again with the same arguments."
REQUIRED = "The policy requires another value of `key`. Call again only with a value you are allowed."
DENIED = {
    "call_2": {"error": "tool_denied", "tool": "fetch", "rule": "forbid", "argument": "key", "hint": FORBIDDEN},
    "call_3": {"error": "tool_denied", "tool": "big", "rule": "tools", "hint": NOT_ALLOWED},
    "call_6": {"error": "tool_denied", "tool": "fetch_as", "rule": "approve", "hint": NOT_APPROVED},
    "call_7": {"error": "tool_denied", "tool": "fetch_as", "rule": "require", "argument": "key", "hint": REQUIRED},
}
CANNOT = (
    "AGENT_OTEL_TOOL_POLICY: arguments cannot be injected into this call through openai_agents; calls that need them "
    "are denied."
)
RULES = {"forbid": "fetch", "tools": "big", "approve": "fetch_as", "require": "fetch_as"}
#: Versions in which nothing stands between the arguments and the handler: a call that needs a token is denied.
CANNOT_INJECT = ("openai-agents 0.7", "openai-agents 0.8")
each_mode = each_row("mode", ["sync", "async"])


class TestEnforce(Remedies):
    """The file names the tools; all else is denied."""

    variables: ClassVar = {
        "CANARY_TOKEN": CANARY,
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true",
    }

    @classmethod
    def cases(cls, carrier: Carrier) -> dict[str, Case]:
        return {mode: Case(CALLS, mode, execution=f"run-{mode}") for mode in carrier.modes}

    @classmethod
    def environ(cls, folder: Path) -> dict[str, str]:
        file = folder / "policy.toml"
        file.write_text(POLICY)
        return {"AGENT_OTEL_TOOL_POLICY": str(file)}

    @pytest.mark.shows("000.dispatch_policy")
    @each_mode
    def test_what_is_not_allowed_is_answered_and_not_run(
        self, seen: Seen, carrier: Carrier, carrier_name: str, mode: str
    ) -> None:
        if mode not in carrier.modes:
            return
        for call_id, error in DENIED.items():
            assert json.loads(seen.wire[call_id]) == error
            if carrier.mcp:
                assert seen.answers[call_id]["is_error"] is True
        assert seen.wire["call_1"] == "plain: " + "ß" * 1000
        if carrier_name in CANNOT_INJECT:
            assert seen.report["cases"][mode]["ran"] == ["fetch"]
            assert [json.loads(seen.wire[call_id])["rule"] for call_id in ("call_4", "call_5")] == ["inject"] * 2
            return
        assert seen.report["cases"][mode]["ran"] == ["fetch", "fetch_as", "fetch_as"]
        # The value of the model for an injected parameter is of no effect.
        assert (seen.wire["call_4"], seen.wire["call_5"]) == ("one: let in", "two: let in")

    @each_mode
    def test_spans_and_metrics_name_the_rule(self, seen: Seen, carrier: Carrier, carrier_name: str, mode: str) -> None:
        if mode not in carrier.modes:
            return
        denied = {rule: tool for rule, tool in RULES.items() if self._denied(seen, mode, rule, tool) == 1}
        assert denied == RULES
        spans = [span for span in seen.spans(mode) if span.get("error.type")]
        events = [event["attributes"] for span in spans for event in span["events"] if event["name"] == "policy_denied"]
        assert [(event["rule"], event["mode"], event.get("argument")) for event in events] == [
            ("forbid", "enforce", "key"),
            ("tools", "enforce", None),
            *([("inject", "enforce", None)] * 2 if carrier_name in CANNOT_INJECT else []),
            ("approve", "enforce", None),
            ("require", "enforce", "key"),
        ]
        assert all(semconv.RESULT_BYTES not in span for span in spans)

    @staticmethod
    def _denied(seen: Seen, mode: str, rule: str, tool: str) -> float | None:
        labels = {"gen_ai.tool.name": tool, "rule": rule, "mode": "enforce"}
        return seen.metric(mode, "agent_otel.policy.denied", **labels)

    @pytest.mark.shows("000.injected_arguments")
    def test_the_injected_value_shows_nowhere(self, seen: Seen) -> None:
        for exported in (seen.report, seen.requests, seen.answers, seen.wire):
            assert CANARY not in json.dumps(exported)
        hashes = {span["gen_ai.tool.call.arguments"] for case in seen.report["cases"] for span in seen.spans(case)}
        assert '{"key":"one"}' in hashes

    def test_only_what_it_cannot_do_is_said(self, seen: Seen, carrier_name: str) -> None:
        said = [message for case in seen.report["cases"].values() for message in case["messages"]]
        assert said == ([CANNOT] if carrier_name in CANNOT_INJECT else [])
        assert seen.report["errors"] == {}


del Remedies
