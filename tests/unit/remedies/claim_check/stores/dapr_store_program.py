"""The contract of stores on Dapr's, beside a stand-in for the sidecar; prints each case that was passed."""

# mypy: disable-error-code="import-not-found,import-untyped,unused-ignore"
# The SDK is not installed where types are checked.

from __future__ import annotations

import logging
import sys
import time
from typing import TYPE_CHECKING, Any

from dapr.proto.runtime.v1 import metadata_pb2

from agent_otel.remedies.claim_check.stores import TooLargeError, open_store
from tests.system.engines import dapr_state
from tests.unit.remedies.claim_check.stores.contract import CASES, Store

if TYPE_CHECKING:
    from agent_otel.remedies.claim_check.stores import ClaimStore


class Listening(dapr_state._Service):
    """Keeps what came beside the last value."""

    metadata: dict[str, str]

    def GetMetadata(self, request: Any, context: Any) -> Any:  # noqa: ARG002, N802 - a method of the generated service
        """Name two state stores, of which one lets values expire."""
        components = [
            {"name": "statestore", "type": "state.etcd", "capabilities": ["ETAG"]},
            {"name": "other", "type": "state.redis", "capabilities": ["ETAG", "TTL"]},
        ]
        return metadata_pb2.GetMetadataResponse(id="agents", registered_components=components)

    def SaveState(self, request: Any, context: Any) -> Any:  # noqa: N802 - a method of the generated service
        """Store under a key."""
        type(self).metadata = dict(request.states[0].metadata)
        return super().SaveState(request, context)


def expired_values_go(store: ClaimStore, stored: dict[str, bytes]) -> None:
    """Print how many keys of an execution are left, after two writes and in the end; this component removes none."""
    for number in range(10):
        store.put(f"tool-result/=/run/n/{number}", b"x", 0.01)
    time.sleep(0.05)
    for _ in range(2):
        store.put("tool-result/=/run/n/last", b"x", 60)
    print(sum("/run/n/" in key for key in stored))
    store.put("tool-result/=/run/n/short", b"x", 0.01)
    time.sleep(0.05)
    print(store.delete_group("tool-result/=/run"), [key for key in stored if "/run/" in key])


def main() -> None:
    """Pass every case."""
    logging.basicConfig(stream=sys.stdout, format="%(message)s")
    dapr_state._Service = Listening  # type: ignore[misc]  # to hear what else is sent
    with dapr_state.state_api() as stored:
        store = open_store("dapr://statestore")
        for case in CASES:
            case(Store(store))
            print(case.__name__)
        store.put("a", b"x", 86_400)
        print(Listening.metadata)
        expired_values_go(store, stored)
        open_store("dapr://other").put("a", b"x", 86_400)
        try:
            store.put("a", b"x" * 5 * 1024 * 1024, 60)
        except TooLargeError as error:
            print(error)


if __name__ == "__main__":
    main()
