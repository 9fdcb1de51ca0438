"""The scripted model of the demo. It knows no repository: it counts the files in what it was sent."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING
from uuid import uuid4

from agent_otel.testing.servers.openai import ToolCall

if TYPE_CHECKING:
    from agent_otel.testing.servers.openai import Json, Reply

_SHA = re.compile(r"commit ([0-9a-f]{7,40})")
#: The head of a file in a diff, which the tool that reads on shows behind a line number.
_FILE = re.compile(r"^(?:\d+: ?)?diff --git (.+)$", re.MULTILINE)
_REFERENCE = re.compile(r'get_tool_result\(ref="([^"]+)"')
READ_ON = "get_tool_result"


def question(sha: str) -> str:
    """Return the question about a commit."""
    return f"How many files does commit {sha} touch?"


def decide(request: Json) -> Reply:
    """Read the commit, read on where the result says how, and answer from all that was read."""
    messages = request["messages"]
    asked = max(at for at, message in enumerate(messages) if message["role"] == "user")
    found = _SHA.search(messages[asked]["content"])
    results = [str(message["content"]) for message in messages[asked + 1 :] if message["role"] == "tool"]
    if not results:
        return [_call("get_commit", sha=found[1] if found else "HEAD")]
    reference = _REFERENCE.search(results[0])
    if reference and any(tool["function"]["name"] == READ_ON for tool in request.get("tools", ())):
        page = json.loads(results[-1]) if len(results) > 1 else {}
        if len(results) == 1 or page.get("next_cursor"):
            cursor = {"cursor": page["next_cursor"]} if page else {}
            return [_call(READ_ON, ref=reference[1], grep="diff --git", **cursor)]
    pages = [json.loads(result)["content"] for result in results[1:]]
    files = dict.fromkeys(file for text in (results[0], *pages) for file in _FILE.findall(text))
    return f"It touches {len(files)} files."


def _call(name: str, **arguments: str) -> ToolCall:
    return ToolCall(f"call_{uuid4().hex[:24]}", name, arguments)
