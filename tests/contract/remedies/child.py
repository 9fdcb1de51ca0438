"""The child process of the remedies' contract: runs cases with one framework and prints what came of them as JSON.

``python -m tests.contract.remedies.child <file>``; the file holds the cases as JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import inspect
import json
import sys
import traceback
from collections import Counter
from pathlib import Path

from tests.contract.child import LOOP, Json, Messages, Telemetry
from tests.contract.remedies import tools

#: Which function of an agent's module runs it, by mode.
FUNCTIONS = {"sync": "run", "async": "arun", "stream": "astream", "sync stream": "stream", "converse": "converse"}


def run(case: Json) -> str:
    """Run one case in an execution of its own, where it names one; what its caller got."""
    import agent_otel

    agent = importlib.import_module(case["agent"])
    native = {
        "get_tool_result": agent_otel.remedies.get_tool_result,
        "aget_tool_result": agent_otel.remedies.aget_tool_result,
    }
    of_agent = getattr(agent, "TOOLS", {})
    functions = [native.get(name) or getattr(tools, name, None) or of_agent[name] for name in case["tools"]]
    given = (case["base_url"], functions, case["prompt"], case.get("setting", ""))
    within = agent_otel.execution(case["execution"]) if case["execution"] else contextlib.nullcontext()
    with within:
        said = getattr(agent, FUNCTIONS[case["mode"]])(*given)
        return str(LOOP.run_until_complete(said) if inspect.isawaitable(said) else said)


def outcome(case: Json) -> Json:
    """Run one case; what its caller got, or the traceback of what was raised."""
    try:
        return {"said": run(case), "raised": None}
    except (Exception, asyncio.CancelledError):
        return {"said": "", "raised": traceback.format_exc()}


def main(plan: Json) -> Json:
    """Run all cases, switched on from the start by the environment."""
    import agent_otel
    import agent_otel.auto
    from agent_otel._internal.errors import errors

    messages, telemetry = Messages(), Telemetry()
    for tool, hint in plan["hints"].items():
        agent_otel.remedies.result_hint(tool, hint)
    cases: Json = {}
    known: Counter[str] = Counter()
    for name, case in plan["cases"].items():
        telemetry.spans()
        telemetry.metrics()
        tools.ran.clear()
        cases[name] = {
            **outcome(case),
            "spans": telemetry.spans(),
            "metrics": telemetry.metrics(),
            "messages": messages.take(),
            "ran": list(tools.ran),
            "errors": dict(errors - known),
        }
        known = errors.copy()
    remedies = sorted(name for name in sys.modules if name.startswith("agent_otel.remedies"))
    return {"cases": cases, "errors": dict(errors), "remedies": remedies}


if __name__ == "__main__":
    print(json.dumps(main(json.loads(Path(sys.argv[1]).read_text()))))
