"""Bedrock's Converse API and InvokeModel, where requests leave for the model."""

# ruff: noqa: D102 - a test's name and body say it
from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import pytest

from agent_otel.testing.servers.anthropic import CACHED_TOKENS, BedrockServer
from tests.contract.cases import KEY, KEY_BYTES, Case, Cut, Record, looked_up
from tests.contract.delivery import WHOLE, Delivery
from tests.contract.toolbox import LOOKUP_BYTES

if TYPE_CHECKING:
    from tests.contract.suite import Runs

# {"toolSpec":{"name":"lookup","inputSchema":{"json":{"type":"object"}}}}, and the list's brackets
TOOLS_BYTES = 71 + 2


class TestBedrock(Delivery):
    """boto3, which is sync only."""

    agent = "bedrock_client"
    environment = "bedrock"
    server = BedrockServer
    integrations: ClassVar = {
        "bedrock": ["botocore.client:BaseClient._make_api_call", "botocore.endpoint:Endpoint._needs_retry"]
    }
    attributes: ClassVar = {"gen_ai.conversation.id": "run-1"}
    modes = ("sync",)
    outer = False
    imports_us = True
    inside: ClassVar[tuple[str, ...]] = ()
    own: ClassVar = {
        "two megabytes": Case(WHOLE.tools, WHOLE.calls, WHOLE.records, "sync"),
        "structured": Case(
            ("table",), (("call_20", "table", {"rows": 2}),), (Record("table", "call_20", 28, args=10),), "sync"
        ),
        "parallel, sync": Case(
            ("lookup", "big"),
            (("call_27", "lookup", KEY), ("call_28", "big", {"n": 4321})),
            (Record("lookup", "call_27", LOOKUP_BYTES), Record("big", "call_28", 4321, args=10)),
            "sync",
        ),
        "streamed": looked_up("lookup", "call_21", "sync", setting="stream"),
        "cut by the program": looked_up("lookup", "call_22", "sync", setting="cut"),
        "invoked": looked_up("lookup", "call_24", "sync", setting="invoke"),
        "invoked and streamed": looked_up("lookup", "call_25", "sync", setting="invoke stream"),
        "invoked and cut": looked_up("lookup", "call_26", "sync", setting="invoke cut"),
        "beside a picture": looked_up("lookup", "call_23", "sync", setting="picture"),
    }
    # 100 letters: g r ö ß e : and a blank are 9 bytes, 93 times ß 186.
    cuts: ClassVar = dict.fromkeys(
        ("cut by the program", "invoked and cut"), (Cut("lookup", "model_request", "shrunk", 195),)
    )

    @classmethod
    def cases(cls) -> dict[str, Case]:
        """Return the cases without that of a coroutine that is cancelled."""
        return {name: case for name, case in super().cases().items() if case.mode != "cancel"}

    # {"image":{"format":"png","source":{"bytes":"…"}}} with 4 bytes in it, as they are
    @pytest.mark.parametrize(("name", "picture"), [("sync", 0), ("streamed", 0), ("beside a picture", 52)])
    def test_each_part_of_a_request_is_measured_once(self, runs: Runs, name: str, picture: int) -> None:
        prompt = len(self.cases()[name].plan()["prompt"].encode())
        found = {
            metric["attributes"]["part"]: (metric["count"], metric["sum"])
            for metric in runs.on["cases"][name]["metrics"]
            if metric["name"] == "agent_otel.model.request.size"
        }
        assert found == {
            "system": (2, 2 * 11),
            "user": (2, 2 * (prompt + picture)),
            "tools": (2, 2 * TOOLS_BYTES),
            "assistant": (2, 0),
            "tool_arguments": (2, KEY_BYTES),
            "tool_results": (2, LOOKUP_BYTES),
        }

    @pytest.mark.parametrize(("name", "whole"), [("sync", 2), ("streamed", 2)])
    def test_cached_tokens_are_counted(self, runs: Runs, name: str, whole: int) -> None:
        found = [m for m in runs.on["cases"][name]["metrics"] if m["name"] == "agent_otel.model.cached_tokens"]
        assert sum(metric["sum"] for metric in found) == whole * CACHED_TOKENS


del Delivery
