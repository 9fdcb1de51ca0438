"""Limits of an execution: the calls above them are not run, and the model reads that it is to answer now."""

# ruff: noqa: D102 - a test's name and body say it
from __future__ import annotations

import json
from typing import ClassVar

import pytest

from agent_otel import semconv
from tests.contract.remedies.suite import Carrier, Case, Remedies, Seen
from tests.contract.toolbox import LOOKUP, LOOKUP_BYTES
from tests.rows import each_row

ANSWER_NOW = "This call was not run. Answer now with what you have; do not call any more tools."
LIMITS = {"tool_calls": 3, "result_bytes": 100_000, "result_tokens": 20_000}
#: The call that is skipped and the limit that it meets, by case.
SKIPPED = {
    "one after the other": ("call_4", "tool_calls"),
    "many bytes": ("call_9", "result_bytes"),
    "many tokens": ("call_11", "result_tokens"),
    "in sync code": ("call_15", "tool_calls"),
}
#: How often tools that say so have run in each case.
RAN = {"one after the other": 3, "many bytes": 0, "many tokens": 0, "in sync code": 3, "fewer": 2}
each_case = each_row("case_name", [*SKIPPED, "fewer", "at once"])


def fetches(first: int, how_many: int, tool: str = "fetch") -> tuple[tuple[str, str, dict[str, str]], ...]:
    """Calls with different arguments, whose results differ in nothing but the length of the key."""
    return tuple((f"call_{first + number}", tool, {"key": "größe"}) for number in range(how_many))


class TestLimits(Remedies):
    """All four at once, each met in a case of its own; a call above two at once waits."""

    variables: ClassVar = {
        "AGENT_OTEL_MAX_TOOL_CALLS": "3",
        "AGENT_OTEL_MAX_PARALLEL_TOOL_CALLS": "2",
        "AGENT_OTEL_MAX_RESULT_BYTES": "100000",
        "AGENT_OTEL_MAX_RESULT_TOKENS": "20000",
    }

    @classmethod
    def cases(cls, carrier: Carrier) -> dict[str, Case]:
        found = {
            "one after the other": Case(fetches(1, 4), execution="run-1"),
            "at once": Case(fetches(5, 3, "fetch_later"), at_once=True, execution="run-2"),
            # 120,002 bytes are 60,001 characters, 15,001 tokens.
            "many bytes": Case((("call_8", "wide", {"n": 60_001}), *fetches(9, 1)), execution="run-3"),
            # 90,001 bytes are 22,501 tokens.
            "many tokens": Case((("call_10", "big", {"n": 90_001}), *fetches(11, 1)), execution="run-4"),
            "in sync code": Case(fetches(12, 4), "sync", execution="run-5"),
            "fewer": Case(fetches(16, 2), execution="run-6"),
        }
        if not carrier.at_once:
            del found["at once"]
        return {name: case for name, case in found.items() if case.mode in carrier.modes}

    @each_case
    @pytest.mark.shows("002.max_tool_calls", "002.skipped")
    def test_what_is_above_is_answered_and_not_run(self, seen: Seen, carrier: Carrier, case_name: str) -> None:
        if case_name not in seen.report["cases"]:
            return
        case = self.cases(carrier)[case_name]
        whole = {call_id: LOOKUP for call_id, tool, _ in case.calls if tool.startswith("fetch")}
        ran = len(whole)
        if case_name in SKIPPED:
            skipped, limit = SKIPPED[case_name]
            del whole[skipped]
            ran = RAN[case_name]
            answer = {
                "error": "limit_reached",
                "limit": limit,
                "maximum": LIMITS[limit],
                "message": ANSWER_NOW,
            }
            assert json.loads(seen.wire[skipped]) == answer
            if carrier.mcp:
                assert seen.answers[skipped] == {
                    "text": seen.wire[skipped],
                    "structured": answer,
                    "is_error": True,
                }
        assert {call_id: seen.wire[call_id] for call_id in whole} == whole
        assert len(seen.report["cases"][case_name]["ran"]) == ran

    @each_case
    def test_spans_and_metrics_say_which_limit(self, seen: Seen, carrier_name: str, case_name: str) -> None:
        if case_name not in seen.report["cases"]:
            return
        skipped, limit = SKIPPED.get(case_name, ("", ""))
        spans = [span for span in seen.spans(case_name) if span.get("error.type")]
        hits = {each: seen.metric(case_name, "agent_otel.limits.hit", limit=each) or 0 for each in LIMITS}
        if not skipped:
            assert (spans, set(hits.values())) == ([], {0})
            return
        [span] = spans
        assert hits == {**dict.fromkeys(LIMITS, 0), limit: 1}
        assert span["error.type"] == ("tool_error" if carrier_name == "fastmcp" else "limit_reached")
        [event] = [event for event in span["events"] if event["name"] == "tool_call"]
        assert event["attributes"] == {"phase": "skipped", "limit": limit}
        assert semconv.RESULT_BYTES not in span
        results = seen.metric(case_name, "agent_otel.tool.result.size", **{"gen_ai.tool.name": "fetch"})
        if case_name == "one after the other":
            assert results == 3 * LOOKUP_BYTES

    def test_a_call_above_two_at_once_waits(self, seen: Seen, carrier: Carrier) -> None:
        waited = {
            name: seen.metric(name, "agent_otel.backpressure.wait", reason="parallel") for name in seen.report["cases"]
        }
        assert ((waited.pop("at once", None) or 0) > 0) is carrier.at_once
        assert set(waited.values()) == {None}

    def test_nothing_else_is_said(self, seen: Seen) -> None:
        assert {name: case["messages"] for name, case in seen.report["cases"].items() if case["messages"]} == {}
        assert seen.report["errors"] == {}
        for case in seen.report["cases"]:
            assert not seen.metric(case, "agent_otel.tool.results.truncated")


del Remedies
