"""A result that lost bytes between two stages is truncated, however small it is; one in another form is not."""

from __future__ import annotations

from agent_otel.core.tool_invocation import ToolInvocation, compare
from agent_otel.core.types import HANDED_BACK, PRODUCED, ToolCall, ToolResult
from agent_otel.measure.size import Size
from agent_otel.settings import Settings
from agent_otel.telemetry.setup import Telemetry
from tests.rows import each_row

MARKED = "a" * 700 + "\n[truncated]"


@each_row(
    ("before", "after", "expected"),
    [
        (1_000, Size(744, exact=True), None),  # 256 bytes are another form
        (1_000, Size(743, exact=True), "shrunk"),
        (1_000, Size(743, exact=False), None),  # a lower bound
        (100_000, Size(99_000, exact=True), None),  # and so is 1 %
        (100_000, Size(98_999, exact=True), "shrunk"),
        (1_000, Size(1_000, exact=True), None),
        (1_000, Size(5_000, exact=True), None),
    ],
)
def test_bytes_that_are_lost(before: int, after: Size, expected: str | None) -> None:
    assert expected == compare(before, after, "x" * after.bytes)


def test_the_text_gives_the_reason_unless_the_tool_gave_it() -> None:
    after = Size(len(MARKED), exact=True)
    assert "marker" == compare(5_000, after, MARKED)
    assert "shrunk" == compare(5_000, after, MARKED, ["marker"])
    assert "marker" == compare(5_000, after, MARKED, ["cut_json"])
    offloaded = "a" * 700 + "\n[Full output saved to /tmp/out.txt]"
    assert "offloaded" == compare(5_000, Size(len(offloaded), exact=True), offloaded)
    # As long as a known cap: that is a suspicion, and the comparison is a proof.
    assert "shrunk" == compare(100_000, Size(65_536, exact=True), "x" * 65_536)


@each_row(("produced", "handed_back"), [(300, 0), (600, 300), (3_000, 2_000), (4_095, 3_000), (9_000, 4_097)])
def test_a_framework_that_cuts_a_small_result_is_named(produced: int, handed_back: int) -> None:
    call = ToolInvocation(ToolCall("search", {}, "call_1"), Telemetry(Settings(), None, []), ())
    call.read(PRODUCED, ToolResult("x" * produced))
    call.read(HANDED_BACK, ToolResult("x" * handed_back))
    assert ((("framework", "shrunk"),), handed_back) == (call.cuts, call.handed)
