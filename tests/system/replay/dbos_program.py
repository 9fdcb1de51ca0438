"""The same workflow on DBOS with SQLite: a process dies behind the second step, and another one takes the workflow up.

Prints the side effects of both processes, the attempts that the spans of the first one's tool calls name, and the
workflow's answer in the second one.
"""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,unused-ignore"
# The SDK is not installed where types are checked.

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from dbos import DBOS, SetWorkflowID

from tests.contract.child import Messages, Telemetry
from tests.system.replay.tools import attempts, charge, effects, mail

dies = False
telemetry: Any = None
failed: list[str] = []

first = DBOS.step(name="first")(charge)


@DBOS.step(name="second", retries_allowed=True, max_attempts=3, interval_seconds=0.01)
def second(customer: str) -> str:
    """Charge and write, and fail behind both the first time."""
    receipt = charge(customer)
    sent = mail(customer)
    if not failed:
        failed.append(customer)
        raise ConnectionError("the state was not written")
    return f"{receipt[:16]} {sent['sent']}"


@DBOS.workflow()
def order(customers: list[str]) -> list[str]:
    """Run the steps; the first process dies before the last one."""
    a, b, c = customers
    answers = [first(a)[:16], second(b)[:16]]
    if dies:
        print(json.dumps({"before": effects, "attempts": attempts(telemetry.spans())}), flush=True)
        os._exit(0)
    return [*answers, first(c)[:16]]


def _launch(database: str) -> None:
    config = {"name": "orders", "system_database_url": f"sqlite:///{database}", "application_version": "1"}
    DBOS(config={**config, "run_admin_server": False, "log_level": "CRITICAL"})
    DBOS.launch()


def die(database: str) -> None:
    """Run the workflow up to where this process ends."""
    global dies, telemetry
    dies, telemetry = True, Telemetry()
    _launch(database)
    with SetWorkflowID("order"):
        order(["a", "b", "c"])


def main(database: str) -> None:
    """Print what happened."""
    code = "import sys; from tests.system.replay.dbos_program import die; die(*sys.argv[1:])"
    done = subprocess.run([sys.executable, "-c", code, database], capture_output=True, text=True, check=True)
    messages = Messages()
    _launch(database)
    answers = DBOS.retrieve_workflow("order").get_result()  # the launch has taken it up
    DBOS.destroy()
    report = {"answers": answers, "effects": effects, "messages": messages.take()}
    print(json.dumps({**json.loads(done.stdout.splitlines()[-1]), **report}), flush=True)
