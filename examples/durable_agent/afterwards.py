"""What a process that comes later makes of a run on Temporal: a worker replays it, a user interface shows a result.

``python -m examples.durable_agent.afterwards --folder <what was kept> --run <id>``, with the settings that the agent
had, ends with its standard input and prints a line of JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from temporalio.api.history.v1 import History
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer

import agent_otel
from examples.durable_agent.temporal_agent import DurableAgent
from examples.repository_agent.tools import Repository

if TYPE_CHECKING:
    from collections.abc import Iterator

Json = dict[str, Any]

# As it stands in the view that the record has in the place of the result.
_REFERENCE = re.compile(r'ref="(claim:v2:[^"]+)"')


def main() -> None:
    """Print what came of it."""
    parser = argparse.ArgumentParser(description="Replay a run, and show what its tools returned.")
    parser.add_argument("--folder", type=Path, required=True, help="what was kept of the run")
    parser.add_argument("--run", required=True, help="the run's id, as the server knows it")
    given = parser.parse_args()
    history = History.FromString((given.folder / "history").read_bytes())
    repository = Repository.at(given.folder / "repository")
    records = final_state(history)["accumulatedToolCalls"]
    said = {
        "events": len(history.events),
        "replay_failure": asyncio.run(replay_failure(history)),
        "records": len(records),
        "shown": list(shown(records, given.run, repository)),
        "stranger": stranger(records),
    }
    print(json.dumps(said), flush=True)
    sys.stdin.read()


async def replay_failure(history: History) -> str | None:
    """Replay the workflow; None when it does again what it has done, else what differs."""
    replayed = await Replayer(workflows=[DurableAgent]).replay_workflow(
        WorkflowHistory(uuid4().hex, history.events), raise_on_replay_failure=False
    )
    return None if replayed.replay_failure is None else str(replayed.replay_failure)


def final_state(history: History) -> Json:
    """The state that the model was given last."""
    for event in reversed(history.events):
        scheduled = event.activity_task_scheduled_event_attributes
        if scheduled.activity_type.name == "call_model":
            state: Json = json.loads(scheduled.input.payloads[0].data)
            return state
    raise ValueError("the model was never asked")


def shown(records: list[Json], run: str, repository: Repository) -> Iterator[Json]:
    """The whole results of the records that have a reference, and whether a tool says the same when it is run again."""
    for record in records:
        found = _REFERENCE.search(record["result"])
        if found is not None:
            whole = agent_otel.remedies.resolve(found[1], caller=run)
            again = getattr(repository, record["name"])(**record["args"]).encode()
            yield {
                "id": record["id"],
                "record_bytes": len(record["result"].encode()),
                "bytes": len(whole.data),
                "sha256": hashlib.sha256(whole.data).hexdigest(),
                "same": whole.data == again,
            }


def stranger(records: list[Json]) -> str | None:
    """What somebody gets who has a reference and is not whom it belongs to; None when there is no reference."""
    found = next(filter(None, (_REFERENCE.search(record["result"]) for record in records)), None)
    if found is None:
        return None
    try:
        return f"{len(agent_otel.remedies.resolve(found[1], caller=uuid4().hex).data)} bytes"
    except LookupError as error:
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    main()
