"""Runs the stand-in for daprd as a program of its own, which is what the durable example finds beside its worker.

Prints the port as its first line, then what daprd would write to its log, and at last how large the histories are.
Ends with its standard input. ``DURABLE_SIDECAR=daprd`` runs a real daprd, which keeps its log for itself.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
from typing import TYPE_CHECKING

from dapr.conf import settings  # type: ignore[import-not-found, import-untyped, unused-ignore]

from tests.system.engines.dapr_sidecar import sidecar
from tests.system.engines.daprd import daprd

if TYPE_CHECKING:
    from tests.system.engines.dapr_engine import Engine


def log(engine: Engine) -> None:
    """Print each refusal when it happens, and what the history of a workflow says that stalls."""
    told, stalled = 0, set()
    with engine.changed:
        while True:
            for refusal in engine.refusals[told:]:
                print(f"Error scheduling reminder job run-activity due to: {refusal}", flush=True)
            told = len(engine.refusals)
            for name, instance in engine.instances.items():
                last = instance.history[-1] if instance.history else None
                if name not in stalled and last is not None and last.HasField("executionStalled"):
                    stalled.add(name)
                    print(f"STALLED: {last.executionStalled.description}", flush=True)
            engine.changed.wait(0.2)


def main() -> None:
    """Run until standard input ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--max-body-size", type=int, required=True)
    given = parser.parse_args()
    if os.environ.get("DURABLE_SIDECAR") == "daprd":
        with daprd(max_body_size=str(given.max_body_size)) as real:
            print(real.grpc_port, flush=True)
            sys.stdin.read()
        return
    with sidecar(max_body_size=given.max_body_size) as engine:
        print(settings.DAPR_GRPC_PORT, flush=True)
        threading.Thread(target=log, args=(engine,), daemon=True).start()
        sys.stdin.read()
        with engine.changed:
            kept = sum(event.ByteSize() for each in engine.instances.values() for event in each.history)
        print(f"history bytes: {kept}", flush=True)


if __name__ == "__main__":
    main()
