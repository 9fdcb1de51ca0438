"""The claim check at the boundary of a tool: the view, the budget of a nearly full state, and reading on."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

import agent_otel
from agent_otel._internal import env
from agent_otel.core import execution_context, handler, step_handler
from agent_otel.core.types import (
    Invocation,
    Payload,
    Replacement,
    Step,
    StepReader,
    ToolCall,
    ToolReader,
    ToolResult,
)
from agent_otel.measure.size import Size
from agent_otel.remedies.claim_check import policy
from agent_otel.remedies.claim_check.stores import NotFoundError
from agent_otel.remedies.pagination import Cursor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

READER = ToolReader(lambda invocation: invocation.instance, ToolResult, replace=lambda _, found, __: found)
REF = re.compile(r'ref="(claim:[^"]+)"')
ASKED: Any = Invocation(None, (), {})


@pytest.fixture(autouse=True)
def store(set_variables: Callable[..., None]) -> None:
    set_variables(
        AGENT_OTEL="1",
        AGENT_OTEL_CLAIM_CHECK="memory:",
        AGENT_OTEL_CLAIM_CHECK_KEY="the secret of this test",
        AGENT_OTEL_CLAIM_CHECK_BUDGET="30",
    )


def goes_on(value: object, call: ToolCall | None = None) -> Any:
    """What goes on instead of a result: a Replacement, or the result itself."""
    visit = handler.enter_tool(READER, Invocation(call or ToolCall("search", {}, "call_1"), (), {}))
    assert isinstance(visit, handler.Visit)
    with visit:
        return visit.remedied(value, ASKED)


def ref_of(found: Any) -> str:
    """The reference in what goes on."""
    assert isinstance(found, Replacement)
    match = REF.search(found.text)
    assert match is not None
    return match[1]


def test_the_view_is_the_beginning_and_what_became_of_the_rest() -> None:
    text = "one\ntwo\n" + "x" * 400

    def note(end_bytes: int) -> str:
        cursor = Cursor(("claim:v2:x", None, None, None)).encode(end_bytes)
        return f'the whole is stored: read on with get_tool_result(ref="claim:v2:x", cursor="{cursor}")'

    found = policy.view("search", text, Size(408, exact=True), "claim:v2:x", 225)
    shown = "one\ntwo\n"
    assert found.replacement.text == f"{shown}\n[8 of 408 bytes of search's result shown; {note(8)}]"
    found = policy.view("search", text, Size(408, exact=True), "claim:v2:x", 250)
    data = {"content": shown, "shown_bytes": 8, "size_bytes": 408, "ref": "claim:v2:x", "note": note(8)}
    assert found.replacement.data == data
    assert found.bytes == len(found.replacement.text.encode())
    assert not found.replacement.is_error


def test_binary_results_and_full_states_show_nothing() -> None:
    for text, limit_bytes in ((None, 8), ("x" * 10, 0)):
        found = policy.view("search", text, Size(10, exact=True), None, limit_bytes)
        lost = "the rest could not be stored and is lost; ask for something smaller"
        assert found.replacement.text == f"[0 of 10 bytes of search's result shown; {lost}]"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("ß" * 50_000, "ß" * 50_000),
        ({"rows": ["x" * 40_000]}, '{"rows":["' + "x" * 40_000 + '"]}'),
        ([{"type": "text", "text": "x" * 40_000}], "x" * 40_000),
        ({(1, 2): "x" * 40_000}, '{"[1,2]":"' + "x" * 40_000 + '"}'),
    ],
)
def test_the_whole_can_be_had_again(value: object, text: str) -> None:
    with agent_otel.execution("run-whole"):
        ref = ref_of(goes_on(value))
        assert agent_otel.remedies.resolve(ref).text == text
        assert asyncio.run(agent_otel.remedies.aresolve(ref)).text == text


def test_binary_data_can_be_had_again_but_not_read_by_a_model() -> None:
    with agent_otel.execution("run-binary"):
        ref = ref_of(goes_on(bytes(40_000)))
        assert agent_otel.remedies.resolve(ref).data == bytes(40_000)
        assert (
            agent_otel.remedies.get_tool_result(ref)["hint"]
            == "The result is application/octet-stream and has no text."
        )


@pytest.mark.shows("000.key")
def test_a_retry_replaces_what_the_first_attempt_stored() -> None:
    asked = [ToolCall("poll", {"id": number}, f"call_{number}") for number in range(6)]
    with agent_otel.execution("run-retried"):
        first = [ref_of(goes_on("a" * 40_000, call)) for call in asked]
        again = [ref_of(goes_on("b" * 40_000, call)) for call in asked]
        keys = {ref.split(":")[2] for ref in (*first, *again)}
        assert keys == {f"tool-result/=/run-retried/poll/call_{number}" for number in range(6)}
        assert [agent_otel.remedies.resolve(ref).text for ref in again] == ["b" * 40_000] * 6
        for ref in first:
            with pytest.raises(NotFoundError):
                agent_otel.remedies.resolve(ref)
        assert ref_of(goes_on("b" * 40_000, asked[0])) == again[0]
    assert agent_otel.remedies.forget("run-retried") == 6


def test_calls_without_ids_and_ids_that_another_call_uses_again_have_keys_of_their_own() -> None:
    asked = (
        ToolCall("poll", {"id": 1}, "call_1"),
        ToolCall("poll", {"id": 2}, "call_1"),
        ToolCall("poll", {"id": 1}),
        ToolCall("poll", {"id": 2}),
    )
    with agent_otel.execution("run-twice"):
        refs = [ref_of(goes_on(letter * 40_000, call)) for letter, call in zip("abcd", asked, strict=True)]
        assert [agent_otel.remedies.resolve(ref).text for ref in refs] == [letter * 40_000 for letter in "abcd"]
        assert [ref_of(goes_on(letter * 40_000, call)) for letter, call in zip("abcd", asked, strict=True)] == refs


@pytest.mark.shows("000.key")
def test_the_path_of_execution_node_and_call_serves_the_result() -> None:
    asked: dict[str, Any] = {"type": "http", "method": "GET", "headers": [], "root_path": ""}
    with agent_otel.execution("run-served", agent="clerk"):  # a row of a user interface knows its tool
        goes_on("first" * 20_000, ToolCall("search", {}, "call_1"))
        goes_on("last" * 20_000, ToolCall("search", {}, "call_1"))

    def served(owner: str) -> list[Any]:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        app = agent_otel.remedies.results_app(lambda _, __: owner)
        path = "/executions/run-served/tool-results/search/call_1"
        asyncio.run(app({**asked, "path": path}, None, send))  # type: ignore[arg-type]
        return [sent[0]["status"], sent[1]["body"]]

    assert served("run-served") == [200, b"last" * 20_000]
    assert served("run-other") == [404, b"not found"]


@pytest.mark.shows("000.lean_record")
def test_a_stored_call_has_a_claim_for_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(env, "active", True)
    text = "row\n" * 50_222  # 200,888 bytes
    with agent_otel.execution("run-lean"), agent_otel.tool_call("search", {"q": "a"}, call_id="call_1") as call:
        shown = call.result(text)
    assert call.claim is not None
    record = agent_otel.remedies.LeanRecord.of("call_1", "search", {"q": "a"}, shown, duration_ms=1, claim=call.claim)
    assert (record.result_bytes, record.result_ref) == (200_888, call.claim.reference)
    assert record.truncated_preview == "row\n" * 1024 == call.claim.preview
    assert 32_000 < call.claim.shown_bytes < 32_768
    row = agent_otel.remedies.render(record.to_dict())
    assert (row.complete, row.ref, row.preview) == (False, call.claim.reference, "row\n" * 1024)
    agent_otel.remedies.delete(call.claim.reference, caller="run-lean")
    with pytest.raises(NotFoundError):
        agent_otel.remedies.resolve(call.claim.reference, caller="run-lean")
    with agent_otel.execution("run-lean"), agent_otel.tool_call("search", {}, call_id="call_2") as small:
        small.result("small")
    assert small.claim is None


def test_only_its_execution_may_read_it() -> None:
    with agent_otel.execution("run-mine"):
        ref = ref_of(goes_on("x" * 40_000))
    refused = []
    with agent_otel.execution("run-yours"):
        for each in (ref, ref[:-1] + "0", "claim:v2:", "", "x" * 5000):
            with pytest.raises(NotFoundError) as raised:
                agent_otel.remedies.resolve(each)
            refused.append(str(raised.value))
            assert agent_otel.remedies.get_tool_result(each)["error"] == "tool_result_unavailable"
    assert len(set(refused)) == 1
    assert agent_otel.remedies.resolve(ref, caller="run-mine").text == "x" * 40_000


def test_what_reads_on_is_never_stored() -> None:
    with agent_otel.execution("run-reading"):
        value = {"content": "x" * 100_000}
        assert goes_on(value, ToolCall("get_tool_result", {}, "call_1")) is value


@pytest.mark.parametrize("size", [32_769, 33_000, 200_000])
@pytest.mark.parametrize("letter", ["x", '"', "ß"])
def test_what_the_model_gets_is_32_kib_with_the_line_about_the_rest(letter: str, size: int) -> None:
    with agent_otel.execution("run-32"):
        found = goes_on(letter * size)
        assert isinstance(found, Replacement)
        assert len(found.text.encode()) <= 32_768
        assert len(json.dumps(found.data, ensure_ascii=False).encode()) <= 32_768
        assert len(found.text.encode()) > 32_700


@pytest.mark.shows("000.model_view")
def test_no_row_loses_its_last_field() -> None:
    rows = [{"id": number, "eta": "2026-11-22", "tags": ["a", "b"], "delayed": True} for number in range(2_000)]
    with agent_otel.execution("run-rows"):
        for value in (rows, {"total": 2_000, "orders": rows}, {str(row["id"]): row for row in rows}):
            content = goes_on(json.dumps(value)).text.rpartition("\n")[0]
            assert content.count('"delayed": true') == content.count('"eta"') > 300


MIB = 1024 * 1024
NOWHERE = "redis://127.0.0.1:1/0"


@pytest.fixture
def _dead(set_variables: Callable[..., None]) -> None:
    """A store that nobody answers for."""
    set_variables(AGENT_OTEL_CLAIM_CHECK=NOWHERE)


@contextlib.contextmanager
def _running(run: str) -> Iterator[Step]:
    """An activity of Temporal's run."""
    token = execution_context.runtime.set(execution_context.Carrier(run))
    try:
        yield Step("temporal", "call_model", "investigate", run)
    finally:
        execution_context.runtime.reset(token)


def _shown_bytes(found: Any) -> int:
    return found.data["shown_bytes"] if isinstance(found, Replacement) else len(found)


@pytest.mark.usefixtures("_dead")
def test_without_a_store_no_result_goes_on_whole() -> None:
    lost = "the rest could not be stored and is lost; ask for something smaller"
    with _running("run-dead") as step:
        step_handler.payload(step, Payload("input", MIB // 4, data="x"))
        found = [goes_on("x" * 100_000, ToolCall("search", {}, f"call_{number}")) for number in range(4)]
        # Temporal has a history: 734,003 bytes are for results, in this turn and four more.
        assert [len(each.text) for each in found] == [32_768] * 4
        assert all(each.text.endswith(f" of 100000 bytes of search's result shown; {lost}]") for each in found)
        step_handler.payload(step, Payload("input", 1_677_000, data="x"))  # four fifths of the cap are 1,677,721
        assert len(goes_on("x" * 100_000, ToolCall("search", {}, "call_5")).text) == 4_096
        step_handler.payload(step, Payload("input", 2_090_000, data="x"))  # of 7,152 bytes half are left
        assert len(goes_on("x" * 100_000, ToolCall("search", {}, "call_6")).text) < 4_096
    reader = StepReader(lambda invocation: invocation.instance, lambda _: None, lambda _, __: None)
    with _running("run-new") as step:  # before the first payload, the cap is that of the step
        visit = step_handler.enter_step(reader, Invocation(step, (), {}))
        assert visit is not None
        with visit:
            found = [goes_on("x" * 400_000, ToolCall("search", {}, f"call_{number}")) for number in range(20)]
    assert {len(each.text) for each in found[:5]} == {32_768}
    assert all(4_096 <= len(each.text) for each in found)
    with agent_otel.execution("run-without-cap"):
        assert [len(goes_on("x" * size).text) for size in (40_000, MIB + 1)] == [32_768] * 2
    assert goes_on("x" * 40_000) == "x" * 40_000  # it belongs to nobody


def test_a_result_above_the_maximum_is_cut_and_others_are_stored(set_variables: Callable[..., None]) -> None:
    set_variables(AGENT_OTEL_CLAIM_CHECK_MAX_BYTES="2MiB")
    with agent_otel.execution("run-hostile"):
        for value in ("x" * 3 * MIB, {"rows": ["x" * MIB] * 3}):
            found = goes_on(value)
            assert 32_600 < _shown_bytes(found) < 32_768
            assert found.data["ref"] is None
        assert found.data["content"].startswith('{"rows":["xxx')
    with agent_otel.execution("run-other"):
        assert ref_of(goes_on("x" * 40_000))


def test_what_is_nested_deeply_is_stored_like_anything_else() -> None:
    nested: Any = "x" * 40_000
    for _ in range(2_000):
        nested = [nested]
    with agent_otel.execution("run-nested"):
        text = agent_otel.remedies.resolve(ref_of(goes_on(nested))).text
    assert text == "[" * 2_000 + '"' + "x" * 40_000 + '"' + "]" * 2_000


def test_what_is_nested_deeply_is_above_the_ceiling(set_variables: Callable[..., None]) -> None:
    set_variables(AGENT_OTEL_CLAIM_CHECK="", AGENT_OTEL_RESULT_CEILING_BYTES="30000")
    nested: Any = "x" * 40_000
    for _ in range(2_000):
        nested = [nested]
    found = goes_on(nested)
    assert (found.data["error"], found.data["size_bytes"]) == ("result_too_large", 44_002)


def test_frameworks_that_offload_are_left_alone_below_their_threshold() -> None:
    reader = ToolReader(
        lambda invocation: invocation.instance,
        ToolResult,
        replace=lambda _, found, __: found,
    )
    with agent_otel.execution("run-offload"):
        for size, is_stored in ((80_000, False), (80_001, True)):
            visit = handler.enter_tool(
                reader, Invocation(ToolCall("search", {}, "call_1", offloads_above=80_000), (), {})
            )
            assert isinstance(visit, handler.Visit)
            with visit:
                assert isinstance(visit.remedied("x" * size, ASKED), Replacement) == is_stored


def test_with_a_ceiling_the_view_stays_below_it(set_variables: Callable[..., None]) -> None:
    set_variables(AGENT_OTEL_RESULT_CEILING_BYTES="10000")
    with agent_otel.execution("run-ceiling"):
        found = goes_on("x" * 10_001)
        assert ref_of(found)
        assert len(found.text.encode()) <= 10_000


def test_a_bad_url_leaves_results_whole(set_variables: Callable[..., None]) -> None:
    set_variables(AGENT_OTEL_CLAIM_CHECK="ftp://nowhere")
    with agent_otel.execution("run-bad"):
        assert goes_on("x" * 40_000) == "x" * 40_000
    assert agent_otel.remedies.get_tool_result("claim:v2:x")["hint"] == "Results are not stored here."


TEXT = json.dumps({"items": [{"body": "größe"}, {"body": "b" * 20_000}]}, ensure_ascii=False) + " " * 20_000
LINES = "\n".join(f"line {number}" for number in range(1, 10_001))


@pytest.mark.parametrize(
    ("text", "asked", "content"),
    [
        (LINES, {"lines": "3-4"}, "line 3\nline 4"),
        (LINES, {"lines": " 10000 "}, "line 10000"),
        (LINES, {"lines": "0-1"}, "line 1"),
        (LINES, {"lines": "10001-20000"}, ""),
        (LINES, {"lines": "5-4"}, ""),
        (LINES, {"grep": "LINE 999"}, "\n".join(f"{n}: line {n}" for n in (999, *range(9990, 10_000)))),
        (LINES, {"lines": "990-999", "grep": "999"}, "10: line 999"),
        (TEXT, {"json_path": "items[0].body"}, "größe"),
        (TEXT, {"json_path": "$.items[0]"}, '{"body": "größe"}'),
    ],
)
def test_a_model_reads_a_part(text: str, asked: dict[str, str], content: str) -> None:
    with agent_otel.execution("run-parts"):
        ref = ref_of(goes_on(text))
        assert agent_otel.remedies.get_tool_result(ref, **asked)["content"] == content
        assert asyncio.run(agent_otel.remedies.aget_tool_result(ref, **asked))["content"] == content


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        ({"lines": "a-b"}, "'a-b' is no range of lines such as 120-180."),
        ({"json_path": "items[7]"}, "There is nothing at items[7]; there is a list of 2."),
        ({"json_path": "rows"}, "There is nothing at rows; there are the keys items."),
        ({"json_path": "items[0].body[0].x"}, "There is nothing at items[0].body[0]; there is a str."),
        ({"json_path": "items[[0]"}, "'items[[0]' is no path such as items[3].body."),
        (
            {"cursor": "forged"},
            (
                "This cursor does not belong to these arguments, or is damaged. Ask again without a cursor, "
                "or with the arguments that it came with."
            ),
        ),
        ({"grep": 5}, "Every argument is a text."),
        ({"lines": ["1"]}, "Every argument is a text."),
    ],
)
def test_what_cannot_be_had_is_said_and_not_raised(asked: dict[str, Any], hint: str) -> None:
    with agent_otel.execution("run-refused"):
        ref = ref_of(goes_on(TEXT))
        assert agent_otel.remedies.get_tool_result(ref, **asked) == {"error": "tool_result_unavailable", "hint": hint}
        no_ref: Any = None
        assert agent_otel.remedies.get_tool_result(no_ref)["hint"] == "Every argument is a text."
        nested = ref_of(goes_on("[" * 50_000))
        assert (
            agent_otel.remedies.get_tool_result(nested, json_path="[0]")["hint"]
            == "The result is no JSON; use lines or grep."
        )


def test_pages_end_where_the_text_does() -> None:
    with agent_otel.execution("run-pages"):
        ref = ref_of(goes_on(LINES))
        pages, cursor = [], None
        while True:
            page = agent_otel.remedies.get_tool_result(ref, cursor)
            pages.append(page["content"])
            cursor = page.get("next_cursor")
            if cursor is None:
                break
        assert "".join(pages) == LINES
        assert all(len(each.encode()) <= 16_384 and each.endswith("\n") for each in pages[:-1])
        assert (
            agent_otel.remedies.aget_tool_result.__name__
            == agent_otel.remedies.get_tool_result.__name__
            == "get_tool_result"
        )
