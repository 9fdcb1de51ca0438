"""Browser Use with remedies: each of its requests holds the results of all steps in one text."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from tests.contract import script
from tests.contract.frameworks import test_browser_use
from tests.contract.remedies.suite import Carrier, Case, Remedies

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from agent_otel.testing.servers.openai import Json, Reply
    from tests.contract.remedies.suite import Seen
    from tests.environments import Environment

CARRIER = Carrier("tests.contract.agents.browser_use", "browser-use", modes=("async",))
REF = re.compile(r'ref="(claim:[^"]+)"')
WITHHELD = {
    "error": "result_too_large",
    "tool": "big",
    "size_bytes": 40_000,
    "limit_bytes": 30_000,
    "hint": "Nothing was cut: the whole result was withheld. Ask for less with a smaller `n`.",
}
KEY = {"AGENT_OTEL_CLAIM_CHECK_KEY": "the secret of this test", "AGENT_OTEL_CLAIM_CHECK_BUDGET": "30"}


def history(request: Json) -> str:
    """Return what the agent tells the model of its steps."""
    said = "".join(script.text_of(message) for message in request["messages"] if message["role"] == "user")
    return said.partition("<agent_history>")[2].partition("</agent_history>")[0]


def decide(request: Json) -> Reply:
    """Call the tool in the first step, read on in the second where there is a reference, and answer."""
    steps, ref = history(request).count("<step>\n"), REF.search(history(request))
    action: Any = {"done": {"text": "done", "success": True}}
    if not steps:
        action = {"big": {"n": 40_000}}
    elif steps == 1 and ref is not None:
        action = {"get_tool_result": {"ref": ref[1]}}
    elif steps == 1:
        action = {"table": {"rows": 2}}
    empty = dict.fromkeys(("thinking", "evaluation_previous_goal", "memory", "next_goal"), "")
    return json.dumps({**empty, "action": [action]})


def run(environment: Callable[[str], Environment], folder: Path, settings: Mapping[str, str]) -> Seen:
    case = Case((("call_1", "big", {"n": 40_000}),), tools=("big", "table", "get_tool_result"))
    variables = {**test_browser_use.TestBrowserUse.variables, **settings}
    kind: type[Remedies] = type(
        "_Chosen",
        (Remedies,),
        {"variables": variables, "cases": classmethod(lambda *_: {"one": case}), "decide": staticmethod(decide)},
    )
    return kind.run(CARRIER, environment(CARRIER.environment), folder)


def test_the_ceiling(environment: Callable[[str], Environment], tmp_path: Path) -> None:
    seen = run(environment, tmp_path, {"AGENT_OTEL_RESULT_CEILING_BYTES": "30000"})

    assert seen.report["cases"]["one"]["said"] == "done"
    assert seen.report["errors"] == {}
    assert json.dumps(WITHHELD) in history(seen.requests[1])
    assert "xxxx" not in history(seen.requests[-1])


def test_the_claim_check_beside_trimming(environment: Callable[[str], Environment], tmp_path: Path) -> None:
    """Trimming finds nothing to do, because no message of a request is a tool's result."""
    trimming = {"AGENT_OTEL_TRIM_RESULTS": "1", "AGENT_OTEL_KEEP_TURNS": "1"}
    seen = run(environment, tmp_path, {"AGENT_OTEL_CLAIM_CHECK": "memory:", **KEY, **trimming})

    assert seen.report["cases"]["one"]["said"] == "done"
    assert seen.report["errors"] == {}
    shown = re.search(r"\[(\d+) of 40000 bytes of big's result shown", history(seen.requests[1]))
    assert shown is not None
    view = "x" * int(shown[1])
    assert [history(request).count(view) for request in seen.requests[1:3]] == [1, 1]
    assert "next_cursor" in history(seen.requests[2])  # the second step reads on
