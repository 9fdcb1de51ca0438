"""OpenAI's Agents SDK in its four forms."""

from __future__ import annotations

from typing import ClassVar

from tests.contract.cases import DELEGATED, DELEGATED_BYTES, KEY, Case, Record, failed, looked_up
from tests.contract.delivery import WHOLE, Delivery
from tests.contract.toolbox import LOOKUP_BYTES

# The call of the agent behind the tool.
ASSISTANT = Record("lookup", "call_30", LOOKUP_BYTES, agent="assistant")


class TestNewest(Delivery):
    """From 0.19 on."""

    agent = "openai_agents"
    environment = "openai-agents"
    integrations: ClassVar = {
        "openai-agents": [
            "agents.run:AgentRunner.run",
            "agents.run_internal.tool_execution:_invoke_function_tool_with_metadata",
            "agents.tool:maybe_invoke_function_tool_failure_error_function",
        ],
    }
    agent_name = "clerk"
    has_runs = True
    run_span = "invoke_agent clerk"
    waiting: ClassVar = {"waiting for approval": 1}
    attributes: ClassVar = {"gen_ai.conversation.id": "group-1"}
    origin = 1
    own: ClassVar = {
        "two megabytes": WHOLE,
        "responses": looked_up("lookup", "call_20", setting="responses"),
        "text output": looked_up("text_output", "call_21"),
        "nested": looked_up("nested", "call_22"),
        "converted": failed("converted", "call_23"),
        "converted in a coroutine": failed("converted_later", "call_24"),
        "converted by the program": failed("apologetic", "call_25"),
        "timed out": failed("hasty", "call_26", error="TimeoutError"),
        "withheld by a guardrail": Case(
            ("guarded",),
            (("call_27", "guarded", KEY),),
            (Record("guarded", "call_27", LOOKUP_BYTES, handed_back=8, cut=("framework", "shrunk")),),
        ),
        "checked by a guardrail with a tool": looked_up("checked", "call_32"),
        "waiting for approval": Case(
            ("approved",),
            (("call_28", "approved", KEY),),
            (),
            setting="approval",
            said="1 to approve",
            unsent=("call_28",),
        ),
        "agent as a tool": Case(
            ("delegate",),
            (("call_29", "delegate", {"input": DELEGATED}),),
            (Record("delegate", "call_29", 4, args=DELEGATED_BYTES), ASSISTANT),
        ),
        "from an MCP server": Case(
            (), (("call_31", "lookup", KEY),), (Record("lookup", "call_31", LOOKUP_BYTES),), setting="mcp"
        ),
    }


class TestNamed(TestNewest):
    """From 0.12 to 0.18."""

    environment = "openai-agents-0.18"
    integrations: ClassVar = {
        "openai-agents": [
            "agents.run_internal.tool_execution:invoke_function_tool",
            "agents.tool:maybe_invoke_function_tool_failure_error_function",
        ],
    }


class TestClosure(TestNewest):
    """From 0.8 to 0.11; timeouts came with 0.9."""

    waiting: ClassVar = {}
    own: ClassVar = {name: case for name, case in TestNewest.own.items() if name != "timed out"}
    environment = "openai-agents-0.8"
    integrations: ClassVar = {
        "openai-agents": [
            "agents.run_internal.tool_execution:_execute_tool_input_guardrails",
            "agents.tool:_extract_tool_argument_json_error",
        ],
    }


class TestOldest(TestNewest):
    """Up to 0.7; approvals came with 0.8."""

    attributes: ClassVar = {}  # the tools of this version do not know their run
    own: ClassVar = {
        **{name: case for name, case in TestClosure.own.items() if name != "waiting for approval"},
        # The text block as JSON: {"type":"text","text":"…","annotations":null,"meta":null}, 56 bytes around the text.
        "from an MCP server": Case(
            (), (("call_31", "lookup", KEY),), (Record("lookup", "call_31", LOOKUP_BYTES + 56),), setting="mcp"
        ),
    }
    environment = "openai-agents-0.7"
    integrations: ClassVar = {
        "openai-agents": [
            "agents._run_impl:RunImpl._execute_input_guardrails",
            "agents.tool:_extract_tool_argument_json_error",
        ],
    }


del Delivery
