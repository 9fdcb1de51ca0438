"""Workflows of DBOS on SQLite; run as a program, one of them up to the point where its process dies."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,unused-ignore"
from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbos import DBOS, Queue, SetWorkflowID
from sqlalchemy import event
from sqlalchemy.engine import Engine

from tests.contract.runtimes import steps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Given = dict[str, Any]

#: What SQLite takes at most in these tests, in bytes; as it is compiled it takes 1,000,000,000.
LIMIT = 2_000_000
SQLITE_LIMIT_LENGTH = 0  # as in sqlite3 since Python 3.11

# What DBOS logs of workflows that fail, which is what several cases are about.
logging.getLogger("dbos").setLevel(logging.CRITICAL)

# A queue is declared here in version 2, and registered when DBOS runs in version 3.
declared = None if hasattr(DBOS, "register_queue") else Queue("queue")
# One loop for all cases: asyncio.run ends its loop's executor, and version 2 gives it DBOS's own.
loop = asyncio.new_event_loop()
dies = False


def keep(texts: list[str]) -> list[str]:
    """Hand on what has been gathered so far: the only way into the database is out of a step."""
    return texts


produce, produce_later, broken, use_tool = (
    DBOS.step()(function) for function in (steps.produce, steps.produce_later, steps.broken, steps.use_tool)
)
consume = DBOS.step(name="consume")(keep)
flaky = DBOS.step(retries_allowed=True, max_attempts=2, interval_seconds=0.01)(steps.flaky)


@DBOS.workflow()
def one(given: Given) -> int:
    """Run one step; how long its result is."""
    return len(globals()[given["activity"]](given["n"]))


@DBOS.workflow()
async def later(given: Given) -> int:
    """Run one asynchronous step; how long its result is."""
    return len(await globals()[given["activity"]](given["n"]))


@DBOS.workflow()
def retried(given: Given) -> int:
    """Run a step that is run again inside itself."""
    return len(flaky(given["n"]))


@DBOS.workflow()
async def parallel(given: Given) -> int:
    """Run two steps at once."""
    return sum(len(text) for text in await asyncio.gather(*(produce_later(given["n"] + more) for more in (0, 1))))


@DBOS.workflow()
def turns(given: Given) -> int:
    """Carry every turn's text into the next turn."""
    texts: list[str] = []
    for turn in range(given["turns"]):
        texts = consume([*texts, produce(given["n"] + turn)])
    return steps.consume(texts)


@DBOS.workflow()
def resumed(given: Given) -> int:
    """Run two steps, unless the process dies between them."""
    text = produce(given["n"])
    if dies:
        os._exit(0)
    return len(text + produce(given["n"] + 1))


@DBOS.workflow()
def listed(given: Given) -> int:
    """Let DBOS record what is no step of the program's."""
    return len(DBOS.list_workflows(workflow_ids=given["ids"]))


@DBOS.workflow()
def returned(given: Given) -> str:
    """Return a text."""
    return steps.produce(given["n"])


@contextlib.contextmanager
def launched(database: Path, engine: dict[str, Any]) -> Iterator[None]:
    """Run DBOS on this database."""
    DBOS(
        config={
            "name": "agent",
            "system_database_url": f"sqlite:///{database}",
            "application_version": "1",
            "run_admin_server": False,
            "enable_otlp": engine["otlp"],
            "log_level": "CRITICAL",
        }
    )
    DBOS.launch()
    try:
        yield
    finally:
        DBOS.destroy()


@contextlib.contextmanager
def running(engine: dict[str, Any]) -> Iterator[Callable[[str, Any], Any]]:
    """Run DBOS on a new database; yield what runs a workflow."""
    if engine["limited"]:
        event.listen(Engine, "connect", _limit)
    with tempfile.TemporaryDirectory() as folder, launched(database := Path(folder) / "system.sqlite", engine):
        queue = declared or DBOS.register_queue("queue", polling_interval_sec=0.1)

        def start(workflow: str, given: Given) -> Any:
            if workflow == "resumed":
                return _resume(database, given)
            function = globals()[workflow]
            if given.get("queued"):
                return queue.enqueue(function, given).get_result()
            done = function(given)
            return loop.run_until_complete(done) if asyncio.iscoroutine(done) else done

        yield start


def _limit(connection: Any, _: Any) -> None:
    connection.setlimit(SQLITE_LIMIT_LENGTH, LIMIT)


def _resume(database: Path, given: Given) -> Any:
    """Begin the workflow in a process that dies, and take it up in this one."""
    environ = {name: value for name, value in os.environ.items() if name != "AGENT_OTEL"}
    code = "import sys; from tests.contract.runtimes.programs import dbos; dbos.die(*sys.argv[1:])"
    subprocess.run([sys.executable, "-c", code, str(database), json.dumps(given)], env=environ, check=True)
    (handle,) = DBOS._recover_pending_workflows()
    return handle.get_result()


def die(database: str, given: str) -> None:
    """Run the workflow up to where this process ends."""
    global dies  # noqa: PLW0603 - nothing else can reach into the workflow
    dies = True
    with launched(Path(database), {"otlp": False}), SetWorkflowID("resumed"):
        resumed(json.loads(given))
