"""LangGraph's savers of documents: Redis with its modules, and MongoDB beside a stand-in on its wire protocol."""

# ruff: noqa: D102 - a test's name and body say it
from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, ClassVar

from tests.contract.stores.suite import LETTERS, STATE, StoreContract
from tests.system.engines import redis

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.contract.runtimes.suite import Json, Runs
    from tests.environments import Environment

MIB = 1024 * 1024


class TestDocuments(StoreContract):
    """langgraph-checkpoint-mongodb 0.5 and langgraph-checkpoint-redis 0.5."""

    program = "langgraph_documents"
    environment = "langgraph-documents"
    runtime = "langgraph"
    env: ClassVar[dict[str, str]] = {"AGENT_OTEL_STORE_WARN_BYTES": "1GiB"}  # the thread of "large" writes 60 MiB
    integrations: ClassVar[dict[str, list[str]]] = {
        "langgraph-checkpoint-mongodb": ["langgraph.checkpoint.mongodb.saver:MongoDBSaver.__init__"],
        "langgraph-checkpoint-redis": ["redis.commands.json:_JSONBase._encode"],
    }
    cases: ClassVar[dict[str, Any]] = {
        **{kind: {"letters": LETTERS} for kind in ("redis", "async-redis", "mongodb", "own-serializer")},
        "large": {"kind": "mongodb", "letters": [6 * MIB, 6 * MIB, 6 * MIB], "refused": 1},
    }
    is_whole = True
    #: The input, the start, and after the model and the tools; the start of the first run has no checkpoint before it.
    writes = 4

    @classmethod
    @contextlib.contextmanager
    def engine(cls, environment: Callable[[str], Environment]) -> Iterator[Json]:
        with redis.with_modules(environment(cls.environment).folder) as url:
            yield {"redis": url}

    def outputs(self, runs: Runs, name: str) -> list[float]:
        """Return how many payloads nodes wrote, and their bytes."""
        written = [
            each
            for each in runs.on["cases"][name]["metrics"]
            if each["name"] == "agent_otel.workflow.payload.size" and each["attributes"]["direction"] == "output"
        ]
        return [sum(each[total] for each in written) for total in ("count", "sum")]

    def test_what_a_node_writes_are_documents_too(self, runs: Runs) -> None:
        """Each write is one, which the cap of a document is compared with."""
        for name in self.cases.keys() - {"large"}:
            assert self.outputs(runs, name) == runs.on["cases"][name]["said"]["output"], name

    def test_the_growth_is_that_of_the_session(self, runs: Runs) -> None:
        """Of the documents, up to the one that MongoDB refuses."""
        assert self.total(runs, "large", "growth") > 11 * MIB

    def test_a_refused_document_is_counted(self, runs: Runs) -> None:
        told = [said for said in self.told(runs, "large") if said["workflow.payload.direction"] == STATE]
        assert {said["workflow.payload.cap_bytes"] for said in told} == {16 * MIB}
        refused = [said for said in told if said.get("workflow.payload.rejected")]
        assert [said["workflow.payload.bytes"] > 16 * MIB for said in refused] == [True]
        assert self.total(runs, "large", "rejected") == 1


del StoreContract
