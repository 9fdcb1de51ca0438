"""The script of the model in the tests of stores: one search for the letters that the user asks for, then their sum."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from agent_otel.messages.fields import text_of
from agent_otel.testing.servers.replies import ToolCall

if TYPE_CHECKING:
    from agent_otel.testing.servers.replies import Json, Reply


def decide(request: Json) -> Reply:
    """Call the tool for the last user message, then answer."""
    messages = request["messages"]
    if messages[-1]["role"] == "tool":
        return "done"
    wanted = re.findall(r"\d+", text_of(messages[-1]["content"]))[-1]
    return [ToolCall(f"call_{len(messages)}_{wanted}", "search", {"n": int(wanted)})]
