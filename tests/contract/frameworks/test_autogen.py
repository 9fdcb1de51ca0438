"""AutoGen, whose own spans of tools are enriched."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from tests.contract.cases import BROKEN, DELEGATED, DELEGATED_BYTES, WIRE, Case, Record, looked_up
from tests.contract.delivery import WHOLE, Delivery
from tests.contract.toolbox import LOOKUP_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

# The call of the agent behind the tool.
ASSISTANT = Record("lookup", "call_30", LOOKUP_BYTES, agent="assistant")
# {"task":"…"} is one byte shorter than {"input":"…"}.
TASK_BYTES = DELEGATED_BYTES - 1


class TestAutoGen(Delivery):
    """AutoGen 0.7.5, the last one."""

    agent = "autogen"
    environment = "autogen"
    integrations: ClassVar = {
        "autogen": [
            "autogen_core.tools._base:BaseTool.__init__",
            "autogen_agentchat.agents._assistant_agent:AssistantAgent._execute_tool_call",
            "autogen_agentchat.agents._base_chat_agent:BaseChatAgent.run",
            "autogen_agentchat.teams._group_chat._base_group_chat:BaseGroupChat.run",
        ],
    }
    agent_name = "clerk"
    has_runs = True
    run_spans: ClassVar = {"in a team": "invoke_workflow office"}
    scope = "autogen-core"
    scopes: ClassVar = {"with arguments that do not fit": "agent_otel"}
    modes: ClassVar = ("async", "stream")
    origin = None
    #: The framework makes texts of objects with str(), and puts an agent's name before what it says.
    reformatted: ClassVar = ("structured", "agent as a tool")
    own: ClassVar = {
        "two megabytes": WHOLE,
        "structured": Case(
            ("table",), (("call_21", "table", {"rows": 2}),), (Record("table", "call_21", 28, args=10),)
        ),
        # The arguments are {"kee":"größe"}.
        "with arguments that do not fit": Case(
            ("lookup",),
            (("call_25", "lookup", {"kee": "größe"}),),
            (Record("lookup", "call_25", handed_back=WIRE, error="pydantic_core._pydantic_core.ValidationError"),),
        ),
        "agent as a tool": Case(
            ("assistant",),
            (("call_29", "assistant", {"task": DELEGATED}),),
            (Record("assistant", "call_29", 4, args=TASK_BYTES), ASSISTANT),
        ),
        "in a team": looked_up("lookup", "call_32", setting="team"),
    }

    def on_span(self, record: Record) -> Record:
        """Return the words of the framework about an exception, at whose end of the span nothing is handed back yet."""
        if record.error == BROKEN:
            return replace(record, error="BrokenError", handed_back=None)
        return super().on_span(record)


def test_classes_that_a_program_makes_in_functions_are_freed(environment: Callable[[str], Environment]) -> None:
    """A method of each class is wrapped; nothing of this package keeps the class alive."""
    program = """
        import asyncio, gc, weakref
        from autogen_core import CancellationToken
        from autogen_core.tools import BaseTool
        from pydantic import BaseModel

        class Arguments(BaseModel):
            n: int

        def make():
            class Local(BaseTool[Arguments, str]):
                def __init__(self):
                    super().__init__(Arguments, str, "local", "A tool of one request.")

                async def run(self, args, cancellation_token):
                    return "x" * args.n

            tool = Local()
            assert asyncio.run(tool.run_json({"n": 7}, CancellationToken())) == "x" * 7
            return weakref.ref(Local)

        made = [make() for _ in range(10)]
        gc.collect()
        from prometheus_client import REGISTRY
        name = "agent_otel_tool_args_size_bytes_count"
        print(REGISTRY.get_sample_value(name, {"gen_ai_tool_name": "local"}), sum(one() is not None for one in made))
    """
    child = environment("autogen").run(program, env={"AGENT_OTEL": "1"}, check=True)
    assert child.stdout == "10 0\n"


del Delivery
