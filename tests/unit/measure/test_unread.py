"""The bytes of a payload that no model request held, against bytes counted by hand."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel.measure.breakdown.report import breakdown_object, breakdown_text
from agent_otel.measure.breakdown.unread import Delivery, Held, UnreadBytes
from agent_otel.measure.passages import prints
from tests.rows import each_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def unknown(_call: str) -> None:
    """Stand for an execution that has no calls."""


def held(*texts: str, calls: Mapping[str, Delivery] | None = None, modulus: int = 1) -> Held:
    """What requests with these texts held."""
    numbers = [number for number in prints(texts) if not number % modulus]
    return Held(numbers, len(numbers), modulus, (calls or {}).get)


def unread(state: Any, what: Held) -> dict[str, int]:
    """The unread bytes of a payload by path, which are the same for the object and for each way to write it."""
    texts = [json.dumps(state), json.dumps(state, separators=(",", ":")), json.dumps(state, ensure_ascii=False)]
    found = [_paths(breakdown_text(text, unknown, bool, what)) for text in texts]
    found.append(_paths(breakdown_object(state, unknown, bool, what)))
    assert all(one.keys() == found[0].keys() for one in found)
    return found[1]


def _paths(found: Any) -> dict[str, int]:
    assert isinstance(found.unread, UnreadBytes)
    return found.unread.paths


def lines(count: int, name: str) -> str:
    """So many lines of 32 characters each, all different."""
    return "".join(f"{name:>11} has a line {number:08}\n" for number in range(count))


def rows(count: int, name: str) -> list[dict[str, Any]]:
    """Rows of a table, of 95 bytes each as compact JSON."""
    return [
        {"id": 10_000 + n, "title": f"{name:>20} {n:09}", "url": f"https://{name}.is/{n:020}"} for n in range(count)
    ]


def quoted(text: str) -> int:
    """Bytes of a text as JSON."""
    return len(json.dumps(text))


def test_the_helpers_write_what_they_say() -> None:
    assert len(lines(10, "a")) == 320
    assert len(json.dumps(rows(10, "a"), separators=(",", ":"))) == 10 * 96 + 1


def test_without_requests_nothing_is_known() -> None:
    found = breakdown_text(json.dumps({"a": lines(100, "x")}), unknown)
    assert found is not None
    assert found.unread is None


@each_row("size", [8, 9, 16, 100, 1000, 20_000])
def test_a_text_is_read_or_unread(size: int) -> None:
    state = {"read": lines(size, "read"), "unread": lines(size, "unread")}
    assert unread(state, held(lines(size, "read"))) == {"unread": quoted(state["unread"])}


@each_row("before", ["", "Please read this:\n", 'The file is {"content": "'])
def test_a_text_is_read_within_another(before: str) -> None:
    text = lines(1000, "a")
    assert unread({"text": text, "other": "b"}, held(f"{before}{text}\n\nWhat is it?")) == {}


def test_a_cut_copy_is_read_as_far_as_it_goes() -> None:
    whole = lines(6000, "a")  # 192,000 characters
    seen = whole[:32_768] + "\n[truncated]"
    found = unread({"results": [whole], "messages": [{"role": "user", "content": seen}]}, held(seen))
    by_hand = quoted(whole[32_768:])
    assert found.keys() == {"results[]"}
    assert found["results[]"] == pytest.approx(by_hand, rel=0.01)


def test_the_head_and_the_tail_of_a_text_are_read() -> None:
    whole = lines(6000, "a")
    seen = whole[:16_384] + "\n... 159232 characters ...\n" + whole[-16_384:]
    assert unread({"raw": whole}, held(seen)) == {"raw": pytest.approx(quoted(whole[16_384:-16_384]), rel=0.01)}


def test_one_long_line_is_compared_from_its_beginning() -> None:
    whole = "".join(f"{number:07}_" for number in range(20_000))  # 160,000 characters
    assert unread({"raw": whole}, held(whole)) == {}
    assert unread({"raw": whole}, held(whole[:40_000])) == {"raw": pytest.approx(120_000, rel=0.01)}


def test_json_in_a_text_is_compared_by_its_strings() -> None:
    whole = json.dumps(rows(2000, "a"))
    assert unread({"raw": whole}, held(whole)) == {}
    expected = quoted(whole[60_000:])
    assert unread({"raw": whole}, held(whole[:60_000]))["raw"] == pytest.approx(expected, rel=0.02)


def test_text_beyond_ascii_is_the_same_however_it_is_written() -> None:
    read, other = "".join(f"строка {n:08} текста\n" for n in range(800)), "".join(f"行号 {n:013}\n" for n in range(800))
    state = {"read": read, "other": other}
    assert unread(state, held(read)) == {"other": quoted(other)}
    assert unread(state, held(other)) == {"read": quoted(read)}


def test_the_lines_of_a_file_are_compared_with_its_text() -> None:
    files = {f"/src/{name}.py": {"content": lines(1000, name).splitlines()} for name in ("read", "cut", "dead")}
    numbered = "\n".join(f"{n:6}\t{line}" for n, line in enumerate(lines(1000, "read").splitlines(), start=1))
    found = unread({"files": files}, held(numbered, lines(250, "cut")))
    # A line has 31 characters and two quotes.
    assert found == {"files.*.content[]": pytest.approx(1750 * 33, rel=0.01)}


def test_short_texts_of_records_are_compared_one_by_one() -> None:
    state = {"rows": rows(2000, "a"), "seen": rows(2000, "b")}
    found = unread(state, held(json.dumps(state["seen"])))
    assert found == {
        "rows[].title": 2000 * 32,
        "rows[].url": 2000 * 35,
    }


def test_a_long_array_of_numbers_is_unread_and_a_single_number_is_unknown() -> None:
    state = {"documents": [{"id": n, "embedding": [0.125] * 1536} for n in range(4)]}
    assert unread(state, held("anything that a model was sent")) == {
        "documents[].embedding[]": pytest.approx(4 * 1536 * 5, rel=0.01)
    }


def document_000(results: Iterable[str], cut: int = 32_768) -> dict[str, Any]:
    """The state of document 000: messages with cut results, and the whole results beside them."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    calls = []
    for number, result in enumerate(results):
        messages.append({"role": "tool", "tool_call_id": f"call_{number}", "content": result[:cut]})
        calls.append({"id": f"call_{number}", "name": "search", "args": {}, "durationMs": 12, "result": result})
    return {"messages": messages, "accumulatedToolCalls": calls}


@pytest.mark.shows("000.unread")
def test_of_the_whole_results_beside_cut_ones_the_rest_is_unread() -> None:
    """What follows the first 32 KiB of 200,000 characters without escapes."""
    results = ["".join(f"{name}{number:06} " for number in range(25_000)) for name in "abcd"]
    calls = {f"call_{number}": Delivery(200_000, 32_768) for number in range(4)}
    state = document_000(results)
    seen = [result[:32_768] for result in results]
    assert unread(state, held("go", *seen, calls=calls)) == {"accumulatedToolCalls[].result": 4 * (200_000 - 32_768)}


def test_a_result_that_no_request_held_is_unread_and_a_new_one_is_pending() -> None:
    results = [lines(3125, name) for name in "abcd"]  # 100,000 characters, 103,125 bytes
    calls = {"call_0": Delivery(100_000, 100_000), "call_1": Delivery(100_000, 0), "call_2": Delivery(100_000, 100_000)}
    calls["call_3"] = Delivery(100_000, 0, is_pending=True)
    state = {"accumulatedToolCalls": document_000(results)["accumulatedToolCalls"]}
    found = breakdown_text(json.dumps(state), unknown, bool, held(calls=calls))
    assert found is not None
    assert found.unread == UnreadBytes({"accumulatedToolCalls[].result": 103_125}, 103_127, has_delivered=True)


def test_a_result_that_is_carried_as_an_object_is_compared_by_length() -> None:
    raw = rows(1000, "a")
    text = json.dumps(raw, separators=(",", ":"))
    state = {"calls": [{"id": "call_0", "name": "search", "args": {}, "result": raw}]}
    assert unread(state, held(calls={"call_0": Delivery(len(text), len(text))})) == {}
    assert unread(state, held(calls={"call_0": Delivery(len(text), 32_768)})) == {"calls[].result": len(text) - 32_768}


def test_an_artifact_that_only_the_program_reads_is_unread() -> None:
    raw = rows(1000, "a")
    size = len(json.dumps(raw, separators=(",", ":")))
    state = {"messages": [{"type": "tool", "tool_call_id": "call_0", "content": "1,000 rows", "artifact": raw}]}
    assert unread(state, held("1,000 rows", calls={"call_0": Delivery(10, 10)})) == {"messages[].artifact": size - 10}


def test_the_last_message_may_be_on_its_way() -> None:
    texts = [lines(500, name) for name in ("a", "b", "c", "d")]
    state = {"messages": [{"role": "user", "content": text} for text in texts]}
    assert unread(state, held(texts[0], texts[2])) == {"messages[].content": quoted(texts[1])}
    assert unread(state, held("nothing of all this was sent")) == {"messages[].content": sum(map(quoted, texts))}


def test_so_many_messages_are_not_on_their_way() -> None:
    texts = [lines(10, f"{n}") for n in range(34)]
    state = {"messages": [{"role": "user", "content": text} for text in texts]}
    assert unread(state, held(texts[0], texts[1])) == {}
    assert unread(state, held(texts[0])) == {"messages[].content": 33 * quoted(texts[0])}


def test_many_short_texts_are_compared_by_samples() -> None:
    texts = [lines(12, f"{n:06}") for n in range(4000)]  # 384 characters
    state = {"notes": texts}
    found = unread(state, held(*texts[: len(texts) // 2]))
    assert found == {"notes[]": pytest.approx(sum(map(quoted, texts[2000:])), rel=0.05)}


@each_row("modulus", [2, 8, 16])  # fewer, and one process in thirty has too few of this text
def test_fewer_hashes_recognise_long_texts_still(modulus: int) -> None:
    state = {"read": lines(6000, "read"), "unread": lines(6000, "unread")}
    found = unread(state, held(lines(6000, "read"), modulus=modulus))
    assert found == {"unread": pytest.approx(quoted(state["unread"]), rel=0.05)}
