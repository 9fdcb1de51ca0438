"""The ceiling: what the model gets instead of a result above it, through each framework's own loop."""

# ruff: noqa: D102 - a test's name and body say it
from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from agent_otel import semconv
from tests.contract.remedies.suite import CARRIERS, Carrier, Case, Remedies, Seen

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

WITHHELD = "Nothing was cut: the whole result was withheld. "
LESS = WITHHELD + "Ask for less with a smaller `n`."
PAGES = WITHHELD + "Ask page by page with `cursor` and a smaller `limit`."
BY_ARGUMENTS = WITHHELD + "Narrow it with `query`."
OWN = "Ask for one city."
#: ``{"rows":[…]}`` around 5,500 rows of 8 to 11 bytes, with their commas: above 60,000 bytes by less than a tenth, and
#: with more values than measuring looks at.
ROWS = 5500
ROWS_BYTES = 11 + (10 * 8 + 90 * 9 + 900 * 10 + 4500 * 11) + 5499


def error(tool: str, size_bytes: int, hint: str) -> dict[str, Any]:
    return {
        "error": "result_too_large",
        "tool": tool,
        "size_bytes": size_bytes,
        "limit_bytes": 60_000,
        "hint": hint,
    }


class TestCeiling(Remedies):
    """Nothing above 60,000 bytes reaches the model."""

    variables: ClassVar = {"AGENT_OTEL_RESULT_CEILING_BYTES": "60000"}
    hints: ClassVar = {"wide": OWN}
    #: What the framework adds when it makes a text of the table: a blank after each colon and comma, or lines.
    blanks: ClassVar[Counter[str]] = Counter(
        {
            **{name: 1 + 5500 + 5499 for name in CARRIERS if "lang" in name},
            **{name: 8 + 5500 * 18 for name in CARRIERS if "mcp" in name},
        }
    )

    @classmethod
    def cases(cls, carrier: Carrier) -> dict[str, Case]:
        found = {
            "at the ceiling": Case((("call_1", "big", {"n": 60000}),)),
            "above": Case((("call_2", "big", {"n": 60001}),)),
            "in sync code": Case((("call_3", "big", {"n": 70_000}),), "sync"),
            "bytes and not characters": Case((("call_4", "wide", {"n": 40_001}),)),
            "with a cursor": Case((("call_5", "search", {"query": "a"}),)),
            "one of two": Case(
                (("call_6", "fetch_later", {"key": "größe"}), ("call_7", "big", {"n": 70_000})), at_once=True
            ),
            "structured": Case((("call_8", "table", {"rows": ROWS}),)),
        }
        return {name: case for name, case in found.items() if case.mode in carrier.modes}

    def expected(self, carrier_name: str, carrier: Carrier) -> dict[str, dict[str, Any]]:
        """The errors by call id; the table's size is the framework's own text of it."""
        paged = BY_ARGUMENTS if carrier_name == "handwritten" else PAGES
        found = {
            "call_2": error("big", 60001, LESS),
            "call_3": error("big", 70_000, LESS),
            "call_4": error("wide", 80_002, OWN),
            "call_5": error("search", 70_000, paged),
            "call_7": error("big", 70_000, LESS),
        }
        if "sync" not in carrier.modes:
            del found["call_3"]
        return found

    @pytest.mark.shows("001.ceiling")
    def test_the_model_reads_the_error_and_nothing_else(self, seen: Seen, carrier_name: str, carrier: Carrier) -> None:
        expected = self.expected(carrier_name, carrier)
        for call_id, answer in expected.items():
            assert seen.wire[call_id] == json.dumps(answer, ensure_ascii=False)
        whole = {"call_1": "x" * 60_000, "call_6": "größe: " + "ß" * 1000}
        for call_id, text in whole.items():
            assert seen.wire[call_id] == text

    def test_a_structured_result_is_withheld_as_well(self, seen: Seen, carrier_name: str) -> None:
        told = json.loads(seen.wire["call_8"])
        [span] = seen.spans("structured")
        # Where the framework has made a text of it, with blanks or in lines, that is what is measured and withheld.
        size_bytes = ROWS_BYTES + self.blanks[carrier_name]
        assert told == error("table", size_bytes, WITHHELD + "Narrow it with `rows`.")
        assert span[semconv.RESULT_BYTES] == size_bytes
        assert semconv.RESULT_ESTIMATED not in span

    def test_mcp_gives_both_forms_and_the_flag(self, seen: Seen, carrier_name: str, carrier: Carrier) -> None:
        if not carrier.mcp:
            return
        for call_id, answer in self.expected(carrier_name, carrier).items():
            assert seen.answers[call_id]["structured"] == answer
            assert seen.answers[call_id]["is_error"] is True
        assert seen.answers["call_1"]["is_error"] is False

    def test_spans_say_what_was_produced_and_what_went_on(
        self, seen: Seen, carrier_name: str, carrier: Carrier
    ) -> None:
        expected = self.expected(carrier_name, carrier)
        for case, call_id in [("above", "call_2"), ("in sync code", "call_3"), ("with a cursor", "call_5")]:
            if call_id not in expected:
                continue
            [span] = seen.spans(case)
            assert span[semconv.RESULT_BYTES] == expected[call_id]["size_bytes"]
            assert span[semconv.RESULT_HANDED_BACK_BYTES] == len(seen.wire[call_id].encode())
            assert span[semconv.RESULT_TRUNCATED] is True
            assert span[semconv.TRUNCATION_LAYER] == "remedy"
            assert span[semconv.TRUNCATION_REASON] == "ceiling"
            # FastMCP ends its own span with words of its own.
            assert span["error.type"] == ("tool_error" if carrier_name == "fastmcp" else "result_too_large")
            assert seen.metric(case, "gen_ai.execute_tool.duration", **{"error.type": "result_too_large"}) is not None
        [whole] = seen.spans("at the ceiling")
        assert whole[semconv.RESULT_TRUNCATED] is False
        assert semconv.RESULT_HANDED_BACK_BYTES not in whole

    def test_metrics_count_it(self, seen: Seen) -> None:
        truncated = seen.metric("above", "agent_otel.tool.results.truncated", layer="remedy", reason="ceiling")
        large = seen.metric("above", "agent_otel.tool.results.large", threshold="ceiling")
        removed = seen.metric("above", "agent_otel.context.removed", strategy="ceiling")
        assert (truncated, large) == (1, 1)
        assert removed == 60001 - len(seen.wire["call_2"].encode())
        assert not seen.metric("at the ceiling", "agent_otel.tool.results.truncated")
        assert seen.metric("above", "agent_otel.tool.result.size") == 60001

    def test_nothing_is_cut_twice(self, seen: Seen) -> None:
        for case in seen.report["cases"]:
            for layer in ("framework", "model_request", "tool"):
                assert not seen.metric(case, "agent_otel.tool.results.truncated", layer=layer), (case, layer)
            assert seen.report["cases"][case]["messages"] == []
        assert seen.report["errors"] == {}

    def test_the_agent_ends_as_it_should(self, seen: Seen, carrier: Carrier) -> None:
        if not carrier.mcp:
            assert {case["said"] for case in seen.report["cases"].values()} == {"done"}


LOOP = """
import asyncio, json
import fastmcp

server = fastmcp.FastMCP("files")

@server.tool
def read(n: int) -> str:
    if not n:
        raise ValueError("no such file")
    return "x" * n

async def main():
    async with fastmcp.Client(server) as client:
        answers = [(await client.call_tool("read", {"n": n})).content[0].text for n in (10, 70_000)]
        answers.append((await client.call_tool("read", {"n": 70_000}, raise_on_error=False)).is_error)
        try:
            await client.call_tool("read", {"n": 0})
        except Exception as error:
            answers.append(type(error).__name__)
    print(json.dumps(answers))

asyncio.run(main())
"""


@pytest.mark.parametrize("kind", ["mcp-2", "fastmcp-3"])
def test_an_unchanged_loop_over_fastmcps_client_gets_no_exception(
    environment: Callable[[str], Environment], kind: str
) -> None:
    variables = {"AGENT_OTEL": "1", "AGENT_OTEL_RESULT_CEILING_BYTES": "60000"}
    done = environment(kind).run(LOOP, env=variables, check=True)
    small, withheld, *others = json.loads(done.stdout.splitlines()[-1])
    assert small == "x" * 10
    assert json.loads(withheld)["error"] == "result_too_large"
    # The program asked for the flag, and a failure of the tool stays one.
    assert others == [True, "ToolError"]
