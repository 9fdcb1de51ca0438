"""A child process that asks a real daprd one question and prints the answer as JSON.

``python -m tests.extra.asked <options of daprd as JSON> <workflow> <its input as JSON> <seconds>``
"""

# mypy: disable-error-code="import-not-found,import-untyped,unused-ignore"
# The SDK is not installed where types are checked.

from __future__ import annotations

import contextlib
import json
import re
import sys
import threading
import time
import urllib.request
from typing import TYPE_CHECKING, Any

import grpc
from dapr.ext.workflow import DaprWorkflowClient

from tests.contract.child import Messages, Telemetry
from tests.contract.runtimes.programs import dapr as program
from tests.patience import Deadline

if TYPE_CHECKING:
    from tests.system.engines.daprd import Daprd

Json = dict[str, Any]

#: The name has a part in the size of messages.
INSTANCE = "asked"


def ask(workflow: str, given: Json, seconds: float) -> Json:
    """Run a workflow; how it stands when it has ended, or when it has not after so many seconds."""
    client = DaprWorkflowClient()

    def start() -> None:
        with contextlib.suppress(grpc.RpcError):  # when daprd is ended
            client.schedule_new_workflow(program.BY_NAME[workflow], input=given, instance_id=INSTANCE)

    # daprd answers when the workflow's first turn is over, which may be never.
    starting = threading.Thread(target=start, daemon=True)
    starting.start()
    deadline = Deadline(seconds)
    state = None
    while not deadline.has_passed() and _status(state) not in ("COMPLETED", "FAILED"):
        time.sleep(0.1)
        state = client.get_workflow_state(INSTANCE)
    failure = state and state.failure_details
    return {
        "started": not starting.is_alive(),
        "status": _status(state),
        "output": state and state.serialized_output,
        "failure": failure and failure.message,
    }


def _status(state: Any) -> str:
    return state.runtime_status.name if state is not None else ""


def told(telemetry: Telemetry) -> Json:
    """What this package tells: the spans' attributes, and the metrics as Prometheus gets them."""
    from prometheus_client import REGISTRY

    from agent_otel.core.payload import _analyst

    time.sleep(0.3)  # an activity's span may end after the workflow
    _analyst.drain()
    spans = [span["attributes"] for span in telemetry.spans()]
    samples = [sample for family in REGISTRY.collect() for sample in family.samples]
    prefix = "agent_otel_workflow_payload_"
    return {
        "spans": [span for span in spans if "workflow.payload.bytes" in span],
        "metrics": [
            [sample.name.removeprefix(prefix), sample.labels, sample.value]
            for sample in samples
            if sample.name.startswith(prefix) and sample.value
        ],
    }


def said(daprd: Daprd) -> Json:
    """What daprd tells: its complaints of sizes, and its own metrics of payloads (how many, and the sum)."""
    with urllib.request.urlopen(daprd.metrics) as answer:  # noqa: S310 - on the loopback interface
        metrics = answer.read().decode()
    found = re.findall(r"^(\w+_payload_size_ratio)_(count|sum)\{.*\} (\S+)$", metrics, re.MULTILINE)
    samples = {(name, of): float(value) for name, of, value in found}
    complaint = re.compile(r'level=error msg="(Error scheduling reminder .*? larger than max [^"]*)"')
    return {
        "log": complaint.findall(daprd.said.read_text()),
        "ratios": {name: (samples[name, "count"], samples[name, "sum"]) for name, _ in samples},
    }


def main() -> None:
    """Ask what the command line says."""
    options, workflow, given, seconds = sys.argv[1:]
    messages, telemetry = Messages(), Telemetry()
    with program.serving({"daprd": json.loads(options)}) as daprd, program.working():
        assert daprd is not None
        answer = ask(workflow, json.loads(given), float(seconds))
        answer |= told(telemetry) | said(daprd)
    print(json.dumps({**answer, "messages": messages.take()}))


if __name__ == "__main__":
    main()
