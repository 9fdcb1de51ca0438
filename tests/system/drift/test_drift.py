"""Changes of what tools return and of how they are defined, over real frameworks, SDKs and servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.system.scripted_child import report_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.contract.cases import Json
    from tests.environments import Environment
    from tests.servers.model import Reply

_PROGRAMS = "tests.system.drift.programs"
_SERVER = "model:ModelServer"


def _report(environment: Environment, program: str) -> Json:
    def decide(_: object) -> Reply:
        return "done"

    return report_of(_PROGRAMS, program, environment, _SERVER, decide)


@pytest.mark.parametrize(("program", "name", "path"), [("langchain", "langchain", "[]"), ("mcp", "mcp-1", "rows[]")])
def test_a_field_of_records_is_renamed(
    environment: Callable[[str], Environment], program: str, name: str, path: str
) -> None:
    assert _report(environment(name), program) == {
        "counted": {"result.shape_changes search": 1},
        "events": [
            {
                "span": "execute_tool search",
                "event": "tool_result_shape_changed",
                "keys.added": [f"{path}.title"],
                "keys.removed": [f"{path}.name"],
            }
        ],
        "messages": [],
    }
