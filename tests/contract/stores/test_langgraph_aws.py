"""LangGraph's saver for DynamoDB and S3, as moto has them: every item meets the cap of an item."""

# ruff: noqa: D102 - a test's name and body say it
from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar

from tests.contract.stores.suite import LETTERS, STATE, StoreContract

if TYPE_CHECKING:
    from tests.contract.runtimes.suite import Json, Runs

CAP_BYTES = 409_600
OUTPUT = "output"


class TestDynamoDB(StoreContract):
    """langgraph-checkpoint-aws 1.2."""

    program = "langgraph_aws"
    environment = "langgraph-aws"
    runtime = "langgraph"
    integrations: ClassVar[dict[str, list[str]]] = {
        "langgraph-checkpoint-aws": [
            "langgraph_checkpoint_aws.checkpoint.dynamodb.storage_strategy:StorageStrategy._store_to_dynamodb"
        ],
    }
    cases: ClassVar[dict[str, Any]] = {
        "plain": {"letters": LETTERS},
        "ttl": {"letters": LETTERS},
        "compressed": {"letters": LETTERS},
        "large": {"letters": [100_000, 100_000, 100_000, 150_000], "attempts": 3, "refused": 3},
        "s3": {"letters": [200_000, 250_000], "refused": 0},
    }
    is_whole = True
    #: The input, the start, and after the model and the tools; the start of the first run has no checkpoint before it.
    writes = 4

    def counted(self, runs: Runs, name: str, direction: str) -> Json:
        """Add up the payloads of a direction by activity: how many, and their bytes."""
        count: Counter[str] = Counter()
        total: Counter[str] = Counter()
        for each in runs.on["cases"][name]["metrics"]:
            labels = each["attributes"]
            if each["name"] == "agent_otel.workflow.payload.size" and labels["direction"] == direction:
                count[labels.get("workflow.activity", "")] += each["count"]
                total[labels.get("workflow.activity", "")] += each["sum"]
        return {"count": dict(count), "bytes": sum(total.values())}

    def test_what_a_node_writes_are_items_too(self, runs: Runs) -> None:
        for name in ("plain", "ttl", "compressed"):
            assert self.counted(runs, name, OUTPUT)["bytes"] == runs.on["cases"][name]["said"]["output"]

    def test_the_growth_is_that_of_the_session(self, runs: Runs) -> None:
        """Of the items, from 16 KiB on, up to the one that DynamoDB refuses."""
        assert self.total(runs, "large", "growth") >= 300_000

    def test_an_item_is_compared_with_its_cap(self, runs: Runs) -> None:
        told = [said for said in self.told(runs, "large") if said["workflow.payload.direction"] == STATE]
        assert {said["workflow.payload.cap_bytes"] for said in told} == {CAP_BYTES}
        assert {said["workflow.payload.cap_source"] for said in told} == {"table"}

    def test_a_refused_item_is_counted_and_its_retries_are_stuck(self, runs: Runs) -> None:
        refused = [said for said in self.told(runs, "large") if said.get("workflow.payload.rejected")]
        assert {said["workflow.payload.direction"] for said in refused} == {STATE}
        assert all(said["workflow.payload.bytes"] > CAP_BYTES for said in refused)
        assert refused[-1]["workflow.payload.turns_to_cap"] == 0
        assert self.total(runs, "large", "rejected") == 3
        assert self.total(runs, "large", "stuck_retries") == 2
        texts = runs.on["cases"]["large"]["said"]["said"]
        assert texts[-3:] == ["Item size has exceeded the maximum allowed size"] * 3

    def test_what_goes_to_s3_has_no_cap(self, runs: Runs) -> None:
        assert self.total(runs, "s3", "over_cap") == 0
        sizes = runs.on["cases"]["s3"]["said"]
        counted = sum(self.counted(runs, "s3", direction)["bytes"] for direction in (STATE, OUTPUT))
        assert sizes["objects"] > CAP_BYTES
        assert counted == sizes["sizes"][-1] + sizes["output"] + sizes["objects"]


del StoreContract
