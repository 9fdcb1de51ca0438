"""Loops without a framework, and what one of their tools reaches."""

from __future__ import annotations

from typing import ClassVar

from tests.contract.cases import KEY, Case, Record, looked_up
from tests.contract.suite import Contract
from tests.contract.toolbox import LOOKUP_BYTES


def decorated(function: str, mode: str, tool: str = "") -> Case:
    """Return a case of a decorated tool, which knows no call id."""
    records = (Record(tool or function, None, LOOKUP_BYTES),)
    return Case((function,), (("call_20", function, KEY),), records, mode, "decorated")


class TestHandwritten(Contract):
    """``with agent_otel.tool_call(...)`` and ``@agent_otel.tool``."""

    agent = "handwritten"
    run_span = "invoke_workflow contract"
    environment = "bare"
    integrations: ClassVar = {}
    agent_name = "clerk"
    attributes: ClassVar = {"gen_ai.conversation.id": "run-1"}
    modes = ("sync", "async")
    imports_us = True
    own: ClassVar = {
        "decorated, and another inside": decorated("decorated", "sync"),
        "decorated coroutine": decorated("decorated_later", "async", "renamed"),
        "decorated generator": decorated("letters", "sync"),
        "decorated async generator": decorated("letters_later", "async"),
    }


class TestHandwrittenOverMcp(TestHandwritten):
    """A tool that gets its result from an MCP server is one call."""

    environment = "mcp-1"
    integrations: ClassVar = {"mcp": ["mcp.client.session:ClientSession.call_tool"]}
    own: ClassVar = {"remote": looked_up("remote", "call_21")}


del Contract
