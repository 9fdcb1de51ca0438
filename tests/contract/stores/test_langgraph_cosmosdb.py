"""LangGraph's saver for Cosmos DB, as the real SDK sends its items: each meets the cap of an item."""

# ruff: noqa: D102 - a test's name and body say it
from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from tests.contract.stores.suite import LETTERS, STATE, StoreContract

if TYPE_CHECKING:
    from tests.contract.runtimes.suite import Runs

CAP_BYTES = 2 * 1024 * 1024 - 1

#: ``compact``: a client that sends UTF-8 as it is, where others escape what is not ASCII.
KINDS = ("sync", "async", "compact")


class TestCosmosDB(StoreContract):
    """langgraph-checkpoint-cosmosdb 0.4 on azure-cosmos 4.17."""

    program = "langgraph_cosmosdb"
    environment = "langgraph-cosmosdb"
    runtime = "langgraph"
    integrations: ClassVar[dict[str, list[str]]] = {
        "langgraph-checkpoint-cosmosdb": ["azure.cosmos._synchronized_request:_request_body_from_data"],
    }
    cases: ClassVar[dict[str, Any]] = {
        **{kind: {"letters": LETTERS} for kind in KINDS},
        "large": {"letters": [600_000, 600_000, 600_000], "refused": 1},
    }
    is_whole = True
    #: The input, the start, and after the model and the tools; the start of the first run has no checkpoint before it.
    writes = 4

    def test_what_a_node_writes_are_items_too(self, runs: Runs) -> None:
        for name in KINDS:
            written = [
                each
                for each in runs.on["cases"][name]["metrics"]
                if each["name"] == "agent_otel.workflow.payload.size" and each["attributes"]["direction"] == "output"
            ]
            counted = [sum(each[total] for each in written) for total in ("count", "sum")]
            assert counted == runs.on["cases"][name]["said"]["output"], name

    def test_the_growth_is_that_of_the_session(self, runs: Runs) -> None:
        """Of the items, up to the one that Cosmos DB refuses: the letters in Base64, three times."""
        assert self.total(runs, "large", "growth") > 3 * 600_000 * 4 / 3

    def test_an_item_is_compared_with_its_cap(self, runs: Runs) -> None:
        told = [said for said in self.told(runs, "large") if said["workflow.payload.direction"] == STATE]
        assert {said["workflow.payload.cap_bytes"] for said in told} == {CAP_BYTES}
        assert {said["workflow.payload.cap_source"] for said in told} == {"table"}

    def test_a_refused_item_is_counted(self, runs: Runs) -> None:
        """Its letters are fewer than the cap; in Base64 they are more."""
        refused = [said for said in self.told(runs, "large") if said.get("workflow.payload.rejected")]
        assert [said["workflow.payload.direction"] for said in refused] == [STATE]
        assert refused[0]["workflow.payload.bytes"] > CAP_BYTES > 3 * 600_000
        assert self.total(runs, "large", "rejected") == 1
        status, text = runs.on["cases"]["large"]["said"]["said"][-1]
        assert status == 413
        assert "Request size is too large" in text


del StoreContract
