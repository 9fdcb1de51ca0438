"""Sessions of Agno in SQLite."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from tests.contract.stores.suite import LETTERS, StoreContract

if TYPE_CHECKING:
    from tests.contract.runtimes.suite import Runs

MIB = 1024 * 1024


class TestAgnoSessions(StoreContract):
    """agno 3.1: a run is a row."""

    program = "agno"
    environment = "agno-sessions"
    runtime = "agno"
    integrations: ClassVar[dict[str, list[str]]] = {
        "agno": [
            "agno.db.utils:json_serializer",
            "agno.db.sqlite.sqlite:SqliteDb.upsert_run",
            "agno.db.sqlite.async_sqlite:AsyncSqliteDb.upsert_run",
        ],
    }
    cases: ClassVar[dict[str, Any]] = {
        "sync": {"letters": LETTERS},
        "async": {"letters": LETTERS},
        "large": {"letters": [MIB, MIB, 10]},
    }

    def test_whose_bytes_they_are_and_which_are_there_twice(self, runs: Runs) -> None:
        """Agno keeps each result in the message of the tool and in the list of the run's calls."""
        session = [said for said in self.told(runs, "large") if "workflow.payload.largest_path" in said][-1]
        assert session["workflow.payload.direction"] == "history"
        assert session["workflow.payload.bytes"] == runs.on["cases"]["large"]["said"]["sizes"][1]
        assert session["workflow.payload.largest_tool"] == "search"
        assert session["workflow.payload.duplicate_bytes"] == pytest.approx(3 * MIB, rel=0.001)


del StoreContract
