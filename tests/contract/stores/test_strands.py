"""Sessions of Strands Agents in files, and in S3 as moto has it."""

# ruff: noqa: D102 - a test's name and body say it
from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from tests.contract.stores.suite import LETTERS, StoreContract

if TYPE_CHECKING:
    from tests.contract.runtimes.suite import Runs

MIB = 1024 * 1024


class TestStrandsSessions(StoreContract):
    """strands-agents 1.62: the question, the call, its result and the answer are a file or an object each."""

    program = "strands"
    environment = "strands-sessions"
    runtime = "strands"
    integrations: ClassVar[dict[str, list[str]]] = {
        "strands": [
            "strands.session.repository_session_manager:RepositorySessionManager.append_message",
            "strands.session.file_session_manager:FileSessionManager._write_file",
            "strands.session.s3_session_manager:S3SessionManager._write_s3_object",
        ],
    }
    cases: ClassVar[dict[str, Any]] = {
        "files": {"letters": LETTERS},
        "s3": {"letters": LETTERS},
        "large": {"letters": [MIB, MIB, 10]},
    }
    writes = 4

    def test_whose_bytes_they_are_and_which_are_there_twice(self, runs: Runs) -> None:
        session = [said for said in self.told(runs, "large") if "workflow.payload.largest_path" in said][-1]
        assert session["workflow.payload.direction"] == "history"
        assert session["workflow.payload.bytes"] == runs.on["cases"]["large"]["said"]["sizes"][1]
        assert session["workflow.payload.largest_tool"] == "search"
        assert session["workflow.payload.duplicate_bytes"] == pytest.approx(MIB, rel=0.001)


del StoreContract
