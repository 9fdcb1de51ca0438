"""The client of the Model Context Protocol, both majors, and FastMCP's. What hands back is the client to the program."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from tests.contract.suite import KEY, Case, Contract, Record, looked_up
from tests.contract.toolbox import LOOKUP_BYTES

if TYPE_CHECKING:
    from tests.contract.suite import Runs


class Client(Contract):
    """What is the same in all of them: async only, no ids from a model, errors as flagged results."""

    agent = "mcp_client"
    attributes: ClassVar = {"gen_ai.tool.type": "extension"}
    modes = ("async",)
    origin = None
    outer = False
    model = False
    flagged = "tool_error"
    own: ClassVar = {
        "text and structured": Case(
            (), (("", "table", {"rows": 2}),), (Record("table", None, 72, structured=28, args=10),), said="done"
        ),
        "several blocks": Case((), (("", "blocks", {}),), (Record("blocks", None, 12, args=2),)),
        "only structured": Case((), (("", "structured", {}),), (Record("structured", None, 11, args=2),), said=""),
    }

    #: Bytes of the text about an error: ``Error executing tool broken_later: no record größe``.
    told = 52
    #: Bytes of the text of ``table(2)``: indented by two.
    tabled = 72

    def expected(self, record: Record, runs: Runs) -> Record:
        """Without a call id; errors produce a text, and servers put a text into ``{"result":"…"}`` as well."""
        record = replace(super().expected(record, runs), call_id=None)
        if record.error == "tool_error":
            return replace(record, produced=self.told)
        if record.tool in {"lookup", "lookup_later", "big"} and record.produced is not None:
            return replace(record, structured=record.produced + 13)
        return replace(record, produced=self.tabled) if record.tool == "table" else record


class TestMcp1(Client):
    """The session of mcp 1."""

    environment = "mcp-1"
    integrations: ClassVar = {"mcp": "mcp.client.session:ClientSession.call_tool"}


class TestMcp2(Client):
    """The client of mcp 2, and its session."""

    environment = "mcp-2"
    told = 33  # Error executing tool broken_later
    tabled = 28  # compact
    integrations: ClassVar = {**TestMcp1.integrations, "mcp-client": "mcp.client.client:Client.call_tool"}
    own: ClassVar = {
        **Client.own,
        "session": looked_up("lookup", "", setting="session"),
        "several rounds": Case((), (("", "asks_back", {}),), (Record("asks_back", None, LOOKUP_BYTES, args=2),)),
    }


class TestFastMcp(TestMcp2):
    """FastMCP's client, whose own span is open around the call."""

    agent = "fastmcp_client"
    integrations: ClassVar = {
        **TestMcp1.integrations,
        "fastmcp": "fastmcp.client.mixins.tools:ClientToolsMixin.call_tool_mcp",
    }
    span = "tools/call {tool}"
    scope = "fastmcp"
    said_of_errors = None  # raises its own ToolError
    own: ClassVar = {name: case for name, case in TestMcp2.own.items() if name != "session"}


del Client, Contract
