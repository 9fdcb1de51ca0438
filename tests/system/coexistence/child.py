"""The cases of a contract class beside another instrumentation; prints what came of them as JSON.

Argument: a file with the plan. Its ``order`` names the steps: ``peer`` switches the other instrumentation on, ``ours``
this package, and ``framework`` imports the framework. Where ``ours`` is first, the switch is in the environment.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.contract import child
from tests.system.coexistence import switches

Json = dict[str, Any]


def switch_on(names: list[str], telemetry: child.Telemetry) -> None:
    """Switch on each part of the other instrumentation: ``module:Class``, or ``module:function=argument``."""
    for name in names:
        module, _, attribute = name.partition(":")
        attribute, is_function, argument = attribute.partition("=")
        found = getattr(importlib.import_module(module), attribute)
        if is_function:
            found(argument, telemetry)
        else:
            found().instrument()


def main(plan: Json) -> Json:
    """Run the cases and return a report of each, and of the whole."""
    messages, telemetry, agent = child.Messages(), child.Telemetry(is_owner=not plan["provides"]), None
    for step in plan["order"]:
        if step == "peer":
            switch_on(plan["switches"], telemetry)
        elif step == "ours":
            importlib.import_module("agent_otel.auto")
        else:
            agent = importlib.import_module(f"tests.contract.agents.{plan['agent']}")
    at_start, cases = messages.take(), {}
    for name, case in plan["cases"].items():
        outcome = child.run(agent, plan["base_url"], case)
        switches.flush()
        cases[name] = {
            **outcome,
            "spans": telemetry.spans(),
            "metrics": telemetry.metrics(),
            "messages": messages.take(),
        }
    failures = sys.modules.get("agent_otel._internal.errors")
    return {
        "cases": cases,
        "at_start": at_start,
        "errors": dict(failures.errors) if failures else {},
        "seen": len(switches.SEEN),
        "versions": {name: version(name) for name in plan["distributions"]},
    }


async def end_tasks() -> None:
    """End what libraries left running in the loop; Python 3.11 crashes when it collects LiteLLM's worker at exit."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


if __name__ == "__main__":
    print(json.dumps(main(json.loads(Path(sys.argv[1]).read_text()))))
    child.LOOP.run_until_complete(end_tasks())
