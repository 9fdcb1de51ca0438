"""The client of the Model Context Protocol, both majors, and FastMCP's."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from tests.contract.cases import Case, Record, looked_up
from tests.contract.suite import Contract
from tests.contract.toolbox import LOOKUP_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from tests.contract.suite import Runs
    from tests.environments import Environment


class Client(Contract):
    """What is the same in all of them: async only, no ids from a model, errors as flagged results."""

    agent = "mcp_client"
    attributes: ClassVar = {"gen_ai.tool.type": "extension", "agent_otel.mcp.server.name": "toolbox"}
    modes = ("async",)
    origin = None
    outer = False
    model = False
    flagged = "tool_error"
    own: ClassVar = {
        # The text is the table as JSON, indented by two: 72 bytes.
        "text and structured": Case(
            (), (("", "table", {"rows": 2}),), (Record("table", None, 72, structured=28, args=10),)
        ),
        "several blocks": Case((), (("", "blocks", {}),), (Record("blocks", None, 12, args=2),)),
        # {"type":"image","data":"R0lG","mimeType":"image/gif"}, 53 bytes, beside a text of 7
        "picture": Case((), (("", "picture", {}),), (Record("picture", None, 60, args=2),), said="größe"),
        "only structured": Case((), (("", "structured", {}),), (Record("structured", None, 11, args=2),), said=""),
    }

    #: Bytes of the text about an error: ``Error executing tool broken_later: no record größe``.
    told = 52

    def expected(self, record: Record, runs: Runs) -> Record:
        """Without a call id; errors produce a text, and servers put a text into ``{"result":"…"}`` as well."""
        record = replace(super().expected(record, runs), call_id=None)
        if record.error == "tool_error":
            return replace(record, produced=self.told)
        if record.tool in {"lookup", "lookup_later", "big"} and record.produced is not None:
            return replace(record, structured=record.produced + 13)
        return record


class TestMcp1(Client):
    """The session of mcp 1."""

    environment = "mcp-1"
    inside: ClassVar[tuple[str, ...]] = ()  # its server runs where no span of ours is current
    integrations: ClassVar = {"mcp": ["mcp.client.session:ClientSession.call_tool"]}


class TestMcp2(Client):
    """The client of mcp 2, and its session."""

    environment = "mcp-2"
    inside: ClassVar[tuple[str, ...]] = ("tools/call lookup_later",)  # the server's, in this process
    told = 33  # Error executing tool broken_later
    integrations: ClassVar = {
        "mcp": ["mcp.client.session:ClientSession.call_tool", "mcp.client.client:Client.call_tool"]
    }
    own: ClassVar = {
        **Client.own,
        # One byte more: mcp 2 calls the field mime_type.
        "picture": Case((), (("", "picture", {}),), (Record("picture", None, 61, args=2),), said="größe"),
        "session": looked_up("lookup", "", setting="session"),
        "several rounds": Case((), (("", "asks_back", {}),), (Record("asks_back", None, LOOKUP_BYTES, args=2),)),
    }


class TestFastMcp(TestMcp2):
    """FastMCP's client, whose own span is open around the call."""

    agent = "fastmcp_client"
    integrations: ClassVar = {
        **TestMcp1.integrations,
        "fastmcp": ["fastmcp.client.mixins.tools:ClientToolsMixin.call_tool_mcp"],
    }
    span = "tools/call {tool}"
    inside = ("MCP send tools/call lookup_later",)  # mcp's own
    scope = "fastmcp"
    said_of_errors: ClassVar[str | None] = None  # raises its own ToolError
    own: ClassVar = {name: case for name, case in TestMcp2.own.items() if name != "session"}


del Client, Contract

#: A tool of the program's own, which asks a server on the way.
_NESTED = """
import asyncio, json, sys
sys.path.insert(0, {root!r})
from tests.contract.child import Messages, Telemetry
messages, telemetry = Messages(), Telemetry()
import agent_otel
from tests.contract.agents import mcp_client

@agent_otel.tool
async def outer(key: str) -> str:
    async with mcp_client.connect("session") as session:
        return (await session.call_tool("lookup", {{"key": key}})).content[0].text

asyncio.run(outer("a"))
print(json.dumps(telemetry.spans()))
"""


def test_a_call_inside_a_tool_is_on_the_tool_s_span(
    environment: Callable[[str], Environment], request: pytest.FixtureRequest
) -> None:
    program = _NESTED.format(root=str(request.config.rootpath))
    done = environment("mcp-1").run(program, env={"AGENT_OTEL": "1"}, check=True)
    (span,) = (span for span in json.loads(done.stdout.splitlines()[-1]) if "tool.args_hash" in span["attributes"])

    assert (span["name"], span["attributes"]["mcp.method.name"]) == ("execute_tool outer", "tools/call")
