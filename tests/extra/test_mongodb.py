"""Savers and sessions of documents on a real FerretDB, which has MongoDB's wire protocol.

``scripts/extra`` runs this; ``scripts/test`` has the stand-in.
"""

# ruff: noqa: D101 - the class's name says it
from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, ClassVar

from tests.contract.stores import test_langgraph_documents
from tests.contract.stores.suite import LETTERS, StoreContract
from tests.system.engines import ferretdb, starting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.contract.runtimes.suite import Json
    from tests.environments import Environment

MIB = 1024 * 1024


class _OnFerretDB:
    @classmethod
    @contextlib.contextmanager
    def engine(cls, environment: Callable[[str], Environment]) -> Iterator[Json]:
        """Start what the children share."""
        del environment
        with starting.or_skip(ferretdb.server()) as url:
            yield {"mongodb": url}


class TestSavers(_OnFerretDB, test_langgraph_documents.TestDocuments):
    integrations: ClassVar[dict[str, list[str]]] = {
        "langgraph-checkpoint-mongodb": ["langgraph.checkpoint.mongodb.saver:MongoDBSaver.__init__"],
    }
    cases: ClassVar[dict[str, Any]] = {name: {"letters": LETTERS} for name in ("mongodb", "own-serializer")}
    # It takes minutes for documents of megabytes; those that are too large pymongo refuses itself, on any server.
    test_the_growth_is_that_of_the_session = None  # type: ignore[assignment]
    test_a_refused_document_is_counted = None  # type: ignore[assignment]


class TestSessions(_OnFerretDB, StoreContract):
    program = "openai_agents"
    environment = "openai-agents-sessions"
    runtime = "openai-agents"
    integrations: ClassVar[dict[str, list[str]]] = {
        "openai-agents": ["agents.extensions.memory.mongodb_session:MongoDBSession.add_items"],
    }
    cases: ClassVar[dict[str, Any]] = {
        "mongodb": {"letters": LETTERS},
        "large": {"kind": "mongodb", "letters": [MIB, MIB, 10]},
    }
    writes = 3


del StoreContract, test_langgraph_documents
