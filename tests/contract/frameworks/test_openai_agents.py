"""OpenAI's Agents SDK in its four forms."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, ClassVar

from agent_otel.testing.servers import openai
from agent_otel.testing.servers.scripted import Answer
from tests.contract.cases import DELEGATED, DELEGATED_BYTES, KEY, Case, Record, failed, looked_up
from tests.contract.delivery import WHOLE, Delivery
from tests.contract.toolbox import LOOKUP_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.testing.servers.openai import Json, Reply
    from agent_otel.testing.servers.scripted import Endpoint, ScriptedServer
    from tests.environments import Environment

# The call of the agent behind the tool.
ASSISTANT = Record("lookup", "call_30", LOOKUP_BYTES, agent="assistant")

# What a shell prints, 500 letters, after the cut that the model asks for:
# [{"stdout":"…","stderr":"","outcome":{"type":"exit","exit_code":null}}], 70 bytes around 100 letters. The arguments
# are {"commands":["ls"],"max_output_length":100}, and null as the time limit, which the SDK's object adds.
SHELL = Case(
    ("shell",),
    (("call_35", "shell", {"commands": ["ls"], "max_output_length": 100}),),
    (Record("shell", "call_35", 170, args=61),),
    setting="responses",
)
# A human has to approve; until then it is no call.
SHELL_APPROVED = Case(
    ("shell_approved",),
    (("call_37", "shell", {"commands": ["ls"]}),),
    (),
    setting="responses approval",
    said="1 to approve",
    unsent=("call_37",),
)
# {"type":"create_file","path":"a.txt","diff":"+a"}, and one line that says so.
PATCH = Case(
    ("apply_patch",),
    (("call_36", "apply_patch", {"type": "create_file", "path": "a.txt", "diff": "+a"}),),
    (Record("apply_patch", "call_36", 12, args=49),),
    setting="responses",
)
# Two tools whose input is a text, of which one raises.
CUSTOM = Case(
    ("custom", "custom_broken"),
    (("call_33", "custom", KEY), ("call_34", "custom_broken", KEY)),
    (Record("custom", "call_33", LOOKUP_BYTES), *failed("custom_broken", "call_34").records),
    setting="responses",
)


class Server(openai.OpenAIServer):
    """A model that calls the SDK's own tools by items of their own."""

    def endpoints(self) -> dict[str, Endpoint]:
        """Return the APIs."""
        return {**super().endpoints(), "/v1/responses": _answer}


def _answer(request: Json, reply: Reply) -> Answer:
    answer = openai.responses_answer(request, reply)
    if request.get("stream") or isinstance(reply, str) or not isinstance(answer.body, dict):
        return answer
    return Answer({**answer.body, "output": [_item(item) for item in answer.body["output"]]})


def _item(item: Json) -> Json:
    name, arguments = item["name"], item.pop("arguments")
    if name.startswith("custom"):
        return {**item, "type": "custom_tool_call", "input": arguments}
    key = {"shell": "action", "apply_patch": "operation"}.get(name)
    return {**item, "type": f"{name}_call", key: json.loads(arguments)} if key else {**item, "arguments": arguments}


class TestNewest(Delivery):
    """From 0.19 on."""

    server = Server
    agent = "openai_agents"
    environment = "openai-agents"
    integrations: ClassVar = {
        "openai-agents": [
            "agents.run:AgentRunner.run",
            "agents.run_internal.tool_execution:_invoke_function_tool_with_metadata",
            "agents.run_internal.tool_actions:CustomToolAction.execute",
            "agents.tool:maybe_invoke_function_tool_failure_error_function",
        ],
    }
    agent_name = "clerk"
    has_runs = True
    run_span = "invoke_agent clerk"
    waiting: ClassVar = {"waiting for approval": 1, "shell waiting for approval": 1}
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
        "shell": SHELL,
        "shell waiting for approval": SHELL_APPROVED,
        "patch": PATCH,
        "custom tools": CUSTOM,
    }

    @classmethod
    def results(cls, server: openai.OpenAIServer | ScriptedServer) -> dict[str, str]:
        """Return what the model was sent; a shell's output is JSON."""
        found = super().results(server)
        items = [item for request in server.requests for item in request.get("input") or () if isinstance(item, dict)]
        shells = (item for item in items if item.get("type") == "shell_call_output")
        told = ((item["call_id"], json.dumps(item["output"], separators=(",", ":"))) for item in shells)
        return {**found, **dict(told)}


class TestNamed(TestNewest):
    """From 0.12 to 0.18."""

    environment = "openai-agents-0.18"
    integrations: ClassVar = {
        "openai-agents": [
            "agents.run_internal.tool_execution:invoke_function_tool",
            "agents.run_internal.tool_actions:CustomToolAction.execute",
            "agents.run_internal.tool_actions:CustomToolAction.execute",
            "agents.tool:maybe_invoke_function_tool_failure_error_function",
        ],
    }


class TestClosure(TestNewest):
    """From 0.8 to 0.11; timeouts came with 0.9, custom tools later."""

    waiting: ClassVar = {"shell waiting for approval": 1}
    own: ClassVar = {name: case for name, case in TestNewest.own.items() if name not in {"timed out", "custom tools"}}
    environment = "openai-agents-0.8"
    integrations: ClassVar = {
        "openai-agents": [
            "agents.run_internal.tool_execution:_execute_tool_input_guardrails",
            "agents.run_internal.tool_actions:ShellAction.execute",
            "agents.tool:_extract_tool_argument_json_error",
        ],
    }


class TestOldest(TestNewest):
    """Up to 0.7; approvals came with 0.8."""

    attributes: ClassVar = {}  # the tools of this version do not know their run
    own: ClassVar = {
        **{n: case for n, case in TestClosure.own.items() if "approval" not in n and n not in {"shell", "patch"}},
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


_KEEPING = """
import asyncio, json, sys
from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

class Keeping(SpanProcessor):
    started, kept = [], {}

    def on_start(self, span, parent_context=None):
        self.started.append(span.name)
        self.kept[span.context.span_id] = span.name

    def on_end(self, span):
        del self.kept[span.context.span_id]

provider, simple, batch = TracerProvider(), InMemorySpanExporter(), InMemorySpanExporter()
for processor in (Keeping(), SimpleSpanProcessor(simple), BatchSpanProcessor(batch)):
    provider.add_span_processor(processor)
trace.set_tracer_provider(provider)
from agent_otel._internal import errors
from tests.contract.agents import openai_agents

said = asyncio.run(openai_agents.arun(sys.argv[1], [openai_agents.TOOLS["shell_approved"]], "go", "responses approval"))
provider.force_flush()
exported = [[span.name for span in exporter.get_finished_spans()] for exporter in (simple, batch)]
print(json.dumps([said, Keeping.started, Keeping.kept, exported, dict(errors.errors)]))
"""


def test_a_deferred_call_leaves_no_open_span(environment: Callable[[str], Environment]) -> None:
    """A processor that keeps spans until they end keeps none, and no exporter gets the span of what is no call yet."""
    env = {"AGENT_OTEL": "1", "OPENAI_AGENTS_DISABLE_TRACING": "1"}
    with Server(lambda _: [openai.ToolCall("call_1", "shell", {"commands": ["ls"]})]) as server:
        done = environment("openai-agents").run(_KEEPING, server.base_url, env=env, check=True)
    said, started, kept, exported, errors = json.loads(done.stdout.splitlines()[-1])
    assert (said, errors) == ("1 to approve", {})
    assert "execute_tool shell" in started
    assert kept == {}
    assert exported == [["chat scripted", "invoke_agent clerk"]] * 2


del Delivery
