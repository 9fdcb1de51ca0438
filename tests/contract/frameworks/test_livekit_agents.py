"""LiveKit Agents."""

from __future__ import annotations

from typing import ClassVar

from tests.contract.cases import BROKEN, KEY, Case, Record, looked_up
from tests.contract.delivery import WHOLE, Delivery
from tests.contract.toolbox import LOOKUP_BYTES


def _looped(tool: str, call_id: str, record: Record, setting: str = "loop") -> Case:
    return Case((tool,), ((call_id, tool, KEY),), (record,), setting=setting)


class TestLiveKitAgents(Delivery):
    """LiveKit Agents 1.8, whose own spans of tools are enriched."""

    agent = "livekit_agents"
    environment = "livekit-agents"
    integrations: ClassVar = {
        "livekit-agents": [
            "livekit.agents.voice.tool_executor:_ToolExecutor.execute",
            "livekit.agents.llm.utils:execute_function_call",
            "livekit.agents.llm:execute_function_call",
        ]
    }
    agent_name = "clerk"
    span = "function_tool"
    scope = "livekit-agents"
    outer = False
    modes: ClassVar = ("async",)
    origin = None
    flagged = "tool_error"  # what its own span says
    #: The framework writes data as Python does.
    reformatted: ClassVar = ("structured",)
    own: ClassVar = {
        "two megabytes": WHOLE,
        "structured": Case(
            ("table",), (("call_21", "table", {"rows": 2}),), (Record("table", "call_21", 28, args=10),)
        ),
        "in an envelope": looked_up("wrapped", "call_22"),
        "tells of its failure": Case(
            ("refused",),
            (("call_23", "refused", KEY),),
            (Record("refused", "call_23", error="tool_error"),),
        ),
        "no answer wanted": Case(
            ("silent",),
            (("call_24", "silent", KEY),),
            (Record("silent", "call_24"),),
            said="nothing",
            unsent=("call_24",),
        ),
        # A loop of the program's own, where the framework opens no span; "An internal error occurred" are 26 bytes.
        "in a loop": _looped("lookup", "call_25", Record("lookup", "call_25", LOOKUP_BYTES, agent="")),
        "in a loop that raises": _looped(
            "broken", "call_26", Record("broken", "call_26", handed_back=26, error=BROKEN, agent="")
        ),
        "in a loop over utils": _looped(
            "lookup", "call_27", Record("lookup", "call_27", LOOKUP_BYTES, agent=""), "loop of utils"
        ),
    }

    scopes: ClassVar = dict.fromkeys(("in a loop", "in a loop that raises", "in a loop over utils"), "agent_otel")

    @classmethod
    def cases(cls) -> dict[str, Case]:
        """Return the cases but the one of a cancelled call: a session goes on without the one who waits for it."""
        return {name: case for name, case in super().cases().items() if name != "cancelled"}


del Delivery
