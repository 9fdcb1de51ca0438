"""Changes of the keys of tools' results, in each form that results have; and the changes that are none."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel.core.thread import tool_definitions
from agent_otel.core.thread.tool_definitions import Change, Drift
from agent_otel.measure.key_structure import HEAD, key_structure
from tests.rows import each_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_ROW = {"id": 1, "name": "first", "owner": {"login": "ada"}}
_RENAMED = {"id": 1, "title": "first", "owner": {"login": "ada"}}


def _page(rows: list[Any]) -> dict[str, Any]:
    return {"rows": rows, "total": len(rows)}


FORMS: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    "object": lambda value: (value, None),
    "JSON text": lambda value: (json.dumps(value), None),
    "indented JSON text": lambda value: (json.dumps(value, indent=2), None),
    "a block of text": lambda value: ([{"type": "text", "text": json.dumps(value)}], None),
    "MCP's structured content": lambda value: ("a table, as text", value),
    "MCP's structured content in an object": lambda value: ("a table, as text", {"result": value}),
}


def _changes(results: Iterable[tuple[Any, Any]]) -> list[Change]:
    drift = Drift()
    return [change for value, structured in results if (change := drift.note("search", value, structured)) is not None]


@each_row("form", FORMS)
@pytest.mark.shows("000.result_drift")
def test_a_renamed_key(form: str) -> None:
    results = [_page([_ROW] * (number % 5)) for number in range(24)] + [_page([_RENAMED] * 3)] * 16
    # An empty page has no rows, and so no keys of theirs.
    assert _changes(map(FORMS[form], results)) == [Change(("rows[].title",), ("rows[].name",))]


@each_row("form", FORMS)
def test_records_without_an_object_around_them(form: str) -> None:
    results = [[_ROW] * (number % 5) for number in range(24)] + [[_RENAMED] * 3] * 16
    assert _changes(map(FORMS[form], results)) == [Change(("[].title",), ("[].name",))]


def test_an_object_around_the_records_is_new() -> None:
    assert _changes([([_ROW], None)] * 16 + [({"items": [_ROW]}, None)] * 16) == [Change(("items",), ())]


@pytest.mark.parametrize("records", [400, 40_000])
def test_only_the_beginning_of_a_long_text_is_read(records: int) -> None:
    before, after = (json.dumps(_page([row] * records)) for row in (_ROW, _RENAMED))
    assert len(before) > HEAD

    assert _changes([(before, None)] * 16 + [(after, None)] * 16) == [Change(("rows[].title",), ("rows[].name",))]
    # What follows the beginning is not missing.
    assert key_structure(before) == {
        ("", False): {"rows"},
        ("rows[]", True): {"id", "name", "owner"},
        ("rows[].owner", True): {"login"},
    }


@each_row(
    "results",
    [
        [{"id": 1, "owner": None}] * 12 + [{"id": 1, "owner": {"login": "ada"}}] * 12,
        [{"id": 1, "labels": []}] * 12 + [{"id": 1, "labels": [{"name": "bug"}]}] * 12,
        [{"id": 1}, {"id": 1, "note": "optional"}] * 12,
        [{f"customer {chr(97 + number)}": 1} for number in range(26)],
        [{"by_name": {f"client_{chr(97 + number)}": {"sum": 1}}, "sum": 1} for number in range(26)],
        [*[{"rows": [], "total": 0}] * 20, {"error": "no such table"}, *[{"rows": [], "total": 0}] * 20],
        [*[_page([_ROW])] * 20, {"error": {"code": 503}}],
        ["[INFO] started", "{not JSON}"] * 20,
    ],
    ids=["null", "empty", "optional", "map", "map of objects", "failure", "failed once", "log lines"],
)
@each_row("form", ["object", "JSON text"])
def test_no_change(form: str, results: list[Any]) -> None:
    assert _changes(map(FORMS[form], results)) == []


def test_each_change_once() -> None:
    first, second = {"id": 1}, {"id": 1, "name": "x"}
    mixed = [(first, None)] * 16 + [(each, None) for _ in range(16) for each in (*[first] * 8, *[second] * 8)]
    # Two versions of the tool run side by side: the second has a key more, then the first one lacks it.
    assert _changes(mixed) == [Change(("name",), ()), Change((), ("name",))]


@each_row(
    "text", ["[" * HEAD, '{"a":' * HEAD, '{"a":"' + "x" * HEAD, '{"a":1,' * HEAD, '["' + '\\"' * HEAD, "{}", "[]", "{"]
)
def test_malformed_text(text: str) -> None:
    assert {place for place, _ in key_structure(text)} <= {"", "a", "a.a", "a.a.a"}


def test_keys_kept_are_bounded() -> None:
    drift = Drift()
    for number in range(400):
        drift.note("search", {"map": {f"name_{chr(97 + number % 26)}{'x' * (number // 26)}": {"sum": 1}}})
    for number in range(200):
        drift.note(f"tool {number}", {"id": 1})
    contracts = vars(drift)["_contracts"]
    assert len(contracts) == 100
    objects = contracts["search"].objects
    assert len(objects) <= 64
    assert max(len(keys.ever) for keys in objects.values()) <= 128


def test_a_fork_drops_what_was_learned() -> None:
    tool_definitions.drift.note("forked", {"id": 1})
    tool_definitions.drift.reset()
    assert vars(tool_definitions.drift)["_contracts"] == {}


def test_a_definition_has_its_share_of_what_stands_around_all() -> None:
    tools = tool_definitions.ToolSet([{"type": "function", "function": {"name": "search"}}], 90)
    assert {"search": 90} == tools.sizes
