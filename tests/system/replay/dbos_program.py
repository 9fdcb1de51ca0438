"""The same workflow on DBOS with SQLite: a process dies behind the second step, and another one takes the workflow up.

Prints the side effects of both processes, and of the second one the workflow's answer.
"""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,unused-ignore"
# The SDK is not installed where types are checked.

from __future__ import annotations

import json
import os
import subprocess
import sys

from dbos import DBOS, SetWorkflowID

from tests.contract.child import Messages
from tests.system.replay.tools import charge, effects, mail

dies = False
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
        print(json.dumps(effects), flush=True)
        os._exit(0)
    return [*answers, first(c)[:16]]


def _launch(database: str) -> None:
    config = {"name": "orders", "system_database_url": f"sqlite:///{database}", "application_version": "1"}
    DBOS(config={**config, "run_admin_server": False, "log_level": "CRITICAL"})
    DBOS.launch()


def die(database: str) -> None:
    """Run the workflow up to where this process ends."""
    global dies  # noqa: PLW0603 - nothing else can reach into the workflow
    dies = True
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
    before = json.loads(done.stdout.splitlines()[-1])
    report = {"answers": answers, "before": before, "effects": effects, "messages": messages.take()}
    print(json.dumps(report), flush=True)
