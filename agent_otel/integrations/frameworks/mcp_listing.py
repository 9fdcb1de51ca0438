"""The list of an MCP server's tools: their parameters, and the announcement of how long their results may be.

A tool announces it itself (``anthropic/maxResultSizeChars`` in its ``_meta``); the setting announces it for the others.
"""

from __future__ import annotations

from typing import Any

from agent_otel import settings
from agent_otel.core import handler
from agent_otel.core.plain import fields, is_named, listed, number, properties, text
from agent_otel.core.result_budget import MOST_ANNOUNCED

_ANNOUNCEMENT = "anthropic/maxResultSizeChars"
_MOST_TOOLS = 2_048
#: The announcements of the program itself, in characters, by the tools' names.
announced: dict[str, int] = {}
#: The parameters of the tools that a client has listed, by the tools' names.
parameters: dict[str, tuple[str, ...]] = {}


def announcing(listed_tools: object) -> Any:
    """Return a list of tools in which each announces the length of its results; remember the program's own.

    The program may keep and send the same list again, so that each changed tool is a copy.
    """
    characters = settings.current().mcp_result_characters
    tools = listed(fields(listed_tools).get("tools"))
    made = [_announced_tool(tool, characters) for tool in tools]
    if characters is None or not is_named(listed_tools, "ListToolsResult"):
        return listed_tools
    return listed_tools.model_copy(update={"tools": made})  # type: ignore[attr-defined] # a model of the SDK


def _announced_tool(tool: Any, characters: int | None) -> Any:
    known = fields(tool)
    name, meta = text(known.get("name")), fields(known.get("meta"))
    own = number(meta.get(_ANNOUNCEMENT))
    if name is not None:
        handler.tool_described(name, known.get("description"))
    if name is not None and (name in parameters or len(parameters) < _MOST_TOOLS):
        parameters[name] = properties(known.get("inputSchema", known.get("input_schema")))
    if own is not None and name is not None:
        if len(announced) < _MOST_TOOLS:
            announced[name] = own
    elif characters is not None and is_named(tool, "Tool"):
        return tool.model_copy(update={"meta": {**meta, _ANNOUNCEMENT: min(characters, MOST_ANNOUNCED)}})
    return tool
