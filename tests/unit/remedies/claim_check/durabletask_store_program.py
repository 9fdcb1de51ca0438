"""An orchestration of durabletask whose large payloads are in a store, on its in-memory backend.

``python -m tests.unit.remedies.claim_check.durabletask_store_program <store's URL> <bytes>``; prints what came of it
as JSON.
"""

# mypy: disable-error-code="import-not-found,import-untyped,unused-ignore"
# The SDK is not installed where types are checked.

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
from typing import Any

from durabletask import client
from durabletask.payload import PayloadStore

from agent_otel.remedies.claim_check.payload_store import durabletask_payload_store
from tests.contract.runtimes.programs import durabletask as program


def digested(text: str | bytes | None) -> str | None:
    """A digest, None of nothing."""
    return None if text is None else hashlib.sha256(text if isinstance(text, bytes) else text.encode()).hexdigest()


def main() -> None:
    """Run it once, and read its history without and with the store."""
    url, size = sys.argv[1:]
    store = durabletask_payload_store(url, key="the secret of this test")
    assert isinstance(store, PayloadStore)
    given = {"activity": "produce", "n": int(size), "more": "m" * 300_000}
    with program.backend() as address, program.working(address, store):
        tasks = client.TaskHubGrpcClient(host_address=address, payload_store=store)
        instance = tasks.schedule_new_orchestration("one", input=given)
        done = tasks.wait_for_orchestration_completion(instance, timeout=200)
        raw = client.TaskHubGrpcClient(host_address=address).get_orchestration_state(instance)
    said: dict[str, Any] = {
        "said": done and done.serialized_output,
        "input": digested(done and done.serialized_input),
        "raw_input": raw and (raw.serialized_input or "")[:300],
        "later": None,
    }
    token = said["raw_input"]
    if store.is_known_token(token):
        said["later"] = digested(store.download(token)), digested(asyncio.run(store.download_async(token)))
    print(json.dumps(said))


if __name__ == "__main__":
    main()
