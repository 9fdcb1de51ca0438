"""A summary and a handle, and what a program may keep of a call."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import agent_otel
from agent_otel._internal import env
from agent_otel.remedies import artifacts
from agent_otel.remedies.artifacts import summary_of
from agent_otel.remedies.claim_check.lean_record import LeanRecord, render
from tests.rows import each_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RUNS = {
    "runs": [{"id": number, "status": "failed" if number % 2 else "ok", "log": "x" * 500} for number in range(8)],
    "total": 8,
}


@pytest.mark.shows("001.summary_and_handle")
def test_a_summary_has_shape_counts_and_the_first_failures() -> None:
    failed = [{"id": number, "status": "failed", "log": "x" * 200} for number in (1, 3, 5)]
    assert summary_of(RUNS) == {
        "shape": {"runs": "list", "total": "int"},
        "counts": {"runs": 8},
        "failures": 4,
        "first_failures": failed,
    }


@each_row(
    ("value", "expected"),
    [
        ([], {"shape": [], "counts": {"items": 0}}),
        ([{"a": 1}], {"shape": [{"a": "int"}], "counts": {"items": 1}}),
        ("a\nb", {"shape": "str", "counts": {"characters": 3, "lines": 2}}),
        (None, {"shape": "NoneType"}),
        (b"x", {"shape": "bytes"}),
        ({1: [2]}, {"shape": {"1": "list"}, "counts": {"1": 1}}),
    ],
)
def test_whatever_is_summarised_has_a_shape(value: object, expected: dict[str, Any]) -> None:
    assert summary_of(value) == expected


def test_a_tool_may_have_a_summary_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifacts, "_summaries", {})

    @agent_otel.remedies.result_summary("ci")
    def summarise(value: Any) -> dict[str, Any]:
        return {"total": value["total"]}

    found = agent_otel.remedies.summarize_result(RUNS, tool="ci")
    assert found["summary"] == {"total": 8}
    # Nothing is stored where there is no store.
    assert found["full_payload_id"] is None
    assert found["size_bytes"] == len(json.dumps(RUNS, separators=(",", ":")).encode())
    assert "next_action" not in found


@pytest.mark.shows("001.summary_and_handle")
def test_the_whole_and_each_artifact_have_a_handle(set_variables: Callable[..., None]) -> None:
    set_variables(
        AGENT_OTEL_CLAIM_CHECK="memory:",
        AGENT_OTEL_CLAIM_CHECK_KEY="the secret of this test",
        AGENT_OTEL_CLAIM_CHECK_BUDGET="30",
    )
    with agent_otel.execution("run-summary"):
        found = agent_otel.remedies.summarize_result(RUNS, tool="runs", artifacts=["first", "second"])
        assert json.loads(agent_otel.remedies.resolve(found["full_payload_id"]).text or "") == RUNS
        assert [agent_otel.remedies.resolve(each).text for each in found["artifact_ids"]] == ["first", "second"]
        assert found["next_action"] == {"tool": "get_tool_result", "arguments": {"ref": found["artifact_ids"][0]}}
        # Only the execution that it belongs to gets it.
    assert agent_otel.remedies.get_tool_result(found["full_payload_id"])["error"] == "tool_result_unavailable"


@pytest.mark.shows("000.key")
def test_a_retry_of_the_call_replaces_what_it_stored(
    set_variables: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(env, "active", True)
    set_variables(
        AGENT_OTEL="1",
        AGENT_OTEL_CLAIM_CHECK="memory:",
        AGENT_OTEL_CLAIM_CHECK_KEY="the secret of this test",
        AGENT_OTEL_CLAIM_CHECK_BUDGET="30",
    )

    @agent_otel.remedies.streamed_artifacts
    def render(attempt: int) -> Iterator[str]:
        yield f"chart {attempt}"

    def attempt(number: int) -> list[str]:
        with agent_otel.tool_call("runs", {}, call_id="call_1") as call:
            found = agent_otel.remedies.summarize_result({"attempt": number}, tool="runs", artifacts=[f"log {number}"])
            (chart,) = render(number)["artifact_ids"]
            call.result("done")
        return [*found["artifact_ids"], found["full_payload_id"], chart]

    with agent_otel.execution("run-again", agent="clerk"):
        first, last = attempt(1), attempt(2)
        names = ("artifact-1", "summary-2", "artifact-3")
        for refs in (first, last):
            keys = [f"tool-result/=/run-again/runs/call_1-{name}" for name in names]
            assert [ref.split(":")[2] for ref in refs] == keys
        assert [agent_otel.remedies.resolve(ref).text for ref in last] == ["log 2", '{"attempt":2}', "chart 2"]
        assert {agent_otel.remedies.get_tool_result(ref).get("error") for ref in first} == {"tool_result_unavailable"}
    assert agent_otel.remedies.forget("run-again") == 3


@pytest.mark.shows("000.preview")
def test_a_lean_record_keeps_four_kibibytes() -> None:
    record = LeanRecord.of("call_1", "search", {"q": "a"}, "ß" * 5000, duration_ms=12.5, ref="claim:v2:x")
    assert record.truncated_preview == "ß" * 2048
    assert record.result_bytes == 10_000
    assert (record.success, record.result_ref) == (True, "claim:v2:x")
    assert len(json.dumps(record.to_dict(), ensure_ascii=False).encode()) < 4500
    assert LeanRecord.from_dict(json.loads(json.dumps(record.to_dict()))) == record


def test_a_record_of_an_error_or_of_bytes() -> None:
    failed = LeanRecord.of("call_1", "search", {}, "no", duration_ms=1, error="TimeoutError")
    assert (failed.success, render(failed).status) == (False, "TimeoutError")
    picture = LeanRecord.of("call_2", "draw", {}, b"\x89PNG", duration_ms=1)
    assert (picture.truncated_preview, picture.result_bytes) == (None, 4)
    assert (render(picture).preview, render(picture).complete) == ("", False)


@pytest.mark.shows("000.lean_record")
def test_records_of_old_and_of_later_kinds_are_shown() -> None:
    old = {"id": "1", "name": "search", "args": {"q": "a"}, "duration_ms": 3.0, "success": True, "result": {"a": "ß"}}
    row = render(old)
    assert (row.title, row.preview, row.complete, row.ref, row.status) == ("search", '{"a":"ß"}', True, None, "ok")
    later = {**LeanRecord.of("2", "search", {}, "ab", duration_ms=1).to_dict(), "colour": "red", "version": 9}
    assert (render(later).preview, render(later).complete) == ("ab", True)
    assert LeanRecord.from_dict({"id": "3"}) == LeanRecord("3", "", {}, 0.0, success=True)
    with pytest.raises(KeyError):
        LeanRecord.from_dict({"name": "search"})
