"""``docs/how-it-works.md`` has the figures of the four flows, which grow only when somebody writes them anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.system.flows.flows import TITLES, rows, trace
from tests.system.flows.flows_program import FLOWS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment


def test_the_page_has_a_row_for_each_flow() -> None:
    assert list(rows()) == [TITLES[name] for name in FLOWS]


@pytest.mark.parametrize("name", FLOWS)
def test_a_flow_passes_no_more_than_the_page_says(name: str, environment: Callable[[str], Environment]) -> None:
    environment("langchain")
    flow = trace(name)
    calls, files, changes = (int(figure) for figure in rows()[TITLES[name]].strip("| ").split(" | ")[1:])
    assert len(flow.calls) <= calls
    assert flow.files <= files
    assert flow.changes <= changes
