"""What payloads are made of, against bytes counted by hand and against a walk over the whole decoded text."""

from __future__ import annotations

import json
import os
import pickle
import random
import tracemalloc
import zlib
from collections import OrderedDict
from dataclasses import dataclass, field
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel.measure.breakdown import json_reader
from agent_otel.measure.breakdown.paths import Paths
from agent_otel.measure.breakdown.report import STEPS_OF_OBJECTS, Breakdown, Duplicate, breakdown_object, breakdown_text
from agent_otel.measure.key_structure import fold
from tests.rows import each_row
from tests.unit.measure import hostile
from tests.unit.measure.names import readable
from tests.unit.measure.work import calls

if TYPE_CHECKING:
    from collections.abc import Callable

MIB = 1024 * 1024
MARKER = " [truncated]"  # 12 bytes
TEXTS = [
    "", "plain", "é", "漢字", "😀", 'quote " and \\', "\x00\x1f\n\t\r\b\f", "\u2028", "</a>", "\\\\\\", '\\"',
    '{"a":1}', "}, {", '", "', "]",
]  # fmt: skip
KEYS = ["a", "b", "content", "id", "name", "result", "tool_call_id", "args", "x y", "k1", "7", "é", 'q"k', "", "o" * 80]


def unknown(_call: str) -> None:
    """Stand for a ledger that knows no call."""


def prose(length: int, start: int = 0) -> str:
    """Text of so many characters, of eight each, that repeats itself nowhere."""
    return "".join(f"{number:07} " for number in range(start, start + length // 8))


def text_of(data: Any, tool_of: Callable[[str], str | None] = unknown) -> Breakdown:
    """Break a payload down that has something to be said of."""
    found = breakdown_text(data if isinstance(data, str | bytes) else json.dumps(data), tool_of)
    assert found is not None
    return found


def object_of(value: Any, tool_of: Callable[[str], str | None] = unknown) -> Breakdown:
    """Break a live object down that has something to be said of."""
    found = breakdown_object(value, tool_of)
    assert found is not None
    return found


both = pytest.mark.parametrize("of", [text_of, object_of])


# Paths.


def test_leaves_count_as_they_stand_in_the_payload() -> None:
    payload = '{"role": "tool", "n": 12, "yes": true, "no": false, "none": null, "list": ["a", "bc"], "t": {"x": 1.50}}'
    found = text_of(payload)
    assert {"list[]": 7, "role": 6, "no": 5, "yes": 4, "none": 4, "t.x": 4, "n": 2} == found.paths
    assert ("list[]", 7) == (found.largest_path, found.largest_path_bytes)
    assert (104, 104, {}, {}) == (found.total_bytes, found.unattributed_bytes, found.tools, found.calls)
    assert ((), 0, True) == (found.duplicates, found.duplicate_bytes, found.exact)


@each_row(
    ("payload", "expected"),
    [
        ('{"a":"é"}', {"a": 4}),
        (r'{"a":"\u00e9"}', {"a": 8}),
        (r'{"a":"\ud83d\ude00\n"}', {"a": 16}),
        ('{"a":"😀"}', {"a": 6}),
        ("[1,[22,[333]]]", {"[][][]": 3, "[][]": 2, "[]": 1}),
        ("[NaN,-Infinity]", {"[]": 12}),
        ("123", {"$": 3}),
        ('  "text"  ', {"$": 6}),
        ("{}", {}),
        ('[{},[],{"a":[]}]', {}),
    ],
)
@each_row("kind", [str, str.encode, lambda text: bytearray(text.encode())])
def test_escapes_count_and_so_do_bytes_of_utf8(payload: str, expected: dict[str, int], kind: Any) -> None:
    found = breakdown_text(kind(payload), unknown)
    assert found is not None
    assert (expected, True) == (found.paths, found.exact)
    assert len(payload.encode()) == found.total_bytes


def test_a_view_of_bytes_is_read_and_not_kept() -> None:
    data = bytearray(b'{"a":"xyz"}')
    found = breakdown_text(memoryview(data), unknown)
    assert found is not None
    assert {"a": 5} == found.paths
    data.extend(b" ")  # raises if anybody still looks at it


@pytest.mark.parametrize(
    ("expected", "keys"),
    {
        "*": (
            "7", "1042", "call_17", "step-3", "0f8fad5b-d9cb-469f-a165-70867728950e", "toolu_01A09q90qw90lq917835lq9",
            "call_Zx8QpLmNoRsTuVwXyZaBcD", "2026-11-21", "src/main.py", "two words", "someone@example.com", "",
            "x" * 65,
        ),
        None: ("messages", "tool_call_id", "utf8", "k1", "structuredContent", "$schema", "Content-Type", "größe"),
    }.items(),
)  # fmt: skip
def test_keys_that_are_data_are_folded(expected: str | None, keys: tuple[str, ...]) -> None:
    assert [expected or key for key in keys] == [fold(key) for key in keys]
    assert {expected or key for key in keys} == set(text_of(dict.fromkeys(keys, 1)).paths)


@both
def test_there_are_no_more_than_256_paths(of: Callable[[Any], Breakdown]) -> None:
    letters = "abcdefghijklmnopqrst"
    found = of({one: {other: {"x": 1, "yy": "four"} for other in letters} for one in letters})
    assert 250 <= len(found.paths) <= 256
    # 400 texts of 6 bytes and 400 numbers of one.
    assert 400 * 6 + 400 == sum(found.paths.values())
    assert "_other" == next(iter(found.paths))
    assert ("a.a.yy", 6) == (found.largest_path, found.largest_path_bytes)


@both
def test_a_table_keyed_by_anything_is_one_path(of: Callable[[Any], Breakdown]) -> None:
    names = [a + b + c for a in "abcdefg" for b in "hijklmn" for c in "opqrstu"]
    assert {"users.*.age": 2 * 343} == of({"users": {name: {"age": 42} for name in names}}).paths


# Whose bytes.


CALLS: dict[str, list[Any]] = {
    "OpenAI": [{"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "search"}}]}],
    "OpenAI responses": [{"type": "function_call", "call_id": "c1", "name": "search", "arguments": "{}"}],
    "Anthropic": [{"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "search", "input": {}}]}],
    "Bedrock": [{"toolUse": {"toolUseId": "c1", "name": "search", "input": {}}}],
    "LangChain": [{"type": "ai", "content": "", "tool_calls": [{"name": "search", "args": {}, "id": "c1"}]}],
    "AI SDK": [{"toolCalls": [{"toolCallId": "c1", "toolName": "search", "args": {}}]}],
}
RESULTS: dict[str, Any] = {
    "OpenAI": {"role": "tool", "tool_call_id": "c1", "content": "ten bytes."},
    "OpenAI responses": {"type": "function_call_output", "call_id": "c1", "output": "ten bytes."},
    "Anthropic": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "ten bytes."}]},
    "Bedrock": {"toolResult": {"toolUseId": "c1", "content": "ten bytes."}},
    "LangChain": {"content": "ten bytes.", "type": "tool", "id": "2c", "tool_call_id": "c1", "artifact": None},
    "AI SDK": {"toolCallId": "c1", "result": "ten bytes."},
    "a record": {"id": "c1", "args": {}, "result": "ten bytes."},
}


@both
@each_row("call", CALLS)
@each_row("result", RESULTS)
def test_a_call_elsewhere_names_the_tool(of: Callable[[Any], Breakdown], call: str, result: str) -> None:
    for payload in ([*CALLS[call], RESULTS[result]], [RESULTS[result], *CALLS[call]]):
        found = of({"turns": payload})
        assert ({"search": 12}, {"c1": 12}) == (found.tools, found.calls)
        assert found.total_bytes - 12 == found.unattributed_bytes


@both
@each_row("result", RESULTS)
def test_the_ledger_knows_better(of: Callable[..., Breakdown], result: str) -> None:
    found = of([RESULTS[result], *CALLS["OpenAI"]], {"c1": "fetch"}.get)
    assert {"fetch": 12} == found.tools


@both
@each_row("key", ["name", "toolName", "tool_name", "tool"])
def test_the_name_may_stand_beside_the_result(of: Callable[[Any], Breakdown], key: str) -> None:
    found = of([{"id": "c1", key: "search", "result": [1, 22]}, {"tool_call_id": "c2", key: "fetch", "content": "x"}])
    assert {"fetch": 3, "search": len("[1, 22]") - (of is object_of)} == found.tools


@both
@each_row(
    "other",
    [
        {"id": "m1", "role": "user", "name": "bob", "content": "hello"},
        {"id": "m1", "type": "ai", "name": "agent", "content": "hello"},
        {"id": "r1", "name": "README.md", "content": "hello"},
        {"id": 7, "name": "build", "output": "hello"},
        {"id": "", "name": "build", "output": "hello"},
        {"id": "x" * 1000, "name": "build", "output": "hello"},
        {"name": "search", "result": "hello"},
        {"tool_call_id": "c9", "content": "nobody knows the call"},
    ],
    ids=readable,
)
def test_what_is_no_result_or_nobody_s_is_not_attributed(of: Callable[[Any], Breakdown], other: Any) -> None:
    found = of([other])
    assert ({}, found.total_bytes) == (found.tools, found.unattributed_bytes)


def test_a_result_within_a_result_belongs_to_the_outer_one() -> None:
    inner = [{"role": "tool", "tool_call_id": "in", "name": "search", "content": "ten bytes."}]
    for outer in ({"tool_call_id": "out", "content": inner}, {"content": inner, "tool_call_id": "out"}):
        for size in (0, 20_000):  # the second is opened, and its id comes after the result
            found = text_of([outer | {"name": "agent", "pad": "x" * size}])
            assert {"agent": len(json.dumps(inner))} == found.tools
            assert ["out"] == list(found.calls)


@both
def test_arguments_are_not_the_tool_s_result(of: Callable[[Any], Breakdown]) -> None:
    found = of([{"id": "c1", "name": "write_file", "args": {"content": "x" * 1000}, "result": "ok"}])
    assert {"write_file": 4} == found.tools
    assert 1002 == found.paths["[].args.content"]


def test_many_tools_are_bounded() -> None:
    found = text_of([{"tool_call_id": f"c{n}", "name": f"tool {n}", "content": "x" * n} for n in range(1, 301)])
    assert (128, 256) == (len(found.tools), len(found.calls))
    assert sum(range(3, 303)) == sum(found.tools.values())
    assert 302 == found.tools["tool 300"]
    assert sum(range(3, 303 - 127)) == found.tools["_other"]


# What stands twice.


def agent_state(results: int, length: int) -> dict[str, Any]:
    """The state of an agent that keeps each result cut to 32 KiB for the model, and raw for its user interface."""
    state: dict[str, Any] = {
        "messages": [{"role": "system", "content": "Look."}],
        "accumulatedToolCalls": [],
        "turn": 5,
    }
    for number in range(results):
        raw = prose(length, number * 1_000_000)
        call = {"id": f"call_{number}", "type": "function", "function": {"name": "search_code", "arguments": '{"q":1}'}}
        state["messages"] += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"call_{number}", "content": raw[:32_768] + MARKER},
        ]
        state["accumulatedToolCalls"].append(
            {"id": f"call_{number}", "name": "search_code", "args": {"q": 1}, "durationMs": 12, "result": raw}
        )
    return state


@both
@pytest.mark.shows("000.two_copies")
def test_the_second_copy_of_a_durable_agent_s_state_is_found(of: Callable[[Any], Breakdown]) -> None:
    found = of(agent_state(10, 80_000))
    cut, raw = 32_768 + 12 + 2, 80_000 + 2
    assert "accumulatedToolCalls[].result" == found.largest_path
    assert 10 * raw == found.largest_path_bytes
    # The system prompt with its quotes and ten times null stand at the same path.
    assert 10 * cut + 7 + 10 * 4 == found.paths["messages[].content"]
    assert (Duplicate("messages[].content", "accumulatedToolCalls[].result", 10 * cut),) == found.duplicates
    assert 10 * cut == found.duplicate_bytes
    assert {"search_code": 10 * (cut + raw)} == found.tools
    assert {f"call_{number}": raw for number in range(10)} == found.calls
    assert found.total_bytes - 10 * (cut + raw) == found.unattributed_bytes
    assert found.exact


@both
@each_row("length", [255, 256, 300, 1023, 1024, 5_000, 9_000, 40_000, 200_000])
@each_row("escaped", ["", 'a "quoted"\nline', "größe", "漢字😀"])
def test_the_same_text_in_two_places(of: Callable[[Any], Breakdown], length: int, escaped: str) -> None:
    text = (escaped + prose(length))[: length // 8 * 8] + "x" * (length % 8)
    written = json.dumps(text) if of is text_of else encode_basestring(text)
    found = of({"a": [text], "b": {"c": text}, "other": prose(length, 500_000)})
    size = len(written.encode())
    expected = (Duplicate("a[]", "b.c", size),) if length >= 256 else ()
    assert (expected, size * len(expected)) == (found.duplicates, found.duplicate_bytes)


@both
@each_row("kept", [2_048, 4_096, 5_000, 32_768, 99_000])
@each_row("marker", ["", MARKER, "\n[output truncated: 100000 characters, the rest was dropped]" * 8])
def test_a_cut_copy_is_a_copy(of: Callable[[Any], Breakdown], kept: int, marker: str) -> None:
    whole = prose(100_000)
    cut = whole[:kept] + marker
    for pair in ({"cut": cut, "whole": whole}, {"whole": whole, "cut": cut}):
        found = of(pair)
        first, second = pair
        assert (Duplicate(first, second, len(json.dumps(cut))),) == found.duplicates


@both
def test_texts_that_only_begin_alike_are_two(of: Callable[[Any], Breakdown]) -> None:
    licence = prose(1_600)
    found = of({"files": [licence + prose(3_000, n * 1_000_000) for n in range(1, 9)]})
    assert () == found.duplicates


@both
def test_what_a_tool_says_when_asked_again_is_another_text(of: Callable[[Any], Breakdown]) -> None:
    status = prose(4_000)
    found = of({"messages": [f"{status[:900]}{turn:03} % done{status[900:]}" for turn in range(9)]})
    assert () == found.duplicates


@both
def test_three_copies_are_two_too_many(of: Callable[[Any], Breakdown]) -> None:
    raw = prose(50_000)
    preview, view = raw[:4_096], raw[:32_768]
    found = of({"ui": preview, "messages": view, "raw": raw, "again": raw})
    # One of the whole copies is needed: 50,002 bytes of one, and both cut ones.
    assert 50_002 + 32_770 + 4_098 == found.duplicate_bytes


@both
def test_a_copy_of_a_result_elsewhere_is_the_tool_s_too(of: Callable[[Any], Breakdown]) -> None:
    raw = prose(6_000)
    for payload in (
        {"log": [raw[:3_000]], "last": {"tool_call_id": "c", "name": "search", "content": raw}},
        {"last": {"tool_call_id": "c", "name": "search", "content": raw}, "log": [raw[:3_000]]},
    ):
        assert {"search": 6_002 + 3_002} == of(payload).tools


@each_row("rows", [20, 2_000])
@each_row("form", [{"separators": (",", ":")}, {}, {"indent": 2}], ids=["compact", "default", "indented"])
@each_row("of", [text_of, object_of])
def test_an_object_and_its_json_text_are_one_result(
    of: Callable[[Any], Breakdown], form: dict[str, Any], rows: int
) -> None:
    result = [{"number": n, "title": f"change {n}", "url": f"https://example.com/pulls/{n}"} for n in range(rows)]
    text = json.dumps(result, **form)
    written = len(json.dumps(result)) if of is text_of else len(json.dumps(result, separators=(",", ":")))
    found = of(
        {
            "messages": [{"role": "tool", "tool_call_id": "c", "content": text}],
            "calls": [{"id": "c", "name": "list_pulls", "result": result}],
        }
    )
    assert (Duplicate("messages[].content", "calls[].result", written),) == found.duplicates
    assert {"list_pulls": written + len(json.dumps(text))} == found.tools
    assert {"c": len(json.dumps(text))} == found.calls


def test_a_cut_json_text_and_its_object_are_one_result() -> None:
    result = [{"number": n, "title": f"change {n}"} for n in range(5_000)]
    cut = json.dumps(result)[:32_768] + MARKER
    found = text_of([{"tool_call_id": "c", "content": cut}, {"tool_call_id": "c", "name": "t", "result": result}])
    assert (Duplicate("[].content", "[].result", len(json.dumps(cut))),) == found.duplicates


def test_another_text_for_the_same_call_is_no_copy_of_its_object() -> None:
    result = [{"number": n, "title": f"change {n}"} for n in range(500)]
    found = text_of([{"tool_call_id": "c", "content": prose(2_000), "structuredContent": result}])
    assert () == found.duplicates


def test_structured_results_that_stand_twice() -> None:
    result = [{"number": n, "title": f"change {n}"} for n in range(500)]
    found = text_of({"a": {"tool_call_id": "c", "artifact": result}, "b": [{"id": "c", "name": "t", "result": result}]})
    assert (Duplicate("a.artifact", "b[].result", len(json.dumps(result))),) == found.duplicates


# Encoded more than once, and cut into pieces.


@pytest.mark.parametrize("times", [1, 2])
def test_json_in_a_string_is_read(times: int) -> None:
    state = agent_state(2, 40_000)
    payload: Any = state
    for _ in range(times):
        payload = json.dumps(payload)
    found, plain = text_of(json.dumps(payload)), text_of(state)
    assert plain.paths.keys() == found.paths.keys()
    # The quotes of the two texts, and those alone, are escaped: one byte more each, then two more.
    more = 2 * 2 * (1 if times == 1 else 3)
    assert plain.paths["accumulatedToolCalls[].result"] + more == found.paths["accumulatedToolCalls[].result"]
    assert plain.duplicate_bytes + more == found.duplicate_bytes
    assert {"search_code": plain.tools["search_code"] + 2 * more} == found.tools
    assert found.exact


def test_arguments_may_be_encoded_each_for_itself() -> None:
    # '"{\"a\": \"xy\"}"': the text is 2 bytes and two escaped quotes.
    assert {"[].a": 6, "[]": 1} == text_of(json.dumps(['{"a": "xy"}', 7])).paths
    assert {"[].a": 6 * 50} == text_of(json.dumps(['{"a": "xy"}'] * 50)).paths


def test_a_result_that_is_json_text_is_left_as_it_is() -> None:
    rows = json.dumps([{"number": n} for n in range(2_000)])
    found = text_of({"messages": [{"tool_call_id": "c", "content": rows}]})
    assert len(json.dumps(rows)) == found.paths["messages[].content"]


@each_row("between", ["", " ", "\n"])
def test_one_payload_after_another(between: str) -> None:
    payload = between.join([json.dumps({"a": prose(20_000)}), '{"a":"xy","b":[1]}', "[2]"])
    assert {"a": 20_002 + 4, "b[]": 1, "[]": 1} == text_of(payload).paths


@each_row(
    ("payload", "expected"),
    [
        ('{"a": "xyz', {"a": 5}),
        ('{"a": "xyz", "b": [1, 2', {"a": 5, "b[]": 2}),
        ('[{"a": 1}, {"a":', {"[].a": 1}),
        ('{"a": 1, "b', {"a": 1}),
        ("[1, 2,", {"[]": 2}),
    ],
)  # fmt: skip
def test_cut_off_json_is_read_as_far_as_it_goes(payload: str, expected: dict[str, int]) -> None:
    found = text_of(payload)
    # Of a text without its last quote the size is that of what is there.
    assert expected == {path: size + (path == "a" and payload.endswith("xyz")) for path, size in found.paths.items()}
    assert (len(payload), False) == (found.total_bytes, found.exact)


def _value(draw: random.Random, depth: int) -> Any:
    kind = draw.randint(0, 9) if depth else 0
    if kind < 5:
        leaves: list[Any] = [
            None,
            draw.random() < 0.5,
            draw.randint(-(10**30), 10**30),
            draw.uniform(-1e9, 1e9),
            10.0 ** draw.randint(-300, 300),
            "".join(draw.choice(TEXTS) for _ in range(draw.randint(0, 8))),
            draw.choice(TEXTS) * draw.randint(0, 200),
            "".join(
                chr(draw.choice((draw.randrange(0x80, 0xD800), draw.randrange(0xE000, 0x110000)))) for _ in "12345"
            ),
        ]
        return draw.choice(leaves)
    length = draw.choice([0, 1, 2, 3, 5, 30])
    if kind < 7:
        return [_value(draw, depth - 1) for _ in range(length)]
    keys = draw.sample(KEYS, 3)
    if kind < 8:
        return [{key: _value(draw, 0) for key in keys} for _ in range(length)]
    return {draw.choice(KEYS): _value(draw, depth - 1) for _ in range(length)}


def walked(value: Any, quote: Callable[[str], str]) -> dict[str, int]:
    """Bytes by path, leaf by leaf."""
    paths = Paths()

    def walk(place: Any, value: Any) -> None:
        if isinstance(value, dict):
            for key, member in value.items():
                walk(paths.member(place, key), member)
        elif isinstance(value, list):
            for member in value:
                walk(paths.element(place), member)
        else:
            place.bytes += len((quote(value) if isinstance(value, str) else json.dumps(value)).encode())

    walk(paths.root, value)
    return dict(sorted(paths.sizes(256).items()))


@each_row("pieces", ["as they are", "tiny"])
@each_row("seed", range(8))
def test_any_json_has_the_sizes_of_its_leaves(seed: int, pieces: str, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(seed)  # noqa: S311 - the same cases in every run
    for _ in range(25):
        if pieces == "tiny":  # so that everything is cut everywhere
            monkeypatch.setattr(json_reader, "WINDOW", draw.choice([64, 100, 333]))
            monkeypatch.setattr(json_reader, "PIECE", draw.choice([150, 400]))
            monkeypatch.setattr(json_reader, "BATCH", draw.choice([32, 100, 500]))
            monkeypatch.setattr(json_reader, "_FIRST", draw.choice([16, 64, 200]))
        value = {"root": _value(draw, 5)}
        text = json.dumps(value, ensure_ascii=draw.random() < 0.5, indent=draw.choice([None, None, 2]))
        expected = walked(value, encode_basestring_ascii if text.isascii() else encode_basestring)
        for payload in (text, text.encode()):
            found = text_of(payload)
            assert expected == dict(sorted(found.paths.items())) or len(expected) == 256
            assert (len(text.encode()), True) == (found.total_bytes, found.exact)
        _damaged(draw, text)


def _damaged(draw: random.Random, text: str) -> None:
    data = bytearray(text.encode())
    cut = data[: draw.randrange(len(data))]
    for _ in range(3):
        data[draw.randrange(len(data))] = draw.randrange(256)
    payloads: list[str | bytearray] = [cut, data, json.dumps(text)]
    for payload in payloads:
        found = breakdown_text(payload, unknown)
        assert found is None or sum(found.paths.values()) <= found.total_bytes


# Bad input.


@each_row(
    "data",
    [
        b"",
        b"  \n ",
        b"nul",
        b"hello",
        b"12 monkeys",
        b"true story",
        b"{hello}",
        b"[INFO] started",
        b"{'a': 1}",
        b"eyJhbGciOiJub25lIn0",
        pickle.dumps({"messages": ["x" * 9_000]}),
        zlib.compress(b"x" * 9_000),
        b"\n\x16\n\x08encoding\x12\njson/plain",
        '{"a": 1}'.encode("utf-16"),
        '{"a": 1}'.encode("utf-32"),
        b"\x80" * 9_000,
        b'"x" ' + b"and so on " * 100,
        b"12" * 100 + b"a",
    ],
    ids=readable,
)
def test_what_is_not_json_has_no_breakdown(data: bytes) -> None:
    assert breakdown_text(data, unknown) is None
    assert breakdown_text(data.decode("latin-1"), unknown) is None


def test_noise_has_no_breakdown() -> None:
    for _ in range(200):
        assert breakdown_text(os.urandom(2_000), unknown) is None


#: Each would take more than 2 MiB, were something kept of each of its parts.
HOSTILE: dict[str, str | bytes] = {
    "deep lists": "[" * 100_000,
    "deep and closed": "[" * 100_000 + "]" * 100_000,
    "deep objects": '{"a":' * 100_000,
    "many keys": "{" + ",".join(f'"k{n}":{n}' for n in range(200_000)) + "}",
    "one key many times": "{" + ",".join('"same":1' for _ in range(200_000)) + "}",
    "invalid UTF-8": b'{"a": "' + b"\xff" * MIB + b'"}',
    "half surrogates": r'{"a": "' + r"\ud800" * 100_000 + '"}',
    "a long number": "[" + "1" * MIB + "]",
    "backslashes": '["' + "\\" * MIB + '"]',
    "quotes": '["' + '\\"' * (MIB // 2) + '"]',
    "blanks": " " * MIB + "[1]",
    "a long key": '{"' + "k" * MIB + '": 1}',
    "empty lists": "[" + "[]," * 300_000 + "[]]",
    "unlike elements": "[" + ",".join(["1", '"a"', "{}", '["}, {"]', '{"a":[1]}', "null"] * 20_000) + "]",
    "lists in lists": "[" + ",".join(["[" * 50 + "1," * 4_500 + "1" + "]" * 50] * 50) + "]",
    "long strings in objects in objects": "[" + ",".join(['{"a":' * 40 + f'"{"x" * 9_000}"' + "}" * 40] * 50) + "]",
    "many numbers one after another": "1 " * 100_000,
    "results with one id": json.dumps([{"tool_call_id": "c", "content": ["x" * n] * 3} for n in range(1_000)]),
    "long ids": json.dumps([{"tool_call_id": "c" * 120 + f"{n}", "content": "x" * 300} for n in range(3_000)]),
    "texts that begin alike": json.dumps(["z" * 3_000 + f"{n}" * 500 for n in range(500)]),
}


@each_row("kind", HOSTILE)
def test_hostile_text_takes_bounded_time_and_memory(kind: str) -> None:
    data = HOSTILE[kind]
    tracemalloc.start()
    found = breakdown_text(data, unknown)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 2 * MIB > peak
    if found is not None:
        assert sum(found.paths.values()) <= found.total_bytes
        assert len(found.paths) <= 256


def _rows() -> str:
    return json.dumps([{"number": n, "title": f"change {n}", "state": "open"} for n in range(32_000)])


@each_row(
    "text",  # functions: the texts take a second to make, in each worker that collects the tests
    [
        lambda: json.dumps(agent_state(19, 80_000)),
        lambda: json.dumps(agent_state(60, 20_000)),
        lambda: json.dumps({"result": prose(2 * MIB)}),
        _rows,
        lambda: json.dumps(_rows()),
        lambda: json.dumps({"漢字": [f"漢字 {n}" * 40 for n in range(4_000)]}, ensure_ascii=False),
    ],
    ids=["agent", "many results", "one text", "rows", "rows in a string", "texts beyond ASCII"],
)
@each_row("encode", [str, str.encode], ids=["text", "bytes"])
def test_two_mib_take_less_than_one_mb_besides(text: Callable[[], str], encode: Callable[[str], Any]) -> None:
    data = encode(text())
    breakdown_text(data, unknown)
    tracemalloc.start()
    try:
        found = breakdown_text(data, unknown)
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found is not None
    assert 1_000_000 > peak
    assert 50_000 > kept


# Live objects.


@dataclass
class ToolMessage:
    """As frameworks keep them."""

    content: str
    tool_call_id: str
    name: str | None = None
    additional_kwargs: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """Never to be asked."""
        raise AssertionError


class Slotted:
    """Without an instance dictionary."""

    __slots__ = ("id", "name", "output")

    def __init__(self, output: Any) -> None:
        self.id, self.name, self.output = "c2", "fetch", output


def test_a_live_object_has_the_size_of_its_compact_json() -> None:
    value = {"a": ["é", 'quote "', 1, -2.5, None, True, False, 10**40], "t": (1, [2]), "e": {}, "l": [[], {}]}
    found = object_of(value)
    assert len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()) == found.total_bytes
    assert {"a[]": 4 + 10 + 1 + 4 + 4 + 4 + 5 + 41, "t[]": 1, "t[][]": 1} == found.paths
    assert found.exact


@each_row("seed", range(6))
def test_any_live_object_has_the_sizes_of_its_leaves(seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311 - the same cases in every run
    for _ in range(40):
        value = {"root": _value(draw, 5)}
        found = object_of(value)
        compact = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
        assert (len(compact), True) == (found.total_bytes, found.exact)
        expected = walked(value, encode_basestring)
        assert expected == dict(sorted(found.paths.items())) or len(expected) == 256


def test_messages_that_are_objects_have_their_tools() -> None:
    raw = prose(40_000)
    state = {
        "messages": [ToolMessage(raw[:32_768] + MARKER, "c1", name="search"), Slotted({"rows": [1, 2]})],
        "raw": OrderedDict(c1=raw),
    }
    found = object_of(state)
    assert {"search": 32_782 + 40_002, "fetch": len('{"rows":[1,2]}')} == found.tools
    assert {"c1": 32_782, "c2": 14} == found.calls
    assert (Duplicate("messages[].content", "raw.c1", 32_782),) == found.duplicates
    assert found.exact


def test_nothing_is_kept_of_a_live_object() -> None:
    text = prose(5_000)
    tracemalloc.start()
    try:
        found = object_of({"a": text, "b": text})
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert 5_002 == found.duplicate_bytes
    assert 10_000 > kept


@each_row("kind", list(hostile.everything()), around=hostile.untouched)
def test_no_code_of_a_value_runs(kind: str) -> None:
    value = hostile.everything()[kind]
    for place in (value, [value], {"key": value}, {"id": "c", "result": value}, {"tool_call_id": value, "content": 1}):
        breakdown_object(place, unknown)


@pytest.mark.usefixtures("nothing_ran")
def test_what_has_no_json_is_the_name_of_its_type() -> None:
    assert {"$": len('"<Iterator>"')} == object_of(hostile.Iterator()).paths
    itself = hostile.self_containing()
    found = object_of({"rows": hostile.Iterator(), "data": b"\xff" * 10, "n": 1, "itself": itself})
    assert {"data": 22, "rows": 12, "itself[]": 8, "n": 1} == found.paths


@each_row(
    "make",
    [
        hostile.shared,
        hostile.deep,
        hostile.chain_of_wide,
        lambda: [tuple(range(300))] * 10_000,
    ],
)
def test_hostile_objects_are_seen_in_part(make: Callable[[], Any]) -> None:
    value = make()
    found = breakdown_object(value, unknown)
    if make is hostile.deep:
        hostile.release(value)
    assert found is not None
    assert not found.exact


def test_a_long_list_is_seen_in_part() -> None:
    found = object_of([7] * 1_000_000)
    # The list takes 24 of the 50,000 steps, and 256 elements are read at a time.
    assert ({"[]": 195 * 256}, False) == (found.paths, found.exact)


def _holds_itself() -> dict[str, Any]:
    itself: dict[str, Any] = {}
    itself.update({f"key{number}": itself for number in range(50)})
    return itself


COSTLY: dict[str, Callable[[], Any]] = {
    "unlike keys": lambda: [{f"k{n}_{key}": key for key in range(50)} for n in range(1000)],
    "unlike names": lambda: [{"abcdefghij"[n % 10] * (n // 10 + key): key for key in range(50)} for n in range(1000)],
    "itself": _holds_itself,
    "one long text many times": lambda: ["x" * 100_000] * 50_000,
    "one long number many times": lambda: [10**4000 + 1] * 50_000,
    "small objects": lambda: {f"a{n}": {f"b{key}": "x" for key in range(50)} for n in range(2000)},
}


@each_row("make", COSTLY.values(), ids=list(COSTLY))
def test_the_work_for_an_object_is_bounded(make: Callable[[], Any]) -> None:
    value = make()
    assert not object_of(value).exact
    assert 10 * STEPS_OF_OBJECTS > calls(lambda: breakdown_object(value, unknown))


def test_the_characters_that_are_read_of_an_object_are_bounded() -> None:
    found = object_of({"content": ["x" * 1_000_000] * 20, "result": "y"})
    assert not found.exact
    assert 12_000_000 < found.paths["content[]"] < 256 * STEPS_OF_OBJECTS
