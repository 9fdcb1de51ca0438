"""The bytes that no model reads, in states that real frameworks make, against bytes counted by hand."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel.testing.servers.openai import ToolCall
from tests.system.dead_weight.texts import NOTES, page, rows
from tests.system.scripted_child import report_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_otel.testing.servers.openai import Reply
    from tests.forks import Forks

Json = dict[str, Any]


class Script:
    """A model that makes these calls one after another; ``sent`` are the texts that it got."""

    def __init__(self, *calls: tuple[str, Json]) -> None:
        self._calls: Sequence[tuple[str, Json]] = calls
        self._turns = 0
        self.sent: set[str] = set()

    def __call__(self, request: Any) -> Reply:
        """Return the next call."""
        waiting = [request]
        while waiting:
            value = waiting.pop()
            if isinstance(value, str):
                self.sent.update(value.expandtabs().split("\n"))
                self.sent.update(line.partition("\t")[2] for line in value.split("\n"))
            elif isinstance(value, dict | list):
                waiting += value.values() if isinstance(value, dict) else value
        turn, self._turns = self._turns, self._turns + 1
        if turn >= len(self._calls):
            return "done"
        name, arguments = self._calls[turn]
        return [ToolCall(f"call_{turn}", name, arguments)]


@pytest.mark.shows("000.unread")
def test_a_file_of_which_a_model_read_a_part(forks: Forks) -> None:
    script = Script(
        ("write_file", {"file_path": "/notes.md", "content": NOTES}),
        ("fetch_page", {"number": 1}),
        ("read_file", {"file_path": "/large_tool_results/call_1", "limit": 1000}),
        ("fetch_page", {"number": 2}),
    )
    report = report_of("tests.system.dead_weight.programs", "files", forks, "deepagents", "openai:OpenAIServer", script)
    lines = [line for number in (1, 2) for line in page(number).splitlines()]
    by_hand = sum(65 for line in lines if line not in script.sent)  # 63 characters, and the end of the line in JSON
    assert 2_500_000 < by_hand < 2 * 20_000 * 65 - 60_000
    # What was written into the tool's node's checkpoint before was not known to be unread.
    first, last = report["found"]
    assert "workflow.payload.unread_bytes" not in first
    assert last["workflow.payload.unread_path"] == "files.*.content"
    assert report["counted"]["files.*.content"] == pytest.approx(by_hand, rel=0.001)
    assert sum(report["counted"].values()) == last["workflow.payload.unread_bytes"] == pytest.approx(by_hand, rel=0.001)
    assert report["messages"] == []


@pytest.mark.parametrize("program", ["artifacts", "named"])
@pytest.mark.shows("000.unread")
def test_an_artifact_beside_the_rows_that_a_model_gets(forks: Forks, program: str) -> None:
    script = Script(*(("query", {"number": number}) for number in (1, 2, 3)))
    report = report_of("tests.system.dead_weight.programs", program, forks, "langchain", "openai:OpenAIServer", script)
    # The payload that is analysed is the first of more than 1 MiB: it holds two tables, and the model has got ten rows
    # of the first. The second is on its way, and nothing is said of it.
    by_hand = len(json.dumps(rows(1), separators=(",", ":"))) - len(json.dumps(rows(1)[:10]))
    assert by_hand == 546_001 - 5_520
    (found,) = report["found"]
    # Nor is an id of a message in a request, of 36 or 46 characters in quotes, or of a response, of 41.
    ids = {"messages[].id": 3 * 38 + 2 * 48, "messages[].response_metadata.id": 2 * 43}
    assert report["counted"] == {"messages[].artifact": by_hand, **ids}
    assert found["workflow.payload.unread_bytes"] == by_hand + sum(ids.values())
    assert found["workflow.payload.unread_path"] == "messages[].artifact"
    assert report["messages"] == []
