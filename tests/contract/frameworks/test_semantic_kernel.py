"""Semantic Kernel, whose own spans of tools are enriched."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from agent_otel.testing.servers.openai import OpenAIServer
from tests.contract.cases import BROKEN, DELEGATED, DELEGATED_BYTES, KEY, WIRE, Case, Cut, Record, looked_up
from tests.contract.delivery import WHOLE, Delivery
from tests.contract.script import decide_one
from tests.contract.toolbox import LOOKUP_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

# The call of the agent behind the tool.
ASSISTANT = Record("lookup", "call_30", LOOKUP_BYTES, agent="assistant")


class TestSemanticKernel(Delivery):
    """Semantic Kernel 1.45."""

    agent = "semantic_kernel"
    environment = "semantic-kernel"
    integrations: ClassVar = {
        "semantic-kernel": [
            "semantic_kernel.functions.kernel_function_from_method:KernelFunctionFromMethod._invoke_internal",
            "semantic_kernel.functions.kernel_function_from_prompt:KernelFunctionFromPrompt._invoke_internal",
            "semantic_kernel.kernel:Kernel.invoke_function_call",
            "semantic_kernel.agents.chat_completion.chat_completion_agent:ChatCompletionAgent.get_response",
        ],
    }
    agent_name = "clerk"
    has_runs = True
    run_span = "invoke_agent clerk"
    scope = "semantic_kernel.functions.kernel_function"
    origin = None
    #: The model's texts of objects are Python's.
    reformatted: ClassVar = ("structured",)
    own: ClassVar = {
        "two megabytes": WHOLE,
        "invoked": looked_up("lookup", "call_20", setting="invoked"),
        "in a plugin": Case(
            ("lookup",),
            (("call_22", "toolbox-lookup", KEY),),
            (Record("toolbox-lookup", "call_22", LOOKUP_BYTES),),
            setting="in a plugin",
        ),
        # {"rows":[{"id":0},{"id":1}]} are 28 bytes.
        "structured": Case(
            ("table",), (("call_21", "table", {"rows": 2}),), (Record("table", "call_21", 28, args=10),)
        ),
        # The arguments are {"kee":"größe"}.
        "with arguments that do not fit": Case(
            ("lookup",),
            (("call_25", "lookup", {"kee": "größe"}),),
            (Record("lookup", "call_25", handed_back=WIRE, error="tool_error"),),
        ),
        "agent as a tool": Case(
            ("delegate",),
            (("call_29", "delegate", {"input": DELEGATED}),),
            (Record("delegate", "call_29", 4, args=DELEGATED_BYTES), ASSISTANT),
        ),
        # 100 letters: g r ö ß e : and a blank are 9 bytes, 93 times ß 186.
        "shortened by a filter": Case(
            ("lookup",), (("call_27", "lookup", KEY),), (Record("lookup", "call_27", LOOKUP_BYTES),), setting="shorten"
        ),
        "shortened by a filter of functions": Case(
            ("lookup",),
            (("call_28", "lookup", KEY),),
            (Record("lookup", "call_28", LOOKUP_BYTES),),
            setting="shorten the function",
        ),
        "answered by a filter": looked_up("lookup", "call_31", setting="answer"),
    }
    cuts: ClassVar = {
        "shortened by a filter": (Cut("lookup", "framework", "shrunk", 195),),
        "shortened by a filter of functions": (Cut("lookup", "framework", "shrunk", 195),),
    }
    #: The framework has no span of its own for a call that does not come to the function.
    scopes: ClassVar = {"with arguments that do not fit": "agent_otel", "answered by a filter": "agent_otel"}

    def on_span(self, record: Record) -> Record:
        """Return the words of the framework about an exception, at whose end of the span nothing is handed back yet."""
        if record.error == BROKEN:
            return replace(record, error="BrokenError", handed_back=None)
        return super().on_span(record)


del Delivery

_BEHIND = """
import asyncio, json, sys
from tests.contract.child import Telemetry
telemetry = Telemetry()
from semantic_kernel.contents import ChatHistory, FunctionCallContent
from tests.contract import script
from tests.contract.agents import semantic_kernel
from tests.contract.toolbox import lookup

async def main():
    clerk = semantic_kernel.make(sys.argv[1], [lookup])
    await clerk.get_response(script.prompt(("call_1", "lookup", {"key": "a"})))
    asked = FunctionCallContent(id="call_2", name="lookup", arguments='{"key": "a"}')
    await clerk.kernel.invoke_function_call(asked, ChatHistory())

asyncio.run(main())
spans = [span["attributes"] for span in telemetry.spans() if "tool.args_hash" in span["attributes"]]
print(json.dumps({span["gen_ai.tool.call.id"]: span.get("gen_ai.agent.name") for span in spans}))
"""


def test_a_call_behind_a_run_is_not_the_agents(environment: Callable[[str], Environment]) -> None:
    with OpenAIServer(decide_one) as server:
        done = environment("semantic-kernel").run(_BEHIND, server.base_url, env={"AGENT_OTEL": "1"}, check=True)
    assert json.loads(done.stdout) == {"call_1": "clerk", "call_2": None}
