"""The child process of the runtime contract: runs cases on a runtime and prints what came of them as JSON.

``python -m tests.contract.runtimes.child on|off|moved|broken <program> <file>``; the file holds the cases and what the
program has to know of its engine. The program is a module, or the name of one in the folder ``programs``.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.contract.child import Messages, Telemetry, loaded

if TYPE_CHECKING:
    from collections.abc import Callable

Json = dict[str, Any]


def run(start: Callable[[str, Any], Any], case: Json) -> Json:
    """Run one workflow and say what its caller got."""
    try:
        return {"said": start(case["workflow"], case["given"]), "error": None}
    except Exception as error:
        return {"said": None, "error": f"{type(error).__name__}: {error}"}


def off(program: Any, plan: Json) -> Json:
    """Switched off."""
    with program.running(plan["engine"]) as start:
        return {"cases": {name: run(start, case) for name, case in plan["cases"].items()}, "loaded": loaded()}


def on(program: Any, plan: Json) -> Json:
    """Switched on from the start."""
    messages = Messages()
    telemetry = Telemetry()
    cases = {}
    with program.running(plan["engine"]) as start:
        for name, case in plan["cases"].items():
            telemetry.spans()
            telemetry.metrics()
            cases[name] = run(start, case)
            settle(telemetry, cases[name])
            cases[name]["messages"] = messages.take()
    from agent_otel._internal import errors
    from agent_otel.telemetry.setup import integrations

    return {
        "cases": cases,
        "errors": dict(errors.errors),
        "integrations": integrations(),
    }


def settle(telemetry: Telemetry, case: Json) -> None:
    """Collect what a case has emitted; the runtime may report a little after its caller has the result."""
    from agent_otel.core.payload import _analyst

    case["spans"], case["metrics"] = [], []
    quiet = 0
    while quiet < 3:
        time.sleep(0.1)
        _analyst.drain()
        spans = telemetry.spans()
        metrics = [metric for metric in telemetry.metrics() if metric["count"] or metric["sum"]]
        new = [metric for metric in metrics if metric["count"] is not None or metric not in case["metrics"]]
        quiet = 0 if spans or new else quiet + 1
        case["spans"] += spans
        case["metrics"] += new


def moved(program: Any, plan: Json) -> Json:
    """Switched on, but what is to be wrapped has moved."""
    from agent_otel.integrations.registry import INTEGRATIONS

    for integration in INTEGRATIONS:
        for site in integration.whole().sites if integration.name in plan["integrations"] else ():
            for candidate in site.candidates:
                for wrap in candidate.wraps:
                    wrap.target = "Moved." + wrap.target
    return on(program, plan)


def broken(program: Any, plan: Json) -> Json:
    """Switched on, and functions of ours raise."""
    for place in plan["broken"]:
        module_name, _, path = place.partition(":")
        parent: Any = importlib.import_module(module_name)
        *owners, attribute = path.split(".")
        for owner in owners:
            parent = getattr(parent, owner)
        setattr(parent, attribute, _fail)
    return on(program, plan)


def _fail(*_: Any, **__: Any) -> Any:
    raise ZeroDivisionError("ours")


def main() -> None:
    """Run what the command line says."""
    mode, name, file = sys.argv[1:]
    name = name if "." in name else f"tests.contract.runtimes.programs.{name}"
    plan = json.loads(Path(file).read_text())
    if mode in ("moved", "broken"):
        # Before the runtime is imported, which is what applies an integration.
        preparing = {"moved": moved, "broken": broken}[mode]
        print(json.dumps(preparing(_Later(name), plan)))
        return
    program = importlib.import_module(name)
    print(json.dumps({"on": on, "off": off}[mode](program, plan)))


class _Later:
    """A program that is imported when it is used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def running(self, engine: Any) -> Any:
        return importlib.import_module(self._name).running(engine)


if __name__ == "__main__":
    main()
