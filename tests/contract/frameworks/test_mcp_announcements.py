"""Servers of MCP announce to Claude Code how long a result may be: read from the bytes on their standard output."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.frameworks.test_mcp_server import ROWS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.environments import Environment

Json = dict[str, Any]
KEY = "anthropic/maxResultSizeChars"
HANDSHAKE = {"protocolVersion": "2025-06-18", "capabilities": {}}


class Host:
    """A host of an MCP server, which writes and reads its lines."""

    def __init__(self, server: subprocess.Popen[str], name: str) -> None:
        self._server = server
        self._count = 0
        self.ask("initialize", {**HANDSHAKE, "clientInfo": {"name": name, "version": "1"}})
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def ask(self, method: str, params: Json) -> Json:
        """Return the result of a request."""
        self._count += 1
        self._write({"jsonrpc": "2.0", "id": self._count, "method": method, "params": params})
        assert self._server.stdout is not None
        for line in self._server.stdout:
            answer: Json = json.loads(line)
            if answer.get("id") == self._count:
                result: Json = answer["result"]
                return result
        raise AssertionError("the server has ended")

    def _write(self, message: Json) -> None:
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(message) + "\n")
        self._server.stdin.flush()


def serve(
    environment: Callable[[str], Environment],
    request: pytest.FixtureRequest,
    file: Path,
    row: str,
    host: str,
    **settings: str,
) -> tuple[dict[str, Json | None], dict[str, tuple[int, str]]]:
    """Return the ``_meta`` of each tool on the wire, and the budgets of two tools' results on their spans."""
    name, kind, *_ = ROWS[row]
    here = environment(name)
    options = {"AGENT_OTEL": "1", "PYTHONPATH": str(request.config.rootpath), **settings}
    command = [str(here.python), "-m", "tests.contract.agents.mcp_served", kind, "stdio", str(file)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=here.environ(options)) as server:
        talking = Host(server, host)
        listed = talking.ask("tools/list", {})
        for tool, arguments in (("big", {"n": 20_000}), ("cut", {})):
            talking.ask("tools/call", {"name": tool, "arguments": arguments})
        assert server.stdin is not None
        server.stdin.close()
        server.wait()
    report = json.loads(file.read_text())
    assert ({}, []) == (report["errors"], report["messages"])
    spans = [span["attributes"] for span in report["spans"] if "tool.args_hash" in span["attributes"]]
    budgets = {
        span["tool.name"]: (span["tool.result.budget_bytes"], span["tool.result.budget_layer"]) for span in spans
    }
    return {tool["name"]: tool.get("_meta") for tool in listed["tools"]}, budgets


def announced(metas: dict[str, Json | None]) -> dict[str, int | None]:
    """Return the characters that each tool announces."""
    return {tool: (meta or {}).get(KEY) for tool, meta in metas.items()}


@pytest.mark.parametrize("row", ["mcp 1, low level", "mcp 2", "fastmcp 4", "fastmcp 3"])
@pytest.mark.shows("001.host_cuts")
def test_each_tool_announces_the_length_of_its_results(
    environment: Callable[[str], Environment], request: pytest.FixtureRequest, tmp_path: Path, row: str
) -> None:
    settings = {"AGENT_OTEL_MCP_RESULT_CHARACTERS": "200000"}
    metas, budgets = serve(environment, request, tmp_path / "report.json", row, "claude-code", **settings)
    others = dict.fromkeys(("lookup", "big", "broken"), 200_000)
    assert {**others, "cut": 12_000} == announced(metas)  # the program's own announcement stays
    assert {"big": (200_000, "host"), "cut": (12_000, "host")} == budgets


def test_without_the_setting_only_the_program_announces(
    environment: Callable[[str], Environment], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    metas, budgets = serve(environment, request, tmp_path / "report.json", "mcp 2", "claude-code")
    assert {**dict.fromkeys(("lookup", "big", "broken"), None), "cut": 12_000} == announced(metas)
    assert {"big": (50_000, "host"), "cut": (12_000, "host")} == budgets


def test_the_announcement_ends_where_the_host_does(
    environment: Callable[[str], Environment], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    settings = {"AGENT_OTEL_MCP_RESULT_CHARACTERS": "2MB"}
    metas, budgets = serve(environment, request, tmp_path / "report.json", "mcp 1", "codex-mcp-client", **settings)
    assert announced(metas)["big"] == 500_000
    assert {"big": (10_000, "host"), "cut": (10_000, "host")} == budgets  # Codex does not read it
