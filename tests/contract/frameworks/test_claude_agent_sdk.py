"""The Claude Agent SDK with its program, which by default puts a large result into a file.

The SDK is 370 MB, so that this runs in CI only.
"""

from __future__ import annotations

import os
from typing import ClassVar

import pytest

from agent_otel.testing.servers.anthropic import AnthropicServer
from agent_otel.testing.servers.openai import Json, Reply, ToolCall
from tests.contract import script
from tests.contract.cases import WIRE, Case, Cut, Record
from tests.contract.delivery import LARGE, Delivery

pytestmark = pytest.mark.skipif(os.environ.get("CI") != "true", reason="370 MB to install, in CI only")


def decide(request: Json) -> Reply:
    """Ask for the tools by the names that the program gives them."""
    reply = script.decide(request)
    if isinstance(reply, str):
        return reply
    return [ToolCall(call.id, f"mcp__toolbox__{call.name}", call.arguments) for call in reply]


def big(call_id: str, size: int) -> Case:
    """Return a case of so large a result: the five digits and ``{"n":}``."""
    return Case(("big",), ((call_id, "big", {"n": size}),), (Record("big", call_id, size, args=11),))


class TestClaudeAgentSDK(Delivery):
    """Tools of this process, the model behind the program."""

    agent = "claude_agent_sdk"
    environment = "claude-agent-sdk"
    integrations: ClassVar = {
        "claude-agent-sdk": [
            "claude_agent_sdk._internal.query:Query._handle_sdk_mcp_request",
            "claude_agent_sdk._internal.query:Query._read_messages",
            "claude_agent_sdk._internal.message_parser:parse_message",
            "claude_agent_sdk._internal.client:parse_message",
        ],
    }
    has_runs = True
    run_span = "invoke_agent"
    server = AnthropicServer
    decide = staticmethod(decide)
    seconds = 240
    origin = None
    flagged = "tool_error"
    outer = False
    reads_failures = True
    # Between them is the span that the server of the tools opens.
    inside = ("tools/call lookup_later",)
    # The program says in words of its own that there was no output.
    reformatted: ClassVar = ("unicode",)
    own: ClassVar = {
        "fifty thousand": big("call_20", 49_999),
        "more than fifty thousand": big("call_22", 50_001),
        "too large for the model": LARGE,
    }
    cuts: ClassVar = {
        "more than fifty thousand": (Cut("big", "model_request", "offloaded", WIRE),),
        "too large for the model": (Cut("big", "model_request", "offloaded", WIRE),),
    }

    @classmethod
    def cases(cls) -> dict[str, Case]:
        """Return the cases but the one of a cancelled call: whether the program still tells the model is open."""
        return {name: case for name, case in super().cases().items() if name != "cancelled"}


del Delivery
