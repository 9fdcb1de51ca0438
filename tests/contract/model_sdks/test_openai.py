"""OpenAI's client, both majors, in each of its call styles."""

# ruff: noqa: D102 - a test's name and body say it
from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from tests.contract.cases import KEY_BYTES, Cut, looked_up
from tests.contract.composition import Client, parts
from tests.contract.delivery import LARGE
from tests.contract.toolbox import LOOKUP_BYTES

if TYPE_CHECKING:
    from tests.contract.suite import Runs


class TestOpenAI(Client):
    """openai 3."""

    agent = "openai_client"
    environment = "openai-agents"
    integrations: ClassVar = {"openai": ["openai._base_client:SyncAPIClient.request"]}
    cuts: ClassVar = {**Client.cuts, "cut responses": (Cut("big", "model_request", "shrunk", 1000),)}
    own: ClassVar = {
        **Client.own,
        "responses": looked_up("lookup", "call_20", setting="responses"),
        "cut responses": replace(LARGE, setting="responses cut"),
    }

    def test_each_part_of_a_response_s_request_is_measured(self, runs: Runs) -> None:
        prompt = len(self.cases()["responses"].plan()["prompt"].encode())
        assert parts(runs, "responses") == {
            "system": (2, 2 * 11),
            "user": (2, 2 * prompt),
            "tools": (2, 0),
            "assistant": (2, 0),
            "tool_arguments": (2, KEY_BYTES),
            "tool_results": (2, LOOKUP_BYTES),
        }


class TestOpenAI2(TestOpenAI):
    """openai 2."""

    environment = "openai-2"


del Client
