"""A prefork worker of Celery whose tasks outlive their soft time limit amid tool calls; prints how each ended."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,unused-ignore"
from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from celery import Celery
from celery.exceptions import SoftTimeLimitExceeded

import agent_otel

FOLDER = Path(os.environ.get("BROKER_FOLDER") or sys.argv[1])
for _name in ("messages", "results"):
    (FOLDER / _name).mkdir(parents=True, exist_ok=True)
app = Celery("celery_program", broker="filesystem://", backend=f"file://{FOLDER / 'results'}")
app.conf.update(
    broker_transport_options={
        "data_folder_in": str(FOLDER / "messages"),
        "data_folder_out": str(FOLDER / "messages"),
        "control_folder": str(FOLDER / "control"),
    },
    worker_prefetch_multiplier=1,
)


@agent_otel.tool
def tool(size: int) -> str:
    """Return so many bytes."""
    return "x" * size


@app.task(name="work", soft_time_limit=1, time_limit=4)
def work() -> str:
    """Call tools until the soft limit."""
    try:
        while True:
            tool(10)
    except SoftTimeLimitExceeded:
        return "soft"


def main(count: int) -> None:
    """Start a worker with two processes, and wait for the tasks."""
    command = (sys.executable, "-m", "celery", "-A", "celery_program", "worker", "-P", "prefork", "-c", "2")
    environ: dict[str, Any] = {**os.environ, "BROKER_FOLDER": str(FOLDER)}
    with subprocess.Popen([*command, "-l", "error"], env=environ, stdout=sys.stderr) as worker:
        results = [work.delay() for _ in range(count)]
        ends: list[str] = []
        until = time.monotonic() + 200
        for result in results:
            while not result.ready() and time.monotonic() < until:
                time.sleep(0.1)
            ends.append(result.result if result.successful() else type(result.result).__name__)
        worker.terminate()
    print(json.dumps(ends))


if __name__ == "__main__":
    main(int(sys.argv[2]))
