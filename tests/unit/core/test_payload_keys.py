"""Which keys of payloads and results may leave the process."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pydantic
import pytest

from agent_otel import settings
from agent_otel._internal import object_kinds
from agent_otel.core import payload_keys
from agent_otel.core.thread import tool_definitions
from agent_otel.measure.breakdown.report import Breakdown, breakdown_chunks, breakdown_object
from agent_otel.settings import Settings
from tests.rows import each_row

if TYPE_CHECKING:
    from collections.abc import Callable

CANARIES = (
    "Jane_Doe",
    "jane_doe",
    "janedoe",
    "Müller",
    "jane@bank",
    "HIV_positive",
    "hunter2",
    "P@ssw0rd",
    "sk-proj-abc",
    "ghp_AbCdEfGhIjKlMnOpQrStUvWx",
    "sk_live_abcdefghij",
    "hunter_two",
)


@pytest.fixture(autouse=True)
def _nothing_seen_yet() -> None:
    object_kinds.declared.clear()
    tool_definitions.definitions.reset()


@pytest.fixture
def configure(monkeypatch: pytest.MonkeyPatch) -> Callable[[Settings], None]:
    """Return a function that puts settings in force."""

    def put(chosen: Settings) -> None:
        monkeypatch.setattr(settings, "current", lambda: chosen)

    return put


def shown(value: object) -> Breakdown:
    found = breakdown_object(value, lambda _: None, shown=payload_keys.path)
    assert found is not None
    return found


@each_row(
    "path",
    [
        "messages[].content",
        "accumulatedToolCalls[].result",
        "channel_values.messages[].additional_kwargs.tool_calls[].function.arguments",
        "HTMLContent",
        "content-type",
        "__pregel_tasks[]",
        "branch:to:tools",
        "tool_history[].execution_result",
        "repositories[].entries[].k",
        "$",
        "_other",
        "*.content",
    ],
)
def test_fields_are_shown_at_once(path: str) -> None:
    assert path == payload_keys.path(path)


@each_row("key", [*CANARIES, "dossier", "resultOfJane", "content1", "1", "Content_Jane", "x" * 65])
def test_other_keys_are_not(key: str) -> None:
    assert "messages[].*.content" == payload_keys.path(f"messages[].{key}.content")


def test_keys_are_not_shown_however_often_they_occur() -> None:
    """In states, in rows, in maps, beside fields; in 40 executions, live and as JSON."""
    keys = (*CANARIES, "dossier", "hiv_positive", "jane_doe", "maria", "levyId")
    for _ in range(40):
        for key in keys:
            for value in (
                {"messages": ["x"], key: [{"text": "y" * 50}]},
                {"rows": [{key: "x", "id": 1}] * 3},
                {key: {"text": "x"}},
                {"by_name": dict.fromkeys(keys, "x")},
            ):
                assert key not in repr(shown(value))
                found = breakdown_chunks(iter([json.dumps(value)]), 0, lambda _: None, shown=payload_keys.path)
                assert found is not None
                assert key not in repr(found)
    assert {"messages[]": 3, "*[].text": 52} == shown({"messages": ["x"], "dossiers": [{"text": "y" * 50}]}).paths


class Claim(pydantic.BaseModel):
    """A schema with names that are no common words."""

    levy: int = 7
    lineOfBusiness: str = "x"  # noqa: N815 - camelCase
    claimant_id: str = "y"
    model_config = {"extra": "allow"}


@dataclass
class Dossier:
    """A schema of a dataclass."""

    surcharge: int
    hunter2: int = 1


SCHEMA = {
    "type": "object",
    "properties": {
        "levy": {"type": "integer", "default": {"properties": {"jane_doe": 1}}},
        "claim": {"anyOf": [{"type": "null"}, {"properties": {"surcharge": {}, "hunter2": {}}}]},
        "rows": {"type": "array", "items": {"$ref": "#/$defs/Row"}, "enum": ["janedoe"], "examples": [{"johndoe": 1}]},
    },
    "$defs": {"Row": {"type": "object", "properties": {"line_of_business": {"const": {"maria": 1}}}}},
}


def test_names_of_schemas_are_shown() -> None:
    """Of definitions in each provider's form, of a pydantic model, of a dataclass; names like data stay `*`."""
    named = {"levy": 1, "surcharge": 1, "line_of_business": 1, "hunter2": 1, "jane_doe": 1, "janedoe": 1, "maria": 1}
    for number, definition in enumerate(
        (
            {"type": "function", "function": {"name": "claims", "parameters": SCHEMA}},
            {"type": "function", "name": "claims", "parameters": SCHEMA},
            {"name": "claims", "input_schema": SCHEMA},
            {"toolSpec": {"name": "claims", "inputSchema": {"json": SCHEMA}}},
            {"functionDeclarations": [{"name": "claims", "parametersJsonSchema": SCHEMA}]},
            {"name": "claims", "inputSchema": SCHEMA},
        )
    ):
        object_kinds.declared.clear()
        assert {"*": 7} == shown(named).paths
        tool_definitions.definitions.compare((number,), [definition], number)
        assert {"levy": 1, "surcharge": 1, "line_of_business": 1, "*": 4} == shown(named).paths
    object_kinds.declared.clear()
    assert {"levy": 1, "lineOfBusiness": 3, "claimant_id": 3, "*": 3} == shown(Claim(jane_doe="x")).paths  # type: ignore[call-arg]
    assert {"surcharge": 1, "*": 1} == shown(Dossier(1)).paths
    # What a class named is shown in the JSON of it too.
    assert {"surcharge": 1, "levy": 1, "*": 1} == shown({"surcharge": 1, "levy": 2, "jane_doe": 3}).paths


def test_what_is_remembered_of_schemas_is_bounded() -> None:
    for number in range(100):
        object_kinds.declare(f"{number}_{name}" for name in range(100))
    assert 8_192 == len(object_kinds.declared)
    assert "99_99" in object_kinds.declared


def test_paths_that_read_alike_are_added_up() -> None:
    text = "t" * 300
    found = shown({"Jane": {"text": text}, "Jack": {"text": text}, "John": text, "content": "x" * 400})
    assert {"*.text": 604, "content": 402, "*": 302} == found.paths
    assert ("*.text", 604) == (found.largest_path, found.largest_path_bytes)
    assert {("*", "*.text"): 604} == {(one.path, one.other_path): one.bytes for one in found.duplicates}


def test_a_setting_shows_all(configure: Callable[[Settings], None]) -> None:
    configure(replace(Settings(), show_keys=True))
    assert {"Jane_Doe.notes": 3, "hunter2": 1} == shown({"Jane_Doe": {"notes": "x"}, "hunter2": 1}).paths


def test_a_setting_names_keys(configure: Callable[[Settings], None]) -> None:
    configure(settings.load({"AGENT_OTEL_SHOW_KEYS": " Levy ,dossier2, "}))
    assert {"Levy.dossier2": 1, "*": 1} == shown({"Levy": {"dossier2": 1}, "levy": 2}).paths


@each_row("canary", CANARIES)
def test_a_change_of_shape_names_fields_only(canary: str) -> None:
    tool = f"tool {canary}"
    before = {"rows": [{"name": 1, "levy": 2}], "by_name": {canary: 3}, canary: 4}
    for _ in range(15):
        assert tool_definitions.drift.note(tool, before) is None
    after = {"rows": [{"title": 1, "amount": 2, "weightInGrams": 3}], "by_name": {f"{canary}s": 2}}
    change = tool_definitions.drift.note(tool, after)
    assert ("by_name.*", "rows[].*", "rows[].amount", "rows[].title") == _sorted(change, "added")
    assert ("*", "by_name.*", "rows[].*", "rows[].name") == _sorted(change, "removed")


def _sorted(change: tool_definitions.Change | None, kind: str) -> tuple[str, ...]:
    assert change is not None
    return tuple(getattr(change, kind))
