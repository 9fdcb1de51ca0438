"""The Claude Agent SDK with its program, which by default puts a large result into a file.

The SDK is 370 MB, so that this runs in CI only.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from typing import TYPE_CHECKING, ClassVar

import pytest

from agent_otel.testing.servers.anthropic import AnthropicServer
from agent_otel.testing.servers.openai import Json, Reply, ToolCall, tool_results
from tests.contract import script
from tests.contract.cases import WIRE, Case, Cut, Record
from tests.contract.delivery import LARGE, Delivery
from tests.contract.suite import QUIET

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.environments import Environment

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


_BUILT_IN = """
import asyncio, json, sys
sys.path.insert(0, {root!r})
from tests.contract.child import Telemetry
telemetry = Telemetry()
from claude_agent_sdk import query
from tests.contract.agents import claude_agent_sdk as agent

async def run():
    options = agent.options({base_url!r}, [], {home!r})
    options.tools = options.allowed_tools = ["Bash", "Read"]
    return [str(message.result) async for message in query(prompt="go", options=options) if hasattr(message, "result")]

said = asyncio.run(run())
from agent_otel._internal import errors
print(json.dumps([said, telemetry.spans(), telemetry.metrics(), dict(errors.errors)]))
"""


def test_built_in_tools_are_recorded_with_what_the_model_got(
    environment: Callable[[str], Environment], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """They run in the program, each in a turn; one result is too large for the model, and one call fails."""
    notes = tmp_path / "notes.txt"
    notes.write_text("a note\n")
    letters = "head -c {} /dev/zero | tr '\\0' x"
    calls = (
        ToolCall("call_1", "Bash", {"command": letters.format(5000)}),
        ToolCall("call_2", "Bash", {"command": letters.format(100_000)}),
        ToolCall("call_3", "Bash", {"command": "exit 3"}),
        ToolCall("call_4", "Read", {"file_path": str(notes)}),
    )

    def one_by_one(request: Json) -> Reply:
        answered = tool_results(request)
        return next(([call] for call in calls if call.id not in answered), "done")

    with AnthropicServer(one_by_one) as model:
        code = _BUILT_IN.format(root=str(request.config.rootpath), base_url=model.base_url, home=str(tmp_path))
        done = environment("claude-agent-sdk").run(code, env={"AGENT_OTEL": "1"}, timeout=110, check=True)
        wire = {call_id: len(text.encode()) for call_id, text in model.tool_results().items()}
    said, spans, metrics, errors = json.loads(done.stdout.splitlines()[-1])
    assert (["done"], {}) == (said, errors)
    assert 5000 == wire["call_1"]
    assert wire["call_2"] < 5000
    told = [span["attributes"] for span in spans if "tool.args_hash" in span["attributes"]]
    assert wire == {attributes["gen_ai.tool.call.id"]: attributes["tool.result.bytes"] for attributes in told}
    assert ["Bash", "Bash", "Bash", "Read"] == [attributes["tool.name"] for attributes in told]
    assert {"model_request"} == {attributes["tool.result.seen_at"] for attributes in told}
    assert [False, True, False, False] == [attributes["tool.result.truncated"] for attributes in told]
    assert [None, None, "tool_error", None] == [attributes.get("error.type") for attributes in told]
    delivered: Counter[str] = Counter()
    for metric in metrics:
        if metric["name"] == "agent_otel.tool.result.delivered":
            delivered[metric["attributes"]["gen_ai.tool.name"]] += metric["sum"]
    assert {"Bash": wire["call_1"] + wire["call_2"] + wire["call_3"], "Read": wire["call_4"]} == delivered


REMEDIES = {
    "AGENT_OTEL": "1",
    "AGENT_OTEL_CLAIM_CHECK": "memory:",
    "AGENT_OTEL_CLAIM_CHECK_BYTES": "2000",
    "AGENT_OTEL_MAX_TOOL_CALLS": "3",
    "AGENT_OTEL_SUMMARIZE_ABOVE_TOKENS": "1000",
    "AGENT_OTEL_TRIM_RESULTS": "1",
}
PROGRAM = """
import sys
from tests.contract.agents import claude_agent_sdk
from tests.contract.child import Messages

messages = Messages()

def fetch(key: "str") -> "str":
    "Fetch a record."
    return "row of a record\\n" * 400

print(claude_agent_sdk.run(sys.argv[1], [fetch], "go", ""))
print("\\n".join(messages.take()))
"""
THROUGH = "through claude_agent_sdk"
THIS = f"{THROUGH}, in this version of it or of agent_otel; they go on"
SAID = {
    (
        f"AGENT_OTEL_CLAIM_CHECK: get_tool_result cannot be offered in a request {THROUGH}; the result's view has the "
        "reference and names no tool."
    ),
    (
        f"AGENT_OTEL_MAX_TOOL_CALLS: calls above the limit are not run, but requests {THROUGH} cannot be rewritten and "
        "keep their tools; the run ends when the model or the framework ends it."
    ),
    f"AGENT_OTEL_SUMMARIZE_ABOVE_TOKENS: without effect on requests {THIS} as they are.",
    f"AGENT_OTEL_TRIM_RESULTS: without effect on calls {THIS} whole and unlimited.",
}


def test_what_cannot_act_on_the_programs_requests_says_so_once(environment: Callable[[str], Environment]) -> None:
    def fetching(_: Json) -> Reply:
        number = len(server.requests)
        return "done" if number > 5 else [ToolCall(f"call_{number}", "mcp__toolbox__fetch", {"key": f"k{number}"})]

    with AnthropicServer(fetching) as server:
        done = environment("claude-agent-sdk").run(PROGRAM, server.base_url, env={**QUIET, **REMEDIES}, check=True)
        texts = [json.dumps(request["messages"]) for request in server.requests]
    said, *messages = done.stdout.splitlines()
    assert said == "done"
    assert (len(messages), set(messages)) == (len(SAID), SAID)
    assert [text.count("the whole is stored: ref=") for text in texts] == [0, 1, 2, 3, 3, 3]
    assert texts[-1].count("limit_reached") == 2
    assert "get_tool_result" not in "".join(texts)


del Delivery
