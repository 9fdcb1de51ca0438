"""OpenAI's client, where requests leave for the model: their size by part."""

# ruff: noqa: D102 - a test's name and body say it
from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import pytest

from tests.contract.cases import looked_up
from tests.contract.suite import Contract
from tests.contract.toolbox import LOOKUP_BYTES

if TYPE_CHECKING:
    from tests.contract.suite import Runs


class TestOpenAI(Contract):
    """openai 3."""

    agent = "openai_client"
    environment = "openai-agents"
    integrations: ClassVar = {"openai": "openai._base_client:SyncAPIClient.request"}
    modes = ("sync", "async")
    imports_us = True
    own: ClassVar = {"responses": looked_up("lookup", "call_20", setting="responses")}

    @pytest.mark.parametrize("name", ["sync", "async", "responses"])
    def test_each_part_of_a_request_is_measured(self, runs: Runs, name: str) -> None:
        case = self.cases()[name]
        prompt = len(case.plan()["prompt"].encode())
        # {"type":"function","function":{"name":"…","parameters":{}}} and the list's brackets
        tools = 0 if name == "responses" else 2 + 58 + len(case.tools[0])
        found = {
            metric["attributes"]["part"]: (metric["count"], metric["sum"])
            for metric in runs.on["cases"][name]["metrics"]
            if metric["name"] == "agent_otel.model.request.size"
        }
        assert found == {
            "system": (2, 2 * 11),
            "user": (2, 2 * prompt),
            "tools": (2, 2 * tools),
            "assistant": (2, 0),
            "tool_arguments": (2, 17),
            "tool_results": (2, LOOKUP_BYTES),
        }


class TestOpenAI2(TestOpenAI):
    """openai 2."""

    environment = "openai-agents-0.8"


del Contract
