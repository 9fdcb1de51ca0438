"""The matrix chooses the newest row, changes its versions, and keeps the results of other versions."""

from __future__ import annotations

from agent_otel.integrations.registry import INTEGRATIONS
from tests.contract import matrix
from tests.contract.matrix import Row

_NEW = Row("strands", {"requirements": ["strands-agents[openai]==1.62.0", "openai==3.52.0", "httpx==0.28.1"]}, ())
_OLD = Row("strands-1.9", {"requirements": ["strands-agents[openai]==1.9.0"]}, ())


def test_each_distribution_has_a_row() -> None:
    pinned = {distribution for row in matrix.rows() for distribution in row.pins}

    assert {integration.distribution for integration in INTEGRATIONS} == pinned


def test_versions_are_compared_as_such() -> None:
    assert [_NEW] == matrix.newest([_OLD, _NEW])
    assert {"strands-agents": "1.62.0", "openai": "3.52.0", "httpx": "0.28.1"} == _NEW.pins


def test_a_version_is_changed_alone_or_all_pins_go() -> None:
    assert {
        "requirements": ["strands-agents[openai]==1.50.0", "openai==3.52.0", "httpx==0.28.1"],
        "python": "3.14",
    } == matrix.changed(_NEW, {"strands-agents": "1.50.0"}, "3.14", unpinned=False)
    assert {"requirements": ["strands-agents[openai]", "openai", "httpx"]} == matrix.changed(
        _NEW, {}, "", unpinned=True
    )


def test_results_of_other_versions_stay() -> None:
    before = matrix.page("", [("dbos", "2.0.0", "3.11", "2026-01-01", "9 passed"), ("dbos", "3.4.0", "3.11", "x", "y")])
    lines = matrix.page(
        before.replace("| x | y |", "| 2026-01-01 | 8 passed, 1 failed |"),
        [("dbos", "3.4.0", "3.11", "2026-02-01", "9 passed")],
    ).splitlines()

    assert [
        "| `dbos` | 2.0.0 | 3.11 | 2026-01-01 | 9 passed |",
        "| `dbos` | 3.4.0 | 3.11 | 2026-02-01 | 9 passed |",
    ] == lines[-2:]
    assert lines == matrix.page("\n".join(lines), []).splitlines()


def test_a_version_in_several_environments_has_the_sum_of_their_cases() -> None:
    openai = ("openai", "3.54.0", "3.11", "2026-01-01")
    lines = [(*openai, "247 passed"), ("dbos", "3.4.0", "-", "x", "not installed"), (*openai, "0 passed, 25 failed")]

    assert [(*openai, "247 passed, 25 failed"), lines[1]] == matrix.added(lines)
    assert lines[2:] == matrix.added(lines[2:])
    assert [lines[1]] == matrix.added(lines, {"dbos": ""})


def test_a_pin_of_what_a_framework_cannot_do_without_stays() -> None:
    row = Row("camel-ai", {"requirements": ["camel-ai==0.2.90", "mcp<2,==1.30.0"]}, ())

    assert {"camel-ai": "0.2.90"} == row.pins
    assert {"requirements": ["camel-ai", "mcp<2,==1.30.0"]} == matrix.changed(row, {}, "", unpinned=True)
