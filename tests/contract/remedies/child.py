"""The child process of the remedies' contract: runs cases with one framework and prints what came of them as JSON.

``python -m tests.contract.remedies.child <agent's module> <base URL> <file>``; the file holds the cases as JSON.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import sys
from pathlib import Path
from typing import Any

from tests.contract.child import LOOP, Json, Messages, Telemetry
from tests.contract.remedies import tools


def run(agent: Any, base_url: str, case: Json) -> str:
    """Run one case in an execution of its own, where it names one; what its caller got."""
    import agent_otel

    native = {
        "get_tool_result": agent_otel.remedies.get_tool_result,
        "aget_tool_result": agent_otel.remedies.aget_tool_result,
    }
    of_agent = getattr(agent, "TOOLS", {})
    functions = [native.get(name) or getattr(tools, name, None) or of_agent[name] for name in case["tools"]]
    given = (base_url, functions, case["prompt"], case.get("setting", ""))
    within = agent_otel.execution(case["execution"]) if case["execution"] else contextlib.nullcontext()
    with within:
        if case["mode"] == "sync":
            return str(agent.run(*given))
        return str(LOOP.run_until_complete((agent.astream if case["mode"] == "stream" else agent.arun)(*given)))


def main(agent_name: str, base_url: str, plan: Json) -> Json:
    """Run all cases, switched on from the start by the environment."""
    import agent_otel
    import agent_otel.auto

    messages, telemetry = Messages(), Telemetry()
    for tool, hint in plan["hints"].items():
        agent_otel.remedies.result_hint(tool, hint)
    agent = importlib.import_module(agent_name)
    cases = {}
    for name, case in plan["cases"].items():
        telemetry.spans()
        telemetry.metrics()
        tools.ran.clear()
        said = run(agent, base_url, case)
        cases[name] = {
            "said": said,
            "spans": telemetry.spans(),
            "metrics": telemetry.metrics(),
            "messages": messages.take(),
            "ran": list(tools.ran),
        }
    from agent_otel._internal import errors

    remedies = sorted(name for name in sys.modules if name.startswith("agent_otel.remedies"))
    return {"cases": cases, "errors": dict(errors.errors), "remedies": remedies}


if __name__ == "__main__":
    agent_name, base_url, file = sys.argv[1:]
    print(json.dumps(main(agent_name, base_url, json.loads(Path(file).read_text()))))
