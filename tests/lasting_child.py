"""The child process that runs one case after another: each framework is imported once for all of them.

``python -m tests.lasting_child FILE`` reads a program in each line of its input, as JSON, and answers each with a line:
what the program left in ``report``, and what was measured meanwhile. All other output goes to the file.
"""

from __future__ import annotations

import contextvars
import json
import os
import sys
import traceback
from typing import Any

from tests.contract.child import Messages, Telemetry


def main(file: str) -> None:
    """Run programs until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    with open(file, "a") as output:  # noqa: PTH123 - a descriptor that outlives all frameworks' own streams
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    messages, telemetry = Messages(), Telemetry()
    for line in sys.stdin:
        try:
            answer = _run(json.loads(line), messages, telemetry)
        except Exception:
            answer = {"failure": traceback.format_exc()}
        print(json.dumps(answer), file=answers, flush=True)


def _run(program: str, messages: Messages, telemetry: Telemetry) -> dict[str, Any]:
    """Run a program in a context of its own, as if nothing had been logged or counted before."""
    from agent_otel._internal import errors

    telemetry.spans(), telemetry.metrics(), messages.take()
    errors.errors.clear()
    errors._said.clear()
    names = {"__name__": "__main__", "telemetry": telemetry, "report": None}
    contextvars.copy_context().run(exec, compile(program, "<case>", "exec"), names)
    return {
        "report": names["report"],
        "spans": telemetry.spans(),
        "metrics": telemetry.metrics(),
        "messages": messages.take(),
        "errors": dict(errors.errors),
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
