"""Sessions of Google's Agent Development Kit in SQLite."""

# ruff: noqa: D102 - a test's name and body say it
from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from tests.contract.stores.suite import LETTERS, StoreContract

if TYPE_CHECKING:
    from tests.contract.runtimes.suite import Runs

MIB = 1024 * 1024


class TestGoogleAdkSessions(StoreContract):
    """google-adk 2.13: the question, the call, its result and the answer are an event each."""

    program = "google_adk"
    environment = "google-adk-sessions"
    runtime = "google-adk"
    integrations: ClassVar[dict[str, list[str]]] = {
        "google-adk": [
            "google.adk.sessions.database_session_service:DatabaseSessionService.append_event",
            "google.adk.sessions.schemas.shared:DynamicJSON.process_bind_param",
        ],
    }
    cases: ClassVar[dict[str, Any]] = {"events": {"letters": LETTERS}, "large": {"letters": [MIB, MIB, 10]}}
    writes = 4
    #: The states of the application, the user and the session, which are empty.
    beside = 3 * len("{}")

    def test_whose_bytes_they_are_and_which_are_there_twice(self, runs: Runs) -> None:
        session = [said for said in self.told(runs, "large") if "workflow.payload.largest_path" in said][-1]
        assert session["workflow.payload.direction"] == "history"
        assert session["workflow.payload.bytes"] == runs.on["cases"]["large"]["said"]["sizes"][1] + self.beside
        assert session["workflow.payload.largest_tool"] == "search"
        assert session["workflow.payload.duplicate_bytes"] == pytest.approx(MIB, rel=0.001)


del StoreContract
