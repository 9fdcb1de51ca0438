"""Tokens and money of ``agent-otel explain``: figures by hand."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from agent_otel import settings
from agent_otel.core.cost.models import UNKNOWN, ModelFacts, configured
from agent_otel.explain.conversation import Turn
from agent_otel.explain.explanation import Carried, ContextWindow, carried, context_window
from tests.unit.cli.running import run
from tests.unit.cli.test_explain import WRITTEN, chat, written

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# The request of the second turn has 100 tokens, that of the third 300.
TURNS = [Turn(400, parts={("result", "a"): 400}), Turn(800, parts={("result", "b"): 800, ("user", ""): 0}), Turn(40)]


def test_a_result_is_sent_again_in_each_later_turn() -> None:
    assert [Carried("a", 100, 200, None), Carried("b", 200, 200, None)] == sorted(carried(TURNS, UNKNOWN))


def test_the_price_is_that_of_each_request() -> None:
    """The second rate is for requests above 250 tokens: 100 tokens of a once at each, 200 of b at the second."""
    facts = ModelFacts(None, ((0, 0.001, 0.0005, 0.001, 0.01), (250, 0.002, 0.001, 0.002, 0.02)))
    (a, b) = sorted(carried(TURNS, facts))
    assert [("a", 200), ("b", 200)] == [(row.tool, row.sent_tokens) for row in (a, b)]
    assert pytest.approx([0.3, 0.4]) == [a.dollars, b.dollars]


def test_the_window_of_a_model() -> None:
    """Each turn brings 100 tokens of 1,000: seven are left after the third."""
    turns = [Turn(400), Turn(400), Turn(400)]
    assert ContextWindow("m", 1_000, 300, 7) == context_window("m", turns, ModelFacts(1_000))
    assert context_window("m", turns, UNKNOWN) is None
    assert context_window("m", [], ModelFacts(1_000)) is None


@pytest.fixture
def _windows(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("AGENT_OTEL_CONTEXT_WINDOWS", "my-model=1000000")
    settings.current.cache_clear()
    configured.cache_clear()
    yield
    settings.current.cache_clear()
    configured.cache_clear()


@pytest.mark.usefixtures("_windows")
def test_tokens_and_the_window_are_printed(tmp_path: Path) -> None:
    path = written(tmp_path, {"messages": chat(4)})
    ran = run("explain", path, "--model", "my-model")
    assert 0 == ran.code
    (row,) = (row for row in ran.rows if row[:1] == ["search_orders"] and len(row) == 3 and "%" not in row[2])
    tokens, sent = (int(cell.replace(",", "")) for cell in row[1:])
    assert 60_000 < tokens < WRITTEN + 100  # of four results, each of as many bytes
    assert 1.49 * tokens < sent < 1.51 * tokens  # the first result three times, then twice, once and not at all
    assert "Context window of my-model: " in ran.out
    assert "of 1,000,000 tokens" in ran.out

    data = json.loads(run("explain", path, "--json").out)
    assert {"search_orders", "write_file"} == {row["tool"] for row in data["carried"]}
    assert data["window"] is None
    assert tokens == max(row["tokens"] for row in data["carried"])
