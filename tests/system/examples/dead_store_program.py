"""Runs the durable agent on a runtime with the claim check on a Redis that is stopped in the middle of the run.

``python -m tests.system.examples.dead_store_program <runtime> <turns> '{"<turn>": "down", "<turn>": "up"}'``;
prints as JSON how the run ended and what it counted.
"""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from pathlib import Path

from examples.durable_agent.report import read
from examples.durable_agent.watched import watch
from tests.system.engines import redis


def main(runtime: str, turns: int, changes: dict[str, str]) -> None:
    """Run the agent for so many turns; before the model's answer in these turns the store goes down, or comes back."""
    with tempfile.TemporaryDirectory() as temporary, contextlib.ExitStack() as running:
        folder = Path(temporary)
        store = running.enter_context(redis.server(folder / "redis"))

        def begins(turn: int) -> None:
            change = changes.pop(str(turn), None)
            if change == "down":
                running.close()
            elif change == "up":
                running.enter_context(redis.server(folder / "redis"))

        variables = {
            "AGENT_OTEL_CLAIM_CHECK": store,
            "AGENT_OTEL_CLAIM_CHECK_KEY": "the secret of this test",
            "AGENT_OTEL_CLAIM_CHECK_BUDGET": "2",  # the machine may be busy: only the stopped server fails
        }
        report = read(runtime, watch(runtime, turns, folder, begins, variables))
    ending = report.ending
    print(
        json.dumps(
            {
                "answer": ending.answer,
                "seen": ending.seen,
                "cause": ending.cause,
                "rejected": report.rejected,
                "stored": report.stored,
                "bytes": [turn.bytes for turn in report.turns],
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3]))
