"""Clients of model providers in loops of the program's own: what leaves is measured part by part."""

# ruff: noqa: D102 - a test's name and body say it
from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import pytest

from tests.contract.agents import by_hand
from tests.contract.cases import KEY_BYTES, Case, Cut
from tests.contract.delivery import LARGE, WHOLE, Delivery
from tests.contract.toolbox import LOOKUP_BYTES

if TYPE_CHECKING:
    from tests.contract.cases import Json
    from tests.contract.suite import Runs


class Client(Delivery):
    """Every style of a client: each request is counted once, its results whole, and a cut before it is found."""

    imports_us = True
    outer = False
    #: Bytes of the arguments as the client has them when it sends them back.
    arguments_bytes: ClassVar[int] = KEY_BYTES
    cuts: ClassVar = {
        "cut": (Cut("big", "model_request", "shrunk", 1000),),
        "cut in a stream": (Cut("big", "model_request", "shrunk", 1000),),
    }
    own: ClassVar[dict[str, Case]] = {
        "two megabytes": WHOLE,
        "cut": replace(LARGE, mode="sync", setting="cut"),
        "cut in a stream": replace(LARGE, mode="stream", setting="cut"),
    }

    def tools_bytes(self, name: str) -> int:
        """Bytes of the definitions as they are sent."""
        return len(json.dumps(by_hand.definitions({name: None}), separators=(",", ":")))

    @pytest.mark.parametrize("name", ["sync", "async", "stream"])
    def test_each_part_of_a_request_is_measured(self, runs: Runs, name: str) -> None:
        case = self.cases()[name]
        assert parts(runs, name) == {
            "system": (2, 2 * 11),
            "user": (2, 2 * len(case.plan()["prompt"].encode())),
            "tools": (2, 2 * self.tools_bytes(case.tools[0])),
            "assistant": (2, 0),
            "tool_arguments": (2, self.arguments_bytes),
            "tool_results": (2, LOOKUP_BYTES),
        }

    def test_every_result_is_matched_and_no_history_lost(self, runs: Runs, case_name: str) -> None:
        named = {m["name"]: m["sum"] for m in runs.on["cases"][case_name]["metrics"] if "attributes" in m}
        for name in ("tool.results.unmatched", "model.history.lost", "model.history.doubled"):
            assert not named.get(f"agent_otel.{name}")


def parts(runs: Runs, case_name: str) -> Json:
    """How many requests were measured in a case, and their bytes, by part."""
    return {
        metric["attributes"]["part"]: (metric["count"], metric["sum"])
        for metric in runs.on["cases"][case_name]["metrics"]
        if metric["name"] == "agent_otel.model.request.size"
    }
