"""The claim check: what the model gets of a large result, how it reads on, and what becomes of it without a store."""

# ruff: noqa: D102 - a test's name and body say it
from __future__ import annotations

import ast
import json
import re
from typing import TYPE_CHECKING, ClassVar

import pytest

from agent_otel import semconv
from agent_otel.testing.servers.openai import Json, Reply, ToolCall, tool_results
from tests.contract.remedies.suite import Carrier, Case, Remedies, Seen, decide

if TYPE_CHECKING:
    from pathlib import Path

LARGE = 100_003
LARGER = 1_500_001
LIMIT = 32_768
PAGE = 16_384
REF = re.compile(r'ref="(claim:[^"]+)"')
STORED = (
    "[{} of 100003 bytes of big's result shown; "
    'the whole is stored: read on with get_tool_result(ref="{}", cursor="{}")]'
)
LOST = (
    "[32652 of 1500001 bytes of big's result shown; "
    "the rest could not be stored and is lost; ask for something smaller]"
)
KEY_AND_TIME = {"AGENT_OTEL_CLAIM_CHECK_KEY": "the secret of this test", "AGENT_OTEL_CLAIM_CHECK_BUDGET": "30"}
"""The tests' machine may be slow; how long a call waits is not what they are about."""
FORGED = "claim:v2:forged"
READ_1, READ_2, FORGERY, THEFT = "read_1", "read_2", "call_forged", "call_theft"


def of_a_tool(text: str) -> Json:
    """What a tool returned as a dictionary; some frameworks write it as Python does."""
    try:
        found: Json = json.loads(text)
    except ValueError:
        found = ast.literal_eval(text)
    return found


class TestStored(Remedies):
    """With a store in memory."""

    variables: ClassVar = {**KEY_AND_TIME, "AGENT_OTEL_CLAIM_CHECK": "memory:"}
    stolen: ClassVar[list[str]] = []

    @classmethod
    def cases(cls, carrier: Carrier) -> dict[str, Case]:
        named = "" if carrier.owner else "run-1"
        found = {
            "as much as is shown": Case((("call_1", "big", {"n": LIMIT}),), execution=named),
            "stored": Case((("call_2", "big", {"n": LARGE}),), execution=named, tools=("big", "get_tool_result")),
            "in sync code": Case((("call_3", "big", {"n": LARGE + 1}),), "sync", execution=named),
            "forged": Case(((FORGERY, "get_tool_result", {"ref": FORGED}),), execution=named),
            "somebody else's": Case(((THEFT, "get_tool_result", {"ref": ""}),), execution="another run"),
        }
        if carrier.mcp:  # what the program gets; there is no model to read on
            return {name: found[name] for name in ("as much as is shown", "stored")}
        if not carrier.owner:
            found["of nobody"] = Case((("call_4", "big", {"n": LARGE}),))
        return found

    @classmethod
    def decide(cls, request: Json) -> Reply:
        """As the prompt says; and read on where there is more, to a second page."""
        results = tool_results(request)
        shown = REF.search(results.get("call_2", ""))
        if shown is not None:
            cls.stolen[:] = [shown[1]]
            if READ_1 not in results:
                return [ToolCall(READ_1, "get_tool_result", {"ref": shown[1]})]
            if READ_2 not in results:
                cursor = of_a_tool(results[READ_1])["next_cursor"]
                return [ToolCall(READ_2, "get_tool_result", {"ref": shown[1], "cursor": cursor})]
        reply = decide(request)
        if not isinstance(reply, str) and reply[0].id == THEFT:
            return [ToolCall(THEFT, "get_tool_result", {"ref": "".join(cls.stolen) or FORGED})]
        return reply

    def test_the_model_reads_the_beginning_and_where_the_rest_is(self, seen: Seen, carrier: Carrier) -> None:
        assert seen.wire["call_1"] == "x" * LIMIT
        found = REF.search(seen.wire["call_2"])
        assert found is not None
        cursor = re.findall(r'cursor="([\w-]+)"', seen.wire["call_2"])[-1]
        shown = LIMIT - len(STORED.format("12345", found[1], cursor)) - 1
        assert seen.wire["call_2"] == "x" * shown + "\n" + STORED.format(shown, found[1], cursor)
        if not carrier.mcp:
            assert " of 100004 bytes of big's result shown; " in seen.wire["call_3"]
            assert len(seen.wire["call_3"]) == LIMIT

    def test_mcp_gives_both_forms_without_the_flag(self, seen: Seen, carrier: Carrier) -> None:
        if carrier.mcp:
            answer = seen.answers["call_2"]
            # The tool declares {"result": text} as its output, and that is what it goes on to be.
            assert (answer["is_error"], answer["structured"]) == (False, {"result": answer["text"]})

    @pytest.mark.shows("000.read_on")
    def test_the_model_reads_on_page_by_page(self, seen: Seen, carrier: Carrier) -> None:
        if carrier.mcp:
            return
        first, second = of_a_tool(seen.wire[READ_1]), of_a_tool(seen.wire[READ_2])
        assert first["content"] == second["content"] == "x" * PAGE
        assert [first[name] for name in ("size_bytes", "start", "end")] == [LARGE, 0, PAGE]
        assert [second[name] for name in ("size_bytes", "start", "end")] == [LARGE, PAGE, 2 * PAGE]

    @pytest.mark.shows("000.authorised")
    def test_forged_and_foreign_references_are_refused_in_the_same_words(self, seen: Seen, carrier: Carrier) -> None:
        if carrier.mcp:
            return
        forged = of_a_tool(seen.wire[FORGERY])
        assert forged["error"] == "tool_result_unavailable"
        assert of_a_tool(seen.wire[THEFT]) == forged

    def test_what_belongs_to_nobody_goes_on_whole_and_that_is_said_once(self, seen: Seen) -> None:
        for name, case in seen.report["cases"].items():
            about_owners = ["belongs to no execution" in message for message in case["messages"]]
            assert about_owners == ([True] if name == "of nobody" else [])
        if "of nobody" in seen.report["cases"]:
            assert seen.wire["call_4"] == "x" * LARGE
        assert seen.report["errors"] == {}

    def test_spans_and_metrics(self, seen: Seen, carrier: Carrier) -> None:
        [span] = [span for span in seen.spans("stored") if span["tool.name"] == "big"]
        found = REF.search(seen.wire["call_2"])
        assert found is not None
        handed_back = len(seen.wire["call_2"].encode())
        assert span[semconv.RESULT_BYTES] == LARGE
        assert span[semconv.RESULT_HANDED_BACK_BYTES] == handed_back
        assert span[semconv.RESULT_REF] == found[1]
        assert (span[semconv.TRUNCATION_LAYER], span[semconv.TRUNCATION_REASON]) == ("remedy", "claim_check")
        assert "error.type" not in span
        assert seen.metric("stored", "agent_otel.claim_check.operations", operation="put", result="ok") == 1
        assert seen.metric("stored", "agent_otel.claim_check.io", operation="put") == LARGE
        assert seen.metric("stored", "agent_otel.context.removed", strategy="claim_check") == LARGE - handed_back
        if not carrier.mcp:
            assert seen.metric("stored", "agent_otel.claim_check.operations", operation="range", result="ok") == 2
            assert seen.metric("somebody else's", "agent_otel.claim_check.operations", result="ok") in (None, 0)

    def test_nothing_is_cut_twice(self, seen: Seen) -> None:
        for case in seen.report["cases"]:
            for layer in ("framework", "model_request", "tool"):
                assert not seen.metric(case, "agent_otel.tool.results.truncated", layer=layer), (case, layer)


class TestBroken(Remedies):
    """With a store that cannot be written to: a folder below a file."""

    variables: ClassVar = KEY_AND_TIME
    in_ci = ("langgraph", "mcp 1", "decorated")

    @classmethod
    def environ(cls, folder: Path) -> dict[str, str]:
        (folder / "file").touch()
        return {"AGENT_OTEL_CLAIM_CHECK": (folder / "file" / "below").as_uri()}

    @classmethod
    def cases(cls, carrier: Carrier) -> dict[str, Case]:
        del carrier
        return {
            "fits": Case((("call_1", "big", {"n": LARGE}),), execution="run-1"),
            "does not fit": Case((("call_2", "big", {"n": LARGER}),), execution="run-1"),
        }

    def test_no_result_goes_on_whole_and_each_says_that_the_rest_is_lost(self, seen: Seen) -> None:
        assert seen.wire["call_1"] == "x" * 32_653 + "\n" + LOST.replace("32652", "32653").replace("1500001", "100003")
        assert seen.wire["call_2"] == "x" * 32_652 + "\n" + LOST
        assert len(seen.wire["call_2"]) == LIMIT

    @pytest.mark.shows("000.infrastructure_failure")
    def test_it_is_counted_and_said_once(self, seen: Seen) -> None:
        for case in ("fits", "does not fit"):
            assert seen.metric(case, "agent_otel.claim_check.operations", operation="put", result="error") == 1
        [message] = seen.report["cases"]["fits"]["messages"]
        assert message.startswith("The store of the claim check failed: until it is back, ")
        assert seen.report["cases"]["does not fit"]["messages"] == []
        [span] = seen.spans("does not fit")
        assert semconv.RESULT_REF not in span
        assert (span[semconv.RESULT_BYTES], span[semconv.RESULT_TRUNCATED]) == (LARGER, True)


del Remedies
