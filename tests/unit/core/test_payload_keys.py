"""Which keys of payloads and results may leave the process."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from agent_otel import settings
from agent_otel.core import payload_keys, tool_definitions
from agent_otel.core.payload_keys import SEVERAL
from agent_otel.measure.breakdown.report import Breakdown, breakdown_object
from agent_otel.settings import Settings
from tests.rows import each_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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


@contextlib.contextmanager
def _seen_anew() -> Iterator[None]:
    """Forget the keys of earlier payloads."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(payload_keys, "_shown", set())
        patch.setattr(payload_keys, "_seen", {})
        yield


@pytest.fixture(autouse=True)
def _nothing_seen_yet() -> Iterator[None]:
    with _seen_anew():
        yield


@pytest.fixture
def configure(monkeypatch: pytest.MonkeyPatch) -> Callable[[Settings], None]:
    """Return a function that puts settings in force."""

    def put(chosen: Settings) -> None:
        monkeypatch.setattr(settings, "current", lambda: chosen)

    return put


def shown(value: object, execution: str | None = None) -> Breakdown:
    found = breakdown_object(value, lambda _: None)
    assert found is not None
    return payload_keys.shown(found, execution)


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
    around=_seen_anew,
)
def test_fields_are_shown_at_once(path: str) -> None:
    assert path == payload_keys.path(path)


@each_row("key", [*CANARIES, "dossier", "resultOfJane", "content1", "1", "Content_Jane", "x" * 65], around=_seen_anew)
def test_other_keys_are_not(key: str) -> None:
    assert "messages[].*.content" == payload_keys.path(f"messages[].{key}.content")


@each_row("key", ["dossiers", "dossier_pages", "lineOfBusiness"], around=_seen_anew)
def test_a_key_that_several_executions_have_is_shown(key: str) -> None:
    for number in range(SEVERAL):
        assert "*[].text" == payload_keys.path(f"{key}[].text")
        for _ in range(20):  # payloads of one execution are one
            last = shown({"messages": ["x"], key: [{"text": "y" * 50}]}, f"run-{number}")
    assert {f"{key}[].text": 52, "messages[]": 3} == last.paths
    assert (f"{key}[].text", 52) == (last.largest_path, last.largest_path_bytes)


def test_payloads_without_an_execution_are_counted_one_by_one() -> None:
    largest = [shown({"dossiers": "x" * 9}).largest_path for _ in range(SEVERAL)]
    assert ["*"] * (SEVERAL - 1) + ["dossiers"] == largest


@each_row(
    "key",
    ["Jane_Doe", "Müller", "jane@bank", "HIV_positive", "hunter2", "P@ssw0rd", "sk-proj-abc", "ghp_AbCdEf"],
    around=_seen_anew,
)
def test_a_key_that_is_no_identifier_is_never_shown(key: str) -> None:
    for number in range(3 * SEVERAL):
        assert {"*": 52, "messages[]": 3} == shown({"messages": ["x"], key: "y" * 50}, f"run-{number}").paths


@each_row(
    "value",
    [
        {"janedoe": "x", "johnsmith": "y"},
        {"janedoe": {"text": "x"}, "johnsmith": {"text": "y"}},
        {"janedoe": [{"text": "x"}], "johnsmith": [{"text": "y"}]},
        {"messages": {"janedoe": {"text": "x"}, "Johnsmith": {"text": "y"}}},
    ],
    around=_seen_anew,
)
def test_keys_of_a_map_are_never_shown(value: object) -> None:
    for number in range(3 * SEVERAL):
        found = shown(value, f"run-{number}")
    assert 1 == len(found.paths)
    assert 6 == sum(found.paths.values())
    assert "janedoe" not in repr(found)


def test_members_of_different_shapes_are_fields() -> None:
    for number in range(SEVERAL):
        found = shown({"dossiers": [{"text": "x" * 9}], "claimant": {"text": "y"}}, f"run-{number}")
    assert {"dossiers[].text": 11, "claimant.text": 3} == found.paths


def test_rows_have_fields_in_common() -> None:
    for number in range(SEVERAL):
        found = shown({"rows": [{"levy": 7, "surcharge": "EUR", f"id{number}": 1}]}, f"run-{number}")
    assert {"rows[].levy": 1, "rows[].surcharge": 5, "rows[].*": 1} == found.paths


def test_paths_that_read_alike_are_added_up() -> None:
    text = "t" * 300
    found = shown({"Jane": {"text": text}, "Jack": {"text": text}, "John": text, "content": "x" * 400})
    assert {"*.text": 604, "content": 402, "*": 302} == found.paths
    assert ("*.text", 604) == (found.largest_path, found.largest_path_bytes)
    assert {("*", "*.text"): 604} == {(one.path, one.other_path): one.bytes for one in found.duplicates}


def test_a_setting_shows_all(configure: Callable[[Settings], None]) -> None:
    configure(replace(Settings(), show_keys=True))
    assert {"Jane_Doe.notes": 3, "hunter2": 1} == shown({"Jane_Doe": {"notes": "x"}, "hunter2": 1}).paths


def test_what_is_remembered_is_bounded_and_no_text() -> None:
    for number in range(3000):
        shown({"".join(chr(97 + int(digit)) for digit in f"{number:05}"): "x"}, f"run-{number}")
    assert 1024 == len(payload_keys._seen)
    assert {int} == set(map(type, payload_keys._seen))
    for number in range(300):
        key = "".join(chr(97 + int(digit)) for digit in f"{number:05}")
        for execution in range(SEVERAL):
            shown({key: "x"}, f"again-{execution}")
    assert 256 == len(payload_keys._shown)


@each_row("canary", CANARIES, around=_seen_anew)
def test_a_change_of_shape_names_fields_only(canary: str) -> None:
    tool = f"tool {canary}"
    before = {"rows": [{"name": 1, "levy": 2}], "by_name": {canary: 3}, canary: 4}
    for _ in range(15):
        assert tool_definitions.drift.note(tool, before) is None
    after = {"rows": [{"title": 1, "amount": 2, "weightInGrams": 3}], "by_name": {f"{canary}s": 2}}
    change = tool_definitions.drift.note(tool, after)
    # What all rows had is a field; what is new was seen once.
    assert ("by_name.*", "rows[].*", "rows[].amount", "rows[].title") == _sorted(change, "added")
    assert ("*", "by_name.*", "rows[].levy", "rows[].name") == _sorted(change, "removed")


def _sorted(change: tool_definitions.Change | None, kind: str) -> tuple[str, ...]:
    assert change is not None
    return tuple(getattr(change, kind))
